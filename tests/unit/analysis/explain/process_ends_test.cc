// SPDX-License-Identifier: MIT
// What the end of a server's process did to requests, and how it is said.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/explain.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

ProcessEnd Killed(int signal, bool core_dumped = false, bool oom_killer = false)
{
	ProcessEnd end;
	end.signal = signal;
	end.core_dumped = core_dumped;
	end.oom_killer = oom_killer;
	return end;
}

ProcessEnd Exited(int status)
{
	ProcessEnd end;
	end.status = status;
	return end;
}

// A request each millisecond. The server (process kServer) exits at 100 ms.
struct EndedRun {
	RunBuilder b;
	Explained e;

	explicit EndedRun(ProcessEnd end = Killed(9))
	{
		b.Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN | FT_THREAD_ENDED);
		b.run.servers = {"127.0.0.1:6379"};
		b.run.server_pids = {kServer};
		b.run.targets.resize(1);
		b.run.targets[0].pid = kServer;
		b.run.targets[0].comm = "redis-server";
		end.t_ns = kBase + 100 * ms;
		end.pid = kServer;
		end.comm = "redis-server";
		b.run.ended = {end};
		for (uint64_t t = 0; t < 99; t++)
			b.Request(t * ms, t * ms, t * ms + 100 * us);
		b.Request(99 * ms, 99 * ms, 100 * ms + 50 * us, 0, 0, FT_STATUS_RESET);
	}
	// Requests due in [from, to) ms that were never sent.
	void Unsent(uint64_t from, uint64_t to)
	{
		for (uint64_t t = from; t < to; t++)
			b.Request(t * ms, t * ms, 200 * ms, 0, 0, FT_STATUS_UNSENT);
	}
	const Explanation &Explain()
	{
		b.Loop("constant");
		b.Finish();
		WholeLog log(b.run);
		LogFacts facts = CountRequests(b.run, &log);
		e.server_ends = FindServerEnds(b.run, &log);
		facts.outages = OutagesOf(b.run, e.server_ends);
		std::vector<Timeline> timelines;
		timelines.push_back(b.Timeline());
		e.blame = BlameLog(b.run, &log, std::move(facts), timelines, {1, 0}, {}, {}, {}, {});
		e.zero_ns = e.first_ns = kBase;
		e.measured_ns = 200 * ms;
		e.run = b.run;
		return e;
	}
};

} // namespace

TEST_CASE("a killed server is the answer: requests were due and never sent")
{
	EndedRun r;
	r.Unsent(100, 200);
	const Explanation &e = r.Explain();
	REQUIRE(e.server_ends.size() == 1);
	CHECK(e.server_ends[0].server == 0);
	CHECK(e.server_ends[0].unsent == 100);
	CHECK(e.server_ends[0].failed == 1);
	CHECK(e.server_ends[0].next_answer_ns == 0);
	CHECK(OutageOf(e) == 0);
	CHECK(OutageText(e) ==
	      "redis-server (100) exited 100 ms after the first request, killed by SIGKILL: 100 requests "
	      "were due and never sent, and 1 sent request got no answer. No request was answered after "
	      "the exit (no-server).");
	CHECK(EndNotes(e).empty());
	// All of their time is the outage's: the load generator was not late, and the server not idle.
	for (const SlowRequest &s : e.blame.slow)
		if (s.status == FT_STATUS_UNSENT) {
			REQUIRE(s.part_count == 1);
			CHECK(e.blame.parts[s.first_part].cause == Cause::NoServer);
		}
}

TEST_CASE("an outage ends with the first answer to a request that was sent after it")
{
	EndedRun r;
	r.b.Request(120 * ms, 120 * ms, 121 * ms, 0, 0, FT_STATUS_REFUSED);
	r.b.Request(130 * ms, 148 * ms, 150 * ms); // waited for it
	r.b.Request(160 * ms, 160 * ms, 161 * ms);
	r.b.Request(190 * ms, 190 * ms, 191 * ms, 0, 0, FT_STATUS_TIMEOUT); // has another reason
	const Explanation &e = r.Explain();
	CHECK(e.server_ends[0].next_answer_ns == kBase + 150 * ms);
	CHECK(e.server_ends[0].failed == 2);
	CHECK(OutageText(e).ends_with(
	    "2 sent requests got no answer. The next answer came 50.0 ms after the exit "
	    "(no-server)."));
	const SlowRequest &waited = e.blame.slow[101];
	REQUIRE(waited.due_ns == kBase + 130 * ms);
	uint64_t without_ns = 0;
	for (uint32_t p = waited.first_part; p < waited.first_part + waited.part_count; p++)
		if (e.blame.parts[p].cause == Cause::NoServer)
			without_ns += e.blame.parts[p].total_ns();
	CHECK(without_ns == 20 * ms);
}

TEST_CASE("an end is no outage if most errors are not its own, but a note")
{
	EndedRun r;
	r.b.Request(110 * ms, 110 * ms, 111 * ms);
	for (uint64_t t = 120; t < 130; t++)
		r.b.Request(t * ms, t * ms, t * ms + 100 * us, 0, 0, FT_STATUS_ERROR_REPLY);
	const Explanation &e = r.Explain();
	CHECK(OutageOf(e) == -1);
	CHECK(OutageText(e).empty());
	REQUIRE(EndNotes(e).size() == 1);
	CHECK(EndNotes(e)[0] ==
	      "redis-server (100) exited at +0.100 s, killed by SIGKILL: the next answer came 11.0 ms later");
}

TEST_CASE("the end of another process than the server is a note")
{
	EndedRun r(Exited(1));
	r.b.run.ended[0].pid = 300;
	r.b.run.ended[0].comm = "redis-sentinel";
	r.Unsent(100, 200);
	const Explanation &e = r.Explain();
	CHECK(e.server_ends[0].server == -1);
	CHECK(OutageText(e).empty());
	REQUIRE(EndNotes(e).size() == 1);
	CHECK(EndNotes(e)[0] == "redis-sentinel (300) exited at +0.100 s, with status 1");
}

TEST_CASE("a killed snapshot child is no outage of its server")
{
	EndedRun r(Killed(9, false, true));
	r.b.run.ended[0].child = true;
	r.b.run.ended[0].comm = "snapshot child";
	const Explanation &e = r.Explain();
	CHECK(OutageText(e).empty());
	REQUIRE(EndNotes(e).size() == 1);
	CHECK(EndNotes(e)[0].starts_with("snapshot child (100), a child of a recorded process, exited at"));
}

TEST_CASE("how a process ended")
{
	Run run;
	auto how = [&](ProcessEnd end) {
		end.pid = 7;
		end.t_ns = kBase;
		return HowText(run, end);
	};
	CHECK(how(ProcessEnd()) == ""); // a recorder that did not see it
	CHECK(how(Killed(9)) == ", killed by SIGKILL");
	CHECK(how(Killed(11, true)) == ", killed by SIGSEGV (core dumped)");
	CHECK(how(Killed(40)) == ", killed by signal 40");
	CHECK(how(Killed(9, false, true)) == ", killed by the kernel's OOM killer");
	run.series.push_back({"cgroup.memory.limit_hits",
			      "",
			      {{"cgroup", "/redis"}},
			      {{kBase - 20'000 * ms, 3}, {kBase + ms, 9}}});
	run.series.push_back({"cgroup.memory.limit_hits",
			      "",
			      {{"cgroup", "/other"}},
			      {{kBase - 20'000 * ms, 3}, {kBase + ms, 3}}});
	CHECK(how(Killed(9, false, true)) == ", killed by the kernel's OOM killer in cgroup /redis");
	run.series.push_back({"cgroup.memory.oom_kills",
			      "",
			      {{"cgroup", "/other"}},
			      {{kBase - 20'000 * ms, 0}, {kBase + ms, 1}}});
	CHECK(how(Killed(9, false, true)) == ", killed by the kernel's OOM killer");
	CHECK(how(Exited(0)) == ", with status 0");
	CHECK(how(Exited(1)) == ", with status 1");
}

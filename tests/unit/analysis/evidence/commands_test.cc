// SPDX-License-Identifier: MIT
// Which command ran in an event-loop iteration, who sent it, and what the kernel did in it.
#include "tests/unit/analysis/evidence/evidence_of.h"

#include "analysis/explain.h"
#include "analysis/explain/scene.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

Stack InCommand(std::vector<const char *> functions)
{
	Stack stack;
	stack.program = "redis-server";
	functions.insert(functions.end(), {"call", "processCommand", "main"});
	for (const char *f : functions)
		stack.frames.push_back({f, stack.program});
	return stack;
}

void Entry(RunBuilder *b, uint64_t end_ms, uint64_t length_us, const char *command)
{
	b->run.reports.push_back({kBase + end_ms * ms, "slowlog", 0,
				  R"({"t_error_ns":500000000,"client":"10.0.0.7:5123","duration_us":)" +
				      std::to_string(length_us) + R"(,"command":[")" + command +
				      R"(","k"]})"});
}

Commands CommandsIn(RunBuilder *b)
{
	b->Finish();
	SlowLog log(b->run);
	log.Add(b->run, ActivitiesOf(b->run), 0, UINT64_MAX);
	return CommandsOf(b->run, log);
}

// The clause of a cause in a run whose requests are one episode.
std::string ClauseOf(RunBuilder *b, Cause cause)
{
	b->Finish();
	std::vector<Timeline> timelines;
	timelines.push_back(b->Timeline());
	Blame blame = BlameRun(b->run, timelines, {1, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);
	Culprits culprits = {{cause, {}}};
	FindEvidence(b->run, timelines, blame, ActivitiesOf(b->run), 10, 10, &episodes, {}, {}, &culprits);
	return culprits[cause].clause;
}

} // namespace

TEST_CASE("commands: an entry of the slow log is of the iteration that it fits")
{
	struct Iteration {
		uint64_t from_ms, to_ms;
		const char *function; // in its samples; null: it has none
	};
	const struct {
		const char *what;
		uint64_t length_us;
		std::vector<Iteration> iterations;
		std::vector<uint64_t> ran_in_ms; // begins of the iterations found
		bool dated;
	} rows[] = {
	    {"the only one", 50'000, {{100, 151, nullptr}, {300, 370, nullptr}}, {100}, true},
	    {"none is as long", 90'000, {{100, 151, nullptr}}, {}, false},
	    {"in another second", 50'000, {{2000, 2051, nullptr}}, {}, false},
	    {"two are as long", 50'000, {{100, 151, nullptr}, {300, 351, nullptr}}, {100, 300}, false},
	    {"two are as long, and one ran another command",
	     50'000,
	     {{100, 151, "keysCommand"}, {300, 351, nullptr}},
	     {300},
	     true},
	    {"two are as long, and one ran this command",
	     50'000,
	     {{100, 151, "lcsCommand"}, {300, 351, nullptr}},
	     {100},
	     true},
	    {"in a longer one, at an unknown time", 50'000, {{100, 300, nullptr}}, {100}, false},
	};
	for (const auto &row : rows) {
		INFO(row.what);
		RunBuilder b;
		b.Thread(kServer, 0, 3000 * ms);
		for (const Iteration &i : row.iterations) {
			b.Frame(FT_ITERATION, i.from_ms * ms, i.to_ms * ms);
			if (i.function)
				b.CpuSamples(i.from_ms * ms, i.to_ms - i.from_ms,
					     b.Stack(InCommand({i.function})));
		}
		Entry(&b, 400, row.length_us, "lcs");
		const Commands commands = CommandsIn(&b);
		std::vector<uint64_t> ran_in_ms;
		for (const TimeSpan &t : commands.ran_in.at(0))
			ran_in_ms.push_back((t.since_ns - kBase) / ms);
		CHECK(ran_in_ms == row.ran_in_ms);
		CHECK(IsDated(commands, 0, row.length_us * us) == row.dated);
	}
}

TEST_CASE("commands: two entries are of two iterations, and a command of a script of the script's")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000 * ms);
	b.Frame(FT_ITERATION, 100 * ms, 151 * ms);
	b.Frame(FT_ITERATION, 300 * ms, 355 * ms);
	Entry(&b, 400, 54'000, "EVAL");
	Entry(&b, 400, 50'500, "LCS");
	Entry(&b, 400, 49'500, "KEYS"); // of the script
	const Commands commands = CommandsIn(&b);
	auto begin_ms = [&](size_t i) { return (commands.ran_in[i].at(0).since_ns - kBase) / ms; };
	CHECK(begin_ms(0) == 300);
	CHECK(begin_ms(1) == 100);
	CHECK(commands.ran_in[2].size() == 1);
}

TEST_CASE("commands: the kernel's work in a command says in which one, and the command who sent it")
{
	RunBuilder b;
	OneRequest(&b, 60 * ms);
	b.Frame(FT_ITERATION, 0, 100 * ms);
	b.Frame(FT_PAGE_ZERO, 10 * ms, 30 * ms);
	b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 40 * ms, 60 * ms);
	b.Frame(FT_RECLAIM, 70 * ms, 90 * ms);
	SECTION("by samples")
	{
		b.CpuSamples(0, 100, b.Stack(InCommand({"lcsCommand"})));
		b.Finish();
		const std::string evidence = EvidenceOf(&b);
		holds(evidence, "1 first touch of new memory, 20.0 ms, during LCS\n");
		holds(evidence, "softirq net_rx took 20.0 ms on cpu 0, during LCS\n");
		holds(evidence, "took 20.0 ms, during LCS\n");
	}
	SECTION("in the first line")
	{
		b.CpuSamples(0, 100, b.Stack(InCommand({"lcsCommand"})));
		CHECK(ClauseOf(&b, Cause::PageZero) ==
		      "1 first touch of new memory took 20.0 ms, during LCS");
	}
	SECTION("by the slow log, where the function is of several commands")
	{
		b.CpuSamples(0, 100, b.Stack(InCommand({"sinterGenericCommand", "sinterCommand"})));
		Entry(&b, 100, 99'000, "smembers");
		SECTION("faults")
		{
			CHECK(ClauseOf(&b, Cause::PageZero) ==
			      "1 first touch of new memory took 20.0 ms, during SMEMBERS");
		}
		SECTION("own code")
		{
			CHECK(ClauseOf(&b, Cause::ServerBusy) ==
			      "SMEMBERS from 10.0.0.7:5123 took 40.0 ms of CPU in 1 event-loop iteration");
		}
	}
	SECTION("not by samples of several commands")
	{
		b.CpuSamples(0, 50, b.Stack(InCommand({"lcsCommand"})));
		b.CpuSamples(50 * ms, 50, b.Stack(InCommand({"keysCommand"})));
		CHECK(ClauseOf(&b, Cause::PageZero) == "1 first touch of new memory took 20.0 ms");
	}
}

TEST_CASE("commands: the client of a slow command is in the first line")
{
	RunBuilder b;
	b.run.ops = {"unknown", "GET", "SINTER", "SMEMBERS"};
	b.run.request_clients = {{"10.0.0.7", "10.0.0.7", 0, ""}, {"10.0.0.8", "10.0.0.8", 0, ""}};
	b.Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms);
	auto request = [&](uint32_t connection, uint8_t op, uint32_t bytes) {
		b.Request(0, 0, 100 * ms, connection, op);
		b.run.connections[connection].client = connection + 1;
		b.run.connections[connection].local_port = 5000 + connection;
		b.run.requests.read_ns.push_back(kBase + 1 * ms);
		b.run.requests.written_ns.push_back(kBase + 100 * ms);
		b.run.requests.request_bytes.push_back(bytes);
		b.run.requests.answer_bytes.push_back(0);
	};
	SECTION("of a function's commands, the one that was read")
	{
		b.Frame(FT_ITERATION, 0, 100 * ms);
		b.CpuSamples(0, 100, b.Stack(InCommand({"sinterCommand"})));
		request(0, 1, 20);
		request(1, 3, 20);
		CHECK(ClauseOf(&b, Cause::ServerBusy) ==
		      "SMEMBERS from 10.0.0.8:5001 took 100 ms of CPU in 1 event-loop iteration");
	}
	SECTION("of two that may be meant, neither")
	{
		b.Frame(FT_ITERATION, 0, 100 * ms);
		b.CpuSamples(0, 100, b.Stack(InCommand({"sinterCommand"})));
		request(0, 2, 20);
		request(1, 3, 20);
		CHECK(ClauseOf(&b, Cause::ServerBusy) ==
		      "SINTER or SMEMBERS took 100 ms of CPU in 1 event-loop iteration");
	}
	SECTION("a large one among small ones, of a program without symbols")
	{
		const auto sampled = [&](uint64_t from, uint64_t to) {
			ft_span &s = b.Frame(FT_ITERATION, from, to);
			s.flags = FT_SPAN_SAMPLED;
			return &s;
		};
		std::string in;
		SECTION("in one iteration")
		{
			in = " in 1 event-loop iteration";
			b.Frame(FT_ITERATION, 0, 100 * ms);
		}
		SECTION("in one that samples cut after its many reads")
		{
			sampled(0, 3 * ms)->arg[1] = 30;
			sampled(3 * ms, 100 * ms);
		}
		b.CpuSamples(0, 100, b.StackIn(""));
		request(0, 1, 400'000);
		request(1, 1, 20);
		b.run.reports.push_back({kBase + 1 * ms, "many-arguments", 0,
					 R"({"tid":100,"command":"GET","arguments":40000})"});
		CHECK(ClauseOf(&b, Cause::ServerBusy) ==
		      "One GET of 40,000 keys from 10.0.0.7:5000 took 100 ms of CPU" + in);
	}
	SECTION("one that is not in the load generator's log")
	{
		b.Frame(FT_ITERATION, 0, 100 * ms);
		b.CpuSamples(0, 100, b.Stack(InCommand({"sinterCommand"})));
		b.Request(0, 0, 100 * ms);
		for (int reader = 0; reader < 2; reader++)
			b.run.others.push_back(
			    {kBase + 1 * ms, kBase + 100 * ms, 30, "SMEMBERS", "10.0.0.9:7", kServer});
		// Another thread read this one.
		b.run.others.push_back(
		    {kBase + 1 * ms, kBase + 100 * ms, 5'000, "SMEMBERS", "10.0.0.9:8", kServer + 1});
		CHECK(ClauseOf(&b, Cause::ServerBusy) ==
		      "SMEMBERS from 10.0.0.9:7 took 100 ms of CPU in 1 event-loop iteration");
	}
}

TEST_CASE("commands: a message to many clients is one event with the soft interrupts of its sends")
{
	RunBuilder b;
	OneRequest(&b, 40 * ms);
	b.Frame(FT_ITERATION, 0, 100 * ms).arg[1] = 3001ULL << 16 | 2; // writes and reads
	b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 50 * ms, 90 * ms);
	b.CpuSamples(0, 10, b.Stack(InCommand({"publishCommand"})));
	const uint32_t sends = b.StackIn("writeToClient");
	b.CpuSamples(10 * ms, 40, sends);
	for (uint64_t i = 50; i < 90; i++)
		b.CpuSample(i * ms, sends, static_cast<ft_owner>(FT_SOFTIRQ + 3));
	CHECK(ClauseOf(&b, Cause::ServerBusy) ==
	      "PUBLISH to about 3,000 clients took 60.0 ms of CPU in 1 event-loop iteration");
}

TEST_CASE("commands: soft interrupts in the server's own sends are its own")
{
	RunBuilder b;
	OneRequest(&b, 40 * ms);
	b.Frame(FT_ITERATION, 0, 100 * ms);
	b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 50 * ms, 90 * ms);
	const uint32_t in = b.StackIn(GENERATE("writeToClient", "dictFind"));
	const bool sends = b.run.stacks[in].frames[0].function == "writeToClient";
	for (uint64_t i = 50; i < 90; i++)
		b.CpuSample(i * ms, in, static_cast<ft_owner>(FT_SOFTIRQ + 3));
	CHECK(ClauseOf(&b, Cause::SoftirqNetRx) == std::string("Soft interrupts (net_rx)") +
						       (sends ? " of the server's own sends" : "") +
						       " took 40.0 ms of the time of CPU 0");
}

TEST_CASE("commands: the load generator's key of a slow command, where no other request may be it")
{
	struct Sent {
		uint64_t sent_ms, end_ms;
		uint8_t op; // 0: SORT, 1: GET
		const char *key;
	};
	const struct {
		const char *what;
		std::vector<Sent> sent;
		std::string of; // of which key
	} rows[] = {
	    {"alone", {{10, 100, 0, "cart"}}, " of the key \"cart\""},
	    {"others wait, and others ran before",
	     {{10, 100, 0, "cart"}, {50, 100, 0, "b"}, {60, 101, 1, "c"}, {5, 21, 0, "d"}},
	     " of the key \"cart\""},
	    {"another command was there", {{10, 100, 0, "cart"}, {15, 100, 1, "c"}}, " of the key \"cart\""},
	    {"two of the same key", {{10, 100, 0, "cart"}, {15, 100, 0, "cart"}}, " of the key \"cart\""},
	    {"another of its kind was there", {{10, 100, 0, "cart"}, {15, 100, 0, "b"}}, ""},
	    {"one has no key", {{10, 100, 0, "cart"}, {15, 100, 0, nullptr}}, ""},
	    {"none has", {{10, 100, 0, nullptr}}, ""},
	};
	for (const auto &row : rows) {
		INFO(row.what);
		RunBuilder b;
		b.run.ops = b.run.op_commands = {"SORT", "GET"};
		b.Thread(kServer, 0, 110 * ms);
		b.Tally(FT_OWN_CODE, 0, 110 * ms, 110 * ms);
		b.Frame(FT_ITERATION, 20 * ms, 100 * ms);
		b.CpuSamples(20 * ms, 80, b.Stack(InCommand({"sortCommandGeneric", "sortCommand"})));
		std::vector<Sent> by_time = row.sent;
		std::ranges::sort(by_time, {}, &Sent::sent_ms);
		uint32_t connection = 0;
		for (const Sent &s : by_time) {
			b.Request(s.sent_ms * ms, s.sent_ms * ms, s.end_ms * ms, connection, s.op);
			if (s.key)
				b.run.keys.push_back({kBase + s.sent_ms * ms, true, connection,
						      (s.end_ms - s.sent_ms) * ms, s.key, false, s.op});
			connection++;
		}
		const std::string clause = ClauseOf(&b, Cause::ServerBusy);
		CHECK(clause.starts_with("SORT" + row.of + " took "));
	}
}

TEST_CASE("keys: without a recording, the one that took most of the time and did not only wait")
{
	struct Noted {
		uint64_t sent_ms, end_ms;
		const char *key;
		uint32_t connection;
	};
	const struct {
		const char *what;
		std::vector<Noted> noted;
		std::string named; // "": none
	} rows[] = {
	    {"none", {}, ""},
	    {"others waited behind it",
	     {{0, 50, "cart", 0}, {10, 51, "a", 1}, {20, 51, "a", 2}, {30, 52, "b", 3}},
	     "1 request of the key \"cart\" took 50.0 ms, 96.2 % of"},
	    {"the first of many that all have it", {{0, 50, "a", 0}, {10, 51, "a", 1}, {20, 51, "a", 2}}, ""},
	    {"no request waited",
	     {{0, 50, "a", 0}, {60, 90, "a", 0}},
	     "2 requests of the key \"a\" took 80.0 ms, 100 %"},
	    {"two took as long", {{0, 50, "a", 0}, {50, 100, "b", 0}}, ""},
	    {"most have it", {{0, 50, "a", 0}, {10, 51, "a", 1}, {20, 51, "b", 2}}, ""},
	};
	for (const auto &row : rows) {
		INFO(row.what);
		RunBuilder b;
		b.run.connections.resize(4);
		for (const Noted &n : row.noted)
			b.run.keys.push_back({kBase + n.sent_ms * ms, true, n.connection,
					      (n.end_ms - n.sent_ms) * ms, n.key, false});
		const Explanation e(b.run);
		const std::string text = LeadingKeyText(e);
		CHECK(text.empty() == row.named.empty());
		CHECK(text.find(row.named) != std::string::npos);
	}
}

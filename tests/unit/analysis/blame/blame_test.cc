// SPDX-License-Identifier: MIT
// Blame: which cause each part of a request's time belongs to. The parts sum to all of its time.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/blame.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A server that runs its own code for the first fifth of every millisecond and is idle for the rest, except
// for [busy_from, busy_to), which the caller fills.
void QuietServer(RunBuilder *b, uint64_t length_ms, uint64_t busy_from_ms = 0, uint64_t busy_to_ms = 0)
{
	b->Thread(kServer, 0, length_ms * ms);
	for (uint64_t t = 0; t < length_ms; t++) {
		if (t >= busy_from_ms && t < busy_to_ms)
			continue;
		b->Off(FT_IDLE, t * ms + 200 * us, t * ms + ms, t * ms + ms);
		b->Tally(FT_OWN_CODE, t * ms, t * ms + ms, 200 * us);
	}
}

// Requests that became due in [from, to) and were answered one after the other in [answered, until).
void Queue(RunBuilder *b, uint64_t count, uint64_t from, uint64_t to, uint64_t answered, uint64_t until)
{
	for (uint64_t k = 0; k < count; k++) {
		const uint64_t due = from + k * (to - from) / count;
		b->Request(due, due, answered + (k + 1) * (until - answered) / count,
			   static_cast<uint32_t>(10 + k));
	}
}

size_t IndexOf(const Blame &blame, uint64_t due, uint64_t latency)
{
	for (size_t i = 0; i < blame.slow.size(); i++)
		if (blame.slow[i].due_ns == kBase + due && blame.slow[i].latency_ns == latency)
			return i;
	throw std::runtime_error("no such slow request");
}

ConnectionWaits WaitsOf(const Run &run)
{
	ConnectionWaits waits;
	ConnectionSlots(run, {}).Wait(run, {}, &waits);
	return waits;
}

} // namespace

TEST_CASE("a request's time is blamed on what its server's thread did during it")
{
	RunBuilder b;
	b.Thread(kServer, 0, 10 * ms);
	b.Off(FT_IDLE, 0, 1 * ms, 1 * ms + 100 * us);
	b.Frame(FT_FORK, 2 * ms, 5 * ms);
	b.Off(FT_FILE_WRITE, 6 * ms, 7 * ms, 7 * ms);
	b.Tally(FT_OWN_CODE, 0, 10 * ms, 10 * ms - 1100 * us - 3 * ms - 1 * ms);
	b.Request(500 * us, 600 * us, 9 * ms);
	b.Finish();
	Blame blame = b.Blame();

	REQUIRE(blame.slow.size() == 1);
	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 100 * us);
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 400 * us);
	CHECK(PartOf(blame, 0, Cause::RunQueue).direct_ns == 100 * us);
	CHECK(PartOf(blame, 0, Cause::Fork).direct_ns == 3 * ms);
	CHECK(PartOf(blame, 0, Cause::FileWrite).direct_ns == 1 * ms);
	CHECK(PartOf(blame, 0, Cause::ServerBusy).direct_ns == 3900 * us);
	CHECK(PartsSum(blame, blame.slow[0]) == 8500 * us);
	CHECK(blame.parts[blame.slow[0].first_part].cause == Cause::ServerBusy); // largest first
}

TEST_CASE("without a server recording all service time is unknown, and lateness is still the client's")
{
	RunBuilder b;
	b.Request(0, 300 * us, 1000 * us);
	b.Finish();
	Blame blame = b.Blame();
	CHECK(PartOf(blame, 0, Cause::Unknown).direct_ns == 700 * us);
	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 300 * us);
}

TEST_CASE("lateness while the request's connection was busy is the server's, the rest the client's")
{
	// The fork delays the connection's earlier request until 6 ms. The later request was due at 2 ms.
	RunBuilder b;
	b.Thread(kServer, 0, 10 * ms);
	b.Frame(FT_FORK, 1 * ms, 5 * ms);
	b.Tally(FT_OWN_CODE, 0, 10 * ms, 6 * ms);
	SECTION("one at a time")
	{
		b.Request(1 * ms, 1 * ms, 6 * ms);
		b.Request(2 * ms, 6500 * us, 7 * ms);
		b.Loop("constant");
		b.Finish();
		Blame blame = b.Blame();
		REQUIRE(blame.slow.size() == 2);
		CHECK(PartOf(blame, 1, Cause::Fork).direct_ns == 3 * ms);
		CHECK(PartOf(blame, 1, Cause::ClientLate).direct_ns == 500 * us);
		CHECK(PartsSum(blame, blame.slow[1]) == 5 * ms);
	}
	SECTION("another connection's requests don't matter")
	{
		b.Request(1 * ms, 1 * ms, 6 * ms, 1);
		b.Request(2 * ms, 6500 * us, 7 * ms, 0);
		b.Loop("constant");
		b.Finish();
		Blame blame = b.Blame();
		CHECK(PartOf(blame, 1, Cause::ClientLate).direct_ns == 4500 * us);
		CHECK(PartOf(blame, 1, Cause::Fork).total_ns() == 0);
	}
	SECTION("pipelined: the slot is free once the oldest request of the pipeline is answered")
	{
		b.Request(1000 * us, 1000 * us, 6000 * us);
		b.Request(1100 * us, 1100 * us, 6100 * us);
		b.Request(2000 * us, 6500 * us, 7000 * us); // third of a pipeline of two: waits for the first
		b.Loop("constant", 2);
		b.Finish();
		ConnectionWaits taken = WaitsOf(b.run);
		REQUIRE(taken.until_ns.size() == 3);
		CHECK(taken.until_ns[1] == kBase + 1100 * us);
		CHECK(taken.free_ns[2] == 0);
		CHECK(taken.until_ns[2] == kBase + 6000 * us);
		CHECK(PartOf(b.Blame(), 2, Cause::ClientLate).direct_ns == 500 * us);
	}
	SECTION("a connection that was free while the request was due was the client's to use, if the server "
		"was idle")
	{
		b.Off(FT_IDLE, 7100 * us, 9000 * us, 9000 * us);
		b.Request(7000 * us, 7000 * us, 7100 * us);
		b.Request(7200 * us, 9000 * us, 9200 * us); // the load generator was stopped until 9 ms
		b.Request(7300 * us, 9210 * us, 9400 * us);
		b.Loop("constant");
		b.Finish();
		ConnectionWaits taken = WaitsOf(b.run);
		REQUIRE(taken.until_ns.size() == 3);
		CHECK(taken.until_ns[1] == kBase + 7200 * us);
		CHECK(taken.free_ns[1] == 0);
		CHECK(taken.free_ns[2] == 1700 * us);
		CHECK(taken.until_ns[2] == kBase + 9200 * us);
		CHECK(PartOf(b.Blame(), 2, Cause::ClientLate).direct_ns == 1710 * us);
	}
	SECTION("a closed loop is never late because of a busy connection")
	{
		b.Request(1 * ms, 1 * ms, 6 * ms);
		b.Loop("closed");
		b.Finish();
		CHECK(WaitsOf(b.run).empty());
	}
}

TEST_CASE("requests queued behind a stall are blamed on it, except for the usual latency")
{
	// Idle until 10 ms, fork until 20 ms, then 5 ms of own code to process the queue.
	RunBuilder b;
	QuietServer(&b, 40, 10, 25);
	b.Frame(FT_FORK, 10 * ms, 20 * ms);
	b.Tally(FT_OWN_CODE, 10 * ms, 25 * ms, 5 * ms);
	for (uint64_t t = 0; t < 10; t++)
		b.Request(t * ms, t * ms, t * ms + 100 * us); // usual: 100 us
	b.Request(15 * ms, 15 * ms, 23 * ms, 1);	      // during half of the fork
	b.Request(21 * ms, 21 * ms, 24 * ms, 2);	      // after the fork
	b.Request(30 * ms, 30 * ms, 33 * ms, 3);	      // after the queue was empty
	Queue(&b, 50, 10 * ms, 20 * ms, 20 * ms, 25 * ms);
	b.Finish();
	Blame blame = b.Blame({1 * ms, 0});

	CHECK(blame.usual_ns[0] > 99 * us);
	CHECK(blame.usual_ns[0] <= 100 * us);
	uint64_t usual = blame.usual_ns[0];
	REQUIRE(blame.slow.size() == 53);
	const size_t during = IndexOf(blame, 15 * ms, 8 * ms), after = IndexOf(blame, 21 * ms, 3 * ms),
		     later = IndexOf(blame, 30 * ms, 3 * ms);
	// 5 ms overlap the fork. Of 3 ms in the queue, all but the usual time is the fork's.
	CHECK(PartOf(blame, during, Cause::Fork).direct_ns == 5 * ms);
	CHECK(PartOf(blame, during, Cause::Fork).queued_ns == 3 * ms - usual);
	CHECK(PartOf(blame, during, Cause::ServerBusy).direct_ns == usual);
	CHECK(PartOf(blame, after, Cause::Fork).direct_ns == 0);
	CHECK(PartOf(blame, after, Cause::Fork).queued_ns == 3 * ms - usual);
	CHECK(blame.slow[after].since_ns == kBase + 10 * ms);
	CHECK(PartOf(blame, later, Cause::Fork).total_ns() == 0);
	CHECK(PartOf(blame, later, Cause::ServerBusy).direct_ns == 600 * us);
	for (const SlowRequest &r : blame.slow)
		CHECK(PartsSum(blame, r) == r.latency_ns);
	// Without the fork the first of them would take the usual time.
	REQUIRE(!blame.causes.empty());
	CHECK(blame.causes[0].cause == Cause::Fork);
	CHECK(blame.causes[0].without.max == 3 * ms);
}

TEST_CASE("stalls get no more queueing time than they lasted, and several stalls share it")
{
	RunBuilder b;
	QuietServer(&b, 40, 10, 30);
	b.Frame(FT_FORK, 10 * ms, 13 * ms);
	b.Off(FT_FILE_WRITE, 13 * ms, 14 * ms, 14 * ms);
	b.Tally(FT_OWN_CODE, 10 * ms, 30 * ms, 16 * ms);
	for (uint64_t t = 0; t < 10; t++)
		b.Request(t * ms, t * ms, t * ms + 100 * us);
	b.Request(15 * ms, 15 * ms, 29 * ms, 1); // 14 ms of own code: at most 4 ms of it can be the stalls'
	Queue(&b, 150, 10 * ms, 14 * ms, 14 * ms, 30 * ms);
	b.Finish();
	Blame blame = b.Blame({1 * ms, 0});
	const size_t i = IndexOf(blame, 15 * ms, 14 * ms);
	CHECK(PartOf(blame, i, Cause::Fork).queued_ns == 3 * ms);
	CHECK(PartOf(blame, i, Cause::FileWrite).queued_ns == 1 * ms);
	CHECK(PartOf(blame, i, Cause::ServerBusy).direct_ns == 10 * ms);
}

TEST_CASE("a request answered in the usual time ends a stall's backlog on a server that is never idle")
{
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms);
	b.Frame(FT_FORK, 10 * ms, 20 * ms);
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 90 * ms);
	for (uint64_t t = 0; t < 10; t++)
		b.Request(t * ms, t * ms, t * ms + 100 * us);
	b.Request(40 * ms, 40 * ms, 40 * ms + 150 * us); // the queue is empty here
	b.Request(50 * ms, 50 * ms, 60 * ms); // so this one waited for a slow command, not for the fork
	b.Finish();
	Blame blame = b.Blame({1 * ms, 0});
	REQUIRE(blame.slow.size() == 1);
	CHECK(PartOf(blame, 0, Cause::Fork).total_ns() == 0);
	CHECK(PartOf(blame, 0, Cause::ServerBusy).direct_ns == 10 * ms);
}

TEST_CASE("idle time of the server does not end a backlog while due requests wait for a connection")
{
	// After the fork the only connection sends three due requests one by one. Between them the server is
	// idle for as long as the client takes.
	RunBuilder b;
	QuietServer(&b, 40, 10, 26);
	b.Frame(FT_FORK, 10 * ms, 20 * ms);
	for (uint64_t t = 20; t < 26; t++)
		b.Off(FT_IDLE, t * ms + 100 * us, t * ms + ms, t * ms + ms);
	b.Tally(FT_OWN_CODE, 10 * ms, 26 * ms, 600 * us);
	for (uint64_t t = 0; t < 10; t++)
		b.Request(t * ms, t * ms, t * ms + 100 * us);
	b.Request(11 * ms, 11 * ms, 21 * ms);
	b.Request(12 * ms, 21 * ms, 23 * ms);
	b.Request(20 * ms, 23 * ms, 25 * ms); // due after the fork
	Queue(&b, 3, 13 * ms, 16 * ms, 20 * ms, 26 * ms);
	b.Loop("constant");
	SECTION("the backlog continues")
	{
		b.Finish();
		Blame blame = b.Blame({1 * ms, 0});
		uint64_t usual = blame.usual_ns[0];
		REQUIRE(blame.slow.size() == 6);
		// It waited 3 ms for the connection (the server was idle for 2.7 ms of it) and 2 ms for its
		// answer. 1.8 ms of idle time in the latter is not part of the backlog.
		CHECK(PartOf(blame, 5, Cause::Fork).queued_ns == 2700 * us + 500 * us - usual);
		CHECK(PartOf(blame, 5, Cause::Network).direct_ns == 1800 * us);
		CHECK(PartOf(blame, 5, Cause::ServerBusy).direct_ns == usual);
		CHECK(PartOf(blame, 5, Cause::ClientLate).total_ns() == 0);
	}
	SECTION("without a waiting request the backlog ends")
	{
		b.run.requests.due_ns[12] = b.run.requests.sent_ns[12] = kBase + 23 * ms;
		b.run.requests.due_ns[11] = b.run.requests.sent_ns[11] = kBase + 21 * ms;
		b.Finish();
		Blame blame = b.Blame({1 * ms, 0});
		REQUIRE(blame.slow.size() == 6);
		CHECK(PartOf(blame, 5, Cause::Fork).total_ns() == 0);
	}
}

TEST_CASE("errors are counted separately and can be slow like other requests")
{
	RunBuilder b;
	QuietServer(&b, 20);
	for (uint64_t t = 0; t < 10; t++)
		b.Request(t * ms, t * ms, t * ms + 100 * us, 0, 0, t % 2 ? FT_STATUS_OK : FT_STATUS_MISS);
	b.Request(5 * ms, 5 * ms, 15 * ms, 1, 0, FT_STATUS_TIMEOUT);
	b.Request(6 * ms, 6 * ms, 6 * ms + us, 1, 0, FT_STATUS_REFUSED);
	b.Finish();
	Blame blame = b.Blame({1 * ms, 0});
	CHECK(blame.count == 12);
	CHECK(blame.errors == 2);
	CHECK(blame.latencies.max == 100 * us);
	REQUIRE(blame.slow.size() == 1);
	CHECK(blame.slow[0].status == FT_STATUS_TIMEOUT);
	CHECK(PartsSum(blame, blame.slow[0]) == 10 * ms);
	CHECK(blame.by_status[FT_STATUS_REFUSED] == 1);
}

TEST_CASE("slow requests are those at or above the threshold, a duration or a percentile")
{
	RunBuilder b;
	QuietServer(&b, 2000);
	for (uint64_t i = 1; i <= 1000; i++)
		b.Request(i * ms, i * ms, i * ms + i * us);
	b.Finish();
	CHECK(b.Blame({0, 99}).threshold_ns == 990 * us);
	CHECK(b.Blame({0, 99}).slow.size() == 11);
	CHECK(b.Blame({0, 99.9}).threshold_ns == 999 * us);
	CHECK(b.Blame({500 * us, 0}).slow.size() == 501);
	CHECK(b.Blame({2 * ms, 0}).slow.empty());
	Latencies l = b.Blame().latencies;
	CHECK(l.p50 == 500 * us);
	CHECK(l.p90 == 900 * us);
	CHECK(l.p99 == 990 * us);
	CHECK(l.p99_9 == 999 * us);
	CHECK(l.p99_99 == 1000 * us);
	CHECK(l.max == 1000 * us);
	CHECK(l.mean == Approx(500'500.0));
}

TEST_CASE("thresholds need valid units; everything else is refused")
{
	Threshold t;
	std::string error;
	CHECK((ParseThreshold("1ms", &t, &error) && t.ns == ms && t.percentile == 0));
	CHECK((ParseThreshold("500us", &t, &error) && t.ns == 500 * us));
	CHECK((ParseThreshold("1.5s", &t, &error) && t.ns == 1500 * ms));
	CHECK((ParseThreshold("250ns", &t, &error) && t.ns == 250));
	CHECK((ParseThreshold("p99.9", &t, &error) && t.ns == 0 && t.percentile == 99.9));
	for (const char *bad : {"", "1", "ms", "-1ms", "0ms", "p", "p100", "p0", "p-5", "1m", "99", "nan",
				"1e300s", "1ms ", "p99x", " 1ms"}) {
		INFO(bad);
		CHECK(!ParseThreshold(bad, &t, &error));
		CHECK(error.find("--slow") != std::string::npos);
	}
}

TEST_CASE("without a request log, event-loop iterations replace requests")
{
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms);
	b.Frame(FT_FORK, 10 * ms, 14 * ms);
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 96 * ms);
	b.Frame(FT_ITERATION, 9 * ms, 15 * ms);
	b.Frame(FT_ITERATION, 20 * ms, 20 * ms + 50 * us);
	b.Finish();
	Blame blame = b.Blame({1 * ms, 0});
	CHECK(blame.from_iterations);
	CHECK(blame.count == 2);
	REQUIRE(blame.slow.size() == 1);
	CHECK(blame.slow[0].latency_ns == 6 * ms);
	CHECK(PartOf(blame, 0, Cause::Fork).direct_ns == 4 * ms);
	CHECK(PartOf(blame, 0, Cause::ServerBusy).direct_ns == 2 * ms);
	REQUIRE(blame.causes.size() == 2);
	CHECK(blame.causes[0].without.max == 2 * ms);
}

TEST_CASE("a span that may be many iterations of a loop that never waited replaces no request")
{
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms);
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms);
	const auto iteration = [&](uint64_t from_ns, uint64_t to_ns, uint64_t reads, uint8_t flags) {
		b.Frame(FT_ITERATION, from_ns, to_ns);
		ft_span &s = b.run.spans[b.run.spans.size() - 1];
		s.arg[1] = reads;
		s.flags = flags;
	};
	iteration(0, 4 * ms, 300, FT_SPAN_SAMPLED);	 // samples only, and a change of function among them
	iteration(10 * ms, 40 * ms, 0, FT_SPAN_SAMPLED); // samples only, and no read of a request
	iteration(50 * ms, 55 * ms, 300, 0);		 // begin and end were recorded
	b.Finish();
	Blame blame = b.Blame({1 * ms, 0});
	CHECK(blame.count == 2);
	REQUIRE(blame.slow.size() == 2);
	CHECK(blame.latencies.max == 30 * ms);
}

TEST_CASE("requests to several servers are blamed on their own server's thread")
{
	RunBuilder b;
	b.Thread(100, 0, 10 * ms);
	b.Thread(200, 0, 10 * ms);
	b.Frame(FT_FORK, 1 * ms, 5 * ms, 0, 4 * ms, 100);
	b.Tally(FT_OWN_CODE, 0, 10 * ms, 6 * ms, 1, 100);
	b.Tally(FT_OWN_CODE, 0, 10 * ms, 10 * ms, 1, 200);
	b.Request(1 * ms, 1 * ms, 5 * ms, 0);
	b.Request(1 * ms, 1 * ms, 5 * ms, 1);
	b.run.connections[1].server = 1;
	b.run.servers = {"a", "b"};
	b.Finish();
	std::vector<Timeline> timelines;
	timelines.push_back(b.Timeline(100));
	timelines.push_back(b.Timeline(200));
	Blame blame = BlameRun(b.run, timelines, {1, 0});
	CHECK(PartOf(blame, 0, Cause::Fork).direct_ns == 4 * ms);
	CHECK(PartOf(blame, 1, Cause::Fork).total_ns() == 0);
	CHECK(PartOf(blame, 1, Cause::ServerBusy).direct_ns == 4 * ms);
}

// SPDX-License-Identifier: MIT
// Requests to a server with several threads, on runs built by hand: the thread that served each request, and
// where that thread waited for another thread.
#include "analysis/blame.h"
#include "analysis/timeline.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint32_t kOne = 101, kTwo = 102;

// A process with two workers, the first of which is stopped in [10, 40) ms. The timelines: the workers' and
// the main thread's.
struct WorkersBuilder : RunBuilder {
	std::vector<forktail::analysis::Timeline> timelines;
	Serving serving;

	WorkersBuilder()
	{
		Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN, "memcached");
		Thread(kOne, 0, 100 * ms, 0, "mc-worker", kServer);
		Thread(kTwo, 0, 100 * ms, 0, "mc-worker", kServer);
		run.servers = {"127.0.0.1:11211"};
		Off(FT_IDLE, 0, 10 * ms, 10 * ms, 0, kOne);
		Off(FT_STOPPED, 10 * ms, 40 * ms, 40 * ms, 0, kOne);
		Off(FT_IDLE, 40 * ms, 100 * ms, 100 * ms, 0, kOne);
		Off(FT_IDLE, 0, 100 * ms, 100 * ms, 0, kTwo);
		Off(FT_IDLE, 0, 100 * ms, 100 * ms, 0, kServer);
	}
	void Ready()
	{
		Finish();
		for (uint32_t tid : {kOne, kTwo, kServer})
			timelines.push_back(Timeline(tid));
	}
	forktail::analysis::Blame BlameAll() { return BlameRun(run, timelines, {1, 0}, {}, serving); }
};

} // namespace

TEST_CASE("each request is blamed on the thread of its connection, and on none where that is unknown")
{
	WorkersBuilder b;
	for (uint32_t connection = 0; connection < 3; connection++)
		b.Request(20 * ms, 20 * ms, 45 * ms, connection);
	b.Ready();
	b.serving.more = {1};
	b.serving.connections = {{{0, UINT64_MAX, 0}}, {{0, UINT64_MAX, 1}}, {}};
	Blame blame = b.BlameAll();
	REQUIRE(blame.slow.size() == 3);
	CHECK(TimeAt(blame, 0, Cause::Stopped, 0) == 20 * ms);
	CHECK(blame.slow[0].hop == 0);
	CHECK(TimeAt(blame, 1, Cause::Network, kNoHop) == 25 * ms);
	CHECK(TimeAt(blame, 1, Cause::Stopped, 0) == 0);
	CHECK(blame.slow[1].hop == 1);
	CHECK(TimeAt(blame, 2, Cause::Unknown, kNoHop) == 25 * ms);
	CHECK(HopNameOf(b.run, HopThreads(b.timelines), 1, false).text() ==
	      "memcached 127.0.0.1:11211, mc-worker 102");
	CHECK(HopNameOf(b.run, HopThreads(b.timelines), 2, false).text() ==
	      "memcached 127.0.0.1:11211, main thread");
}

TEST_CASE("a connection that moves belongs to each thread in its time")
{
	WorkersBuilder b;
	b.Request(12 * ms, 12 * ms, 18 * ms);
	b.Request(30 * ms, 30 * ms, 38 * ms);
	b.Ready();
	b.serving.more = {1};
	b.serving.connections = {{{0, kBase + 20 * ms, 0}, {kBase + 20 * ms, UINT64_MAX, 1}}};
	Blame blame = b.BlameAll();
	REQUIRE(blame.slow.size() == 2);
	CHECK(TimeAt(blame, 0, Cause::Stopped, 0) == 6 * ms);
	CHECK(TimeAt(blame, 1, Cause::Network, kNoHop) == 8 * ms);
}

TEST_CASE("time a thread waits for another thread is reported at that thread")
{
	WorkersBuilder b;
	b.Request(5 * ms, 5 * ms, 45 * ms);
	b.Ready();
	uint32_t other = b.ThreadIndex(kTwo);
	TakeForeign({{kBase + 10 * ms, kBase + 15 * ms, other, Cause::RunQueue},
		     {kBase + 15 * ms, kBase + 30 * ms, other, Cause::Stopped}},
		    &b.timelines[0]);
	b.timelines.erase(b.timelines.begin() + 2);
	b.serving.connections = {{{0, UINT64_MAX, 0}}};
	Blame blame = b.BlameAll();
	REQUIRE(blame.slow.size() == 1);
	CHECK(TimeAt(blame, 0, Cause::RunQueue, 1) == 5 * ms);
	CHECK(TimeAt(blame, 0, Cause::Stopped, 1) == 15 * ms);
	CHECK(TimeAt(blame, 0, Cause::Stopped, 0) == 10 * ms);
}

TEST_CASE("a thread that passes requests on to another thread is treated like a proxy")
{
	WorkersBuilder b;
	b.run.threads[1].comm = "io_thd_1";
	b.Request(12 * ms, 12 * ms, 50 * ms);
	b.Ready();
	b.serving.connections = {{{0, UINT64_MAX, 1}}};
	b.serving.more = {1};
	b.serving.hands_to = {kNoHop, 0, kNoHop};
	Blame blame = b.BlameAll();
	REQUIRE(blame.slow.size() == 1);
	CHECK(TimeAt(blame, 0, Cause::Stopped, 0) == 28 * ms); // the thread that reads them is idle meanwhile
	CHECK(blame.slow[0].hop == 1);
	for (const HopRow &row : blame.hops)
		CHECK_FALSE(row.proxy);
}

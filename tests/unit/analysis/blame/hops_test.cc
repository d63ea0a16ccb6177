// SPDX-License-Identifier: MIT
// Requests through a proxy, on runs built by hand: in which of the processes their time was spent.
#include <map>

#include "analysis/blame.h"
#include "analysis/evidence.h"
#include "analysis/explain.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint32_t kProxy = 100, kOne = 200, kOther = 300;
constexpr uint16_t kAtProxy = 0, kAtOne = 1, kAtOther = 2;

// A proxy and two servers behind it, all recorded for 100 ms. A thread is idle where the test adds nothing.
struct ProxyBuilder : RunBuilder {
	struct Busy {
		uint64_t from, to;
	};
	std::map<uint32_t, uint64_t> until; // each thread is filled with idle time up to here

	ProxyBuilder()
	{
		Thread(kProxy, 0, 100 * ms, FT_THREAD_MAIN, "nutcracker");
		Thread(kOne, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
		Thread(kOther, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
		run.servers = {"127.0.0.1:22121"};
		run.behind = {{"one", "127.0.0.1:6380"}, {"other", "127.0.0.1:6381"}};
	}
	void Idle(uint32_t tid, uint64_t to)
	{
		if (to > until[tid])
			Off(FT_IDLE, until[tid], to, to, 0, tid);
		until[tid] = to;
	}
	void Own(uint32_t tid, uint64_t from, uint64_t to)
	{
		Idle(tid, from);
		Tally(FT_OWN_CODE, from, to, to - from, 1, tid);
		until[tid] = to;
	}
	void Stall(ft_owner owner, uint32_t tid, uint64_t from, uint64_t to)
	{
		Idle(tid, from);
		Frame(owner, from, to, 0, UINT64_MAX, tid);
		until[tid] = to;
	}
	// `behind`: 1 or 2. 0: unknown.
	void Through(uint8_t behind, uint64_t due, uint64_t sent, uint64_t end, uint32_t connection = 0,
		     uint8_t op = 0)
	{
		Request(due, sent, end, connection, op);
		run.requests.behind.push_back(behind);
	}
	forktail::analysis::Blame BlameAll()
	{
		for (uint32_t tid : {kProxy, kOne, kOther})
			Idle(tid, 100 * ms);
		Finish();
		timelines.clear();
		for (uint32_t tid : {kProxy, kOne, kOther})
			timelines.push_back(Timeline(tid));
		return BlameRun(run, timelines, {1, 0});
	}
	std::vector<forktail::analysis::Timeline> timelines;
};

// The proxy forwards requests in [10, 11) ms and answers in [60, 61). One instance forks in [12, 50) and
// answers in [50, 55).
ProxyBuilder Forked()
{
	ProxyBuilder b;
	b.Own(kProxy, 10 * ms, 11 * ms);
	b.Own(kOne, 11 * ms, 12 * ms);
	b.Stall(FT_FORK, kOne, 12 * ms, 50 * ms);
	b.Own(kOne, 50 * ms, 55 * ms);
	return b;
}

} // namespace

TEST_CASE("a stall of an instance is reported at that instance, and in no request to another one")
{
	ProxyBuilder b = Forked();
	b.Own(kProxy, 60 * ms, 61 * ms);
	b.Through(1, 10 * ms, 10 * ms, 61 * ms);
	b.Through(2, 10 * ms, 10 * ms, 61 * ms, 1);
	Blame blame = b.BlameAll();
	REQUIRE(blame.slow.size() == 2);
	CHECK(TimeAt(blame, 0, Cause::ServerBusy, kAtProxy) == 2 * ms);
	CHECK(TimeAt(blame, 0, Cause::Fork, kAtOne) == 38 * ms);
	CHECK(TimeAt(blame, 0, Cause::ServerBusy, kAtOne) == 6 * ms);
	CHECK(TimeAt(blame, 0, Cause::Network, kNoHop) == 5 * ms);
	CHECK(TimeAt(blame, 1, Cause::ServerBusy, kAtProxy) == 2 * ms);
	CHECK(TimeAt(blame, 1, Cause::Network, kNoHop) == 49 * ms);

	REQUIRE(blame.hops.size() == 3);
	CHECK(blame.hops[0].hop == kAtOne);
	CHECK_FALSE(blame.hops[0].proxy);
	CHECK(blame.hops[0].served == 1);
	CHECK(blame.hops[0].requests == 1);
	CHECK(blame.hops[0].time_ns == 44 * ms);
	REQUIRE(blame.hops[0].causes.size() == 2);
	CHECK(blame.hops[0].causes[0].cause == Cause::Fork);
	CHECK(blame.hops[1].hop == kAtProxy);
	CHECK(blame.hops[1].proxy);
	CHECK(blame.hops[1].served == 2);
	CHECK(blame.hops[1].time_ns == 4 * ms);
	CHECK(blame.hops[2].hop == kAtOther);
	CHECK(blame.hops[2].served == 1);
	CHECK(blame.hops[2].time_ns == 0);
	// The same cause at two hops is one cause.
	for (const CauseRow &row : blame.causes)
		CHECK(row.requests == (row.cause == Cause::Fork ? 1 : 2));

	std::vector<Episode> episodes = FindEpisodes(&blame);
	REQUIRE(episodes.size() == 1);
	REQUIRE(episodes[0].hops.size() == 2);
	CHECK(episodes[0].hops[0].hop == kAtOne);
	CHECK(episodes[0].hops[0].time_ns == 44 * ms);
	FindEvidence(b.run, b.timelines, blame, {}, 10, 1, &episodes);
	std::string text;
	for (const std::string &sentence : episodes[0].evidence)
		text += sentence + "\n";
	INFO(text);
	CHECK(text.find("redis-server 127.0.0.1:6380: fork() copied page tables for 38.0 ms") !=
	      std::string::npos);
	CHECK(text.find("nutcracker 127.0.0.1:22121: fork()") == std::string::npos);
	for (const EpisodeCause &cause : episodes[0].causes)
		if (cause.cause == Cause::Fork)
			CHECK(cause.thread_ns == 38 * ms);
}

TEST_CASE("the proxy's work for other requests while an instance has a request is not that request's time")
{
	ProxyBuilder b = Forked();
	b.Own(kProxy, 20 * ms, 30 * ms);
	b.Own(kProxy, 60 * ms, 61 * ms);
	b.Through(1, 10 * ms, 10 * ms, 61 * ms);
	b.Through(2, 10 * ms, 10 * ms, 61 * ms, 1);
	Blame blame = b.BlameAll();
	CHECK(TimeAt(blame, 0, Cause::Fork, kAtOne) == 38 * ms);
	CHECK(TimeAt(blame, 0, Cause::ServerBusy, kAtProxy) == 2 * ms);
	CHECK(TimeAt(blame, 1, Cause::ServerBusy, kAtProxy) == 2 * ms);
	CHECK(TimeAt(blame, 1, Cause::Network, kNoHop) == 49 * ms);
}

TEST_CASE("a proxy stalled when a request or its answer arrives gets that time")
{
	ProxyBuilder b;
	b.Stall(FT_FSYNC, kProxy, 10 * ms, 30 * ms);
	b.Own(kProxy, 30 * ms, 31 * ms);
	b.Own(kOne, 31 * ms, 32 * ms);
	b.Stall(FT_FILE_META, kProxy, 33 * ms, 43 * ms);
	b.Own(kProxy, 43 * ms, 44 * ms);
	// The instance forks before it gets the request and after it has answered.
	b.Stall(FT_FORK, kOne, 33 * ms, 40 * ms);
	b.Through(1, 12 * ms, 12 * ms, 44 * ms);
	Blame blame = b.BlameAll();
	CHECK(TimeAt(blame, 0, Cause::Fsync, kAtProxy) == 18 * ms);
	CHECK(TimeAt(blame, 0, Cause::FileMeta, kAtProxy) == 10 * ms);
	CHECK(TimeAt(blame, 0, Cause::ServerBusy, kAtProxy) == 2 * ms);
	CHECK(TimeAt(blame, 0, Cause::ServerBusy, kAtOne) == 1 * ms);
	CHECK(TimeAt(blame, 0, Cause::Fork, kAtOne) == 0);
}

TEST_CASE("a request that waits for a connection waits where the request ahead on it is")
{
	ProxyBuilder b = Forked();
	b.Own(kProxy, 60 * ms, 61 * ms);
	b.Through(1, 10 * ms, 10 * ms, 61 * ms);
	b.Through(2, 20 * ms, 61 * ms, 61 * ms + 100 * us);
	b.Loop("constant");
	Blame blame = b.BlameAll();
	CHECK(TimeAt(blame, 1, Cause::Fork, kAtOne) >= 30 * ms);
	CHECK(TimeAt(blame, 1, Cause::ServerBusy, kAtOther) == 0);
}

TEST_CASE("in a pipeline a request waits for the answer ahead of it")
{
	ProxyBuilder b = Forked();
	b.Own(kProxy, 60 * ms, 61 * ms);
	// Most of them are fast, so that the usual time is known.
	for (uint64_t i = 0; i < 5; i++)
		b.Through(2, i * ms, i * ms, i * ms + 100 * us, 7);
	b.Through(1, 10 * ms, 10 * ms, 61 * ms);
	b.Through(2, 20 * ms, 20 * ms, 61 * ms);
	b.Through(2, 20 * ms, 20 * ms, 61 * ms, 1); // on a separate connection
	b.Loop("closed", 2);
	Blame blame = b.BlameAll();
	// In the proportions of the time of the request ahead.
	CHECK(TimeAt(blame, 6, Cause::Fork, kAtOne) >= 29 * ms);
	CHECK(TimeAt(blame, 6, Cause::Fork, kAtOne) <= 30 * ms);
	CHECK(TimeAt(blame, 7, Cause::Fork, kAtOne) == 0);
}

TEST_CASE("requests queued behind an instance's stall are blamed on it, even if they arrive later")
{
	ProxyBuilder b;
	b.Own(kProxy, 41 * ms, 41 * ms + 100 * us);
	b.Own(kProxy, 50 * ms, 50 * ms + 100 * us);
	b.Stall(FT_FORK, kOne, 10 * ms, 40 * ms);
	b.Own(kOne, 40 * ms, 50 * ms);
	for (uint64_t i = 0; i < 5; i++)
		b.Through(1, 60 * ms + i * ms, 60 * ms + i * ms, 60 * ms + i * ms + 200 * us, 7);
	constexpr size_t queued = 50; // due during the stall
	for (uint64_t i = 0; i < queued; i++)
		b.Through(1, 10 * ms + i * 600 * us, 10 * ms + i * 600 * us, 40 * ms + (i + 1) * 200 * us,
			  static_cast<uint32_t>(10 + i));
	b.Through(1, 41 * ms, 41 * ms, 50 * ms + 100 * us);
	Blame blame = b.BlameAll();
	REQUIRE(blame.slow[queued].due_ns == kBase + 41 * ms);
	const Part fork = PartOf(blame, queued, Cause::Fork);
	CHECK(fork.hop == kAtOne);
	CHECK(fork.direct_ns == 0);
	CHECK(fork.queued_ns > 8 * ms);
	CHECK(blame.slow[queued].since_ns < kBase + 41 * ms);
}

TEST_CASE("time at an unknown or unrecorded server behind the proxy is network, as without the proxy")
{
	ProxyBuilder b = Forked();
	b.Own(kProxy, 60 * ms, 61 * ms);
	b.Through(0, 10 * ms, 10 * ms, 61 * ms);
	Blame blame = b.BlameAll();
	CHECK(TimeAt(blame, 0, Cause::ServerBusy, kAtProxy) == 2 * ms);
	CHECK(TimeAt(blame, 0, Cause::Network, kNoHop) == 49 * ms);

	ProxyBuilder c = Forked();
	c.Own(kProxy, 60 * ms, 61 * ms);
	c.Through(1, 10 * ms, 10 * ms, 61 * ms);
	c.BlameAll();
	c.timelines[1] = forktail::analysis::Timeline();
	blame = BlameRun(c.run, c.timelines, {1, 0});
	CHECK(TimeAt(blame, 0, Cause::Network, kNoHop) == 49 * ms);
	CHECK(blame.hops.size() == 1);
}

TEST_CASE("when a thread was idle: spans to the nanosecond, short ones to their tally window")
{
	RunBuilder b;
	b.Thread(kServer, 0, 10 * ms);
	b.Off(FT_IDLE, 1 * ms, 2 * ms, 2 * ms + 100 * us);
	b.Tally(FT_OWN_CODE, 2 * ms + 100 * us, 4 * ms, 1 * ms);
	b.Tally(FT_IDLE, 2 * ms + 100 * us, 4 * ms, 900 * us, 20);
	b.Frame(FT_FORK, 3 * ms, 3 * ms + 50 * us);
	b.Off(FT_IDLE, 6 * ms, 7 * ms, 7 * ms);
	b.Finish();
	Timeline t = b.Timeline();
	IdleTimes idle = IdleTimesOf(t);
	CHECK(idle.FirstAfter(kBase) == kBase + 1 * ms);
	CHECK(idle.FirstAfter(kBase + 1 * ms) == kBase + 1 * ms);
	CHECK(idle.FirstAfter(kBase + 1 * ms + 1) == kBase + 4 * ms);
	CHECK(idle.FirstAfter(kBase + 5 * ms) == kBase + 6 * ms);
	CHECK(idle.FirstAfter(kBase + 6 * ms + 1) == UINT64_MAX);
	CHECK(idle.LastBefore(kBase + 10 * ms) == kBase + 7 * ms);
	CHECK(idle.LastBefore(kBase + 6 * ms) == kBase + 2 * ms + 100 * us);
	CHECK(idle.LastBefore(kBase + 3 * ms) == kBase + 2 * ms);
	CHECK(idle.LastBefore(kBase + 2 * ms - 1) == 0);
}

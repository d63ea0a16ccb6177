// SPDX-License-Identifier: MIT
// Load threads that were recorded together with the server: their delays belong to the load generator, not to
// the network.
#include "tests/support/catch.h"
#include "tests/unit/analysis/evidence/evidence_of.h"

#include "analysis/evidence.h"
#include "analysis/passes.h"
#include "analysis/timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint32_t kLoad = 200; // tid of the load thread

// A server idle throughout and a load thread that is idle except for what the test adds, over 100 ms. One
// connection, used by the first thread of the only load.
struct Both : RunBuilder {
	Both()
	{
		Thread(kServer, 0, 100 * ms);
		Off(FT_IDLE, 0, 100 * ms, 100 * ms);
		Thread(kLoad, 0, 100 * ms, FT_THREAD_CLIENT, "load generator").comm = "load-0";
		Loop("constant");
		run.load_starts = {{0, kBase, {kLoad}}};
	}
	// Finishes the run. Every request is slow.
	forktail::analysis::Blame BlameBoth()
	{
		Finish();
		WholeLog log(run);
		clients = FindClients(run, CountRequests(run, &log).first_due_of);
		timelines.push_back(Timeline());
		return BlameRun(run, timelines, {1, 0}, clients);
	}
	std::string Evidence(forktail::analysis::Blame *blame)
	{
		std::vector<Episode> episodes = FindEpisodes(blame);
		REQUIRE(episodes.size() == 1);
		FindEvidence(run, timelines, *blame, {}, 10, 1, &episodes, clients);
		return EvidenceText(episodes[0]);
	}
	Clients clients;
	std::vector<forktail::analysis::Timeline> timelines;
};

} // namespace

TEST_CASE("an answer that waited for a stopped load generator is client-late, the rest of its way network")
{
	Both b;
	b.Off(FT_IDLE, 0, 10 * ms, 10 * ms, 0, kLoad);
	b.Off(FT_STOPPED, 10 * ms, 40 * ms, 40 * ms, 0, kLoad);
	b.Tally(FT_OWN_CODE, 40 * ms, 100 * ms, 60 * ms, 1, kLoad);
	b.Request(5 * ms, 5 * ms, 45 * ms);
	b.Request(20 * ms, 41 * ms, 46 * ms, 1); // on a free connection: late before it was sent
	Blame blame = b.BlameBoth();

	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 30 * ms);
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 10 * ms);
	CHECK(PartOf(blame, 1, Cause::ClientLate).direct_ns == 21 * ms);
	CHECK(PartOf(blame, 1, Cause::Network).direct_ns == 5 * ms);
	for (const SlowRequest &r : blame.slow)
		CHECK(PartsSum(blame, r) == r.latency_ns);
	std::string text = b.Evidence(&blame);
	INFO(text);
	CHECK(text.find("the load generator's thread load-0 (200) was stopped by SIGSTOP for 30.0 ms; "
			"this delayed requests by 51.0 ms in total") != std::string::npos);
}

TEST_CASE("a request that waits for its connection because the load generator reads late is client-late")
{
	Both b;
	b.Off(FT_RUN_QUEUE, 10 * ms, 10 * ms, 40 * ms, 0, kLoad).arg[1] = 4711 | (29 * ms) << 32;
	b.run.spans.back().detail = 1;
	b.run.details.push_back({"stress-ng", {}});
	b.Tally(FT_IDLE, 0, 100 * ms, 70 * ms, 1, kLoad);
	b.Request(5 * ms, 5 * ms, 41 * ms);
	b.Request(15 * ms, 41 * ms, 42 * ms);
	Blame blame = b.BlameBoth();

	CHECK(PartOf(blame, 1, Cause::ClientLate).direct_ns == 25 * ms);
	CHECK(PartOf(blame, 1, Cause::Network).direct_ns == 2 * ms);
	for (const SlowRequest &r : blame.slow)
		CHECK(PartsSum(blame, r) == r.latency_ns);
	std::string text = b.Evidence(&blame);
	INFO(text);
	CHECK(text.find("load-0 (200) waited 30.0 ms for a CPU, held by stress-ng (4711) for 29.0 ms") !=
	      std::string::npos);
}

TEST_CASE("an idle or interrupted load thread is no reason")
{
	Both b;
	b.Off(FT_IDLE, 0, 50 * ms, 50 * ms, 0, kLoad);
	b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 50 * ms, 90 * ms, 0, UINT64_MAX, kLoad);
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 10 * ms, 1, kLoad);
	b.Request(5 * ms, 5 * ms, 80 * ms);
	Blame blame = b.BlameBoth();
	CHECK(PartOf(blame, 0, Cause::ClientLate).total_ns() == 0);
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 75 * ms);
	std::string text = b.Evidence(&blame);
	INFO(text);
	CHECK(text.find("requests or replies were on the network, or the server held the requests, while the "
			"load generator's thread load-0 "
			"(200) waited 45.0 ms for them and ran for 0 ns") != std::string::npos);
	CHECK(text.find("did not run") == std::string::npos);
}

TEST_CASE("a load thread with too much work is reported to run its own code")
{
	Both b;
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms, 1, kLoad);
	b.Request(5 * ms, 75 * ms, 80 * ms);
	Blame blame = b.BlameBoth();
	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 70 * ms);
	std::string text = b.Evidence(&blame);
	INFO(text);
	CHECK(text.find("load-0 (200) ran its own code for 75.0 ms of these 75.0 ms") != std::string::npos);
}

TEST_CASE("a load thread that was only idle is no reason for its late requests")
{
	Both b;
	b.Off(FT_IDLE, 0, 100 * ms, 100 * ms, 0, kLoad);
	b.Request(5 * ms, 75 * ms, 80 * ms);
	Blame blame = b.BlameBoth();
	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 70 * ms);
	std::string text = b.Evidence(&blame);
	INFO(text);
	CHECK(text.find(
		  "the load generator sent requests late, by 70.0 ms in total; the recording does not show "
		  "why its thread load-0 (200) did") != std::string::npos);
	CHECK(text.find("this delayed") == std::string::npos);
}

TEST_CASE("an answer that a busy load thread may not have read is network, with a message")
{
	Both b;
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms, 1, kLoad);
	b.Request(5 * ms, 5 * ms, 80 * ms);
	Blame blame = b.BlameBoth();
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 75 * ms);
	std::string text = b.Evidence(&blame);
	INFO(text);
	CHECK(text.find("requests or replies were on the network, or the server held the requests, or had "
			"arrived while the load generator's thread "
			"load-0 (200) ran its own code for 75.0 ms of that time") != std::string::npos);
}

TEST_CASE("time that cannot be assigned to a load thread stays unchanged")
{
	Both b;
	b.Off(FT_STOPPED, 10 * ms, 40 * ms, 40 * ms, 0, kLoad);
	SECTION("the log names no threads")
	{
		b.run.load_starts.clear();
	}
	SECTION("the log names other threads")
	{
		b.run.load_starts[0].tids = {kLoad + 1};
	}
	SECTION("the thread ended before")
	{
		b.run.load_starts[0].tids = {};
	}
	SECTION("that thread belongs to a server")
	{
		b.run.threads[1].flags = 0;
	}
	b.Request(5 * ms, 5 * ms, 45 * ms);
	Blame blame = b.BlameBoth();
	CHECK(b.clients.timelines.empty());
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 40 * ms);
}

TEST_CASE("a load generator is not taken for a server")
{
	Both b;
	b.run.threads[1].flags = FT_THREAD_CLIENT | FT_THREAD_MAIN;
	b.Finish();
	std::string why;
	CHECK(ServingThread(b.run, -1, &why) == static_cast<int>(b.ThreadIndex()));
}

TEST_CASE("stalled idle time between two instants is the sum of the parts in between")
{
	StalledIdle s = {{100, 300, 1000}, {200, 400, 1001}, {0, 100, 200}};
	CHECK(s.Between(0, 2000) == 201);
	CHECK(s.Between(150, 350) == 100);
	CHECK(s.Between(200, 300) == 0);
	CHECK(s.Between(120, 130) == 10);
	CHECK(s.Between(1000, 1000) == 0);
	CHECK(s.Between(500, 400) == 0);
	CHECK(StalledIdle().Between(0, 1) == 0);
}

// SPDX-License-Identifier: MIT
// Requests with recorded arrival times of their answers. The time that an answer waits unread is the load
// generator's, to the nanosecond. The rest of the time comes from the server's thread as usual.
#include "tests/support/catch.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/evidence/evidence_of.h"

#include "analysis/blame.h"
#include "analysis/evidence.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A server over 100 ms that is idle except for what the test adds.
struct Arriving : RunBuilder {
	Arriving() { Thread(kServer, 0, 100 * ms); }
	// arrival 0: unknown.
	void Arrived(uint64_t intended, uint64_t start, uint64_t arrival, uint64_t end,
		     uint32_t connection = 0)
	{
		Request(intended, start, end, connection);
		run.requests.arrival_ns.push_back(arrival ? kBase + arrival : 0);
	}
};

std::string Evidence(RunBuilder *b, forktail::analysis::Blame *blame)
{
	std::vector<forktail::analysis::Timeline> timelines;
	timelines.push_back(b->Timeline());
	std::vector<Episode> episodes = FindEpisodes(blame);
	REQUIRE(episodes.size() == 1);
	FindEvidence(b->run, timelines, *blame, {}, 10, 1, &episodes);
	return EvidenceText(episodes[0]);
}

} // namespace

TEST_CASE("the time an answer waits unread is client-late, whatever the server does then")
{
	Arriving b;
	b.Off(FT_IDLE, 0, 12 * ms, 12 * ms);
	b.Frame(FT_FORK, 20 * ms, 40 * ms); // while the answer is unread
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 68 * ms);
	b.Arrived(10 * ms, 10 * ms, 15 * ms, 45 * ms);
	b.Arrived(10 * ms, 10 * ms, 0, 45 * ms, 1);
	b.Loop("closed");
	b.Finish();
	Blame blame = b.Blame();
	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 30 * ms);
	CHECK(PartOf(blame, 0, Cause::Fork).total_ns() == 0);
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 2 * ms);
	CHECK(PartOf(blame, 0, Cause::ServerBusy).direct_ns == 3 * ms);
	// Without the arrival time, only the server's time decides.
	CHECK(PartOf(blame, 1, Cause::ClientLate).total_ns() == 0);
	CHECK(PartOf(blame, 1, Cause::Fork).direct_ns == 20 * ms);
	for (const SlowRequest &r : blame.slow)
		CHECK(PartsSum(blame, r) == r.latency_ns);
	std::string text = Evidence(&b, &blame);
	INFO(text);
	CHECK(contains(text, "replies were unread at the client for 30.0 ms in total (longest 30.0 ms)\n"));
	CHECK_FALSE(contains(text, "sent requests late"));
}

TEST_CASE("a request whose connection had an unread answer is late because of the load generator")
{
	Arriving b;
	b.Off(FT_IDLE, 0, 100 * ms, 100 * ms);
	b.Arrived(1 * ms, 1 * ms, 3 * ms, 30 * ms);
	b.Arrived(2 * ms, 31 * ms, 32 * ms, 32 * ms);
	b.Loop("constant");
	b.Finish();
	Blame blame = b.Blame();
	CHECK(PartOf(blame, 0, Cause::ClientLate).direct_ns == 27 * ms);
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 2 * ms);
	CHECK(PartOf(blame, 1, Cause::ClientLate).direct_ns == 28 * ms);
	CHECK(PartOf(blame, 1, Cause::Network).direct_ns == 2 * ms);
	std::string text = Evidence(&b, &blame);
	INFO(text);
	CHECK(contains(text,
		       "replies were unread at the client for 27.0 ms in total (longest 27.0 ms); the load "
		       "generator sent requests late, by 28.0 ms in total"));
}

TEST_CASE("time of requests and answers in transit is separate where the server was idle before or after")
{
	Arriving b;
	b.Off(FT_IDLE, 0, 14 * ms, 14 * ms);
	b.Frame(FT_FORK, 14 * ms, 18 * ms);
	b.Off(FT_IDLE, 18 * ms, 60 * ms, 60 * ms);
	b.Tally(FT_OWN_CODE, 60 * ms, 100 * ms, 40 * ms);
	b.Arrived(10 * ms, 10 * ms, 19 * ms, 20 * ms);	  // 4 ms to the server, 1 ms back
	b.Arrived(16 * ms, 16 * ms, 21 * ms, 21 * ms, 1); // the server was at work
	b.Arrived(11 * ms, 11 * ms, 13 * ms, 13 * ms, 2); // idle throughout, but it answered
	b.Arrived(12 * ms, 12 * ms, 0, 15 * ms, 3);	  // unknown
	b.Loop("closed");
	b.Finish();
	Blame blame = b.Blame();
	REQUIRE(blame.slow.size() == 4);
	CHECK(blame.slow[0].way.request_ns == 4 * ms);
	CHECK(blame.slow[0].way.answer_ns == 1 * ms);
	CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 5 * ms);
	CHECK(blame.slow[1].way.request_ns + blame.slow[1].way.answer_ns == 0);
	CHECK_FALSE(blame.slow[2].arrived);
	CHECK(blame.slow[2].way.request_ns == 0);
	CHECK(blame.slow[3].way.request_ns == 0);
	CHECK(blame.slow[3].way.answer_ns == 3 * ms);
	std::string text = Evidence(&b, &blame);
	INFO(text);
	CHECK(contains(text, "requests were on the network for 4.00 ms in total, replies for 4.00 ms"));
	CHECK_FALSE(contains(text, "did not run"));
	// Threads outside of the recording give no information.
	OnTheWay way = FindOnTheWay(b.Timeline(), kBase + 99 * ms, kBase + 101 * ms);
	CHECK(way.request_ns + way.answer_ns == 0);
	CHECK(FindOnTheWay(forktail::analysis::Timeline(), kBase, kBase + ms).answer_ns == 0);
}

TEST_CASE("latency until arrival covers only requests with a known arrival time")
{
	Arriving b;
	for (uint64_t i = 0; i < 100; i++)
		b.Arrived(i * ms, i * ms, i % 2 ? i * ms + (i + 1) * us : 0, i * ms + 200 * us);
	b.run.requests.status[99] = FT_STATUS_TIMEOUT;
	b.Finish();
	Arrivals a = BlameRun(b.run, {forktail::analysis::Timeline()}, {}).arrivals;
	CHECK(a.known == 49);
	CHECK(a.latencies.p50 == 50 * us);
	CHECK(a.latencies.max == 98 * us);
	CHECK(a.longest_unread_ns == 198 * us);
	CHECK(a.unread_ns == 49 * 150 * us);

	RunBuilder without;
	without.Request(0, 0, 5 * ms);
	CHECK(BlameRun(without.run, {forktail::analysis::Timeline()}, {}).arrivals.known == 0);
	CHECK(without.run.requests.Unread(0) == 0);
}

// SPDX-License-Identifier: MIT
// Requests timed by another host's clock: their legs sum to the latency, a delay in one direction is in that
// leg, and time that the clocks cannot place is in no leg.
#include "analysis/blame.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A server on one host that is asleep except from 20 to 22 ms. The load generator's clock is assumed to be
// correct and may be off by `bound`.
struct TwoHosts : RunBuilder {
	explicit TwoHosts(uint64_t bound)
	{
		RecordingFile server, load;
		server.clock_id = "server";
		load.clock_id = "client";
		load.bound_ns = run.clocks_bound_ns = bound;
		run.files = {server, load};
		Thread(kServer, 0, 100 * ms).file = 0;
		Off(FT_IDLE, 0, 20 * ms, 20 * ms);
		Frame(FT_FORK, 20 * ms, 22 * ms);
		Off(FT_IDLE, 22 * ms, 100 * ms, 100 * ms);
	}
	// The load generator's clock is off by `off`. Arrival 0: unknown.
	void Sent(int64_t off, uint64_t due, uint64_t sent, uint64_t arrival, uint64_t end)
	{
		auto at = [&](uint64_t t) { return static_cast<uint64_t>(static_cast<int64_t>(t) + off); };
		Request(at(due), at(sent), at(end));
		run.requests.arrival_ns.push_back(arrival ? kBase + at(arrival) : 0);
	}
	Legs Explained()
	{
		Loop("constant");
		run.loads[0].file = 1;
		Finish();
		blame = Blame();
		REQUIRE(blame.slow.size() == 1);
		const Legs legs = LegsOf(blame, blame.slow[0]);
		CHECK(PartsSum(blame, blame.slow[0]) == blame.slow[0].latency_ns);
		CHECK(legs.late_ns + legs.there_ns + legs.server_ns + legs.back_ns + legs.unread_ns +
			  legs.unknown_ns ==
		      blame.slow[0].latency_ns);
		return legs;
	}
	forktail::analysis::Blame blame;
};

} // namespace

TEST_CASE("legs of a request: a delay on the way there is in that leg, for any clock error in the bound")
{
	for (const int64_t off : {int64_t{-200'000}, int64_t{-70'000}, int64_t{0}, int64_t{200'000}}) {
		INFO("off by " << off);
		TwoHosts b(200 * us);
		b.Sent(off, 10 * ms, 12 * ms, 22 * ms + 50 * us, 23 * ms);
		const Legs legs = b.Explained();
		CHECK(legs.late_ns == 2 * ms);
		CHECK(legs.server_ns <= 2 * ms);
		CHECK(legs.server_ns >= 2 * ms - 200 * us);
		CHECK(legs.unread_ns == 950 * us);
		CHECK(legs.there_ns <= 8 * ms); // never more than the true value
		CHECK(legs.there_ns >= 8 * ms - 400 * us);
		CHECK(legs.back_ns <= 50 * us);
		CHECK(b.blame.slow[0].clocks_ns == 0);
	}
}

TEST_CASE("legs of a request: a delay on the way back is in that leg, or unread without an arrival time")
{
	for (const int64_t off : {int64_t{-200'000}, int64_t{0}, int64_t{200'000}}) {
		INFO("off by " << off);
		TwoHosts b(200 * us);
		b.Sent(off, 19 * ms + 950 * us, 19 * ms + 950 * us, 0, 32 * ms);
		const Legs legs = b.Explained();
		CHECK(legs.there_ns <= 50 * us);
		CHECK(legs.back_ns <= 10 * ms);
		CHECK(legs.back_ns >= 10 * ms - 400 * us);
		CHECK(legs.late_ns == 0);
		CHECK(legs.unread_ns == 0);
	}
}

TEST_CASE("legs of a request: a time shorter than the bound is in no leg, even a whole leg")
{
	TwoHosts b(5 * ms);
	b.Sent(0, 16 * ms, 16 * ms, 23 * ms, 23 * ms);
	const Legs legs = b.Explained();
	CHECK(legs.there_ns == 0);
	CHECK(legs.back_ns == 0);
	CHECK(legs.server_ns == 0); // 2 ms of a fork may be before it or after it
	CHECK(legs.unknown_ns == 7 * ms);
	CHECK(PartOf(b.blame, 0, Cause::Unknown).total_ns() == b.blame.slow[0].clocks_ns);
	CHECK(PartOf(b.blame, 0, Cause::Fork).total_ns() == 0);
}

TEST_CASE("legs of a request: while a server sleeps all the time, the two ways are not distinguished")
{
	TwoHosts b(100 * us);
	b.Sent(0, 30 * ms, 31 * ms, 41 * ms, 41 * ms);
	const Legs legs = b.Explained();
	CHECK(legs.late_ns == 1 * ms);
	CHECK(legs.there_ns + legs.back_ns == 0);
	CHECK(legs.unknown_ns == 10 * ms);
	CHECK(PartOf(b.blame, 0, Cause::Network).total_ns() == 10 * ms); // it was one of the two
}

TEST_CASE("the clocks' bound is that between a request's two ends, not that of other hosts in the run")
{
	TwoHosts b(300 * us);
	RecordingFile near = b.run.files[0], far = b.run.files[1];
	far.clock_id = "another";
	far.bound_ns = 40 * us;
	near.bound_ns = 10 * us;
	b.run.files.push_back(far);
	b.run.files[0] = near;
	RecordingFile same = near;
	b.run.files.push_back(same);
	b.run.connections.resize(3);
	b.run.loads.resize(3);
	for (uint32_t i = 0; i < 3; i++) {
		b.run.loads[i].file = i + 1;
		b.run.loads[i].first_connection = i;
		b.run.loads[i].connection_count = 1;
	}
	CHECK(ClocksBound(b.run, 0, 0) == 310 * us);
	CHECK(ClocksBound(b.run, 1, 0) == 50 * us);
	CHECK(ClocksBound(b.run, 2, 0) == 0);	     // on the server's host
	CHECK(ClocksBound(b.run, 7, 0) == 300 * us); // of an unknown load
	b.run.clocks_bound_ns = 0;
	CHECK(ClocksBound(b.run, 0, 0) == 0);
}

// SPDX-License-Identifier: MIT
// A server that holds requests is idle, as one whose requests are on the network: what distinguishes the two.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A server that is idle from 100 to 900 ms, while two connections wait for answers.
void IdleServer(RunBuilder *b)
{
	b->Thread(kServer, 0, 1000 * ms, FT_THREAD_MAIN, "redis-server");
	b->Off(FT_IDLE, 100 * ms, 900 * ms, 900 * ms);
	b->Tally(FT_OWN_CODE, 0, 1000 * ms, 200 * ms);
	b->Request(100 * ms, 100 * ms, 901 * ms, 0);
	b->Request(200 * ms, 200 * ms, 901 * ms, 1);
	b->run.servers = {"10.0.0.7:6379"};
}

void Blocked(RunBuilder *b, std::vector<double> values)
{
	Series series = {"redis.blocked_clients", "", {}, {}};
	for (size_t i = 0; i < values.size(); i++)
		series.samples.push_back({kBase + 100 * ms + i * 200 * ms, values[i]});
	b->run.series.push_back(series);
}

} // namespace

TEST_CASE("held: the server counted the clients that waited as blocked")
{
	RunBuilder b;
	IdleServer(&b);
	SECTION("as many more than usual")
	{
		Blocked(&b, {1, 1, 3, 1, 1, 1});
		b.Finish();
		const Blame blame = b.Blame();
		CHECK(PartOf(blame, 0, Cause::Held).direct_ns == 800 * ms);
		CHECK(PartOf(blame, 1, Cause::Held).direct_ns == 700 * ms);
		CHECK(PartOf(blame, 0, Cause::Network).direct_ns == 0);
	}
	SECTION("usual ones are others'")
	{
		Blocked(&b, {2, 2, 2, 2, 2});
		b.Finish();
		CHECK(PartOf(b.Blame(), 0, Cause::Held).direct_ns == 0);
		CHECK(PartOf(b.Blame(), 0, Cause::Network).direct_ns == 800 * ms);
	}
	SECTION("the usual number is that of most of the time, not of most samples, which are changes")
	{
		Series series = {"redis.blocked_clients", "", {}, {}};
		for (const Sample &s : std::vector<Sample>{{50, 0},
							   {500, 2},
							   {550, 0},
							   {600, 2},
							   {610, 0},
							   {620, 2},
							   {630, 0},
							   {640, 2},
							   {650, 0},
							   {660, 2}})
			series.samples.push_back({kBase + s.t_ns * ms, s.value});
		b.run.series.push_back(series);
		b.Finish();
		CHECK(PartOf(b.Blame(), 0, Cause::Held).direct_ns == 800 * ms);
	}
	SECTION("when no request waited")
	{
		Blocked(&b, {5, 0, 0, 0, 0});
		b.Finish();
		CHECK(PartOf(b.Blame(), 0, Cause::Network).direct_ns == 800 * ms);
	}
	SECTION("without its word")
	{
		b.Finish();
		CHECK(PartOf(b.Blame(), 0, Cause::Network).direct_ns == 800 * ms);
	}
}

TEST_CASE("held: one blocked client does not explain many requests that wait")
{
	RunBuilder b;
	IdleServer(&b);
	for (uint32_t c = 2; c < 10; c++)
		b.Request(300 * ms, 300 * ms, 901 * ms, c);
	Blocked(&b, {0, 0, 1, 0, 0, 0});
	b.Finish();
	CHECK(PartOf(b.Blame(), 0, Cause::Held).direct_ns == 0);
	CHECK(PartOf(b.Blame(), 0, Cause::Network).direct_ns == 800 * ms);
}

TEST_CASE("held: a command that the server answers when something happens")
{
	RunBuilder b;
	IdleServer(&b);
	b.run.ops = {"wait 1 1000", "SET"};
	b.Finish();
	CHECK(PartOf(b.Blame(), 0, Cause::Held).direct_ns == 800 * ms);
	CHECK(IsBlockingCommand("BLPOP"));
	CHECK_FALSE(IsBlockingCommand("LPOP"));
}

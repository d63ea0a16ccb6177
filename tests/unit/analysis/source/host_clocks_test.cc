// SPDX-License-Identifier: MIT
// Clock offsets estimated from round trips between two clocks with a known difference. The truth is always
// within the bound, however unequal the two ways are.
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "analysis/run/host_clocks.h"
#include "analysis/run/read_blocks.h"

using namespace forktail::analysis;

namespace
{

constexpr double us = 1e3, ms = 1e6;
constexpr uint64_t s = 1'000'000'000, kStart = 5000 * s;

// Two clocks: the peer's is ahead by `offset` at kStart and gains `ppm`.
struct Truth {
	double offset_ns, ppm;
	uint64_t At(uint64_t t_ns) const
	{
		double since = static_cast<double>(t_ns) - static_cast<double>(kStart);
		return static_cast<uint64_t>(static_cast<int64_t>(t_ns) +
					     std::llround(offset_ns + since * ppm * 1e-6));
	}
};

struct Ways {
	double there_ns, back_ns; // at least
	double jitter_ns;	  // added on average to each
};

ft_probe Trip(const Truth &truth, uint64_t sent_ns, const Ways &ways, std::mt19937_64 *random)
{
	std::exponential_distribution<double> more(1 / std::max(ways.jitter_ns, 1.0));
	ft_probe p = {};
	auto wait = [&](double least) { return static_cast<uint64_t>(least + more(*random)); };
	uint64_t there = sent_ns + wait(ways.there_ns), back = there + 2000;
	p.sent_ns = sent_ns;
	p.peer_received_ns = truth.At(there);
	p.peer_sent_ns = truth.At(back);
	p.received_ns = back + wait(ways.back_ns);
	return p;
}

std::vector<ft_probe> Trips(const Truth &truth, const Ways &ways, double seconds, std::mt19937_64 *random)
{
	std::vector<ft_probe> all;
	for (double at = 0; at <= seconds * 1e9; at += 50 * ms)
		all.push_back(Trip(truth, kStart + static_cast<uint64_t>(at), ways, random));
	return all;
}

double Off(const ClockMap &map, const Truth &truth, uint64_t t_ns)
{
	return std::abs(static_cast<double>(static_cast<int64_t>(map.Map(t_ns) - truth.At(t_ns))));
}

} // namespace

TEST_CASE("the truth is within the bound, however unequal the ways are")
{
	std::mt19937_64 random(17);
	auto draw = [&](double low, double high) {
		return std::uniform_real_distribution<double>(low, high)(random);
	};
	double closest = 1;
	for (int i = 0; i < 2000; i++) {
		Truth truth = {draw(-4e12, 4e12), draw(-200, 200)};
		Ways ways = {draw(5 * us, 400 * us), draw(5 * us, 400 * us), draw(1 * us, 300 * us)};
		double seconds = draw(0, 1) < 0.1 ? 0 : draw(0.1, 25);
		uint64_t left_out = 0;
		ClockMap map = FitClock(Trips(truth, ways, seconds, &random), &left_out);
		REQUIRE(left_out == 0);
		INFO("case " << i << ", " << seconds << " s");
		uint64_t length = static_cast<uint64_t>(seconds * 1e9);
		for (int at = -2; at <= 12; at++) {
			uint64_t t = kStart + static_cast<uint64_t>(static_cast<int64_t>(length) / 10 * at);
			double bound = static_cast<double>(map.BoundAt(t));
			REQUIRE(Off(map, truth, t) <= bound);
			closest = std::min(closest, 1 - Off(map, truth, t) / bound);
		}
	}
	CHECK(closest < 0.9); // a bound far from every error would be useless
}

TEST_CASE("round trips of less than 40 us bound a clock to 20 us")
{
	std::mt19937_64 random(1);
	uint64_t left_out = 0;
	Truth truth = {86400e9, 20};
	ClockMap map = FitClock(Trips(truth, {14 * us, 18 * us, 5 * us}, 60, &random), &left_out);
	CHECK(map.Bound(kStart, kStart + 60 * s) <= 20'000);
	CHECK(std::abs(map.DriftPpm() - 20) < 1);
}

TEST_CASE("a slower way to the peer shifts a clock by less than the bound")
{
	std::mt19937_64 random(2);
	uint64_t left_out = 0;
	Truth truth = {1e9, 0};
	ClockMap map = FitClock(Trips(truth, {20 * us, 5 * ms, 10 * us}, 20, &random), &left_out);
	uint64_t at = kStart + 10 * s;
	CHECK(Off(map, truth, at) > 1e6); // it cannot be known
	CHECK(Off(map, truth, at) <= static_cast<double>(map.BoundAt(at)));
}

TEST_CASE("a clock that is adjusted meanwhile is followed")
{
	std::mt19937_64 random(3);
	Truth before = {0, 0}, after = {-100e-6 * 30e9, 100}; // from kStart + 30 s on
	std::vector<ft_probe> trips;
	for (uint64_t at = 0; at < 60 * s; at += s / 20)
		trips.push_back(
		    Trip(at < 30 * s ? before : after, kStart + at, {20 * us, 20 * us, 5 * us}, &random));
	uint64_t left_out = 0;
	ClockMap map = FitClock(trips, &left_out);
	for (uint64_t at = 0; at <= 59 * s; at += s / 2)
		CHECK(Off(map, at < 30 * s ? before : after, kStart + at) <=
		      static_cast<double>(map.BoundAt(kStart + at)));
	CHECK(map.BoundAt(kStart + 5 * s) < 40'000);
	CHECK(map.BoundAt(kStart + 55 * s) < 40'000);
}

TEST_CASE("impossible round trips are ignored")
{
	std::mt19937_64 random(4);
	Truth truth = {7e9, 3};
	std::vector<ft_probe> trips = Trips(truth, {20 * us, 20 * us, 5 * us}, 5, &random);
	size_t good = trips.size();
	ft_probe wrong = trips[3];
	std::swap(wrong.sent_ns, wrong.received_ns);
	trips.push_back(wrong);
	wrong = trips[4];
	wrong.peer_sent_ns += s; // longer at the peer than away from here
	trips.push_back(wrong);
	wrong = trips[5];
	wrong.received_ns = UINT64_MAX;
	trips.push_back(wrong);
	trips.push_back({});
	uint64_t left_out = 0;
	ClockMap map = FitClock(trips, &left_out);
	CHECK(left_out == trips.size() - good);
	CHECK(Off(map, truth, kStart + s) <= static_cast<double>(map.BoundAt(kStart + s)));
	CHECK(map.BoundAt(kStart + s) < 40'000);
	CHECK(FitClock({wrong, {}}, &left_out).same());
}

TEST_CASE("times never run backwards, and an unset time stays unset")
{
	std::mt19937_64 random(5);
	uint64_t left_out = 0;
	ClockMap map = FitClock(Trips({-3e12, -150}, {300 * us, 10 * us, 200 * us}, 35, &random), &left_out);
	CHECK(map.Map(0) == 0);
	CHECK(map.Map(UINT64_MAX) == UINT64_MAX);
	uint64_t last = 0;
	for (uint64_t t = kStart - 2 * s; t < kStart + 40 * s; t += 999'983) {
		CHECK(map.Map(t) >= last);
		CHECK(map.Map(t + 1) >= map.Map(t));
		last = map.Map(t + 1);
	}
}

TEST_CASE("clocks are connected through others, in either direction")
{
	std::mt19937_64 random(6);
	// first -> server, first -> client: the client through the first.
	Truth server = {2e12, 12}, client = {-1e12, -30};
	Ways ways = {20 * us, 30 * us, 20 * us};
	std::vector<ClockPair> pairs = {{"first", "server", Trips(server, ways, 20, &random)},
					{"first", "client", Trips(client, ways, 20, &random)},
					{"x", "y", Trips(server, ways, 1, &random)}};
	std::vector<ClockPath> paths = ConnectClocks("server", pairs);
	REQUIRE(paths.size() == 3);
	CHECK(paths[0].clock == "server");
	CHECK(paths[0].map.same());
	CHECK(paths[1].clock == "first");
	REQUIRE(paths[2].clock == "client");
	for (uint64_t t = kStart; t < kStart + 20 * s; t += s) {
		double off = std::abs(
		    static_cast<double>(static_cast<int64_t>(paths[2].map.Map(client.At(t)) - server.At(t))));
		CHECK(off <= static_cast<double>(paths[2].map.BoundAt(client.At(t))));
	}
	CHECK(paths[2].map.Bound(client.At(kStart), client.At(kStart + 20 * s)) < 80'000);
}

TEST_CASE("all times of a connection are mapped, unknown ones stay unknown")
{
	std::mt19937_64 random(8);
	uint64_t left_out = 0;
	const ClockMap map = FitClock(Trips({3e12, 0}, {10 * us, 10 * us, 5 * us}, 20, &random), &left_out);
	ft_connection c = {};
	c.opened_ns = c.closed_ns = c.reader_ns = kStart;
	MapTimes(map, &c);
	CHECK(c.opened_ns == map.Map(kStart));
	CHECK(c.closed_ns == c.opened_ns);
	CHECK(c.reader_ns == c.opened_ns);
	c.closed_ns = c.reader_ns = 0;
	MapTimes(map, &c);
	CHECK(c.closed_ns == 0);
	CHECK(c.reader_ns == 0);
}

// SPDX-License-Identifier: MIT
// The heap of timers: timers run in the order of their times, whatever the order in which they were added,
// and only when due.
#include <cstdint>
#include <poll.h>
#include <vector>

#include "loadgen/protocol.h"
#include "loadgen/timers.h"
#include "recording/recording.h"
#include "tests/support/catch.h"

namespace
{

struct Timers {
	timers t = {};
	std::vector<uint64_t> acted, at; // which timer ran, and with which time
	struct One {
		Timers *all;
		uint64_t when;
		uint64_t again; // adds another one this much later; 0: none
	};
	std::vector<One> ones;

	explicit Timers(uint32_t room)
	{
		REQUIRE(timers_init(&t, room) == 0);
		ones.reserve(100000);
	}
	~Timers() { timers_free(&t); }
	Timers(const Timers &) = delete;
	Timers &operator=(const Timers &) = delete;

	void add(uint64_t when, uint64_t again = 0)
	{
		ones.push_back({this, when, again});
		timers_add(
		    &t, when,
		    [](void *who, uint64_t now) {
			    const One one = *static_cast<One *>(who);
			    one.all->acted.push_back(one.when);
			    one.all->at.push_back(now);
			    if (one.again)
				    one.all->add(now + one.again);
		    },
		    &ones.back());
	}
};

} // namespace

TEST_CASE("timers run in order, whatever the order in which they were added, and not before their time")
{
	random_stream random = {9};
	for (uint32_t count : {1u, 2u, 3u, 7u, 8u, 100u, 5000u}) {
		Timers x(4); // it grows
		uint64_t due = 0;
		for (uint32_t i = 0; i < count; i++) {
			const uint64_t when = 1 + random_below(&random, 1000);
			due += when <= 500;
			x.add(when);
		}
		timers_run(&x.t, 500);
		REQUIRE(x.acted.size() == due);
		timers_run(&x.t, 500);
		REQUIRE(x.acted.size() == due);
		timers_run(&x.t, 1000);
		REQUIRE(x.acted.size() == count);
		for (size_t i = 1; i < count; i++)
			REQUIRE(x.acted[i - 1] <= x.acted[i]);
		for (size_t i = 0; i < count; i++)
			REQUIRE(x.at[i] == (i < due ? 500 : 1000));
		CHECK(x.t.count == 0);
	}
}

TEST_CASE("timers added and taken alternately")
{
	random_stream random = {10};
	Timers x(1);
	uint64_t now = 1, pending = 0;
	for (int round = 0; round < 2000; round++) {
		const uint64_t add = random_below(&random, 4);
		for (uint64_t i = 0; i < add; i++)
			x.add(now + 1 + random_below(&random, 50));
		pending += add;
		now += random_below(&random, 20);
		const size_t before = x.acted.size();
		timers_run(&x.t, now);
		pending -= x.acted.size() - before;
		REQUIRE(x.t.count == pending);
		for (size_t i = before; i < x.acted.size(); i++) {
			REQUIRE(x.acted[i] <= now);
			REQUIRE((i == before || x.acted[i - 1] <= x.acted[i]));
		}
		for (uint32_t i = 0; i < x.t.count; i++)
			REQUIRE(x.t.heap[i].when_ns > now);
	}
}

TEST_CASE("a running timer may add another one, also one that is due at once")
{
	Timers x(1);
	x.add(10, 5);
	timers_run(&x.t, 20);
	CHECK(x.acted == std::vector<uint64_t>{10});
	CHECK(x.t.count == 1);
	timers_run(&x.t, 24);
	CHECK(x.acted.size() == 1);
	timers_run(&x.t, 25);
	CHECK(x.acted == std::vector<uint64_t>{10, 25});
}

TEST_CASE("the descriptor is readable once the first is due")
{
	Timers x(2);
	pollfd p = {x.t.fd, POLLIN, 0};
	const uint64_t now = ft_now_ns();
	x.add(now + 3600000000000);
	CHECK(poll(&p, 1, 20) == 0);
	x.add(now + 1000000);
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(ft_now_ns() >= now + 1000000);
}

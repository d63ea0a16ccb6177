// SPDX-License-Identifier: MIT
// The budget that periodic looks share. Their times are made up, their cost is real.
#include <vector>

#include "tests/support/catch.h"

#include "loader/system.h"

namespace
{

constexpr uint64_t ms = 1'000'000;

void work(uint64_t ns)
{
	const uint64_t until_ns = thread_cpu_ns() + ns;
	while (thread_cpu_ns() < until_ns)
		;
}

struct Repeated {
	uint64_t takes_ns;
	look l = {};
	uint64_t times = 0;

	explicit Repeated(uint64_t ns) : takes_ns(ns) {}
	~Repeated() { look_close(&l); }
	Repeated(const Repeated &) = delete;
	Repeated &operator=(const Repeated &) = delete;
	void tick(uint64_t now_ns, uint64_t least_ns = 0)
	{
		if (!look_begins(&l, now_ns))
			return;
		work(takes_ns);
		look_ends(&l, least_ns);
		times++;
	}
};

} // namespace

TEST_CASE("looks together take at most a two-hundredth of the time, and a cheap one is not delayed by others")
{
	constexpr uint64_t seconds = 10;
	Repeated cheap(20'000), dear(2 * ms), dearer(4 * ms);
	const uint64_t begun_ns = thread_cpu_ns();
	for (uint64_t now = 1000 * ms; now < (1 + seconds) * 1000 * ms; now += 50 * ms)
		for (Repeated *one : {&dear, &dearer, &cheap})
			one->tick(now);
	const double share = static_cast<double>(thread_cpu_ns() - begun_ns) / (seconds * 1e9);
	INFO(share << ": " << cheap.times << ", " << dear.times << ", " << dearer.times);
	CHECK(share < 0.006); // the first looks do not know of each other
	CHECK(dearer.times >= 3);
	CHECK(dear.times > dearer.times);
	CHECK(cheap.times > 5 * dear.times);
}

TEST_CASE("a look that is closed leaves its part to the others, and one may be due earlier or later")
{
	Repeated one(1 * ms);
	{
		Repeated other(9 * ms);
		other.tick(ms);
		one.tick(ms);
		CHECK(one.l.due_ns > 700 * ms);
	}
	look_soon(&one.l);
	one.tick(2 * ms);
	CHECK(one.times == 2);
	CHECK(one.l.due_ns >= 200 * ms);
	CHECK(one.l.due_ns < 400 * ms);
	look_soon(&one.l);
	one.tick(3 * ms, 10'000 * ms);
	CHECK(one.l.due_ns == 10'003 * ms);
}

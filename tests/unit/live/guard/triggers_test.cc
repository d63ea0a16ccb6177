// SPDX-License-Identifier: MIT
// Events checked against rules: each stall, iteration or second fires once, on serving threads.
#include "live/guard/jobs.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;
using namespace forktail::live::guard;

namespace
{

constexpr uint64_t kMs = 1'000'000;

struct World {
	std::vector<forktail::live::Server> servers;
	std::vector<forktail::live::ThreadTotals> threads;
	TriggerMatcher watch;

	// Threads: 0 the server's main thread, 1 its helper for the disk, 2 its snapshot child, 3 another
	// server's thread.
	explicit World(const std::vector<std::string> &rules)
	{
		servers.resize(2);
		servers[0].name = "redis-server:1";
		servers[1].name = "redis-server:2";
		threads.resize(4);
		threads[0].main = threads[0].has_loop = true;
		threads[2].main = threads[2].child = true;
		threads[3].server = 1;
		threads[3].main = true;
		std::vector<Trigger> triggers;
		for (const std::string &text : rules) {
			Rule rule;
			std::string error;
			REQUIRE(ParseRule(text, &rule, &error));
			triggers.push_back(PlainTrigger(rule));
		}
		watch.Use(triggers);
	}
	std::vector<Firing> see(const forktail::live::Batch &batch)
	{
		std::vector<Firing> fired;
		watch.See(batch, servers, threads, &fired);
		return fired;
	}
};

forktail::live::Batch stalled(uint32_t thread, Cause cause, uint64_t start_ms, uint64_t ms, bool open = false)
{
	forktail::live::Batch batch;
	forktail::live::Stall s;
	s.thread = thread;
	s.server = thread == 3;
	s.cause = cause;
	s.start_ns = start_ms * kMs;
	s.duration_ns = ms * kMs;
	s.open = open;
	s.serves = thread == 0 || thread == 3;
	batch.stalls.push_back(s);
	return batch;
}

forktail::live::Batch turned(uint64_t start_ms, uint64_t ms)
{
	forktail::live::Batch batch;
	forktail::live::Iteration t;
	t.start_ns = start_ms * kMs;
	t.duration_ns = ms * kMs;
	t.parts = {{Cause::Fork, ms * kMs / 2}};
	batch.iterations.push_back(t);
	return batch;
}

} // namespace

TEST_CASE("a stall over its limit fires, for its own cause only")
{
	World world({"stall(fork) > 20ms"});
	CHECK(world.see(stalled(0, Cause::Fork, 100, 20)).empty());
	CHECK(world.see(stalled(0, Cause::Sleep, 100, 50)).empty());
	const auto fired = world.see(stalled(0, Cause::Fork, 200, 25));
	REQUIRE(fired.size() == 1);
	CHECK(fired[0].trigger == "stall-fork");
	CHECK(fired[0].server == "redis-server:1");
	CHECK(fired[0].what == "fork for 25.0 ms");
	CHECK(fired[0].start_ns == 200 * kMs);
	CHECK(fired[0].end_ns == 225 * kMs);
}

TEST_CASE("threads that do not serve delay no request")
{
	World world({"stall > 20ms"});
	CHECK(world.see(stalled(1, Cause::Fsync, 100, 500)).empty());
	CHECK(world.see(stalled(2, Cause::FileWrite, 100, 500)).empty());
	CHECK(world.see(stalled(3, Cause::Stopped, 100, 500)).size() == 1);
}

TEST_CASE("a stall that continues fires once, and the iteration that it delayed does not fire again")
{
	World world({"stall > 20ms", "iteration > 20ms"});
	CHECK(world.see(stalled(0, Cause::Stopped, 100, 900, true)).size() == 2);
	CHECK(world.see(stalled(0, Cause::Stopped, 100, 1900, true)).empty());
	CHECK(world.see(stalled(0, Cause::Stopped, 100, 2500)).empty());
	CHECK(world.see(turned(90, 2520)).empty());
	CHECK(world.see(turned(2700, 10)).empty());
	const auto fired = world.see(turned(2800, 30));
	REQUIRE(fired.size() == 1);
	CHECK(fired[0].what == "an event-loop iteration of 30.0 ms, fork for 15.0 ms");
}

TEST_CASE("rates cover a server's threads together, per second")
{
	World world({"rate(page-in) > 100/s"});
	forktail::live::Batch batch;
	forktail::live::Second second;
	second.start_ns = 7'000'000'000;
	for (const uint32_t thread : {0u, 1u, 2u}) {
		forktail::live::ThreadSecond t;
		t.thread = thread;
		t.counts[Index(Cause::PageIn)] = 50;
		second.threads.push_back(t);
	}
	batch.seconds = {second};
	CHECK(world.see(batch).empty()); // the child's don't count
	batch.seconds[0].threads[1].counts[Index(Cause::PageIn)] = 51;
	const auto fired = world.see(batch);
	REQUIRE(fired.size() == 1);
	CHECK(fired[0].what == "page-in 101 times in a second");
}

TEST_CASE("lost records, and requests to the recorder, fire")
{
	World world({"drops > 10"});
	forktail::live::Batch batch;
	batch.drops.push_back({1000, 2000, 10, FT_DROP_RING, 0});
	CHECK(world.see(batch).empty());
	batch.drops.push_back({2000, 3000, 1, FT_DROP_RING, 0});
	CHECK(world.see(batch).size() == 1);

	forktail::live::Batch asked;
	forktail::live::Note note;
	note.kind = "trigger";
	note.name = "SIGUSR1";
	note.t_ns = 5;
	asked.notes.push_back(note);
	const auto fired = world.see(asked);
	REQUIRE(fired.size() == 1);
	CHECK(fired[0].trigger == "SIGUSR1");
}

TEST_CASE("a trigger of one server does not fire for another")
{
	World world({});
	Rule rule;
	std::string error;
	REQUIRE(ParseRule("stall > 20ms", &rule, &error));
	Trigger trigger = PlainTrigger(rule);
	trigger.server = "redis-server:2";
	world.watch.Use({trigger});
	CHECK(world.see(stalled(0, Cause::Fork, 100, 50)).empty());
	CHECK(world.see(stalled(3, Cause::Fork, 100, 50)).size() == 1);
}

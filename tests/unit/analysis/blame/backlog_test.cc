// SPDX-License-Identifier: MIT
// Which delays of a queue belong to stalls, and which to the server's own code: requests that wait for one
// event-loop iteration get its causes in the proportions of the thread's own account.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/blame.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A server with one request each millisecond, until one iteration takes long. Then it works off the queue, an
// iteration for all that fell due in the one before.
struct LongIteration {
	RunBuilder b;
	uint64_t service; // own code per request
	bool iterations;  // were recorded
	uint64_t end = 0; // of the queue

	static constexpr uint64_t kFrom = 1'000 * ms, kLength = 3'000 * ms;

	LongIteration(uint64_t service_ns, bool recorded) : service(service_ns), iterations(recorded)
	{
		b.Thread(kServer, 0, kLength);
	}
	void Iteration(uint64_t from, uint64_t to)
	{
		if (iterations)
			b.Frame(FT_ITERATION, from, to);
	}
	void OneRequest(uint64_t due)
	{
		b.Off(FT_IDLE, due + service, due + ms, due + ms);
		b.Tally(FT_OWN_CODE, due, due + ms, service);
		b.Request(due, due, due + service);
	}
	// `until`: the end of the long iteration, whose records the caller has added. `served`: the first of
	// its time in which requests are served.
	void Run(uint64_t until, uint64_t served)
	{
		for (uint64_t t = 0; t < kFrom; t += ms)
			OneRequest(t);
		uint64_t due = kFrom, answered = served;
		uint32_t connection = 10;
		auto answer_those_due_before = [&](uint64_t before) {
			for (; due < before; due += ms) {
				answered += service;
				b.Request(due, due, answered, connection++);
			}
		};
		if (served < until)
			answer_those_due_before(served);
		answered = until;
		for (uint64_t begin = until; due < begin; begin = answered) {
			answer_those_due_before(begin);
			Iteration(begin, answered);
			b.Tally(FT_OWN_CODE, begin, answered, answered - begin);
		}
		end = answered;
		if (due > end)
			b.Off(FT_IDLE, end, due, due);
		for (; due < kLength; due += ms)
			OneRequest(due);
		b.run.min_span_ns = 1 * us;
		b.Finish();
	}
	// The share of a cause in the time of all slow requests.
	double Share(Cause cause)
	{
		const Blame blame = b.Blame({5 * ms, 0});
		uint64_t of_cause = 0;
		for (size_t i = 0; i < blame.slow.size(); i++) {
			if (PartsSum(blame, blame.slow[i]) != blame.slow[i].latency_ns)
				throw std::runtime_error("a request's parts are not its latency");
			of_cause += PartOf(blame, i, cause).total_ns();
		}
		return static_cast<double>(of_cause) / static_cast<double>(blame.slow_ns);
	}
};

} // namespace

TEST_CASE("requests that wait for one iteration see what its thread did in it")
{
	const uint64_t service = GENERATE(20 * us, 200 * us, 500 * us);
	const bool recorded = GENERATE(true, false);
	INFO("service " << service << " ns, iterations " << recorded);
	LongIteration run(service, recorded);
	const uint64_t from = LongIteration::kFrom, to = from + 368 * ms;
	Cause cause = Cause::PageZero;
	SECTION("a command with page faults")
	{
		for (uint64_t t = from; t < to; t += ms) {
			run.b.Tally(FT_PAGE_ZERO, t, t + ms, 590 * us, 300);
			run.b.Tally(FT_OWN_CODE, t, t + ms, 410 * us);
		}
	}
	SECTION("with soft interrupts")
	{
		cause = CauseOfOwner(FT_SOFTIRQ + 3);
		for (uint64_t t = from; t < to; t += ms) {
			run.b.Tally(static_cast<ft_owner>(FT_SOFTIRQ + 3), t, t + ms, 300 * us, 100);
			run.b.Tally(FT_OWN_CODE, t, t + ms, 700 * us);
		}
	}
	SECTION("beside a child on the same CPU")
	{
		cause = Cause::RunQueue;
		for (uint64_t t = from; t < to; t += 8 * ms) {
			run.b.Tally(FT_OWN_CODE, t, t + 8 * ms, 3920 * us);
			run.b.Off(FT_RUN_QUEUE, t + 3920 * us, t + 3920 * us, t + 8 * ms);
		}
	}
	run.Iteration(from, to);
	run.Run(to, to);
	const double in_iteration =
	    static_cast<double>(Spent(run.b.Timeline(), cause, from, to)) / static_cast<double>(to - from);
	CHECK(run.Share(cause) > in_iteration - 0.05);
	CHECK(run.Share(cause) < in_iteration + 0.05);
}

TEST_CASE("the queue that a stall leaves is the stall's, whether it is in an iteration or before it")
{
	const uint64_t service = GENERATE(20 * us, 200 * us, 500 * us);
	const bool recorded = GENERATE(true, false);
	INFO("service " << service << " ns, iterations " << recorded);
	LongIteration run(service, recorded);
	const uint64_t from = LongIteration::kFrom, to = from + 200 * ms;
	SECTION("a fork")
	{
		run.b.Frame(FT_FORK, from, to);
		run.Iteration(from, to);
		run.Run(to, to);
		CHECK(run.Share(Cause::Fork) > 0.95);
	}
	SECTION("it was ready to run, and then took all requests that were due")
	{
		const uint64_t served = to + 200 * service;
		run.b.Off(FT_IDLE, from, from, to);
		run.b.Tally(FT_OWN_CODE, to, served, 200 * service);
		run.Iteration(to, served);
		run.Run(served, to);
		CHECK(run.Share(Cause::RunQueue) > 0.95);
	}
}

TEST_CASE("a slow command after a stall is not the stall's")
{
	const bool recorded = GENERATE(true, false);
	LongIteration run(20 * us, recorded);
	const uint64_t from = LongIteration::kFrom, fork = from + 50 * ms, to = fork + 300 * ms;
	run.b.Frame(FT_FORK, from, fork);
	run.Iteration(from, fork);
	run.b.Tally(FT_OWN_CODE, fork, to, to - fork);
	run.Iteration(fork, to);
	run.Run(to, to);
	// The requests that were due in the fork saw half of it, and all of the command.
	const double in_fork = 50 * 25, in_command = 50 * 300 + 300 * 150;
	CHECK(run.Share(Cause::Fork) < in_fork / (in_fork + in_command) + 0.05);
}

TEST_CASE("a wait inside an event-loop iteration is no proof of an empty queue")
{
	const bool recorded = GENERATE(true, false);
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms);
	b.Off(FT_IDLE, 0, 9 * ms, 9 * ms);
	if (recorded)
		b.Frame(FT_ITERATION, 9 * ms, 60 * ms);
	b.Frame(FT_FORK, 10 * ms, 20 * ms);
	b.Off(FT_IDLE, 30 * ms, 50 * ms, 50 * ms); // poll(), for another server's answer
	b.Off(FT_IDLE, 70 * ms, 100 * ms, 100 * ms);
	b.Tally(FT_OWN_CODE, 9 * ms, 60 * ms, 20 * ms);
	b.Tally(FT_IDLE, 20 * ms, 30 * ms, 1 * us);
	b.Tally(FT_OWN_CODE, 60 * ms, 100 * ms, 10 * ms);
	b.run.end_ns = kBase + 100 * ms;
	b.Finish();
	const Timeline t = b.Timeline();
	BacklogBuilder builder(b.run, kBase, &t, nullptr, 1 << 22);
	builder.AddIdle();
	const Backlog backlog = builder.Finish();
	CHECK(backlog.ClearBefore(kBase + 80 * ms) == kBase + 80 * ms);
	if (recorded) {
		CHECK(t.idle_ns == std::vector<uint64_t>{kBase + 9 * ms, kBase + 100 * ms});
		CHECK(backlog.ClearBefore(kBase + 40 * ms) == kBase + 9 * ms);
	} else {
		CHECK(t.idle_ns.size() == 4);
		CHECK(backlog.ClearBefore(kBase + 40 * ms) == kBase + 40 * ms);
	}
}

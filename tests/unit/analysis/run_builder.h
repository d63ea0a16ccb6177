// SPDX-License-Identifier: MIT
// Builds runs by hand for tests of the analysis: one thread's spans and tallies, and requests, in a few
// words. Times are nanoseconds after kBase, so that they read as small numbers and look like real clocks.
#pragma once
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "analysis/passes.h"
#include "analysis/run.h"
#include "analysis/timeline.h"

namespace forktail::test
{

constexpr uint64_t kBase = 1'000'000'000'000; // ns
constexpr uint64_t us = 1'000, ms = 1'000'000;
constexpr uint32_t kServer = 100; // tid of the server's main thread

struct RunBuilder {
	forktail::analysis::Run run;

	RunBuilder()
	{
		run.min_span_ns = 20 * us;
		run.details.emplace_back();
		run.connections.emplace_back();
		run.ops = {"GET", "SET"};
		run.syscalls = {{0, "read"},	   {1, "write"},   {7, "poll"},
				{75, "fdatasync"}, {202, "futex"}, {232, "epoll_wait"}}; // x86-64's
	}

	forktail::analysis::Thread &Thread(uint32_t tid, uint64_t start, uint64_t end,
					   uint32_t flags = FT_THREAD_MAIN,
					   const std::string &role = "redis-server", uint32_t tgid = 0)
	{
		forktail::analysis::Thread t;
		t.tid = tid;
		t.tgid = tgid ? tgid : tid;
		t.flags = flags;
		t.start_ns = kBase + start;
		t.end_ns = kBase + end;
		t.comm = t.role = role;
		run.threads.push_back(t);
		return run.threads.back();
	}
	// A frame. `own` is its own time on the CPU, by default all of it.
	ft_span &Frame(ft_owner owner, uint64_t start, uint64_t end, uint8_t depth = 0,
		       uint64_t own = UINT64_MAX, uint32_t tid = kServer)
	{
		ft_span s = {};
		s.start_ns = kBase + start;
		s.duration_ns = end - start;
		s.on_cpu_ns = own == UINT64_MAX ? end - start : own;
		s.tid = tid;
		s.owner = static_cast<uint8_t>(owner);
		s.depth = depth;
		s.syscall = -1;
		run.spans.push_back(s);
		return run.spans.back();
	}
	// Off the CPU from start to end, runnable from `woken`.
	ft_span &Off(ft_owner owner, uint64_t start, uint64_t woken, uint64_t end, uint8_t depth = 0,
		     uint32_t tid = kServer)
	{
		ft_span &s = Frame(owner, start, end, depth, 0, tid);
		s.blocked_ns = woken - start;
		s.runnable_ns = end - woken;
		s.off_cpu = 1;
		return s;
	}
	void Tally(ft_owner owner, uint64_t start, uint64_t end, uint64_t total, uint32_t count = 1,
		   uint32_t tid = kServer)
	{
		ft_tally t = {};
		t.start_ns = kBase + start;
		t.end_ns = kBase + end;
		t.total_ns = total;
		t.count = count;
		t.tid = tid;
		t.owner = owner;
		run.tallies.push_back(t);
	}
	// The id of a stack, for CpuSample.
	uint32_t Stack(const forktail::analysis::Stack &stack)
	{
		if (run.stacks.empty())
			run.stacks.emplace_back();
		run.stacks.push_back(stack);
		return static_cast<uint32_t>(run.stacks.size() - 1);
	}
	void CpuSample(uint64_t t, uint32_t stack, ft_owner owner = FT_OWN_CODE, uint32_t tid = kServer)
	{
		ft_cpu_sample s = {};
		s.t_ns = kBase + t;
		s.tid = tid;
		s.stack = stack;
		s.owner = static_cast<uint8_t>(owner);
		run.cpu_samples.push_back(s);
	}
	// A stack of one function, by default of the server's program.
	uint32_t StackIn(const char *function, const char *module = "redis-server")
	{
		forktail::analysis::Stack stack;
		stack.program = "redis-server";
		stack.frames.push_back({function, module});
		return Stack(stack);
	}
	// One per millisecond.
	void CpuSamples(uint64_t from, uint64_t count, uint32_t stack)
	{
		for (uint64_t i = 0; i < count; i++)
			CpuSample(from + i * ms, stack);
	}
	void Request(uint64_t intended, uint64_t start, uint64_t end, uint32_t connection = 0, uint8_t op = 0,
		     uint8_t status = FT_STATUS_OK)
	{
		while (run.connections.size() <= connection)
			run.connections.emplace_back();
		run.requests.due_ns.push_back(kBase + intended);
		run.requests.sent_ns.push_back(kBase + start);
		run.requests.end_ns.push_back(kBase + end);
		run.requests.connection.push_back(connection);
		run.requests.op.push_back(op);
		run.requests.status.push_back(status);
	}
	void Loop(const std::string &arrival, uint32_t pipeline = 1)
	{
		forktail::analysis::Load load;
		load.arrival = arrival;
		load.rate = arrival == "closed" ? 0 : 1000;
		load.pipeline = pipeline;
		load.connection_count = static_cast<uint32_t>(run.connections.size());
		run.loads = {load};
	}
	// Sorts everything. Call it once, at the end.
	forktail::analysis::Run &Finish()
	{
		forktail::analysis::IndexRun(&run);
		return run;
	}
	uint32_t ThreadIndex(uint32_t tid = kServer) const
	{
		for (uint32_t i = 0; i < run.threads.size(); i++)
			if (run.threads[i].tid == tid)
				return i;
		return UINT32_MAX;
	}
	forktail::analysis::Timeline Timeline(uint32_t tid = kServer)
	{
		return analysis::BuildTimeline(run, ThreadIndex(tid));
	}
	// Blame of all requests. Every request is slow unless a threshold is given.
	forktail::analysis::Blame Blame(forktail::analysis::Threshold threshold = {1, 0})
	{
		std::vector<forktail::analysis::Timeline> timelines;
		timelines.push_back(ThreadIndex() == UINT32_MAX ? forktail::analysis::Timeline()
								: Timeline());
		return analysis::BlameRun(run, timelines, threshold);
	}
};

inline uint64_t Spent(const forktail::analysis::Timeline &t, forktail::analysis::Cause cause, uint64_t from,
		      uint64_t to)
{
	forktail::analysis::CauseTimes times = {};
	analysis::AddTimes(t, kBase + from, kBase + to, &times);
	return times[static_cast<size_t>(analysis::Index(cause))];
}

// A cause's part of the `n`-th slow request. All zero if it has none.
inline forktail::analysis::Part PartOf(const forktail::analysis::Blame &b, size_t n,
				       forktail::analysis::Cause cause)
{
	const forktail::analysis::SlowRequest &r = b.slow.at(n);
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
		if (b.parts[p].cause == cause)
			return b.parts[p];
	return {cause, forktail::analysis::kNoHop, 0, 0};
}

inline uint64_t PartsSum(const forktail::analysis::Blame &b, const forktail::analysis::SlowRequest &r)
{
	uint64_t sum = 0;
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
		sum += b.parts[p].total_ns();
	return sum;
}

// Time of a cause at a hop in the n-th slow request (by due time). The parts of a request sum to its latency.
inline uint64_t TimeAt(const forktail::analysis::Blame &b, size_t n, forktail::analysis::Cause cause,
		       uint16_t hop)
{
	uint64_t ns = 0;
	const forktail::analysis::SlowRequest &r = b.slow.at(n);
	if (PartsSum(b, r) != r.latency_ns)
		throw std::runtime_error("a request's parts are not its latency");
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
		if (b.parts[p].cause == cause && b.parts[p].hop == hop)
			ns += b.parts[p].total_ns();
	return ns;
}

} // namespace forktail::test

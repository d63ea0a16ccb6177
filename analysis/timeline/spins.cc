// SPDX-License-Identifier: MIT
// Only CPU samples distinguish a spinning thread from a working one. If a helper was off the CPU, the share
// of samples in which the main thread spun shows how long it waited. The main thread does its own part of the
// work first, so the waiting is at the end.
#include "spins.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace forktail::analysis
{

namespace
{

// Functions in which a main thread also is while it waits; its own work there is negligible. Functions called
// there, and inlined ones, have no names in the binaries of distributions.
constexpr const char *kAround[] = {
    "beforeSleep",		// waits are inlined into it
    "processIOThreadsReadDone", // Valkey repeats it while helpers have all the work
    "processIOThreadsWriteDone",
    "aeProcessEvents",
};
// Where helpers look for work.
constexpr const char *kHelperLoops[] = {"IOThreadMain"};

// Without a sample in it, a wait counts only if the iteration ends this soon after it.
constexpr uint64_t kSoonNs = 200'000;
// How long a sample shows what a thread does: a little more than the sampling period.
constexpr uint64_t kNearNs = 5'000'000;

enum class Doing : uint8_t { Unknown, Circles, Work };

template <size_t N> bool IsOneOf(const std::string &function, const char *const (&names)[N])
{
	return std::any_of(std::begin(names), std::end(names),
			   [&](const char *name) { return function == name; });
}

// For the main thread: by the innermost named function of the program. For a library function the caller
// decides: reading the clock is no work.
Doing DoingOfMain(const Stack &stack)
{
	for (const StackFrame &frame : stack.frames)
		if (!frame.function.empty() && frame.module == stack.program)
			return IsOneOf(frame.function, kHelperWaits) || IsOneOf(frame.function, kAround)
				   ? Doing::Circles
				   : Doing::Work;
	return Doing::Unknown;
}

// For a helper, of which usually only the innermost function is known: library code is work, unnamed code of
// the program may be polling.
Doing DoingOfHelper(const Stack &stack)
{
	if (stack.frames.empty())
		return Doing::Unknown;
	const StackFrame &frame = stack.frames[0];
	if (frame.module != stack.program)
		return Doing::Work;
	if (frame.function.empty())
		return Doing::Unknown;
	return IsOneOf(frame.function, kHelperLoops) ? Doing::Circles : Doing::Work;
}

// What the kernel does for a thread is work, except polling for events.
Doing DoingInKernel(const Run &run, uint16_t call)
{
	return call && SyscallName(run, call - 1).rfind("epoll_", 0) == 0 ? Doing::Unknown : Doing::Work;
}

// What a thread did at its samples.
struct Samples {
	struct One {
		uint64_t t_ns, period_ns;
		Doing doing;
	};
	std::vector<One> all; // by time

	Samples(const Run &run, const Thread &t, Doing (*doing_of)(const Stack &))
	{
		for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++) {
			const ft_cpu_sample &s = run.cpu_samples[i];
			Doing doing = Doing::Unknown;
			if (s.owner == FT_OWN_CODE && s.flags & FT_CPU_SAMPLE_KERNEL)
				doing = DoingInKernel(run, s.syscall);
			else if (s.owner == FT_OWN_CODE && s.stack && s.stack < run.stacks.size())
				doing = doing_of(run.stacks[s.stack]);
			all.push_back({s.t_ns, (s.period ? s.period : 16) * uint64_t{62'500}, doing});
		}
	}
	auto From(uint64_t t_ns) const
	{
		return std::partition_point(all.begin(), all.end(),
					    [&](const One &s) { return s.t_ns < t_ns; });
	}
};

struct Helper {
	uint32_t thread;
	const Timeline *timeline;
	Samples samples;
};

// A time in which a helper could not run.
struct Stall {
	uint64_t start_ns, end_ns;
	const Helper *helper;
};

bool IsHelper(const Thread &t, const Thread &main)
{
	return t.tgid == main.tgid && t.tid != t.tgid && t.comm.rfind("io_thd_", 0) == 0 &&
	       t.start_ns < main.end_ns && main.start_ns < t.end_ns;
}

// A parked helper waits for a lock that the main thread holds; a helper with its own loop may be idle.
bool Keeps(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && p.cause != Cause::LockWait;
}

void AddStalls(const Helper &helper, uint64_t from_ns, uint64_t to_ns, std::vector<Stall> *stalls)
{
	const Timeline &t = *helper.timeline;
	uint64_t from = std::max(from_ns, t.start_ns()), to = std::min(to_ns, t.end_ns());
	if (t.empty() || from >= to)
		return;
	uint32_t p = PieceAt(t, from);
	for (bool open = false; p + 1 < t.pieces.size() && t.pieces[p].start_ns < to; p++) {
		bool kept = Keeps(t.pieces[p]);
		if (kept && !open)
			stalls->push_back({std::max(from, t.pieces[p].start_ns), 0, &helper});
		if (kept) // its end may be after the iteration's: the last one waited for
			stalls->back().end_ns = t.pieces[p + 1].start_ns;
		open = kept;
	}
}

// Intervals that are already assigned, in order and not adjacent.
class Covered
{
public:
	// Calls `see` with the unassigned parts of [from, to), and assigns them.
	template <typename See> void Take(uint64_t from_ns, uint64_t to_ns, See see)
	{
		if (from_ns >= to_ns)
			return;
		auto first = std::partition_point(taken_.begin(), taken_.end(),
						  [&](const auto &t) { return t.second < from_ns; });
		auto last = first;
		std::pair<uint64_t, uint64_t> all = {from_ns, to_ns};
		uint64_t at = from_ns;
		for (; last != taken_.end() && last->first <= to_ns; ++last) {
			if (last->first > at)
				see(at, last->first);
			at = std::max(at, last->second);
			all = {std::min(all.first, last->first), std::max(all.second, last->second)};
		}
		if (at < to_ns)
			see(at, to_ns);
		if (first == last) {
			taken_.insert(first, all);
			return;
		}
		*first = all;
		taken_.erase(first + 1, last);
	}

private:
	std::vector<std::pair<uint64_t, uint64_t>> taken_;
};

struct SpinSearch {
	const Timeline &main;
	Samples samples;
	std::vector<Helper> helpers;
	uint64_t usual_ns = 0; // length of an iteration
	std::vector<Foreign> found = {};

	// Gives the main thread's own code in [from, to) to what the helper did then, or to `cause`.
	void Move(uint64_t from_ns, uint64_t to_ns, const Helper &helper, Cause cause)
	{
		uint64_t from = std::max(from_ns, main.start_ns()), to = std::min(to_ns, main.end_ns());
		if (from >= to)
			return;
		for (uint32_t p = PieceAt(main, from); from < to; p++) {
			uint64_t end = std::min(to, main.pieces[p + 1].start_ns);
			if (main.pieces[p].cause != Cause::ServerBusy) {
				from = end;
				continue;
			}
			if (cause == Cause::IoThread)
				found.push_back({from, end, helper.thread, cause});
			else
				MoveTo(from, end, helper);
			from = end;
		}
	}
	void MoveTo(uint64_t from, uint64_t to, const Helper &helper)
	{
		const Timeline &t = *helper.timeline;
		for (uint32_t p = PieceAt(t, from); from < to; p++) {
			uint64_t end = std::min(to, t.pieces[p + 1].start_ns);
			if (Keeps(t.pieces[p]))
				found.push_back({from, end, helper.thread, t.pieces[p].cause});
			from = end;
		}
	}

	// When the main thread began to wait for a helper that was off the CPU in [from, to): time before
	// `to`.
	uint64_t WaitStart(uint64_t from_ns, uint64_t to_ns, const Stall &stall,
			   uint64_t iteration_end_ns) const
	{
		uint64_t circles = 0, work = 0, length = to_ns - from_ns;
		for (auto s = samples.From(from_ns); s != samples.all.end() && s->t_ns < to_ns; ++s) {
			circles += s->doing == Doing::Circles ? s->period_ns : 0;
			work += s->doing == Doing::Work ? s->period_ns : 0;
		}
		if (circles + work)
			return to_ns - static_cast<uint64_t>(static_cast<double>(length) *
							     static_cast<double>(circles) /
							     static_cast<double>(circles + work));
		bool soon = iteration_end_ns <= stall.end_ns + kSoonNs && stall.end_ns <= iteration_end_ns;
		return soon && length > usual_ns ? from_ns + usual_ns : to_ns;
	}

	void LookAtStalls(uint64_t start_ns, uint64_t end_ns, Covered *covered)
	{
		std::vector<Stall> stalls;
		for (const Helper &helper : helpers)
			AddStalls(helper, start_ns, end_ns, &stalls);
		// A barrier: the main thread waits for the last helper.
		std::stable_sort(stalls.begin(), stalls.end(),
				 [](const Stall &a, const Stall &b) { return a.end_ns > b.end_ns; });
		for (const Stall &stall : stalls)
			covered->Take(stall.start_ns, std::min(stall.end_ns, end_ns),
				      [&](uint64_t from, uint64_t to) {
					      Move(WaitStart(from, to, stall, end_ns), to, *stall.helper,
						   Cause::Unknown);
				      });
	}

	// The helper whose sample at work is nearest to an instant, or nullptr.
	const Helper *AtWork(uint64_t t_ns) const
	{
		const Helper *nearest = nullptr;
		uint64_t least = kNearNs;
		for (const Helper &helper : helpers) {
			auto s = helper.samples.From(t_ns - std::min(t_ns, kNearNs));
			for (; s != helper.samples.all.end() && s->t_ns < t_ns + kNearNs; ++s) {
				uint64_t distance = s->t_ns > t_ns ? s->t_ns - t_ns : t_ns - s->t_ns;
				if (s->doing != Doing::Work || distance >= least)
					continue;
				least = distance;
				nearest = &helper;
			}
		}
		return nearest;
	}

	void LookAtCircles(uint64_t start_ns, uint64_t end_ns, Covered *covered)
	{
		// Up to a sample at work the thread worked; before the first sample of an iteration it mostly
		// waited. An iteration may end at a sample, if its end is not known otherwise.
		uint64_t worked_ns = start_ns;
		for (auto s = samples.From(start_ns); s != samples.all.end() && s->t_ns <= end_ns; ++s) {
			if (s->doing == Doing::Work)
				worked_ns = s->t_ns;
			const Helper *helper = s->doing == Doing::Circles ? AtWork(s->t_ns) : nullptr;
			if (!helper)
				continue;
			covered->Take(
			    std::max(worked_ns, s->t_ns - std::min(s->t_ns, kNearNs)), s->t_ns,
			    [&](uint64_t from, uint64_t to) { Move(from, to, *helper, Cause::IoThread); });
		}
	}
};

} // namespace

std::vector<Foreign> FindSpins(ThreadTimelines *threads, const Timeline &main)
{
	const Run &run = threads->run();
	const Thread &thread = run.threads[main.thread];
	if (thread.tid != thread.tgid)
		return {};
	std::vector<Helper> helpers;
	for (uint32_t i = 0; i < run.threads.size(); i++)
		if (IsHelper(run.threads[i], thread))
			helpers.push_back({i, &threads->Of(i), Samples(run, run.threads[i], DoingOfHelper)});
	if (helpers.empty())
		return {};
	SpinSearch search = {main, Samples(run, thread, DoingOfMain), std::move(helpers),
			     thread.usual_turn_ns};
	const ft_span *iteration = run.iterations.data() + thread.first_iteration;
	const ft_span *const end = iteration + thread.iteration_count;
	while (iteration != end) {
		// For a loop that never waits, samples define where iterations begin and end. Iterations
		// without a gap may be one, in which a wait crosses the sample.
		const uint64_t start_ns = iteration->start_ns;
		uint64_t end_ns = start_ns;
		Covered covered;
		for (; iteration != end && iteration->start_ns == end_ns; iteration++) {
			end_ns = iteration->start_ns + iteration->duration_ns;
			search.LookAtStalls(iteration->start_ns, end_ns, &covered);
		}
		search.LookAtCircles(start_ns, end_ns, &covered);
	}
	std::sort(search.found.begin(), search.found.end(),
		  [](const Foreign &a, const Foreign &b) { return a.start_ns < b.start_ns; });
	// Iterations do not overlap, except those defined only by samples.
	std::vector<Foreign> found;
	for (const Foreign &f : search.found) {
		Foreign *last = found.empty() ? nullptr : &found.back();
		if (last && f.start_ns == last->end_ns && f.thread == last->thread && f.cause == last->cause)
			last->end_ns = f.end_ns;
		else if (!last || f.start_ns >= last->end_ns)
			found.push_back(f);
	}
	return found;
}

} // namespace forktail::analysis

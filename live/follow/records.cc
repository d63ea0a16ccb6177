// SPDX-License-Identifier: MIT
// Adds records of threads to their accounts and reports them as events.
#include <algorithm>

#include "common/json.h"
#include "state.h"

namespace forktail::live
{

namespace
{

// An open span is reported as a stall from this duration on; shorter ones are reported at their end.
constexpr uint64_t kOpenStallNs = 20'000'000;

} // namespace

void Follower::State::Seen(uint64_t t_ns)
{
	// A time in the future is invalid and would close current accounts.
	if (t_ns <= newest_ns || t_ns > Now() + kSecondNs)
		return;
	newest_ns = t_ns;
	if (!begun || t_ns <= accounts.closed_to_ns() + (kOpenSlots - 2) * kSlotNs)
		return;
	LookAtWaits();
	accounts.CloseTo(t_ns - kLagNs, &batch->seconds);
}

void Follower::State::Thread(const ft_thread &t)
{
	if (t.flags & FT_THREAD_CLIENT)
		return;
	Seen(std::max(t.start_ns, t.end_ns));
	accounts.Thread(t);
	Accounts::Known *known = accounts.Find(t.tid);
	bool ended_now = t.flags & FT_THREAD_ENDED;
	if (ended_now)
		iterations.Ended(t.tid);
	if (!(t.flags & FT_THREAD_MAIN))
		return;
	if (!(t.flags & FT_THREAD_CHILD)) {
		if (ended_now)
			servers.End(t.tgid, t.end_ns);
		return;
	}
	auto [found, is_new] = children.try_emplace(t.tgid);
	Child &child = found->second;
	std::string role = known->role.empty() ? known->comm : known->role;
	bool changed = is_new || child.role != role || ended_now;
	uint32_t server = t.parent_tgid ? servers.Known(t.parent_tgid) : kNone;
	if (server == kNone) {
		uint32_t label = accounts.Label(known);
		server = label == kNone ? 0 : accounts.all()[label].server;
	}
	child = {server, t.tgid, role, t.start_ns, ended_now ? t.end_ns : 0};
	if (changed)
		batch->children.push_back(child);
	if (ended_now)
		children.erase(found);
}

void Follower::State::AddStall(Accounts::Known *t, analysis::Cause cause, const ft_span &s, uint64_t start_ns,
			       uint64_t ns, uint64_t own_ns, bool open)
{
	uint32_t label = analysis::IsStall(cause) && ns ? accounts.Label(t) : kNone;
	if (label == kNone)
		return;
	Stall stall;
	stall.start_ns = start_ns;
	stall.duration_ns = ns;
	stall.own_ns = own_ns;
	stall.server = accounts.all()[label].server;
	stall.thread = label;
	stall.cause = cause;
	stall.open = open;
	stall.serves = accounts.Serves(*t);
	if (const DetailText *detail = DetailOf(s.detail)) {
		stall.detail = detail->name;
		stall.stack = detail->stack;
	}
	if (s.off_cpu && s.syscall >= 0 && static_cast<size_t>(s.syscall) < syscalls.size())
		stall.syscall = syscalls[static_cast<size_t>(s.syscall)];
	batch->stalls.push_back(std::move(stall));
}

void Follower::State::OffCpu(Accounts::Known *t, const ft_span &s, analysis::Cause blocked)
{
	uint64_t end_ns = s.start_ns + s.duration_ns;
	uint64_t woken_ns = s.start_ns + std::min(s.blocked_ns, s.duration_ns);
	accounts.AddInterval(t, blocked, s.start_ns, woken_ns, 1);
	const bool serves = accounts.Serves(*t);
	if (serves)
		iterations.AddPart(s.tid,
				   {s.start_ns, woken_ns, woken_ns - s.start_ns, blocked, 0, s.detail});
	// A background thread's wait for work is accounted for but is not an event.
	if (blocked != analysis::Cause::Idle)
		AddStall(t, blocked, s, s.start_ns, woken_ns - s.start_ns, s.blocked_ns, false);
	if (woken_ns >= end_ns)
		return;
	analysis::Cause cause = analysis::WaitCauseOf(s.flags);
	if (serves)
		iterations.AddPart(s.tid, {woken_ns, end_ns, end_ns - woken_ns, cause, s.queue_cpu, 0});
	constexpr size_t most_waits = 1 << 16;
	if (s.queue_cpu && waits.size() < most_waits) {
		waits.push_back(
		    {s.tid, static_cast<uint16_t>(s.queue_cpu - 1), woken_ns, end_ns, cause, false});
		return;
	}
	accounts.AddInterval(t, cause, woken_ns, end_ns, 1);
	ft_span none = s;
	none.detail = 0;
	none.syscall = -1;
	AddStall(t, cause, none, woken_ns, end_ns - woken_ns, end_ns - woken_ns, false);
}

// Finishes waits for a CPU whose slices have been recorded by now.
void Follower::State::LookAtWaits()
{
	std::map<std::tuple<uint64_t, uint32_t, std::string>, uint64_t> taken; // by slot, thread, holder
	for (size_t left = waits.size(); left > 0; left--) {
		Wait w = waits.front();
		waits.pop_front();
		if (!w.looked && w.end_ns + kSecondNs > newest_ns) {
			w.looked = true;
			waits.push_back(w);
			continue;
		}
		Accounts::Known *t = accounts.Find(w.tid);
		if (!t)
			continue;
		uint64_t ns = w.end_ns - w.start_ns;
		const std::vector<analysis::CpuHolder> holders = slices.In(w.cpu, w.start_ns, w.end_ns);
		if (w.cause == analysis::Cause::RunQueue && analysis::IsDeferred(holders, ns))
			w.cause = analysis::Cause::SoftirqDeferred;
		accounts.AddInterval(t, w.cause, w.start_ns, w.end_ns, 1);
		ft_span bare = {};
		bare.syscall = -1;
		AddStall(t, w.cause, bare, w.start_ns, ns, ns, false);
		uint32_t label = accounts.Label(t);
		for (const analysis::CpuHolder &h : holders)
			if (label != kNone && h.tid)
				taken[{w.start_ns / kSlotNs, label, common::VisibleName(h.slice->comm)}] +=
				    h.ns;
	}
	for (const auto &[key, ns] : taken) {
		const auto &[slot, label, comm] = key;
		batch->taken.push_back({slot * kSlotNs, ns, accounts.all()[label].server, label, comm});
	}
}

void Follower::State::IterationSpan(Accounts::Known *t, const ft_span &s)
{
	// An iteration whose start and end were both not seen does not prove an event loop
	// (analysis/timeline).
	bool guessed =
	    (s.flags & FT_SPAN_UNFINISHED) && !s.arg[0] && !(s.arg[1] && !(s.flags & FT_SPAN_SAMPLED));
	if (guessed)
		return;
	t->has_loop = true;
	uint32_t label = accounts.Label(t);
	if (label == kNone)
		return;
	Iteration iteration;
	iteration.start_ns = s.start_ns;
	iteration.duration_ns = s.duration_ns;
	iteration.server = accounts.all()[label].server;
	iteration.thread = label;
	iteration.reads = s.arg[1] & 0xffff;
	iteration.writes = s.arg[1] >> 16 & 0xffff;
	iteration.sampled = s.flags & FT_SPAN_SAMPLED;
	iterations.AddIteration(s.tid, iteration, details);
}

void Follower::State::FrameEvents(Accounts::Known *t, const ft_span &s, analysis::Cause cause)
{
	uint32_t label =
	    cause == analysis::Cause::Fork || cause == analysis::Cause::Fsync ? accounts.Label(t) : kNone;
	if (label == kNone)
		return;
	uint32_t server = accounts.all()[label].server;
	const DetailText *detail = DetailOf(s.detail);
	if (cause == analysis::Cause::Fsync)
		batch->fsyncs.push_back(
		    {s.start_ns, s.duration_ns, server, label, detail ? detail->name : ""});
	else if (!s.off_cpu)
		batch->forks.push_back(
		    {s.start_ns, s.duration_ns, server, label, static_cast<int64_t>(s.arg[0])});
}

void Follower::State::Span(const ft_span &s)
{
	uint64_t end_ns = s.start_ns + s.duration_ns;
	Accounts::Known *t = accounts.Find(s.tid);
	Seen(end_ns);
	if (!t || end_ns < s.start_ns || end_ns > newest_ns)
		return;
	if (s.owner == FT_ITERATION)
		return IterationSpan(t, s);
	accounts.Moved(t, end_ns);
	if (!s.off_cpu) {
		analysis::Cause cause = analysis::CauseOfOwner(s.owner);
		uint64_t own_ns = s.on_cpu_ns + s.runnable_ns + s.blocked_ns;
		accounts.AddWithin(t, cause, own_ns, s.start_ns, end_ns, 1);
		if (accounts.Serves(*t))
			iterations.AddPart(s.tid, {s.start_ns, end_ns, own_ns, cause, 0, s.detail});
		FrameEvents(t, s, cause);
		AddStall(t, cause, s, s.start_ns, s.duration_ns, own_ns, false);
		return;
	}
	const DetailText *detail = DetailOf(s.detail);
	analysis::Cause cause = detail && detail->stack_cause != analysis::Cause::Unknown
				    ? detail->stack_cause
				    : analysis::CauseOfOwner(s.owner);
	OffCpu(t, s, cause);
	FrameEvents(t, s, cause);
	if (cause == analysis::Cause::Idle && s.depth == 0)
		iterations.Waited(s.tid);
}

void Follower::State::Tally(const ft_tally &tally)
{
	Accounts::Known *t = accounts.Find(tally.tid);
	Seen(tally.end_ns);
	if (!t || tally.end_ns < tally.start_ns || tally.end_ns > newest_ns)
		return;
	analysis::Cause cause = analysis::CauseOfOwner(tally.owner);
	accounts.Moved(t, tally.end_ns);
	accounts.AddWithin(t, cause, tally.total_ns, tally.start_ns, tally.end_ns, tally.count);
	if (t->has_loop)
		iterations.AddTally(tally.tid, cause, tally);
}

// Reads an open span.
void Follower::State::OpenSpan(const ft_span &s)
{
	uint64_t seen_ns = s.start_ns + s.duration_ns;
	Accounts::Known *t = accounts.Find(s.tid);
	Seen(seen_ns);
	if (!t || s.owner == FT_ITERATION || seen_ns < s.start_ns || seen_ns > newest_ns)
		return;
	analysis::Cause cause = analysis::CauseOfOwner(s.owner);
	if (s.off_cpu && s.runnable_ns > s.blocked_ns)
		cause = analysis::WaitCauseOf(s.flags);
	accounts.SetOpen(t, cause, s.start_ns, seen_ns, 2u * s.depth + s.off_cpu);
	if (s.duration_ns >= kOpenStallNs)
		AddStall(t, cause, s, s.start_ns, s.duration_ns, s.on_cpu_ns + s.runnable_ns + s.blocked_ns,
			 true);
}

void Follower::State::Io(const ft_io &io)
{
	Seen(io.start_ns + io.duration_ns);
	if (options.disk)
		batch->disk.push_back(
		    {io.start_ns, io.duration_ns, io.dev, io.bytes, io.write, common::VisibleName(io.comm)});
}

// Parts of event-loop iterations.

namespace
{

constexpr size_t kMostParts = 1 << 14, kMostShorts = 1 << 13;

// The part of `ns`, spread over [start_ns, end_ns), that overlaps [from_ns, to_ns).
uint64_t PartIn(uint64_t ns, uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t from = std::max(start_ns, from_ns), to = std::min(end_ns, to_ns);
	if (from >= to)
		return 0;
	if (from == start_ns && to == end_ns)
		return ns;
	return static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(to - from) /
				     static_cast<double>(end_ns - start_ns));
}

// Largest first. Time in none of the causes is the thread's own code. Causes that exceed the duration are
// scaled down.
std::vector<CausePart> PartsOf(const analysis::CauseTimes &times, uint64_t duration_ns)
{
	std::vector<CausePart> parts;
	uint64_t sum = 0;
	for (uint64_t ns : times)
		sum += ns;
	uint64_t left = duration_ns;
	for (int c = 0; c < analysis::kTimelineCauses; c++) {
		uint64_t ns = times[c];
		if (sum > duration_ns)
			ns =
			    static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(duration_ns) /
						  static_cast<double>(sum));
		ns = std::min(ns, left);
		left -= ns;
		if (ns)
			parts.push_back({static_cast<analysis::Cause>(c), ns});
	}
	if (left)
		parts.push_back({analysis::Cause::ServerBusy, left});
	std::stable_sort(parts.begin(), parts.end(),
			 [](const CausePart &a, const CausePart &b) { return a.ns > b.ns; });
	return parts;
}

} // namespace

void Iterations::AddPart(uint32_t tid, const Part &part)
{
	std::vector<Part> &parts = threads_[tid].parts;
	if (parts.size() >= kMostParts) // a thread that never waits for events: keep only long parts
		parts.erase(std::remove_if(parts.begin(), parts.begin() + kMostParts / 2,
					   [](const Part &p) { return p.ns < 1'000'000; }),
			    parts.begin() + kMostParts / 2);
	if (parts.size() < kMostParts)
		parts.push_back(part);
}

void Iterations::Waited(uint32_t tid)
{
	auto found = threads_.find(tid);
	if (found != threads_.end())
		found->second.parts.clear();
}

// Halves the list: merges neighbors of the same cause.
void Iterations::Thin(std::vector<Short> *shorts)
{
	std::array<uint32_t, analysis::kTimelineCauses> last;
	last.fill(kNone);
	uint32_t remaining = 0;
	for (const Short &s : *shorts) {
		uint32_t &before = last[analysis::Index(s.cause)];
		if (before != kNone) {
			Short &b = (*shorts)[before];
			b.end_ns = std::max(b.end_ns, s.end_ns);
			b.ns += s.ns;
			before = kNone;
		} else {
			before = remaining;
			(*shorts)[remaining++] = s;
		}
	}
	shorts->resize(remaining);
}

void Iterations::AddTally(uint32_t tid, analysis::Cause cause, const ft_tally &tally)
{
	if (cause == analysis::Cause::ServerBusy || cause == analysis::Cause::Idle || !tally.total_ns)
		return;
	std::vector<Short> &shorts = threads_[tid].shorts;
	if (shorts.size() >= kMostShorts)
		Thin(&shorts);
	if (shorts.size() < kMostShorts)
		shorts.push_back({tally.start_ns, tally.end_ns,
				  static_cast<uint32_t>(std::min<uint64_t>(tally.total_ns, UINT32_MAX)),
				  cause});
}

void Iterations::AddIteration(uint32_t tid, const Iteration &iteration,
			      const std::unordered_map<uint32_t, DetailText> &details)
{
	OfThread &thread = threads_[tid];
	Pending pending;
	pending.iteration = iteration;
	if (iteration.duration_ns >= iteration_parts_ns_) {
		uint64_t end_ns = iteration.start_ns + iteration.duration_ns;
		const Part *longest = nullptr;
		for (const Part &p : thread.parts) {
			if (p.end_ns <= iteration.start_ns || p.start_ns >= end_ns)
				continue;
			pending.parts.push_back(p);
			if (analysis::IsStall(p.cause) && (!longest || p.ns > longest->ns))
				longest = &p;
		}
		auto detail = longest && longest->detail ? details.find(longest->detail) : details.end();
		if (detail != details.end()) {
			pending.iteration.detail = detail->second.name;
			pending.iteration.stack = detail->second.stack;
		}
	}
	thread.parts.clear();
	thread.pending.push_back(std::move(pending));
}

void Iterations::Finish(const OfThread &thread, const CpuSlices &slices, Pending *pending)
{
	Iteration &iteration = pending->iteration;
	if (iteration.duration_ns < iteration_parts_ns_)
		return;
	uint64_t from_ns = iteration.start_ns, to_ns = from_ns + iteration.duration_ns, waited_ns = 0;
	analysis::CauseTimes times = {};
	for (const Part &p : pending->parts) {
		analysis::Cause cause = p.cause;
		if (p.queue_cpu) {
			auto holders =
			    slices.In(static_cast<uint16_t>(p.queue_cpu - 1), p.start_ns, p.end_ns);
			if (analysis::IsDeferred(holders, p.ns) && cause == analysis::Cause::RunQueue)
				cause = analysis::Cause::SoftirqDeferred;
			if (!holders.empty() && holders[0].tid && p.ns > waited_ns) {
				waited_ns = p.ns;
				iteration.holder = common::VisibleName(holders[0].slice->comm);
			}
		}
		times[analysis::Index(cause)] += PartIn(p.ns, p.start_ns, p.end_ns, from_ns, to_ns);
	}
	for (const Short &s : thread.shorts)
		times[analysis::Index(s.cause)] += PartIn(s.ns, s.start_ns, s.end_ns, from_ns, to_ns);
	iteration.parts = PartsOf(times, iteration.duration_ns);
}

void Iterations::Ended(uint32_t tid)
{
	auto found = threads_.find(tid);
	if (found != threads_.end())
		found->second.ended = true;
}

void Iterations::Report(const CpuSlices &slices, std::vector<Iteration> *iterations)
{
	for (auto &[tid, thread] : threads_) {
		size_t remaining = 0;
		uint64_t done_ns = 0;
		for (Pending &p : thread.pending) {
			if (!p.looked) {
				p.looked = true;
				if (&thread.pending[remaining] != &p)
					thread.pending[remaining] = std::move(p);
				remaining++;
				continue;
			}
			Finish(thread, slices, &p);
			done_ns = p.iteration.start_ns + p.iteration.duration_ns;
			iterations->push_back(std::move(p.iteration));
		}
		thread.pending.resize(remaining);
		// Windows that ended before a reported iteration cannot overlap later ones.
		auto old = std::find_if(thread.shorts.begin(), thread.shorts.end(),
					[&](const Short &s) { return s.end_ns > done_ns; });
		thread.shorts.erase(thread.shorts.begin(), old);
	}
	std::erase_if(threads_, [](const auto &t) { return t.second.ended && t.second.pending.empty(); });
}

// CPU slices of the last seconds.

namespace
{

constexpr size_t kMostSlices = 1 << 14; // of a CPU

} // namespace

void CpuSlices::Add(const ft_cpu_slice &slice)
{
	std::vector<ft_cpu_slice> &slices = by_cpu_[slice.cpu];
	if (slices.size() >= kMostSlices)
		slices.erase(slices.begin(), slices.begin() + kMostSlices / 2);
	auto after = std::upper_bound(slices.begin(), slices.end(), slice.start_ns,
				      [](uint64_t ns, const ft_cpu_slice &t) { return ns < t.start_ns; });
	// A slice that continues is recorded again with a later end.
	if (after != slices.begin() && std::prev(after)->start_ns == slice.start_ns)
		std::prev(after)->end_ns = std::max(std::prev(after)->end_ns, slice.end_ns);
	else
		slices.insert(after, slice);
}

void CpuSlices::Forget(uint64_t before_ns)
{
	for (auto &[cpu, slices] : by_cpu_) {
		auto old = std::find_if(slices.begin(), slices.end(),
					[&](const ft_cpu_slice &t) { return t.end_ns >= before_ns; });
		slices.erase(slices.begin(), old);
	}
}

std::vector<analysis::CpuHolder> CpuSlices::In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const
{
	auto found = by_cpu_.find(cpu);
	return found == by_cpu_.end() ? std::vector<analysis::CpuHolder>()
				      : analysis::CpuHolders(found->second, from_ns, to_ns);
}

} // namespace forktail::live

// SPDX-License-Identifier: MIT
// Parts of event-loop iterations.
#include "iterations.h"

#include <algorithm>

#include "common/format/sanitize.h"

namespace forktail::live
{

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

} // namespace forktail::live

// SPDX-License-Identifier: MIT
// From slow requests to the spans that held them up: arrows in Perfetto's UI.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/timeline/holders.h"
#include "analysis/timeline/waits.h"

namespace forktail::analysis::exports
{

// A request's largest few parts that are stalls of a thread each have an arrow to one span: the one of that
// cause on that part's thread that took most of the time in which the request's causes lie, of the first
// stretch that has any.
class Flows
{
public:
	// Arrows' numbers of a request, by its place among the slow ones.
	std::vector<uint64_t> Of(const Explanation &e, size_t slow) const;
	// Finds the spans that begin in a stretch and that arrows go to.
	void Find(const Explanation &e, uint64_t from_ns, uint64_t to_ns);
	// Arrows to a span of that stretch, by its place in Run::spans.
	const std::vector<uint64_t> &To(uint32_t span) const;

private:
	static constexpr size_t kMost = 3; // of one request
	uint32_t SpanOf(const Explanation &e, const Waits &waits, const SlowRequest &r, const Part &part,
			uint64_t from_ns, uint64_t to_ns) const;

	void FindReach(const Explanation &e);

	// By span, of its thread's up to it: the latest end. Those before the first that reaches into a
	// request's time needn't be looked at.
	std::vector<uint64_t> reach_ns_;
	std::vector<uint8_t> found_; // a bit for each of a request's parts
	std::unordered_map<uint32_t, std::vector<uint64_t>> to_;
};

// What a span is called: its cause; of time off the CPU what it was blocked in or waited for.
Cause CauseOfSpan(const Run &run, const Waits &waits, const ft_span &span);

} // namespace forktail::analysis::exports

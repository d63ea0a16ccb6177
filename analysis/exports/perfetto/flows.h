// SPDX-License-Identifier: MIT
// Arrows in Perfetto's UI from slow requests to the spans that delayed them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/timeline/holders.h"
#include "analysis/timeline/waits.h"

namespace forktail::analysis::exports
{

// Each of a request's largest few stall parts has an arrow to one span: of that cause, on that part's thread,
// with the most time in the range of the request's causes. The first stretch with such a span decides.
class Flows
{
public:
	// The arrow numbers of a request, by its index among the slow ones.
	std::vector<uint64_t> Of(const Explanation &e, size_t slow) const;
	// Finds the target spans that begin in a stretch.
	void Find(const Explanation &e, uint64_t from_ns, uint64_t to_ns);
	// The arrows to a span of that stretch, by its index in Run::spans.
	const std::vector<uint64_t> &To(uint32_t span) const;

private:
	static constexpr size_t kMost = 3; // per request
	uint32_t SpanOf(const Explanation &e, const Waits &waits, const SlowRequest &r, const Part &part,
			uint64_t from_ns, uint64_t to_ns) const;

	void FindReach(const Explanation &e);

	// By span: the latest end of its thread's spans up to it. Spans before the first that overlaps a
	// request's time can be skipped.
	std::vector<uint64_t> reach_ns_;
	std::vector<uint8_t> found_; // a bit for each part of a request
	std::unordered_map<uint32_t, std::vector<uint64_t>> to_;
};

// The cause that names a span. For off-CPU time it is what the thread was blocked in or waited for.
Cause CauseOfSpan(const Run &run, const Waits &waits, const Thread &thread, const ft_span &span);

} // namespace forktail::analysis::exports

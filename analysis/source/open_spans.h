// SPDX-License-Identifier: MIT
// Spans that were still open. A span is written at its end, so a span that has not ended when the reading
// ends would be missing. A recorder that keeps a ring therefore writes once a second which spans are open.
// The last such record of a thread counts, unless the thread has a later record.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

class OpenSpans
{
public:
	// Adds an open span, as long as it was at that scan. In the order of scans; ids are the run's.
	void Add(const ft_span &span);
	// Adds a span that ended: of any thread, in any order.
	void Note(const ft_span &span);
	void Note(const ft_tally &tally);
	// The open spans without a known end.
	std::vector<ft_span> StillOpen() const;
	bool empty() const { return by_tid_.empty(); }

private:
	struct Open {
		ft_span span;
		bool ended;
	};
	struct OfThread {
		uint64_t seen_ns = 0; // the last scan
		std::vector<Open> open;
	};
	std::unordered_map<uint32_t, OfThread> by_tid_;
};

} // namespace forktail::analysis

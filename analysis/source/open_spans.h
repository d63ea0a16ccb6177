// SPDX-License-Identifier: MIT
// What threads were in the middle of. A span is written at its end, so that of what began and had not ended
// when the reading ends nothing would be known: a recorder that keeps a ring says once a second what is open.
// The last such word on a thread stands, unless something later of that thread is there.
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
	// As far as it had come when it was looked at, and in the order of looks; ids are the run's.
	void Add(const ft_span &span);
	// What did end: of any thread, in any order.
	void Note(const ft_span &span);
	void Note(const ft_tally &tally);
	// Those that nothing is known of the end of.
	std::vector<ft_span> Standing() const;
	bool empty() const { return by_tid_.empty(); }

private:
	struct Open {
		ft_span span;
		bool ended;
	};
	struct OfThread {
		uint64_t seen_ns = 0; // the last look
		std::vector<Open> open;
	};
	std::unordered_map<uint32_t, OfThread> by_tid_;
};

} // namespace forktail::analysis

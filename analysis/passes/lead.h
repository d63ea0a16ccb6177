// SPDX-License-Identifier: MIT
// What the first line of an answer speaks of: one rule for explain, gate, page, snapshots and all other
// outputs.
//
// A cause with the largest share of the slow requests' time is not always the one to remove: two stalls that
// hit different requests have one percentile. So causes are ranked by what a percentile would be without
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/blame/blame.h"

namespace forktail::analysis
{

struct Lead {
	enum class Kind {
		None,	      // nothing was slow, or nothing was answered
		Unattributed, // most of the time, or more than any cause has
		Causes,
	};
	Kind kind = Kind::None;
	// The percentile by which causes are ranked; null for Kind::None.
	const NamedLatency *figure = nullptr;
	// The causes to name, by time. Several: the percentile is lower only without all of them. Without
	// client-late, unless that is the only one.
	std::vector<Cause> causes = {};
	uint64_t without_ns = 0;	// the percentile without these; 0: not noticeably lower
	std::optional<Cause> next = {}; // another one without which it would be noticeably lower
	uint64_t without_next_ns = 0;
	// The load generator's own delays, if they matter: an error of the measurement, not a cause to rank.
	bool late = false; // to be named beside the causes
	bool late_first =
	    false; // without them the percentile would be lowest; they took at least half of its time

	// Whether the answer speaks of what is behind a cause.
	bool Names(Cause cause) const;
};

// A percentile that changes by less than this share of it does not change noticeably.
constexpr double kNoticeable = 0.1;

// Ranks by `asked` (one of kLatencies, from kLowestWithout up). If that is a usual latency of the run and a
// higher one is not, ranks by that one, unless `exactly`.
Lead FindLead(const Blame &blame, const NamedLatency &asked, bool exactly = false);

// p99.9.
const NamedLatency &UsualFigure();

// The percentile of all answered requests if none had any time of these causes. At least the threshold of
// slow requests, because faster ones are not stored with their parts.
uint64_t PercentileWithout(const Blame &blame, const NamedLatency &figure, const std::vector<Cause> &causes);

} // namespace forktail::analysis

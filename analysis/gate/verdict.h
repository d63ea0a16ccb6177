// SPDX-License-Identifier: MIT
// Whether a run meets a limit, as a sentence, and the reason if not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate_figures.h"
#include "limits_file.h"

namespace forktail::analysis::gate
{

struct Verdict {
	enum Outcome { kKept, kBroken, kNotKnown };
	AskedLimit asked;
	limit by = {};	   // the limit that was checked; for one against a base, with the base's value
	bool base = false; // the limit is relative to a base
	Outcome outcome = kNotKnown;
	double value = 0, base_value = 0; // in the unit of limit.value; NAN: unknown
	std::string sentence;		  // "p99.9 is 21.4 ms, over 5 ms"
	std::string reason;		  // "without fork it would be 1.2 ms"; "": unknown
	std::string cause;		  // "fork"; "": none
	std::string evidence;		  // a sentence about when it happened

	// All of it, in one line.
	std::string text() const;
};

// Judges each limit. `base`: null without one; the caller has refused limits that need one.
std::vector<Verdict> Judge(const AskedLimits &limits, limit_reading reading, const RunFigures &run,
			   const RunFigures *base);

// 0: all are met; 1: one is broken; 3: none is broken, but one is unknown.
int StatusOf(const std::vector<Verdict> &verdicts);

} // namespace forktail::analysis::gate

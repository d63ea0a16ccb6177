// SPDX-License-Identifier: MIT
// Whether a run keeps a limit, in a sentence, and what the recordings say of why not.
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
	limit by = {};	   // what was compared with: of one against a base, what that comes to
	bool base = false; // it is against a base
	Outcome outcome = kNotKnown;
	double value = 0, base_value = 0; // in the unit of limit.value; NAN: not known
	std::string sentence;		  // "p99.9 is 21.4 ms, over 5 ms"
	std::string reason;		  // "without fork it would be 1.2 ms"; "": nothing is known of why
	std::string cause;		  // "fork"; "": none
	std::string evidence;		  // a sentence about when that happened

	// All of it, in a line.
	std::string text() const;
};

// Of each limit. `base`: null where there is none; who asks for one without is told before.
std::vector<Verdict> Judge(const AskedLimits &limits, limit_reading reading, const RunFigures &run,
			   const RunFigures *base);

// 0: all are kept; 1: one is broken; 3: none is, but one can't be known.
int StatusOf(const std::vector<Verdict> &verdicts);

} // namespace forktail::analysis::gate

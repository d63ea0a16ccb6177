// SPDX-License-Identifier: MIT
// The rule of a trigger, as users write it (docs/guides/always-on.md):
//
//   iteration > TIME         an event-loop iteration took longer ("turn" is accepted, too)
//   stall > TIME             a serving thread was stalled for longer, by any cause
//   stall(CAUSE) > TIME      the same, by one cause (docs/reference/causes.md); "softirq" is all its vectors
//   rate(CAUSE) > N/s        the cause affected a server's threads more often per second
//   drops > N                the recorder lost more records in a second
//
// Spaces are ignored.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "analysis/timeline.h"

namespace forktail::live::guard
{

enum class What : uint8_t {
	Iteration,
	Stall,
	Rate,
	Drops,
	Named, // has no rule: fires only on request, by name
};

struct Rule {
	What what = What::Named;
	std::bitset<analysis::kTimelineCauses> causes; // of Stall and Rate; "stall" has all stall causes
	uint64_t limit_ns = 0;			       // of Iteration and Stall
	double limit = 0;			       // of Rate (a second) and Drops
	std::string text;			       // normalized text
	std::string name;			       // for names of snapshots: "stall-fork"
};

// False: *error is one sentence.
bool ParseRule(const std::string &text, Rule *rule, std::string *error);

} // namespace forktail::live::guard

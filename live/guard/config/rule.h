// SPDX-License-Identifier: MIT
// When a trigger fires, as users write it (docs/guides/always-on.md):
//
//   iteration > TIME         an event-loop iteration took longer ("turn" is accepted, too)
//   stall > TIME             a serving thread was stalled for longer, by any cause
//   stall(CAUSE) > TIME      the same, by one cause of docs/reference/causes.md; "softirq" is all of its vectors
//   rate(CAUSE) > N/s        the cause affected a server's threads more often per second
//   drops > N                the recorder lost more records in a second
//
// Spaces are ignored.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "analysis/timeline/causes.h"

namespace forktail::live::guard
{

enum class What : uint8_t {
	Iteration,
	Stall,
	Rate,
	Drops,
	Named, // nothing that happens: whoever asks for it by its name
};

struct Rule {
	What what = What::Named;
	std::bitset<analysis::kTimelineCauses> causes; // of Stall and Rate; of "stall" all that are stalls
	uint64_t limit_ns = 0;			       // of Iteration and Stall
	double limit = 0;			       // of Rate (a second) and Drops
	std::string text;			       // as written, with spaces where they belong
	std::string name;			       // what a snapshot is called by: "stall-fork"
};

// False: *error is one sentence.
bool ParseRule(const std::string &text, Rule *rule, std::string *error);

} // namespace forktail::live::guard

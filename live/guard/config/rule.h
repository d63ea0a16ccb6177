// SPDX-License-Identifier: MIT
// When a trigger fires, as users write it (docs/guides/always-on.md):
//
//   turn > TIME              a turn of an event loop took longer
//   stall > TIME             a thread that serves was kept from its work for longer, by whatever
//   stall(CAUSE) > TIME      the same, by that cause: one of docs/reference/causes.md, "softirq" for all of its vectors
//   rate(CAUSE) > N/s        it happened more often to a server's threads in a second
//   drops > N                the recorder lost more records in a second
//
// Spaces don't matter.
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

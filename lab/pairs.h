// SPDX-License-Identifier: MIT
// `forktail lab pairs`: runs an experiment in pairs with one difference between the sides, for `forktail
// diff`. Drift of the machine affects both runs of a pair, and their order is random.
#pragma once

#include <cstdint>
#include <string>

#include "commands.h"

namespace forktail::lab
{

struct PairsOptions {
	RunOptions run;	       // one scenario, `out`, `resume`, `settings`
	std::string base, now; // a program, a file with settings, "key=value ..."; "": unchanged
	int pairs = 8;
	uint64_t seed = 1; // of the order; pair N's loads have seed + N
};

// Applies the changes of a side to `scenario`. False: *error is one sentence.
bool ApplySide(const std::string &side, Scenario *scenario, Values *settings, std::string *error);

// Checks everything before the start. False: *error is one sentence.
bool CheckPairs(const std::string &directory, const PairsOptions &options, std::string *error);
// Runs the pairs: OUT/base/pair-01, OUT/new/pair-01 and so on.
bool RunPairs(Session *session, const std::string &directory, const PairsOptions &options,
	      std::string *error);

} // namespace forktail::lab

// SPDX-License-Identifier: MIT
// `forktail lab pairs`: the same experiment with one thing on the one side and another on the other, in
// pairs, for `forktail diff`. What drifts on a machine hits both runs of a pair alike, and which of them
// comes first is drawn.
#pragma once

#include <cstdint>
#include <string>

#include "commands.h"

namespace forktail::lab
{

struct PairsOptions {
	RunOptions run;	       // one scenario, `out`, `resume`, `settings`
	std::string base, now; // a program; a file with settings; "key=value ..."; "" as the scenario says
	int pairs = 8;
	uint64_t seed = 1; // of the order; pair N's loads have seed + N
};

// What a side changes, of `scenario`. False: *error is one sentence.
bool ApplySide(const std::string &side, Scenario *scenario, Values *settings, std::string *error);

// Checks everything before anything is begun. False: *error is one sentence.
bool CheckPairs(const std::string &directory, const PairsOptions &options, std::string *error);
// Makes the pairs: OUT/base/pair-01, OUT/new/pair-01 and so on.
bool RunPairs(Session *session, const std::string &directory, const PairsOptions &options,
	      std::string *error);

} // namespace forktail::lab

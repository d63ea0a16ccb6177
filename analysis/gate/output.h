// SPDX-License-Identifier: MIT
// Verdicts for people, for scripts and for what shows tests beside a build.
#pragma once

#include <string>
#include <vector>

#include "analysis/text/junit.h"
#include "verdict.h"

namespace forktail::analysis::gate
{

// What the verdicts are of.
struct Gated {
	std::string run, base; // paths; no base: ""
	std::string answer;    // what made the run's slow requests slow: an explanation's first line
	// What may have been missed: damage, and what the recorder could not see.
	std::vector<std::string> notes;
};

// `base`: null where there is none.
Gated GatedOf(const Explanation &run, const Explanation *base);

std::string GateText(const Gated &gated, const std::vector<Verdict> &verdicts);
std::string GateJson(const Gated &gated, const std::vector<Verdict> &verdicts);
JunitSuite GateJunit(const Gated &gated, const std::vector<Verdict> &verdicts, double seconds);

} // namespace forktail::analysis::gate

// SPDX-License-Identifier: MIT
// Verdicts as text, as JSON, and as JUnit XML for build servers.
#pragma once

#include <string>
#include <vector>

#include "analysis/text/junit.h"
#include "verdict.h"

namespace forktail::analysis::gate
{

// The runs of the verdicts.
struct Gated {
	std::string run, base; // paths; no base: ""
	std::string answer;    // what made the run's slow requests slow: an explanation's first line
	// What may be missing: damage, and what the recorder could not see.
	std::vector<std::string> notes;
};

// `base`: null without one.
Gated GatedOf(const Explanation &run, const Explanation *base);

std::string GateText(const Gated &gated, const std::vector<Verdict> &verdicts);
std::string GateJson(const Gated &gated, const std::vector<Verdict> &verdicts);
JunitSuite GateJunit(const Gated &gated, const std::vector<Verdict> &verdicts, double seconds);

} // namespace forktail::analysis::gate

// SPDX-License-Identifier: MIT
// Verdicts as JUnit's XML, which GitLab, Jenkins, GitHub's reporters and most others show beside a build.
// There is no standard: what is written is what all of them read. One <testsuite> in <testsuites>, one
// <testcase> for each verdict with a <failure> or an <error> if it isn't good, and a text for whoever opens
// it.
#pragma once

#include <string>
#include <vector>

namespace forktail::analysis
{

struct JunitCase {
	enum Outcome {
		kPassed,
		kFailed,  // what was measured is not as it should be
		kError,	  // it could not be measured
		kSkipped, // it was not asked
	};
	std::string name;      // what a list of tests shows: "p99.9 < 5ms"
	std::string classname; // what it groups them by: "forktail.gate"
	Outcome outcome = kPassed;
	std::string message; // one line: why; not of one that passed
	std::string output;  // lines
	double seconds = 0;
};

struct JunitSuite {
	std::string name; // "forktail gate RUN"
	std::vector<JunitCase> cases;
};

// Any text may be anything: what XML has no place for is visible as in common/format/sanitize.h.
std::string JunitXml(const JunitSuite &suite);

} // namespace forktail::analysis

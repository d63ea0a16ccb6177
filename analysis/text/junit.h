// SPDX-License-Identifier: MIT
// Verdicts as JUnit XML for GitLab, Jenkins, GitHub's reporters and similar. The format has no standard; this
// is the subset that all of them read: one <testsuite> in <testsuites>, and one <testcase> per verdict, with
// a <failure> or an <error> and an explaining text if the verdict is not good.
#pragma once

#include <string>
#include <vector>

namespace forktail::analysis
{

struct JunitCase {
	enum Outcome {
		kPassed,
		kFailed,  // a limit is broken
		kError,	  // it could not be measured
		kSkipped, // it was not tested
	};
	std::string name;      // in the list of tests: "p99.9 < 5ms"
	std::string classname; // the group of tests: "forktail.gate"
	Outcome outcome = kPassed;
	std::string message; // one line: why; empty if passed
	std::string output;  // lines
	double seconds = 0;
};

struct JunitSuite {
	std::string name; // "forktail gate RUN"
	std::vector<JunitCase> cases;
};

// Texts may hold any bytes. Characters that XML forbids are sanitized (common/format/sanitize.h).
std::string JunitXml(const JunitSuite &suite);

} // namespace forktail::analysis

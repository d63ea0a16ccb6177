// SPDX-License-Identifier: MIT
// A comparison as a JUnit test suite, with a test for each judged percentile. Inconclusive is an error, not a
// failure; one pair alone is skipped.
#include "analysis/text/junit.h"

#include "compare.h"

namespace forktail::analysis::compare
{

std::string ComparisonJunit(const Comparison &c)
{
	JunitSuite suite;
	suite.name = "forktail diff " + c.a.given + " " + c.b.given;
	for (const Difference &d : c.percentiles) {
		if (!d.judged)
			continue;
		JunitCase one;
		one.name = d.name + " is no worse";
		one.classname = "forktail.diff";
		one.outcome = d.verdict == Verdict::Worse	   ? JunitCase::kFailed
			      : d.verdict == Verdict::Inconclusive ? JunitCase::kError
			      : d.verdict == Verdict::Advisory	   ? JunitCase::kSkipped
								   : JunitCase::kPassed;
		one.message = d.sentence.empty() ? c.reason : d.sentence;
		one.output = c.reason;
		suite.cases.push_back(one);
	}
	return JunitXml(suite);
}

} // namespace forktail::analysis::compare

// SPDX-License-Identifier: MIT
// Writes JUnit XML. XML 1.0 forbids most control characters (even as &#27;), U+FFFE and U+FFFF. Readers
// reject a file with one of them, and a failed build would look like one without tests. So such characters
// are escaped.
#include "junit.h"

#include <cmath>
#include <cstdio>

#include "common/format/sanitize.h"

namespace forktail::analysis
{

namespace
{

std::string Escape(const std::string &visible)
{
	std::string out;
	for (size_t i = 0; i < visible.size(); i++) {
		const char c = visible[i];
		if (c == '&')
			out += "&amp;";
		else if (c == '<')
			out += "&lt;";
		else if (c == '>')
			out += "&gt;";
		else if (c == '"')
			out += "&quot;";
		else if (visible.compare(i, 3, "\xef\xbf\xbe") == 0)
			out += "\\ufffe", i += 2;
		else if (visible.compare(i, 3, "\xef\xbf\xbf") == 0)
			out += "\\uffff", i += 2;
		else
			out += c;
	}
	return out;
}

std::string Attribute(const char *name, const std::string &text)
{
	return " " + std::string(name) + "=\"" + Escape(common::Visible(text)) + "\"";
}

std::string Seconds(double seconds)
{
	char text[64];
	snprintf(text, sizeof text, "%.6f", std::isfinite(seconds) && seconds > 0 ? seconds : 0.0);
	return Attribute("time", text);
}

size_t CountOf(const JunitSuite &suite, JunitCase::Outcome outcome)
{
	size_t count = 0;
	for (const JunitCase &c : suite.cases)
		count += c.outcome == outcome;
	return count;
}

// The same attributes for <testsuites> and <testsuite>: readers use either.
std::string Counts(const JunitSuite &suite)
{
	double seconds = 0;
	for (const JunitCase &c : suite.cases)
		seconds += c.seconds;
	return Attribute("name", suite.name) + Attribute("tests", std::to_string(suite.cases.size())) +
	       Attribute("failures", std::to_string(CountOf(suite, JunitCase::kFailed))) +
	       Attribute("errors", std::to_string(CountOf(suite, JunitCase::kError))) +
	       Attribute("skipped", std::to_string(CountOf(suite, JunitCase::kSkipped))) + Seconds(seconds);
}

// GitLab prints the text of a failure, Jenkins the message and the text.
std::string Verdict(const JunitCase &c)
{
	static const char *const names[] = {"", "failure", "error", "skipped"};
	if (c.outcome == JunitCase::kPassed)
		return "";
	const std::string name = names[c.outcome];
	if (c.outcome == JunitCase::kSkipped)
		return "      <skipped" + Attribute("message", c.message) + "/>\n";
	return "      <" + name + Attribute("message", c.message) + Attribute("type", c.classname) + ">" +
	       Escape(common::VisibleLines(c.message)) + (c.output.empty() ? "" : "\n") +
	       Escape(common::VisibleLines(c.output)) + "</" + name + ">\n";
}

} // namespace

std::string JunitXml(const JunitSuite &suite)
{
	std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + Counts(suite) +
			  ">\n  <testsuite" + Counts(suite) + ">\n";
	for (const JunitCase &c : suite.cases) {
		out += "    <testcase" + Attribute("name", c.name) + Attribute("classname", c.classname) +
		       Seconds(c.seconds);
		std::string inside = Verdict(c);
		if (!c.output.empty())
			inside +=
			    "      <system-out>" + Escape(common::VisibleLines(c.output)) + "</system-out>\n";
		out += inside.empty() ? "/>\n" : ">\n" + inside + "    </testcase>\n";
	}
	return out + "  </testsuite>\n</testsuites>\n";
}

} // namespace forktail::analysis

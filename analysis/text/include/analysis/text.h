// SPDX-License-Identifier: MIT
// The explanation as text, JSON and JUnit XML, for people, terminals and scripts.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

// Text layout for a terminal: width, line breaks, bars and colours. Output to a file has no colours. Without
// a UTF-8 locale it is ASCII.

struct Style {
	size_t columns = 100; // maximum width of a line
	bool colour = false;
	bool unicode = false; // draw with Unicode blocks; names are printed unchanged

	std::string Strong(const std::string &text) const;
	std::string Dim(const std::string &text) const;
	// In the colour of the cause's family. Causes are never distinguished by colour alone.
	std::string Tinted(Cause cause, const std::string &text) const;
	std::string Alarming(const std::string &text) const;
	std::string Ellipsis() const { return unicode ? "…" : "..."; }
};

std::string Format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The width of `text` in columns; characters may be 0 or 2 columns wide. The text must have no escape codes.
size_t DisplayWidth(const std::string &text);
// `text` cut to at most `columns`, including the ellipsis of a cut.
std::string Ellipsized(const std::string &text, size_t columns, const Style &style);
// Padded with spaces, after or before the text.
std::string PadRight(const std::string &text, size_t columns);
std::string PadLeft(const std::string &text, size_t columns);

// Breaks `text` at spaces, but not between a number and its unit. The first line begins after `first`
// columns, others are indented. Words longer than a line are split.
std::string Wrap(const std::string &text, size_t first, size_t indent, size_t columns);
// Splits text at line ends.
std::vector<std::string> Lines(const std::string &text);

// A bar of `fraction` (0..1) of `columns`, padded with spaces. A fraction above 0 has at least one step.
std::string Bar(double fraction, size_t columns, const Style &style);

// The whole explanation as text: `forktail explain --all`. The screen, below, is the default, shorter output.

constexpr size_t kTextEpisodes = 5;

// `episodes`: print at most this many of the worst.
std::string ExplainText(const Explanation &e, const Style &style, size_t episodes = kTextEpisodes);

// `forktail explain --format`: one line for a script, with figures of the explanation.

// Whether every placeholder is known. False: *error is one sentence.
bool CheckFormat(const std::string &format, std::string *error);
// Fills in a checked format. docs/reference/explain.md lists the placeholders.
std::string FormatLine(const Explanation &e, const std::string &format);

// The slowest clients, commands, connections or sizes as a table.

// False: *error is one sentence.
bool GroupTable(const Explanation &e, const Style &style, GroupBy by, std::string *text, std::string *error);

// The first line of an answer: what happened, how long it took, its share of the slow requests' time, and
// what the percentile would be without it. The cause's name for scripts is in parentheses.

struct Answer {
	// One to four sentences without line breaks: "fork() for BGREWRITEAOF took 43.7 ms: 55 % of the slow
	// requests' time (fork). Without forks p99.9 would be 8.90 ms instead of 31.3 ms."
	std::string text;
	// What it speaks of, for scripts: "cause", "unattributed", "overload", "outage" or "none".
	const char *kind = "none";
	std::vector<Cause> causes = {}; // named in it, the first one first
	bool sure = true; // false: another place or party may be the culprit, and the text says so
};
Answer AnswerOf(const Explanation &e);

// Its text.
std::string AnswerText(const Explanation &e);

// Of the first remedy that fits: "What to do: free deleted hashes, lists and sets in a background thread
// (CONFIG SET lazyfree-lazy-user-del yes), because lazyfree-lazy-user-del is no. At best p99.9 becomes 2.10
// ms. To measure it on this server: forktail try ..."; "" if none does.
std::string RemedyText(const Explanation &e);
// The same, as lines of a terminal.
std::string RemedyLines(const Explanation &e, size_t indent, size_t columns);

// Writes the explanation as JSON; docs/reference/explain.md is its reference.

// `requests`: include every slow request with its parts. False: writing failed, errno is set.
bool WriteExplainJson(const Explanation &e, FILE *file, bool requests = false);
// The same as a string. For a long run it needs more memory than everything else.
std::string ExplainJson(const Explanation &e, bool requests = false);

// The main figures as JSON of at most 20 kB, the same bytes for the same recording, for agents and databases.
std::string FeaturesJson(const Explanation &e);

// Verdicts as JUnit XML for GitLab, Jenkins, GitHub's reporters and similar. The format has no standard; this
// is the subset that all of them read: one <testsuite> in <testsuites>, and one <testcase> per verdict, with
// a <failure> or an <error> and an explaining text if the verdict is not good.

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

// Texts may hold any bytes. Characters that XML forbids are sanitized (common/json.h).
std::string JunitXml(const JunitSuite &suite);

// Looks up figures of an explanation by name, for `explain --format` and for limits.

enum class FigureUnit : uint8_t { kNs, kCount, kShare /* 0 to 1 */, kPerSecond };

struct NamedFigure {
	FigureUnit unit;
	double value;
};

// "p99.9", "drops", "fork.total"; nothing for an unknown name.
std::optional<NamedFigure> FindFigure(const Explanation &e, const std::string &name);
// A figure of a cause, such as "total". It is zero for a cause that did not occur.
std::optional<NamedFigure> FindFigure(const Explanation &e, Cause cause, const std::string &name);

// The default output of `forktail explain`: the answer and its basis on one screen.

constexpr size_t kScreenLines = 40;

// At most kScreenLines lines, if style.columns is at least 80. `episodes`: print this many episodes instead
// of as many as fit.
std::string ExplainScreen(const Explanation &e, const Style &style, size_t episodes = 0);

// "1  +18.745 s  49.3 ms  453 requests, worst 39.0 ms: fork 74 %, run-queue 14 %", without line breaks.
std::string EpisodeHead(const Explanation &e, uint32_t index, size_t number);

// Prints one part of an explanation in full: an episode, a request or a cause.

// `number` counts from 1, the worst, as on the screen. False: *error is one sentence.
bool EpisodeView(const Explanation &e, const Style &style, size_t number, std::string *text,
		 std::string *error);
// `id`: the request's number in the log (or the iteration's in the run), `slow_requests[].id` in JSON.
bool RequestView(const Explanation &e, const Style &style, uint64_t id, std::string *text,
		 std::string *error);
// Every snapshot of the run in a paragraph.
std::string SnapshotsView(const Explanation &e, const Style &style);
// Lists at most `episodes` episodes with the cause. A cause that affected no slow request has a view too.
std::string CauseView(const Explanation &e, const Style &style, Cause cause, size_t episodes);

} // namespace forktail::analysis

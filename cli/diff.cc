// SPDX-License-Identifier: MIT
// forktail diff.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>

#include "analysis/compare.h"
#include "analysis/report.h"
#include "command.h"
#include "common/files.h"
#include "common/json.h"
#include "progress_line.h"
#include "schemas.h"

namespace forktail::cli
{

namespace
{

struct DiffWords {
	std::vector<std::string> sides;
	std::string slow, junit, html, alike, allowed = "5%", excluded = "20%";
	bool json = false, markdown = false;
};

// "5%" and "0.05" are equal.
bool ParseShare(const std::string &option, const std::string &text, double *share)
{
	char *end = nullptr;
	double value = strtod(text.c_str(), &end);
	bool percent = *end == '%' && end[1] == 0;
	*share = percent ? value / 100 : value;
	if (end != text.c_str() && (percent || *end == 0) && *share >= 0 && *share <= 10)
		return true;
	fprintf(stderr, "forktail diff: %s needs a percentage such as 5%%, not %s\n", option.c_str(),
		common::Visible(text).c_str());
	return false;
}

// The two sides are two paths, one directory of `lab pairs`, or two lists of runs (from shell patterns) with
// "and" between them.
bool FindSides(const DiffWords &words, analysis::compare::SideAsked *a, analysis::compare::SideAsked *b,
	       std::string *error, int *status)
{
	std::vector<std::string> sides = words.sides;
	std::error_code ec;
	if (sides.size() == 1 && !std::filesystem::exists(sides[0] + "/base", ec)) {
		*error = "two runs are needed: forktail diff " + sides[0] +
			 " OTHER. One directory is enough if it is of forktail lab pairs";
		return false;
	}
	if (sides.size() == 1)
		sides = {sides[0] + "/base", sides[0] + "/new"};
	auto middle = std::find(sides.begin(), sides.end(), "and");
	if (middle == sides.end() && sides.size() == 2)
		middle = sides.begin() + 1;
	else if (middle == sides.end()) {
		*error = "name two sides to compare: A B, or A1 A2 ... and B1 B2 ...";
		return false;
	}
	for (auto at = sides.begin(); at != sides.end(); ++at) {
		if (at == middle && *at == "and")
			continue;
		analysis::compare::SideAsked *side = at < middle ? a : b;
		std::vector<std::string> runs;
		*status = kCant;
		if (!analysis::compare::FindRuns(*at, &runs, error))
			return false;
		*status = kUsage;
		side->given += (side->given.empty() ? "" : " ") + *at;
		side->runs.insert(side->runs.end(), runs.begin(), runs.end());
	}
	if (!a->runs.empty() && !b->runs.empty())
		return true;
	*error = "one of the two sides contains no run";
	return false;
}

bool SameRun(const std::string &a, const std::string &b)
{
	std::error_code ec;
	return std::filesystem::equivalent(a, b, ec);
}

// A run must not be on both sides.
bool AreApart(const analysis::compare::SideAsked &a, const analysis::compare::SideAsked &b,
	      std::string *error)
{
	for (const std::string &one : a.runs)
		for (const std::string &other : b.runs)
			if (SameRun(one, other)) {
				*error = one + " is on both sides: name different runs";
				return false;
			}
	return true;
}

// The noise of identical runs: over all pairs of them, the 95th percentile of the difference, in the deciding
// percentile where it is largest.
bool MeasureNoise(const DiffWords &words, analysis::compare::CompareOptions *options, std::string *error,
		  int *status)
{
	std::vector<std::string> runs;
	if (words.alike.empty())
		return true;
	*status = kCant;
	if (!analysis::compare::FindRuns(words.alike, &runs, error))
		return false;
	std::vector<analysis::compare::RunSample> samples(runs.size());
	for (size_t i = 0; i < runs.size(); i++)
		if (!analysis::compare::TakeSample(runs[i], options->memory_bytes, {}, &options->slow_ns,
						   &samples[i], error, status))
			return false;
	options->noise = analysis::compare::NoiseOf(samples);
	if (options->noise > 0)
		return true;
	*status = kUsage;
	*error = words.alike + " contains " + std::to_string(runs.size()) +
		 " runs: --alike needs more to measure how much identical runs differ";
	return false;
}

bool CompareThem(const DiffWords &words, analysis::compare::CompareOptions *options,
		 analysis::compare::Comparison *comparison, std::string *error, int *status)
{
	analysis::compare::SideAsked a, b;
	*status = kUsage;
	if (!FindSides(words, &a, &b, error, status) || !AreApart(a, b, error))
		return false;
	if (!MeasureNoise(words, options, error, status))
		return false;
	ProgressLine line("comparing " + common::Visible(a.given) + " and " + common::Visible(b.given));
	options->progress = [&](double done) { line.Show(done); };
	if (!analysis::compare::CompareSides(a, b, *options, comparison, error, status))
		return false;
	*status = kCant;
	return (words.junit.empty() ||
		WriteText(words.junit, analysis::compare::ComparisonJunit(*comparison), error)) &&
	       (words.html.empty() || analysis::report::WriteComparePage(*comparison, words.html, error));
}

void AddDiffOptions(CLI::App *app, DiffWords *words, analysis::ExplainOptions *memory)
{
	app->add_option("RUN", words->sides,
			"Two runs A and B, two directories of repeated runs, two lists of runs with the word "
			"'and' between "
			"them, or one directory of forktail lab pairs")
	    ->required();
	CLI::Option *json = app->add_flag("--json", words->json, "Print JSON");
	AddJsonSchema(app, ft_diff_schema);
	app->add_flag("--markdown", words->markdown, "Print Markdown, for a pull request")->excludes(json);
	app->add_option("--junit", words->junit, "Also write the verdict to FILE as JUnit XML")
	    ->type_name("FILE");
	app->add_option("--html", words->html, "Also write FILE as an HTML page, like forktail report A B")
	    ->type_name("FILE");
	app->add_option("--slow", words->slow,
			"Treat requests of at least this duration as slow, on both sides, e.g. 1ms (default: "
			"p99 of A's first run)")
	    ->type_name("THRESHOLD");
	app->add_option("--allow", words->allowed, "Allow B to be worse by up to PERCENT")
	    ->type_name("PERCENT")
	    ->capture_default_str();
	app->add_option("--exclude", words->excluded,
			"Report 'same' only if the data exclude that B is worse by PERCENT")
	    ->type_name("PERCENT")
	    ->capture_default_str();
	app->add_option("--alike", words->alike,
			"Use the identical runs in DIR as noise: smaller differences are not regressions")
	    ->type_name("DIR");
	AddMemory(app, memory);
}

} // namespace

int DiffCommand(int argc, char **argv)
{
	CLI::App app("Compare two runs, or two sides of repeated runs (docs/reference/diff-and-gate.md).",
		     "forktail diff");
	app.footer("  forktail diff base new\n  forktail diff base new --markdown\n");
	DiffWords words;
	analysis::compare::CompareOptions options;
	analysis::ExplainOptions memory;
	AddDiffOptions(&app, &words, &memory);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	analysis::Threshold slow;
	if (!ParseSlow(words.slow, &slow) || !ParseShare("--allow", words.allowed, &options.allowed) ||
	    !ParseShare("--exclude", words.excluded, &options.excluded))
		return kUsage;
	if (slow.percentile > 0) {
		fprintf(stderr,
			"forktail diff: --slow needs a duration such as 1ms, which applies to both sides\n");
		return kUsage;
	}
	options.slow_ns = slow.ns;
	options.memory_bytes = memory.memory_bytes;
	analysis::compare::Comparison comparison;
	std::string error;
	if (!CompareThem(words, &options, &comparison, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
		return status;
	}
	std::string text =
	    words.json ? analysis::compare::ComparisonJson(comparison)
	    : words.markdown
		? analysis::compare::ComparisonMarkdown(comparison)
		: analysis::compare::ComparisonText(comparison, isatty(1) && !getenv("NO_COLOR"));
	if (fputs(text.c_str(), stdout) < 0 || fflush(stdout) != 0) {
		fprintf(stderr, "forktail: cannot write the comparison: %s\n", strerror(errno));
		return kCant;
	}
	return analysis::compare::ExitStatusOf(comparison);
}

} // namespace forktail::cli

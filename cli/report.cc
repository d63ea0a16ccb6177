// SPDX-License-Identifier: MIT
// forktail report.
#include "analysis/report.h"

#include <cstdio>
#include <string>
#include <vector>

#include "analysis/compare.h"
#include "command.h"
#include "common/json.h"
#include "progress_line.h"

namespace forktail::cli
{

namespace
{

bool ReportRun(const std::string &run, analysis::ExplainOptions options, const std::string &out,
	       std::string *error, int *status)
{
	analysis::Reading reading;
	analysis::Explanation explanation(reading.run);
	options.page = true;
	if (!Explain(run, options, &reading, &explanation, error, status))
		return false;
	*status = kCant;
	return analysis::report::WriteReport(explanation, &reading, out, error);
}

// Two sides, each a run or a directory of runs.
bool ReportSides(const std::vector<std::string> &sides, const analysis::ExplainOptions &options,
		 const std::string &out, std::string *error, int *status)
{
	analysis::compare::SideAsked a{sides[0], {}}, b{sides[1], {}};
	*status = kCant;
	if (!analysis::compare::FindRuns(sides[0], &a.runs, error) ||
	    !analysis::compare::FindRuns(sides[1], &b.runs, error))
		return false;
	analysis::compare::CompareOptions compare;
	compare.memory_bytes = options.memory_bytes;
	compare.slow_ns = options.slow.ns;
	analysis::compare::Comparison comparison;
	{
		ProgressLine line("comparing " + common::Visible(a.given) + " and " +
				  common::Visible(b.given));
		compare.progress = [&](double done) { line.Show(done); };
		if (!analysis::compare::CompareSides(a, b, compare, &comparison, error, status))
			return false;
	}
	*status = kCant;
	return analysis::report::WriteComparePage(comparison, out, error);
}

// False: the options cannot be used with two sides, and the error is printed.
bool FitsTwoSides(const PartTexts &part, const analysis::ExplainOptions &options)
{
	if (!part.since.empty() || !part.until.empty() || !part.around.empty())
		fprintf(stderr, "forktail report: --since, --until and --around cannot be used with two "
				"sides, which are compared as a whole\n");
	else if (options.slow.percentile > 0)
		fprintf(stderr, "forktail report: with two sides --slow needs a duration such as 1ms, which "
				"applies to both\n");
	else
		return true;
	return false;
}

} // namespace

int ReportCommand(int argc, char **argv)
{
	CLI::App app("Write a run, or the comparison of two sides, as one HTML page that opens "
		     "offline (docs/reference/report.md).",
		     "forktail report");
	app.footer("  forktail report monday -o monday.html\n  forktail report base new -o diff.html\n");
	std::vector<std::string> runs;
	std::string slow, out;
	analysis::ExplainOptions options;
	app.add_option("RUN", runs,
		       "Run directory or .forktail file; two of them, or two directories of runs, to compare "
		       "them")
	    ->required()
	    ->expected(1, 2);
	app.add_option("-o,--output", out, "Write the page to FILE")->type_name("FILE")->required();
	AddMemory(&app, &options);
	AddSlow(&app, &slow);
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!ParseSlow(slow, &options.slow))
		return kUsage;
	if (runs.size() == 2 ? !FitsTwoSides(part, options) : !ParsePart(part, &options))
		return kUsage;
	std::string error;
	bool good = runs.size() == 2 ? ReportSides(runs, options, out, &error, &status)
				     : ReportRun(runs[0], options, out, &error, &status);
	if (good)
		return kDone;
	fprintf(stderr, "forktail: %s\n", error.c_str());
	return status;
}

} // namespace forktail::cli

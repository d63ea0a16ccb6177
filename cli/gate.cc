// SPDX-License-Identifier: MIT
// forktail gate.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "analysis/gate.h"
#include "command.h"
#include "common/files.h"
#include "common/json.h"
#include "schemas.h"

namespace forktail::cli
{

namespace
{

struct GateWords {
	std::string run, base, file, junit, slow;
	std::vector<std::string> words;
	bool json = false;
	analysis::gate::AskedLimits limits;
};

// Reads all limits. False: the error is printed.
bool TakeLimits(GateWords *asked)
{
	std::string error;
	if (!asked->file.empty() && !analysis::gate::ReadLimitsFile(asked->file, &asked->limits, &error))
		return Refuse(error, kUsage) == kDone;
	for (const std::string &word : asked->words)
		if (!analysis::gate::AddLimit({word, ""}, LIMIT_HAS_TO_HOLD, &asked->limits, &error))
			return Refuse(error, kUsage) == kDone;
	if (asked->limits.limits.empty())
		return Refuse("no limit to check: give one such as 'p99.9 < 5ms', or --limits FILE",
			      kUsage) == kDone;
	for (const limit &l : asked->limits.limits)
		if (l.comparison == LIMIT_NO_WORSE && asked->base.empty())
			return Refuse("a limit compares with BASE, but no base run is given. Use --base RUN.",
				      kUsage) == kDone;
	if (asked->slow.empty())
		asked->slow = asked->limits.slow;
	return true;
}

// Explains a run to get the figures that the limits need.
bool ReadFigures(const std::string &run, analysis::ExplainOptions options,
		 analysis::gate::RunFigures *figures, analysis::Reading *reading,
		 analysis::Explanation *explanation, std::string *error, int *status)
{
	figures->Watch(&options);
	if (!Explain(run, options, reading, explanation, error, status))
		return false;
	figures->Finish(*explanation, reading);
	return true;
}

// A run that cannot be read is also an error in the JUnit file.
int CantRead(const GateWords &asked, const std::string &why, int status)
{
	std::string error;
	Refuse(why, status);
	analysis::JunitSuite suite = {
	    "forktail gate " + asked.run,
	    {{"reading the run", "forktail.gate", analysis::JunitCase::kError, why, "", 0}}};
	if (!asked.junit.empty() && !WriteText(asked.junit, analysis::JunitXml(suite), &error))
		Refuse(error, status);
	return status;
}

int Gate(GateWords *asked, const analysis::ExplainOptions &options)
{
	const auto began = std::chrono::steady_clock::now();
	std::string error;
	int status = kDone;
	std::vector<limit> of_base = asked->limits.limits;
	analysis::gate::RunFigures figures(&asked->limits.limits), base_figures(&of_base);
	analysis::Reading reading, of_base_run;
	analysis::Explanation explanation(reading.run), base(of_base_run.run);
	if (!ReadFigures(asked->run, options, &figures, &reading, &explanation, &error, &status) ||
	    (!asked->base.empty() &&
	     !ReadFigures(asked->base, options, &base_figures, &of_base_run, &base, &error, &status)))
		return CantRead(*asked, error, status);
	const std::vector<analysis::gate::Verdict> verdicts = analysis::gate::Judge(
	    asked->limits, LIMIT_HAS_TO_HOLD, figures, asked->base.empty() ? nullptr : &base_figures);
	const analysis::gate::Gated gated =
	    analysis::gate::GatedOf(explanation, asked->base.empty() ? nullptr : &base);
	const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
	if (!asked->junit.empty() &&
	    !WriteText(asked->junit,
		       analysis::JunitXml(analysis::gate::GateJunit(gated, verdicts, took.count())), &error))
		return Refuse(error, kCant);
	const std::string text = asked->json ? analysis::gate::GateJson(gated, verdicts)
					     : analysis::gate::GateText(gated, verdicts);
	if (fputs(text.c_str(), stdout) == EOF || fflush(stdout))
		return Refuse(std::string("cannot write the verdicts: ") + strerror(errno), kCant);
	return analysis::gate::StatusOf(verdicts);
}

} // namespace

int GateCommand(int argc, char **argv)
{
	CLI::App app("Check a run against limits, and print the causes of a violation (docs/guides/ci.md).\n"
		     "Exit status: 0 all limits hold, 1 a limit is violated, 2 a limit is invalid, 3 the run "
		     "cannot be read, 4 no verdict: the run lacks the data for a limit.",
		     "forktail gate");
	app.footer("  forktail gate monday 'p99.9 < 5ms' 'fork.max < 20ms'\n"
		   "  forktail gate monday --limits limits.toml --junit gate.xml\n");
	GateWords asked;
	analysis::ExplainOptions options;
	app.add_option("RUN", asked.run, "Run directory or .forktail file")->required();
	app.add_option(
	    "LIMIT", asked.words,
	    "Condition that must hold, the opposite of --fail-if: 'p99.9 < 5ms', 'fork.max < 20ms', "
	    "'drops = 0'");
	app.add_option("--limits", asked.file, "Read limits from FILE (TOML)")->type_name("FILE");
	app.add_option("--base", asked.base, "Use RUN as BASE in 'p99 no worse than BASE by more than 10%'")
	    ->type_name("RUN");
	app.add_option("--junit", asked.junit, "Also write the verdicts to FILE as JUnit XML")
	    ->type_name("FILE");
	app.add_flag("--json", asked.json, "Print JSON (docs/guides/ci.md)");
	AddJsonSchema(&app, ft_gate_schema);
	AddSlow(&app, &asked.slow);
	AddMemory(&app, &options);
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!TakeLimits(&asked) || !ParseSlow(asked.slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	return Gate(&asked, options);
}

} // namespace forktail::cli

// SPDX-License-Identifier: MIT
// forktail explain.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

#include "analysis/outside.h"
#include "command.h"
#include "gate/figures.h"
#include "gate/limits_file.h"
#include "gate/verdict.h"

namespace forktail
{

namespace
{

bool Print(const Explanation &explanation, const ExplainOptions &options, bool json)
{
	if (json)
		return WriteExplainJson(explanation, options, stdout);
	std::string text = ExplainText(explanation, options);
	return fwrite(text.data(), 1, text.size(), stdout) == text.size();
}

// --fail-if. False: it was said what can't be understood.
bool ParseFailIf(const std::vector<std::string> &texts, AskedLimits *limits)
{
	std::string error;
	for (const std::string &text : texts) {
		if (!AddLimit({text, ""}, limits, &error)) {
			fprintf(stderr, "forktail: %s\n", Visible(error).c_str());
			return false;
		}
		if (limits->limits.back().comparison == LIMIT_NO_WORSE) {
			fprintf(stderr, "forktail: --fail-if knows no base: forktail gate --base does\n");
			return false;
		}
	}
	return true;
}

// Says which came true; the exit status.
int SayFailed(const AskedLimits &limits, const RunFigures &figures)
{
	const std::vector<Verdict> verdicts = Judge(limits, LIMIT_FAILS_IF, figures, nullptr);
	for (const Verdict &v : verdicts)
		if (v.outcome != Verdict::kKept)
			fprintf(stderr, "forktail: %s\n", Visible(v.text()).c_str());
	return StatusOf(verdicts);
}

} // namespace

int ExplainCommand(int argc, char **argv)
{
	CLI::App app("Says what made the slow requests of a run slow.", "forktail explain");
	std::string run, slow;
	bool json = false;
	ExplainOptions options;
	app.add_option("RUN", run, "run directory, or one .forktail file")->required();
	app.add_option("--slow", slow, "what is slow: a duration (1ms) or a percentile (p99.9); default p99");
	app.add_option("--episodes", options.episodes, "episodes to show")->capture_default_str();
	app.add_flag("--json", json, "print JSON (docs/explain-json.md)");
	app.add_flag("--requests", options.requests, "with --json: list every slow request and its parts");
	std::vector<std::string> fail_if;
	app.add_option(
	       "--fail-if", fail_if,
	       "end with 1 if it is so: 'p99.9>5ms', 'fork.max>20ms', 'unknown>5%' (docs/ci.md); repeatable")
	    ->allow_extra_args(false);
	AddMemory(&app, &options);
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	AskedLimits limits;
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options) || !ParseFailIf(fail_if, &limits))
		return kUsage;
	if (options.requests && !json) {
		fprintf(stderr, "forktail: --requests needs --json\n");
		return kUsage;
	}
	options.colour = !json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	Explanation explanation;
	RunFigures figures(&limits.limits);
	if (!limits.limits.empty())
		figures.Watch(&options);
	std::string error;
	if (!Read(run, options, &explanation, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return status;
	}
	if (!Print(explanation, options, json) || fflush(stdout)) {
		fprintf(stderr, "forktail: can't write the explanation: %s\n", strerror(errno));
		return kCant;
	}
	if (limits.limits.empty())
		return kDone;
	figures.Finish(&explanation);
	return SayFailed(limits, figures);
}

} // namespace forktail

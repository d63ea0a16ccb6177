// SPDX-License-Identifier: MIT
// forktail explain.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

#include "command.h"

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
	AddMemory(&app, &options);
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	if (options.requests && !json) {
		fprintf(stderr, "forktail: --requests needs --json\n");
		return kUsage;
	}
	options.colour = !json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	Explanation explanation;
	std::string error;
	if (!Read(run, options, &explanation, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return status;
	}
	if (!Print(explanation, options, json) || fflush(stdout)) {
		fprintf(stderr, "forktail: can't write the explanation: %s\n", strerror(errno));
		return kCant;
	}
	return kDone;
}

} // namespace forktail

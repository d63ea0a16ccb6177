// SPDX-License-Identifier: MIT
// forktail report.
#include "report/report.h"

#include <cstdio>
#include <string>

#include "command.h"

namespace forktail
{

int ReportCommand(int argc, char **argv)
{
	CLI::App app("Writes a run as one HTML page that opens offline.", "forktail report");
	std::string run, slow, out;
	ExplainOptions options;
	app.add_option("RUN", run, "run directory, or one .forktail file")->required();
	app.add_option("-o,--output", out, "the page")->required();
	AddMemory(&app, &options);
	app.add_option("--slow", slow, "what is slow: a duration (1ms) or a percentile (p99.9); default p99");
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	options.page = true;
	Explanation explanation;
	std::string error;
	if (!Read(run, options, &explanation, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return status;
	}
	if (!WriteReport(explanation, out, &error)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return kCant;
	}
	return kDone;
}

} // namespace forktail

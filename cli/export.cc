// SPDX-License-Identifier: MIT
// forktail export.
#include "export/formats/formats.h"

#include <cstdio>
#include <string>

#include "analysis/outside.h"
#include "command.h"
#include "progress_line.h"

namespace forktail
{

int ExportCommand(int argc, char **argv)
{
	CLI::App app("Writes a run in another tool's format (docs/exports.md).", "forktail export");
	std::string run, format, out, slow, names;
	ExplainOptions options;
	for (const ExportFormat &f : ExportFormats())
		names += (names.empty() ? "" : ", ") + std::string(f.name);
	app.add_option("RUN", run, "run directory, or one .forktail file")->required();
	app.add_option("-o,--output", out, "the file, or directory, to write")->required();
	app.add_option("--to", format, "format: " + names + "; default by the output's extension");
	app.add_option("--slow", slow, "what is slow: a duration (1ms) or a percentile (p99.9); default p99");
	AddMemory(&app, &options);
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	std::string error;
	const ExportFormat *found = FindExportFormat(ExportFormats(), format, out, &error);
	if (!found) {
		fprintf(stderr, "forktail: %s\n", Visible(error).c_str());
		return kUsage;
	}
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	{
		ProgressLine line("exporting " + Visible(run));
		options.progress = [&](double done) { line.Show(done); };
		if (ExportRun(run, options, *found, out, &error, &status))
			return kDone;
	}
	fprintf(stderr, "forktail: %s\n", Visible(error).c_str());
	return status;
}

} // namespace forktail

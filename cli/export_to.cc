// SPDX-License-Identifier: MIT
// forktail export, and what forktail-parquet has in common with it.
#include <cstdio>
#include <string>

#include "analysis/outside.h"
#include "command.h"
#include "export/export.h"
#include "progress_line.h"

namespace forktail
{

int ExportTo(const std::vector<ExportFormat> &formats, int argc, char **argv)
{
	CLI::App app("Writes a run in another tool's format (docs/exports.md).", "forktail export");
	std::string run, format, out, slow, names;
	ExplainOptions options;
	for (const ExportFormat &f : formats)
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
	const ExportFormat *found = FindExportFormat(formats, format, out, &error);
	if (!found) {
		fprintf(stderr, "forktail: %s\n", Visible(error).c_str());
		return kUsage;
	}
	if (found->program)
		return RunProgram(found->program, nullptr, argc, argv, kNoParquet);
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	std::vector<std::string> warnings;
	bool good;
	{
		ProgressLine line("exporting " + Visible(run));
		options.progress = [&](double done) { line.Show(done); };
		good = ExportRun(run, options, *found, out, &warnings, &error, &status);
	}
	for (const std::string &warning : warnings)
		fprintf(stderr, "forktail: note: %s\n", Visible(warning).c_str());
	if (!good)
		fprintf(stderr, "forktail: %s\n", Visible(error).c_str());
	return good ? kDone : status;
}

} // namespace forktail

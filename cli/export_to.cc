// SPDX-License-Identifier: MIT
// forktail export, shared with forktail-parquet.
#include <cstdio>
#include <string>
#include <unistd.h>

#include "analysis/exports.h"
#include "command.h"
#include "common/interrupted.h"
#include "common/json.h"
#include "common/process.h"
#include "progress_line.h"
#include "python.h"

namespace forktail::cli
{

namespace
{

struct ExportWords {
	std::vector<std::string> runs, tables;
	std::string out, data_set, format, slow;
	PartTexts part;
	analysis::ExplainOptions options;
	bool raw_csv = false;
};

void Say(const std::string &sentence)
{
	fprintf(stderr, "forktail: %s\n", common::Visible(sentence).c_str());
}

void Note(const std::vector<std::string> &warnings)
{
	for (const std::string &warning : warnings)
		Say("note: " + warning);
}

// False: the options contradict each other, and the error is printed.
bool Fits(const ExportWords &a)
{
	const bool part = !(a.part.since + a.part.until + a.part.around).empty();
	const char *why = nullptr;
	if (a.out.empty() == a.data_set.empty())
		why = "name the output with either -o or --data-set";
	else if (a.data_set.empty() && a.runs.size() > 1)
		why = "several runs can only be exported to a data set. Use --data-set DIR.";
	else if (a.data_set.empty() && !a.tables.empty())
		why = "--tables selects tables of a data set. Use it with --data-set DIR.";
	else if (!a.data_set.empty() && part)
		why = "--data-set exports whole runs. Use --since, --until and --around with -o.";
	else if (!a.data_set.empty() && !a.format.empty() && a.format != "parquet")
		why = "a data set consists of Parquet files. Use --to parquet or leave --to out.";
	if (why)
		Say(why);
	return !why;
}

// What to do with it next, for those who see the format for the first time.
std::string OpenWith(const std::string &format)
{
	static const struct {
		const char *format, *sentence;
	} kNext[] = {{"perfetto", "Open it at https://ui.perfetto.dev"},
		     {"speedscope", "Open it at https://www.speedscope.app"},
		     {"folded", "flamegraph.pl draws it"},
		     {"prometheus", "promtool check metrics reads it"}};
	for (const auto &next : kNext)
		if (format == next.format)
			return std::string(". ") + next.sentence;
	return "";
}

int IntoFile(const ExportWords &a, const analysis::exports::ExportFormat &format)
{
	std::vector<std::string> warnings;
	std::string error;
	int status = kDone;
	bool good;
	analysis::ExplainOptions options = a.options;
	{
		ProgressLine line("exporting " + common::Visible(a.runs[0]));
		options.progress = [&](double done) { line.Show(done); };
		good = analysis::exports::ExportRun(a.runs[0], options, format, a.out, &error, &status,
						    &warnings);
	}
	Note(warnings);
	if (!good)
		Say(error);
	else if (isatty(STDERR_FILENO))
		Say("wrote " + a.out + " (" + format.name + ")" + OpenWith(format.name));
	return good ? kDone : status;
}

// Continues after a failed run, so that one of thousands does not stop the export. Returns the worst status.
int IntoDataSet(const ExportWords &a, const analysis::exports::ExportFormat &parquet)
{
	analysis::exports::DataSet data_set;
	std::string error;
	int status = kDone, worst = kDone;
	if (!data_set.Open(a.data_set, a.tables, &error, &status)) {
		Say(error);
		return status;
	}
	for (const std::string &sentence : data_set.Strangers())
		Say(sentence);
	analysis::exports::ExportFormat format = parquet;
	format.make = [&](const std::string &path, std::string *) {
		return parquet.some(path, data_set.tables());
	};
	for (const std::string &run : a.runs) {
		analysis::exports::DataSet::Added added;
		std::vector<std::string> warnings;
		{
			ProgressLine line("exporting " + common::Visible(run));
			analysis::ExplainOptions options = a.options;
			options.progress = [&](double done) { line.Show(done); };
			added = data_set.Add(run, options, format, &error, &status, &warnings);
		}
		Note(warnings);
		if (added == analysis::exports::DataSet::Added::kFailed)
			Say(error);
		if (added == analysis::exports::DataSet::Added::kThere)
			Say(run + " is already in " + a.data_set);
		worst = std::max(worst, status);
	}
	return worst;
}

} // namespace

int ExportTo(const std::vector<analysis::exports::ExportFormat> &formats, int argc, char **argv)
{
	CLI::App app("Export runs to another tool's format (docs/reference/exports-and-sql.md).",
		     "forktail export");
	app.footer("  forktail export monday -o monday.pftrace\n  forktail export monday -o monday.parquet\n"
		   "  forktail export monday -o monday.prom\n");
	ExportWords a;
	std::string names;
	for (const analysis::exports::ExportFormat &f : formats)
		names += (names.empty() ? "" : ", ") + std::string(f.name);
	app.add_option("RUN", a.runs, "Run directory or .forktail file; with --data-set, several")
	    ->required();
	app.add_option("-o,--output", a.out, "Write this file or directory")->type_name("PATH");
	app.add_option("--to", a.format, "Format: " + names + " (default: by the output's extension)")
	    ->type_name("FORMAT");
	app.add_option("--data-set", a.data_set,
		       "Add the runs to this directory of Parquet tables (docs/reference/fleet.md)")
	    ->type_name("DIR");
	app.add_option("--tables", a.tables,
		       "With --data-set: export only these tables, e.g. runs,parts,episodes (default: all)")
	    ->type_name("NAMES")
	    ->delimiter(',');
	app.add_flag(
	    "--raw-csv", a.raw_csv,
	    "With csv: texts that begin with = + - @ as they are. By default they get a ' before them, "
	    "so that no spreadsheet executes them");
	AddSlow(&app, &a.slow);
	AddMemory(&app, &a.options);
	AddPart(&app, &a.part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!Fits(a))
		return kUsage;
	std::string error;
	const analysis::exports::ExportFormat *found = analysis::exports::FindExportFormat(
	    formats, a.data_set.empty() ? a.format : "parquet", a.out, &error);
	if (!found) {
		Say(error);
		return kUsage;
	}
	if (!found->make) { // by forktail-parquet: beside forktail, or in a Python with forktail's wheel
		if (!common::FindProgram("forktail-parquet").empty())
			return RunProgram("forktail-parquet", nullptr, argc, argv);
		return RunPython("parquet", {"pyarrow"}, argc, argv);
	}
	if (!ParseSlow(a.slow, &a.options.slow) || !ParsePart(a.part, &a.options))
		return kUsage;
	analysis::exports::ExportFormat format = *found;
	if (a.raw_csv && !format.raw) {
		Say("--raw-csv is for --to csv");
		return kUsage;
	}
	if (a.raw_csv)
		format.make = format.raw;
	common::RemovePendingOnSignals();
	if (!a.data_set.empty())
		return IntoDataSet(a, format);
	return IntoFile(a, format);
}

} // namespace forktail::cli

// SPDX-License-Identifier: MIT
// What commands of forktail share: options that several have, and reading a run while saying how far it is.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/exports/export.h"

namespace forktail::cli
{

enum ExitStatus { kDone = 0, kNo = 1, kUsage = 2, kCant = 3 };

// Says why on standard error; comes back with `status`.
int Refuse(const std::string &why, int status);

// Writes a file whole or not at all. False: *error is one sentence.
bool WriteText(const std::string &path, const std::string &text, std::string *error);

// As wide as the terminal, or as COLUMNS says; a pipe is not broken into short lines.
size_t Columns();

// Parses into `app`'s variables. True: go on; false: *status is what to exit with.
bool Parse(CLI::App *app, int argc, char **argv, int *status);

// "1ms", "p99.9"; an empty text leaves *slow alone. False: it was said why it is none.
bool ParseSlow(const std::string &text, analysis::Threshold *slow);

// --memory: how much memory the explanation of a run may take, however long that is.
void AddMemory(CLI::App *app, analysis::ExplainOptions *options);

// --since, --until, --around: which part of a run is meant.
struct PartTexts {
	std::string since, until, around;
};
void AddPart(CLI::App *app, PartTexts *texts);
// False: it was said what can't be understood.
bool ParsePart(const PartTexts &texts, analysis::ExplainOptions *options);

// Explains, and shows how far that is. False: *error is one sentence, *status the exit status.
bool Read(const std::string &run, analysis::ExplainOptions options, analysis::Explanation *explanation,
	  std::string *error, int *status);

// Where Python packages are that forktail runs (build-python/, build-spark/, fleet/): in the tree that it was
// built in, to which script/install leaves a link.
std::filesystem::path Tree();
// Where a program of forktail's is: beside this one, else on PATH; "" if it is nowhere.
std::string FindProgram(const char *program);
// Runs it in place of this one, with `first` (if not null) and the words that follow. Comes back only if it
// can't: it was said why, `missing` at the end of the sentence.
int RunProgram(const char *program, const char *first, int argc, char **argv,
	       const char *missing = "install it in the directory of forktail or on PATH");

// What to say where forktail-parquet isn't.
constexpr char kNoParquet[] = "it is built only with Arrow. Install libarrow-dev and libparquet-dev, or run "
			      "script/python, and build again";

// Commands, with the words after their name; the exit status.
int DiffCommand(int argc, char **argv);
int ExplainCommand(int argc, char **argv);
int ExportCommand(int argc, char **argv);
int FleetCommand(int argc, char **argv);
int GateCommand(int argc, char **argv);
// Export with formats other than all: what forktail-parquet is.
int ExportTo(const std::vector<analysis::exports::ExportFormat> &formats, int argc, char **argv);
int HostsCommand(int argc, char **argv);
int RecordCommand(int argc, char **argv);
int ReportCommand(int argc, char **argv);
int SnapshotCommand(int argc, char **argv);
int SqlCommand(int argc, char **argv);
int TriggerCommand(int argc, char **argv);
int WatchCommand(int argc, char **argv);

} // namespace forktail::cli

// SPDX-License-Identifier: MIT
// Shared by the commands of forktail: common options, and reading a run with a progress line.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/exports.h"
#include "analysis/text.h"

namespace forktail::cli
{

enum ExitStatus { kDone = 0, kNo = 1, kUsage = 2, kCant = 3, kNoVerdict = 4 };

// Prints the reason on standard error. Returns `status`.
int Refuse(const std::string &why, int status);

// Writes a complete file, or none. False: *error is one sentence.
bool WriteText(const std::string &path, const std::string &text, std::string *error);

// Columns of the terminal at `fd`, else COLUMNS, else 100.
size_t Columns(int fd = 1);
// Lines of a help text, broken to this width; what follows a column of options stays in its column.
std::string Wrapped(const std::string &text, size_t columns);
// How to print text there. `colour`: auto, always or never.
analysis::Style StyleOf(int fd, const std::string &colour, bool ascii);

// Parses the arguments into the variables of `app`. False: exit with *status. --help begins with the app's
// footer, which has its examples: lines that are indented by two spaces.
bool Parse(CLI::App *app, int argc, char **argv, int *status);

// " Did you mean fork?", or "" if no name is close.
std::string DidYouMean(const std::string &text, const std::vector<const char *> &names);
// The sentence on a name that is no cause.
std::string UnknownCause(const std::string &name);

// Parses "1ms" or "p99.9"; an empty text leaves *slow unchanged. False: the error is printed.
bool ParseSlow(const std::string &text, analysis::Threshold *slow);

// --json-schema: prints the JSON Schema of --json (cli/schemas.h). `other`, if `chosen` is true.
void AddJsonSchema(CLI::App *app, const char *schema, const bool *chosen = nullptr,
		   const char *other = nullptr);
// --slow: the duration or percentile from which requests are slow.
void AddSlow(CLI::App *app, std::string *slow);
// --memory: the memory limit for the explanation of a run of any length.
void AddMemory(CLI::App *app, analysis::ExplainOptions *options);

// --since, --until, --around: the part of a run to explain.
struct PartTexts {
	std::string since, until, around;
};
void AddPart(CLI::App *app, PartTexts *texts);
// False: the error is printed.
bool ParsePart(const PartTexts &texts, analysis::ExplainOptions *options);

// ExplainRun() with a progress line.
bool Explain(const std::string &run, analysis::ExplainOptions options, analysis::Reading *reading,
	     analysis::Explanation *explanation, std::string *error, int *status);

// Explains a run that was just recorded: only the answer's first line, or the whole screen of forktail
// explain. Returns the exit status; an error is printed.
int PrintExplanation(const std::string &run, int fd, bool first_line);

// The source tree, with build-python/ and build-spark/, or the link to it that script/install creates. "":
// this program is neither in its build directory nor installed from there.
std::filesystem::path Tree();
// Directory of this program.
std::filesystem::path OwnDirectory();
// Replaces this process by another program of forktail, next to this one or on PATH, with `first` (if not
// null) and the arguments. Returns only on failure: the error is printed.
int RunProgram(const char *program, const char *first, int argc, char **argv);
// The same with a program's path and its first words.
int Become(const std::string &path, std::vector<std::string> words, int argc, char **argv);

// The commands. They take the arguments after their name and return the exit status.
int CausesCommand(int argc, char **argv);
int DiffCommand(int argc, char **argv);
int DoctorCommand(int argc, char **argv);
int ExplainCommand(int argc, char **argv);
int ExportCommand(int argc, char **argv);
int GateCommand(int argc, char **argv);
// Export with a given list of formats, for forktail-parquet.
int ExportTo(const std::vector<analysis::exports::ExportFormat> &formats, int argc, char **argv);
int MarkCommand(int argc, char **argv);
int RecordCommand(int argc, char **argv);
int ReportCommand(int argc, char **argv);
int SnapshotCommand(int argc, char **argv);
int TriggerCommand(int argc, char **argv);
int WatchCommand(int argc, char **argv);

} // namespace forktail::cli

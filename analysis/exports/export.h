// SPDX-License-Identifier: MIT
// A run in the formats of other tools: what a format is, and how a run gets into one. formats/ lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "exporter.h"
#include "pending.h"

namespace forktail::analysis::exports
{

struct ExportFormat {
	const char *name;		     // "csv"
	std::vector<std::string> extensions; // ".csv"; the first that fits a path's end decides
	Pending::Kind kind;
	// An exporter that writes to a file, or into a directory, at `path`. Null: *error is one sentence,
	// and the environment can't.
	std::function<std::unique_ptr<Exporter>(const std::string &path, std::string *error)> make;
	// Of what needs libraries that forktail does not: the program that writes it; `make` is null then.
	const char *program = nullptr;
	// Of tables: the same for some of them by name, which is what a data set is made of.
	std::function<std::unique_ptr<Exporter>(const std::string &path,
						const std::vector<std::string> &tables)>
	    some = nullptr;
};

// Of some formats one by name, or, where that is empty, by where it goes. Null: there is none, *error is one
// sentence.
const ExportFormat *FindExportFormat(const std::vector<ExportFormat> &formats, const std::string &name,
				     const std::string &out, std::string *error);

// Explains a run and writes it to `out` in that format. False: nothing is under that name that was not there
// before, *error is one sentence and *status the exit status. *warnings: what the recordings lack, or why one
// of them is left out, a sentence each.
bool ExportRun(const std::string &run, const ExplainOptions &options, const ExportFormat &format,
	       const std::string &out, std::string *error, int *status,
	       std::vector<std::string> *warnings = nullptr);

} // namespace forktail::analysis::exports

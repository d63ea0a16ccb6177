// SPDX-License-Identifier: MIT
// Runs in the formats of other tools: what a format is, and how a run is exported. formats/ lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "common/files/pending.h"
#include "exporter.h"

namespace forktail::analysis::exports
{

struct ExportFormat {
	const char *name;		     // "csv"
	std::vector<std::string> extensions; // ".csv"; the first one that matches the path decides
	common::Pending::Kind kind;
	// Makes an exporter that writes to a file, or into a directory, at `path`. Null: the environment does
	// not allow it; *error is one sentence. Empty: only another program, forktail-parquet, has it.
	std::function<std::unique_ptr<Exporter>(const std::string &path, std::string *error)> make;
	// For tables: makes an exporter of the named tables, as a data set needs it.
	std::function<std::unique_ptr<Exporter>(const std::string &path,
						const std::vector<std::string> &tables)>
	    some = nullptr;
	// For csv: makes an exporter without protection against formulas.
	decltype(make) raw = nullptr;
};

// A format by name, or, if that is empty, by the output's extension. Null: none; *error is one sentence.
const ExportFormat *FindExportFormat(const std::vector<ExportFormat> &formats, const std::string &name,
				     const std::string &out, std::string *error);

// Explains a run and writes it to `out` in that format. False: `out` is as it was, *error is one sentence and
// *status the exit status. *warnings: what the recordings lack, or why one is ignored, a sentence each.
bool ExportRun(const std::string &run, const ExplainOptions &options, const ExportFormat &format,
	       const std::string &out, std::string *error, int *status,
	       std::vector<std::string> *warnings = nullptr);

} // namespace forktail::analysis::exports

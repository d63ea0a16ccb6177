// SPDX-License-Identifier: MIT
// A data set: the tables of many runs in one directory,
// DIR/date=2026-11-23/host=NAME/run_id=ID/TABLE.parquet, and DIR/_forktail.json, which describes them. A
// run's directory is written elsewhere and renamed when it is complete, so that no reader ever sees half a
// run. Spark, DuckDB and Arrow read the directory names as columns and ignore names that begin with _.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/exports/export.h"

namespace forktail::analysis::exports
{

class DataSet
{
public:
	enum class Added { kNew, kThere, kFailed };

	// Opens the data set, or creates one with these tables (empty: all). False: *error is one sentence,
	// *status the exit status, and nothing was changed.
	bool Open(const std::string &path, std::vector<std::string> tables, std::string *error, int *status);
	// The tables of each of its runs.
	const std::vector<std::string> &tables() const { return tables_; }
	// Exports a run unless it is there: `format` makes the exporter of tables(). kFailed: *error is one
	// sentence, *status the exit status, and the data set is unchanged. *warnings are those of ExportRun.
	Added Add(const std::string &run, const ExplainOptions &options, const ExportFormat &format,
		  std::string *error, int *status, std::vector<std::string> *warnings);
	// One sentence for each file or directory that does not belong to the data set. They are not changed.
	std::vector<std::string> Strangers() const;

private:
	std::string path_;
	std::vector<std::string> tables_;
};

// A value as part of a directory's name, encoded as in Hive: %3A for characters that are not allowed.
std::string PartitionValue(const std::string &value);

} // namespace forktail::analysis::exports

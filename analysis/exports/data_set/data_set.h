// SPDX-License-Identifier: MIT
// A data set: the tables of many runs in one directory,
// DIR/date=2026-11-23/host=NAME/run_id=ID/TABLE.parquet, and DIR/_forktail.json, which says what is in it. A
// run has one directory, which is written elsewhere and gets its name when it is whole: that is one rename,
// so no reader ever sees half a run, whichever of its tables it reads. Spark, DuckDB and Arrow take the
// directories' names for columns, and leave out names that begin with _.
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

	// Opens the data set, or makes one with these tables (none: all). False: *error is one sentence,
	// *status the exit status; nothing was changed.
	bool Open(const std::string &path, std::vector<std::string> tables, std::string *error, int *status);
	// Which tables each of its runs has.
	const std::vector<std::string> &tables() const { return tables_; }
	// Exports a run, unless it is there: `format` makes the exporter of tables(). kFailed: *error is one
	// sentence, *status the exit status, and the data set is as it was. *warnings are ExportRun's.
	Added Add(const std::string &run, const ExplainOptions &options, const ExportFormat &format,
		  std::string *error, int *status, std::vector<std::string> *warnings);
	// One sentence about each that lies there and is none of its own. They are left alone.
	std::vector<std::string> Strangers() const;

private:
	std::string path_;
	std::vector<std::string> tables_;
};

// A value as part of a directory's name, as Hive writes it: %3A for what can't be in one.
std::string PartitionValue(const std::string &value);

} // namespace forktail::analysis::exports

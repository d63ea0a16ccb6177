// SPDX-License-Identifier: MIT
// An exporter writes a run in some format. It gets the run in pieces, so that memory is bounded for any
// length of run: slow requests while the run is explained, then the explanation, then what threads did and
// the request log, by stretches and windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/explain.h"
#include "analysis/run.h"
#include "common/files.h"
#include "common/json.h"
#include "recording/recording.h"

namespace forktail::analysis::exports
{

// An object with an error: error() is one sentence for the user.
class Failing
{
public:
	const std::string &error() const { return error_; }

protected:
	// For `return Fail(...)`.
	bool Fail(std::string why)
	{
		error_ = std::move(why);
		return false;
	}

private:
	std::string error_;
};

class Exporter : public Failing
{
public:
	// The calls that this exporter needs; other data is not read.
	struct Wants {
		bool blamed = false, stretches = false, windows = false;
	};

	virtual ~Exporter() = default;
	virtual Wants wants() const = 0;

	// Calls come in this order. The first one that returns false is the last: error() has the reason
	// ("cannot write requests.csv: No space left on device").
	//
	// A slow request with its parts, largest first. All of them, in the order of the log, however many
	// the explanation stores. The run is as it was opened, with its current window of requests.
	virtual bool Blamed(const Run &, const SlowRequest &, const Part *) { return true; }
	// The run is explained.
	virtual bool Begin(const Explanation &) { return true; }
	// The run has what threads did in [from_ns, to_ns), and what overlaps its ends. Count a span, tally,
	// sample or block request in the stretch in which it begins, or cut it at the bounds. The stretches
	// together are the whole run, in order.
	virtual bool Stretch(const Explanation &, const Run &, uint64_t from_ns, uint64_t to_ns)
	{
		(void)from_ns;
		(void)to_ns;
		return true;
	}
	// The next requests of the log are [lead, size()) of run.requests.
	virtual bool Window(const Explanation &, const Run &) { return true; }
	// After the last piece. True: the output is complete and on disk.
	virtual bool End(const Explanation &) = 0;
};

// Runs in the formats of other tools: what a format is, and how a run is exported. formats/ lists them.

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

// All formats of exports. docs/reference/exports-and-sql.md has their contents and the tools that open them.

// In the order of the help.
const std::vector<ExportFormat> &ExportFormats();

// A data set: the tables of many runs in one directory,
// DIR/date=2026-11-23/host=NAME/run_id=ID/TABLE.parquet, and DIR/_forktail.json, which describes them. A
// run's directory is written elsewhere and renamed when it is complete, so that no reader ever sees half a
// run. Spark, DuckDB and Arrow read the directory names as columns and ignore names that begin with _.

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

// Latencies of each second of a run by operation, as tools plot them. For long runs memory stays small: a
// second stores only the buckets with values.

// Requests that were answered in one second, with the buckets of struct ft_histogram.
struct SecondOf {
	uint64_t count = 0, max_ns = 0;
	std::unordered_map<uint32_t, uint32_t> slots = {}; // count by bucket
	void Add(uint64_t latency_ns);
	void Merge(const SecondOf &other);
	// The highest value of the bucket of each percentile; the percentiles are in ascending order.
	std::vector<uint64_t> Percentiles(const std::vector<double> &which) const;
};

class Seconds
{
public:
	static constexpr uint64_t kNs = 1'000'000'000;
	// Counts the window's answered requests; errors are counted separately.
	void Add(const Run &run);
	// By second (of CLOCK_MONOTONIC) and operation.
	const std::map<std::pair<uint64_t, uint32_t>, SecondOf> &all() const { return all_; }
	// By second, all operations together.
	std::map<uint64_t, SecondOf> Together() const;
	const std::map<uint64_t, uint64_t> &errors() const { return errors_; }

private:
	std::map<std::pair<uint64_t, uint32_t>, SecondOf> all_;
	std::map<uint64_t, uint64_t> errors_;
};

// A table as its writers see it: columns with types, and rows in batches, column by column. tables.cc lists
// the tables; a sink (csv.cc, parquet/) writes them to disk.

enum class ColumnType : uint8_t {
	Int,	// 64 bits. Signed, although no value is below 0, so that SQL can subtract
	Small,	// 32 bits: ids, indices
	Double, //
	Bool,	//
	Time,	// ns since 1970, UTC; 0: unknown
	Name,	// one of the column's `names`, which are fixed once rows are written
	Text,
};

struct TableColumn {
	const char *name;
	ColumnType type;
	std::vector<std::string> (*names)(const Run &) = nullptr; // of a Name
	const char *meaning = "";				  // "" if the name says it
};

struct TableKind {
	const char *name; // "requests"; also the file's name
	std::vector<TableColumn> columns;
	const char *row = ""; // what a row is: "request"
};

// The columns of a table with their types: [["run_id", "text"], ["start_ns", "int64"] ...].
common::Json ColumnsJson(const TableKind &table);

// Some rows of a table. An unknown value is empty in CSV and NULL in SQL.
class Batch
{
public:
	struct Values {
		ColumnType type;
		std::vector<int64_t> numbers; // a Double's bits, a Name's index; empty for Text
		std::vector<std::string> texts;
		std::vector<uint8_t> known; // per row
		std::vector<std::string> names;
	};

	explicit Batch(const TableKind &kind);
	size_t rows() const { return rows_; }
	const std::vector<Values> &columns() const { return columns_; }
	void SetNames(size_t column, std::vector<std::string> names);
	void Clear();

	// Begins a row. Add its values in the order of the columns; the first, the run's id, is set.
	Batch &Row();
	// Of all types but Text. A Double is given as its bits.
	Batch &Number(int64_t value)
	{
		Values &v = columns_[at_++];
		v.numbers.push_back(value);
		v.known.push_back(true);
		return *this;
	}
	Batch &Text(std::string value);
	// An index beyond the names is unknown.
	Batch &Name(size_t index)
	{
		return index < columns_[at_].names.size() ? Number(static_cast<int64_t>(index)) : Unknown();
	}
	Batch &Unknown();

private:
	size_t rows_ = 0, at_ = 0;
	std::vector<Values> columns_;
};

// Writes tables. After a call that returned false, error() is one sentence for the user.
class TableSink : public Failing
{
public:
	virtual ~TableSink() = default;
	virtual bool Open(const std::vector<TableKind> &tables) = 0;
	virtual bool Write(size_t table, const Batch &batch) = 0;
	// True: all tables are complete.
	virtual bool Close() = 0;
};

// Raised if a column is changed or removed. It is in a Parquet file's metadata and in a data set's
// _forktail.json.
constexpr int kTablesSchema = 1;

// All tables, from the rows in tables.cc.
const std::vector<TableKind> &Tables();

// A run as tables (docs/reference/exports-and-sql.md): the exporter that fills them, independent of their
// file format.

// 16 hexadecimal digits: the same for the same recordings wherever they are stored, and different for others.
std::string RunId(const Run &run);

// Writes the named tables (empty: all).
std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink,
				     const std::vector<std::string> &tables = {});

// Tables as comma-separated values (RFC 4180): one file per table in a directory.

// Writes into an existing directory.
std::unique_ptr<TableSink> MakeCsv(const std::string &directory, bool raw = false);

} // namespace forktail::analysis::exports

// SPDX-License-Identifier: MIT
// A table as its writers see it: columns with types, and rows in batches, column by column. schema.cc lists
// the tables; a sink (csv.cc, ../parquet) writes them to disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/exports/exporter.h"

namespace forktail::analysis::exports
{

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
};

struct TableKind {
	const char *name; // "requests"; also the file's name
	std::vector<TableColumn> columns;
};

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
	Batch &Int(uint64_t value) { return Number(static_cast<int64_t>(value), true); }
	Batch &IntOr(bool known, uint64_t value) { return Number(static_cast<int64_t>(value), known); }
	Batch &Bool(bool value) { return Number(value, true); }
	Batch &Double(double value);
	Batch &Time(int64_t realtime_ns) { return Number(realtime_ns, realtime_ns != 0); }
	// An index beyond the names is unknown.
	Batch &Name(size_t index);
	Batch &Text(std::string value);
	Batch &TextOr(bool known, std::string value);

private:
	Batch &Number(int64_t value, bool known)
	{
		Values &v = columns_[at_++];
		v.numbers.push_back(value);
		v.known.push_back(known);
		return *this;
	}
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

} // namespace forktail::analysis::exports

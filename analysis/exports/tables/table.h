// SPDX-License-Identifier: MIT
// A table as those who write one see it: columns with types, and rows that come in batches, column by
// column. Which tables there are is schema.cc's affair, how they lie on disk the sink's (csv.cc, ../parquet).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/exports/exporter.h"

namespace forktail::analysis::exports
{

enum class ColumnType : uint8_t {
	Int,	// 64 bits. Signed, though nothing here is below 0: so that SQL may subtract
	Small,	// the same in 32 bits: ids, indices
	Double, //
	Bool,	//
	Time,	// ns since 1970, UTC; 0: not known
	Name,	// one of the column's `names`, which don't change once rows are written
	Text,
};

struct TableColumn {
	const char *name;
	ColumnType type;
};

struct TableKind {
	const char *name; // "requests"; the file is called so
	std::vector<TableColumn> columns;
};

// Some rows of a table. A value that is not known is none (empty in CSV, NULL in SQL).
class Batch
{
public:
	struct Values {
		ColumnType type;
		std::vector<int64_t> numbers; // of a Double its bits, of a Name its index; empty for Text
		std::vector<std::string> texts;
		std::vector<uint8_t> known; // per row
		std::vector<std::string> names;
	};

	explicit Batch(const TableKind &kind);
	size_t rows() const { return rows_; }
	const std::vector<Values> &columns() const { return columns_; }
	void SetNames(size_t column, std::vector<std::string> names);
	void Clear();

	// A row is its values in the order of the columns; the first, the run's id, is there already.
	Batch &Row();
	Batch &Int(uint64_t value) { return Number(static_cast<int64_t>(value), true); }
	Batch &IntOr(bool known, uint64_t value) { return Number(static_cast<int64_t>(value), known); }
	Batch &Bool(bool value) { return Number(value, true); }
	Batch &Double(double value);
	Batch &Time(int64_t realtime_ns) { return Number(realtime_ns, realtime_ns != 0); }
	// Beyond the names: not known.
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

// Writes tables. After a call that is false, error() is one sentence for the user.
class TableSink : public Failing
{
public:
	virtual ~TableSink() = default;
	virtual bool Open(const std::vector<TableKind> &tables) = 0;
	virtual bool Write(size_t table, const Batch &batch) = 0;
	// All that was written is whole.
	virtual bool Close() = 0;
};

} // namespace forktail::analysis::exports

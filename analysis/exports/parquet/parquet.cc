// SPDX-License-Identifier: MIT
// See parquet.h. Batches are encoded into row groups as they arrive, so that at most one encoded group of
// each table is in memory. Times and counts are delta-encoded: they grow little from row to row, and the rest
// compresses well. Arrow's default, a dictionary, would be abandoned after the first million values.
#include "analysis/parquet.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/thread_pool.h>
#include <bit>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "analysis/exports.h"

namespace forktail::analysis::exports
{

namespace
{

constexpr int64_t kGroupRows = 1 << 20;

std::shared_ptr<arrow::DataType> TypeOf(ColumnType type)
{
	switch (type) {
	case ColumnType::Small:
		return arrow::int32();
	case ColumnType::Double:
		return arrow::float64();
	case ColumnType::Bool:
		return arrow::boolean();
	case ColumnType::Time:
		return arrow::timestamp(arrow::TimeUnit::NANO, "UTC");
	case ColumnType::Name:
		return arrow::dictionary(arrow::int32(), arrow::utf8());
	case ColumnType::Text:
		return arrow::utf8();
	default:
		return arrow::int64();
	}
}

std::shared_ptr<arrow::Schema> SchemaOf(const TableKind &kind)
{
	arrow::FieldVector fields;
	for (const TableColumn &c : kind.columns)
		fields.push_back(arrow::field(c.name, TypeOf(c.type)));
	// Metadata next to the columns' names and types: the version of the schema.
	return arrow::schema(fields,
			     arrow::key_value_metadata({{"forktail.schema", std::to_string(kTablesSchema)}}));
}

std::shared_ptr<parquet::WriterProperties> PropertiesOf(const TableKind &kind)
{
	parquet::WriterProperties::Builder builder;
	builder.compression(arrow::Compression::ZSTD)
	    ->compression_level(1)
	    ->max_row_group_length(kGroupRows)
	    ->version(parquet::ParquetVersion::PARQUET_2_6)
	    ->created_by("forktail " FORKTAIL_VERSION);
	for (const TableColumn &c : kind.columns)
		if (c.type == ColumnType::Int || c.type == ColumnType::Time || c.type == ColumnType::Small)
			builder.disable_dictionary(c.name)->encoding(c.name,
								     parquet::Encoding::DELTA_BINARY_PACKED);
	return builder.build();
}

template <typename Builder, typename Value>
arrow::Result<std::shared_ptr<arrow::Array>> Numbers(Builder builder, const Batch::Values &v, Value value)
{
	ARROW_RETURN_NOT_OK(builder.Reserve(static_cast<int64_t>(v.known.size())));
	for (size_t i = 0; i < v.known.size(); i++) {
		if (v.known[i])
			builder.UnsafeAppend(value(v.numbers[i]));
		else
			builder.UnsafeAppendNull();
	}
	return builder.Finish();
}

arrow::Result<std::shared_ptr<arrow::Array>> Texts(const std::vector<std::string> &texts,
						   const uint8_t *known)
{
	arrow::StringBuilder builder;
	ARROW_RETURN_NOT_OK(builder.AppendValues(texts, known));
	return builder.Finish();
}

arrow::Result<std::shared_ptr<arrow::Array>> ArrayOf(const Batch::Values &v)
{
	auto small = [](int64_t n) { return static_cast<int32_t>(n); };
	auto same = [](int64_t n) { return n; };
	switch (v.type) {
	case ColumnType::Small:
		return Numbers(arrow::Int32Builder(), v, small);
	case ColumnType::Double:
		return Numbers(arrow::DoubleBuilder(), v, [](int64_t n) { return std::bit_cast<double>(n); });
	case ColumnType::Bool:
		return Numbers(arrow::BooleanBuilder(), v, [](int64_t n) { return n != 0; });
	case ColumnType::Time:
		return Numbers(arrow::TimestampBuilder(TypeOf(v.type), arrow::default_memory_pool()), v,
			       same);
	case ColumnType::Text:
		return Texts(v.texts, v.known.data());
	case ColumnType::Name: {
		ARROW_ASSIGN_OR_RAISE(auto indices, Numbers(arrow::Int32Builder(), v, small));
		ARROW_ASSIGN_OR_RAISE(auto names, Texts(v.names, nullptr));
		return arrow::DictionaryArray::FromArrays(TypeOf(v.type), indices, names);
	}
	default:
		return Numbers(arrow::Int64Builder(), v, same);
	}
}

class Parquet : public TableSink
{
public:
	explicit Parquet(std::string directory) : directory_(std::move(directory)) {}
	bool Open(const std::vector<TableKind> &tables) override
	{
		for (const TableKind &kind : tables) {
			files_.push_back(
			    {std::string(kind.name) + ".parquet", SchemaOf(kind), nullptr, nullptr});
			if (!Done(Begin(kind, &files_.back()), files_.back()))
				return false;
		}
		return true;
	}
	bool Write(size_t table, const Batch &batch) override
	{
		return Done(Put(batch, files_[table]), files_[table]);
	}
	bool Close() override
	{
		for (File &f : files_)
			if (!Done(f.writer->Close(), f) || !Done(f.stream->Close(), f))
				return false;
		return true;
	}

private:
	struct File {
		std::string name;
		std::shared_ptr<arrow::Schema> schema;
		std::shared_ptr<arrow::io::FileOutputStream> stream;
		std::unique_ptr<parquet::arrow::FileWriter> writer;
	};
	arrow::Status Begin(const TableKind &kind, File *f)
	{
		ARROW_ASSIGN_OR_RAISE(f->stream,
				      arrow::io::FileOutputStream::Open(directory_ + "/" + f->name));
		// Columns are encoded in parallel, by as many threads as there are CPUs.
		auto arrow =
		    parquet::ArrowWriterProperties::Builder().store_schema()->set_use_threads(true)->build();
		ARROW_ASSIGN_OR_RAISE(
		    f->writer, parquet::arrow::FileWriter::Open(*f->schema, arrow::default_memory_pool(),
								f->stream, PropertiesOf(kind), arrow));
		return arrow::Status::OK();
	}
	static arrow::Status Put(const Batch &batch, const File &f)
	{
		arrow::ArrayVector arrays;
		for (const Batch::Values &v : batch.columns()) {
			ARROW_ASSIGN_OR_RAISE(auto array, ArrayOf(v));
			arrays.push_back(std::move(array));
		}
		return f.writer->WriteRecordBatch(
		    *arrow::RecordBatch::Make(f.schema, static_cast<int64_t>(batch.rows()), arrays));
	}
	bool Done(const arrow::Status &status, const File &f)
	{
		if (status.ok())
			return true;
		// The system's reason is in the detail: "[errno 28] No space left on device".
		std::string why = status.detail() ? status.detail()->ToString() : status.message();
		if (why.starts_with("[errno "))
			why.erase(0, why.find("] ") + 2);
		return Fail("cannot write " + f.name + ": " + why);
	}

	std::string directory_;
	std::vector<File> files_;
};

} // namespace

std::unique_ptr<TableSink> MakeParquet(const std::string &directory)
{
	return std::make_unique<Parquet>(directory);
}

} // namespace forktail::analysis::exports

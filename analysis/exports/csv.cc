// SPDX-License-Identifier: MIT
// Tables as CSV files.
//
// An unknown value is an empty field; an empty text is "". schema.json has the types, which CSV has not.
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "analysis/exports.h"

namespace forktail::analysis::exports
{

namespace
{

constexpr size_t kBuffer = 1 << 20;

// Spreadsheets execute a cell that begins like this as a formula, and names come from strangers.
bool IsFormula(const std::string &text)
{
	return !text.empty() && strchr("=+-@\t\r", text[0]);
}

void AddText(const std::string &text, std::string *out)
{
	if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) {
		*out += text;
		return;
	}
	*out += '"';
	for (char c : text) {
		if (c == '"')
			*out += '"';
		*out += c;
	}
	*out += '"';
}

template <typename Number> void AddNumber(Number value, std::string *out)
{
	char digits[32];
	*out += std::string_view(
	    digits, static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
}

// "2026-11-22T20:15:03.000000001Z". Rows are in the order of time, so the second is usually that of the row
// before.
class TimeText
{
public:
	void Add(int64_t realtime_ns, std::string *out)
	{
		const time_t second = realtime_ns / 1'000'000'000;
		if (second != second_ || text_[0] == '\0') {
			struct tm tm;
			gmtime_r(&second, &tm);
			strftime(text_, sizeof text_, "%Y-%m-%dT%H:%M:%S.", &tm);
			second_ = second;
		}
		*out += text_;
		char digits[10];
		int64_t rest = realtime_ns % 1'000'000'000;
		for (int i = 8; i >= 0; i--, rest /= 10)
			digits[i] = static_cast<char>('0' + rest % 10);
		digits[9] = 'Z';
		out->append(digits, sizeof digits);
	}

private:
	time_t second_ = 0;
	char text_[32] = "";
};

class Csv : public TableSink
{
public:
	Csv(std::string directory, bool raw) : directory_(std::move(directory)), raw_(raw) {}
	~Csv() override
	{
		for (File &f : files_)
			if (f.stream)
				fclose(f.stream);
	}
	bool Open(const std::vector<TableKind> &tables) override
	{
		common::Json schema = common::Json::object();
		for (const TableKind &t : tables) {
			schema[t.name] = ColumnsJson(t);
			files_.push_back({std::string(t.name) + ".csv", nullptr, {}, {}});
			File &f = files_.back();
			f.stream = fopen((directory_ + "/" + f.name).c_str(), "we");
			if (!f.stream)
				return Failed(f);
			for (const TableColumn &c : t.columns)
				f.text += (&c == t.columns.data() ? "" : ",") + std::string(c.name);
			f.text += "\r\n";
		}
		std::ofstream out(directory_ + "/schema.json");
		out << schema.dump(1) << "\n";
		out.close();
		return out.good() || Fail("cannot write schema.json: " + std::string(strerror(errno)));
	}
	bool Write(size_t table, const Batch &batch) override
	{
		File &f = files_[table];
		const std::vector<Batch::Values> &columns = batch.columns();
		for (size_t row = 0; row < batch.rows(); row++) {
			for (size_t c = 0; c < columns.size(); c++) {
				if (c)
					f.text += ',';
				if (columns[c].known[row])
					AddValue(columns[c], row, &f);
			}
			f.text += "\r\n";
			if (f.text.size() >= kBuffer && !Put(&f))
				return Failed(f);
		}
		return true;
	}
	bool Close() override
	{
		for (File &f : files_) {
			const bool put = Put(&f);
			FILE *stream = f.stream;
			f.stream = nullptr;
			if ((fclose(stream) != 0) | !put)
				return Failed(f);
		}
		return true;
	}

private:
	struct File {
		std::string name;
		FILE *stream;
		std::string text; // to be written
		TimeText time;
	};
	void AddCell(const std::string &text, File *f) const
	{
		AddText(!raw_ && IsFormula(text) ? "'" + text : text, &f->text);
	}
	void AddValue(const Batch::Values &v, size_t row, File *f) const
	{
		switch (v.type) {
		case ColumnType::Text:
			return AddCell(v.texts[row], f);
		case ColumnType::Name:
			return AddCell(v.names[static_cast<size_t>(v.numbers[row])], f);
		case ColumnType::Bool:
			f->text += v.numbers[row] ? "true" : "false";
			return;
		case ColumnType::Time:
			return f->time.Add(v.numbers[row], &f->text);
		case ColumnType::Double:
			return AddNumber(std::bit_cast<double>(v.numbers[row]), &f->text);
		default:
			return AddNumber(v.numbers[row], &f->text);
		}
	}
	static bool Put(File *f)
	{
		const bool ok = fwrite(f->text.data(), 1, f->text.size(), f->stream) == f->text.size();
		f->text.clear();
		return ok;
	}
	bool Failed(const File &f) { return Fail("cannot write " + f.name + ": " + strerror(errno)); }

	std::string directory_;
	bool raw_;
	std::vector<File> files_;
};

} // namespace

common::Json ColumnsJson(const TableKind &table)
{
	// By ColumnType.
	constexpr const char *kTypes[] = {"int64", "int32", "double", "bool", "time", "text", "text"};
	common::Json columns = common::Json::array();
	for (const TableColumn &c : table.columns)
		columns.push_back({c.name, kTypes[static_cast<size_t>(c.type)]});
	return columns;
}

std::unique_ptr<TableSink> MakeCsv(const std::string &directory, bool raw)
{
	return std::make_unique<Csv>(directory, raw);
}

} // namespace forktail::analysis::exports

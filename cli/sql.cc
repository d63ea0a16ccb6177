// SPDX-License-Identifier: MIT
// forktail sql: runs as tables in DuckDB. Each run is exported to Parquet once, into a cache, and again when
// its files change. DuckDB gets a view per table over all runs. DuckDB is its own shell or, if that is not
// installed, the Python package.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "analysis/exports.h"
#include "analysis/source.h"
#include "command.h"
#include "common/json.h"
#include "common/process.h"
#include "python.h"

namespace fs = std::filesystem;

namespace forktail::cli
{

namespace
{

// The replacement for DuckDB's shell. argv: views, format, query; without a query it reads statements.
const char kPython[] = R"(
import sys
import duckdb
views, form, query = sys.argv[1:4]
db = duckdb.connect()
db.execute(views)

def show(text):
    result = db.sql(text)
    if result is None:
        return
    if form == "table":
        result.show(max_width=250, max_rows=10000) if not sys.stdout.isatty() else result.show()
        return
    if form == "csv":
        result.write_csv("/dev/stdout", header=True)
    else:
        rows = db.sql("select to_json(r)::varchar from result r").fetchall()
        print("[" + ",\n".join(row[0] for row in rows) + "]")

if query:
    try:
        show(query)
    except duckdb.Error as error:
        sys.exit(f"forktail: {error}")
    sys.exit(0)
try:
    import readline
except ImportError:
    pass
print("A statement ends with ; and .quit ends. Tables: " + ", ".join(r[0] for r in db.execute("show tables").fetchall()))
text = ""
while True:
    try:
        line = input("... " if text else "sql> ")
    except EOFError:
        break
    except KeyboardInterrupt:
        text = ""
        print()
        continue
    if not text and line.strip() in (".quit", ".exit"):
        break
    text += line + "\n"
    if not text.rstrip().endswith(";"):
        text = text if text.strip() else ""
        continue
    try:
        show(text)
    except (duckdb.Error, KeyboardInterrupt) as error:
        print(error)
    text = ""
)";

uint64_t Hash(const std::string &text)
{
	uint64_t hash = 14695981039346656037u; // FNV-1a
	for (unsigned char c : text)
		hash = (hash ^ c) * 1099511628211u;
	return hash;
}

std::string Hex(uint64_t value)
{
	char text[17];
	snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
	return text;
}

// The cache directory: under XDG_CACHE_HOME, else under ~/.cache.
fs::path CacheDirectory()
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (cache && cache[0] == '/')
		return fs::path(cache) / "forktail";
	return fs::path(home && home[0] ? home : "/tmp") / ".cache" / "forktail";
}

// Names, sizes and times of a run's files, also of its hosts: they differ if the run is recorded again, or
// gets another file.
std::string LookOf(const fs::path &run)
{
	std::vector<std::string> files;
	std::error_code ec;
	const fs::path marks = analysis::MarksPath(run);
	auto see = [&](const fs::path &file) {
		const std::string ends = file.extension();
		if (ends == ".forktail" || ends == ".json" || file == run || file == marks)
			files.push_back(
			    file.lexically_relative(run).string() + " " +
			    std::to_string(fs::file_size(file, ec)) + " " +
			    std::to_string(fs::last_write_time(file, ec).time_since_epoch().count()));
	};
	if (fs::is_directory(run, ec))
		for (const auto &entry : fs::recursive_directory_iterator(run, ec))
			see(entry.path());
	else
		for (const fs::path &file : {run, marks})
			see(file);
	std::sort(files.begin(), files.end());
	std::string all = FORKTAIL_VERSION;
	for (const std::string &f : files)
		all += "\n" + f;
	return all;
}

// Runs a program to its end; its exit status.
int Run(const std::vector<std::string> &argv)
{
	const int status = common::StatusOf(argv);
	return status < 0 ? kCant : status;
}

// The directory of a run's tables, exported if missing. Not kDone: the error is printed.
int TablesOf(const std::string &run, const std::string &slow, std::string *directory)
{
	std::error_code ec;
	const fs::path path = fs::canonical(run, ec);
	if (ec) {
		fprintf(stderr, "forktail: cannot read %s: %s\n", common::Visible(run).c_str(),
			ec.message().c_str());
		return kCant;
	}
	const fs::path cache = CacheDirectory();
	fs::create_directories(cache, ec);
	if (ec) {
		fprintf(stderr, "forktail: cannot create %s, the cache for tables of runs: %s\n",
			cache.c_str(), ec.message().c_str());
		return kCant;
	}
	const std::string stem = Hex(Hash(path.string())) + "-",
			  name = stem + Hex(Hash(LookOf(path) + "\n" + slow));
	*directory = cache / name;
	if (fs::exists(*directory, ec))
		return kDone;
	std::vector<std::string> words = ParquetProgram();
	if (words.empty())
		return kCant;
	common::Append(&words, {path, "--to", "parquet", "-o", *directory});
	if (!slow.empty())
		words.insert(words.end(), {"--slow", slow});
	const int status = Run(words);
	if (status == kDone) // of what was there before the run changed
		for (const auto &entry : fs::directory_iterator(cache, ec))
			if (entry.path().filename().string().starts_with(stem) && entry.path() != *directory)
				fs::remove_all(entry.path(), ec);
	return status;
}

std::string Quoted(const std::string &text)
{
	std::string all = "'";
	for (char c : text)
		all += c == '\'' ? std::string("''") : std::string(1, c);
	return all + "'";
}

std::string Views(const std::vector<std::string> &directories)
{
	std::string sql = "SET TimeZone = 'UTC';\n";
	for (const analysis::exports::TableKind &table : analysis::exports::Tables()) {
		std::string files;
		for (const std::string &d : directories)
			files += (files.empty() ? "" : ", ") + Quoted(d + "/" + table.name + ".parquet");
		sql += std::string("CREATE TEMP VIEW ") + table.name + " AS SELECT * FROM read_parquet([" +
		       files + "], union_by_name = true, hive_partitioning = false);\n";
	}
	return sql;
}

int Ask(const std::string &views, const std::string &query, const char *format)
{
	fflush(stdout);
	std::string program = common::FindProgram("duckdb");
	std::vector<std::string> words = {program, "-cmd", views};
	if (!query.empty())
		words.insert(
		    words.end(),
		    {format == std::string("table") ? "-box" : std::string("-") + format, "-c", query});
	if (program.empty()) {
		program = PythonWith({"duckdb"});
		words = {program, "-c",	  kPython,
			 views,	  format, query}; // by its own path it knows its packages
	}
	if (program.empty())
		return RefuseWithoutPackage("DuckDB's shell or Python package", "", "script/python");
	const int status = Run(words);
	return status == kDone ? kDone : status == kCant ? kCant : kNo;
}

} // namespace

int SqlCommand(int argc, char **argv)
{
	CLI::App app("Query runs as tables with DuckDB (docs/reference/exports-and-sql.md). Without a query, "
		     "open its shell.",
		     "forktail sql");
	std::vector<std::string> runs;
	std::string query, slow;
	bool csv = false, json = false;
	app.add_option("RUN", runs, "Run directories or .forktail files, then the query")->required();
	app.add_option("-c,--command", query, "Run this query")->type_name("QUERY");
	AddSlow(&app, &slow);
	auto *as_csv = app.add_flag("--csv", csv, "Print the result as CSV");
	app.add_flag("--json", json, "Print the result as JSON")->excludes(as_csv);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	std::error_code ec;
	if (query.empty() && runs.size() > 1 && !fs::exists(runs.back(), ec)) {
		query = runs.back();
		runs.pop_back();
	}
	if (query.empty() && (csv || json)) {
		fprintf(stderr,
			"forktail: --csv and --json need a query. Give it after the runs or with -c.\n");
		return kUsage;
	}
	if (analysis::Threshold threshold; !ParseSlow(slow, &threshold))
		return kUsage;
	std::vector<std::string> directories;
	for (const std::string &run : runs) {
		std::string directory;
		status = TablesOf(run, slow, &directory);
		if (status != kDone)
			return status;
		if (std::find(directories.begin(), directories.end(), directory) == directories.end())
			directories.push_back(directory);
	}
	return Ask(Views(directories), query, csv ? "csv" : json ? "json" : "table");
}

} // namespace forktail::cli

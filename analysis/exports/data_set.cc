// SPDX-License-Identifier: MIT
// Many runs as one data set of tables.
//
// _forktail.json of a data set: the version of its schema, the tables with their columns, and the causes'
// colours for a page. Readers of the data set need nothing else from forktail.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "analysis/exports.h"
#include "analysis/run.h"
#include "analysis/source.h"
#include "analysis/timeline.h"
#include "common/json.h"

namespace forktail::analysis::exports
{

constexpr char kAboutName[] = "_forktail.json";

// False: an unknown table; *error is one sentence.
bool CheckTables(const std::vector<std::string> &tables, std::string *error);

// Creates the file at `path`, or adds what is missing in it. `asked`: tables (empty: those of the file, else
// all); *tables: the resulting ones. False: *error is one sentence, and the file is unchanged.
bool UpdateAbout(const std::string &path, const std::vector<std::string> &asked,
		 std::vector<std::string> *tables, std::string *error);

} // namespace forktail::analysis::exports

namespace fs = std::filesystem;
namespace forktail::analysis::exports
{

namespace
{

constexpr char kPending[] = "_pending"; // runs being written: ID.HOST.PID and Pending's suffix
constexpr char kUnknown[] = "__HIVE_DEFAULT_PARTITION__";

std::string HostName()
{
	char name[256] = "";
	gethostname(name, sizeof name - 1);
	return name;
}

void SyncDirectory(const fs::path &path)
{
	const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

std::string DateOf(uint64_t realtime_ns)
{
	const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
	struct tm parts;
	char text[16];
	if (realtime_ns == 0 || !gmtime_r(&seconds, &parts) ||
	    !strftime(text, sizeof text, "%Y-%m-%d", &parts))
		return kUnknown;
	return text;
}

// Removes what a killed export of this host left.
void RemoveLeftOver(const fs::path &pending)
{
	std::error_code ec;
	const std::string host = "." + HostName() + ".";
	for (const auto &entry : fs::directory_iterator(pending, ec)) {
		const std::string name = entry.path().filename();
		const size_t at = name.find(host);
		const pid_t pid = at == std::string::npos ? 0 : atoi(name.c_str() + at + host.size());
		if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			fs::remove_all(entry.path(), ec);
	}
}

bool IsPartition(const std::string &name, const char *key)
{
	return name.starts_with(std::string(key) + "=");
}

} // namespace

std::string PartitionValue(const std::string &value)
{
	std::string text;
	for (unsigned char c : value) {
		char escaped[4];
		snprintf(escaped, sizeof escaped, "%%%02X", c);
		const bool plain = c > 0x20 && c < 0x7f && !strchr("\"#%'*/:=?\\{}[]^", c);
		text += plain ? std::string(1, static_cast<char>(c)) : escaped;
	}
	return text.empty() || text[0] == '.' ? kUnknown + text : text;
}

bool DataSet::Open(const std::string &path, std::vector<std::string> asked, std::string *error, int *status)
{
	std::error_code ec;
	*status = 3;
	path_ = path;
	if (!CheckTables(asked, error)) {
		*status = 2;
		return false;
	}
	const fs::path about = fs::path(path) / kAboutName;
	if (!fs::exists(about, ec)) {
		if (fs::exists(path, ec) && !fs::is_empty(path, ec)) {
			*error = path + " is not empty and not a forktail data set (no " + kAboutName + ")";
			return false;
		}
		fs::create_directories(path, ec);
		if (ec) {
			*error = "cannot create " + path + ": " + ec.message();
			return false;
		}
	}
	if (!UpdateAbout(about, asked, &tables_, error))
		return false;
	fs::create_directory(fs::path(path) / kPending, ec);
	RemoveLeftOver(fs::path(path) / kPending);
	return true;
}

DataSet::Added DataSet::Add(const std::string &run, const ExplainOptions &options, const ExportFormat &format,
			    std::string *error, int *status, std::vector<std::string> *warnings)
{
	std::error_code ec;
	*status = 3;
	// Reads only as much as identifies the run and its place, which is quick.
	const fs::path real = fs::canonical(run, ec);
	const std::string from = ec ? run : real.string(); // the tables have the path of the recordings
	Run about;
	{
		RunSource source;
		if (!source.Open(from, false, &about, error))
			return Added::kFailed;
	}
	const std::string id = RunId(about);
	const fs::path host = fs::path(path_) / ("date=" + DateOf(RealtimeNs(about, about.start_ns))) /
			      ("host=" + PartitionValue(ServerFile(about).host)),
		       to = host / ("run_id=" + id);
	if (fs::exists(to, ec)) {
		*status = 0;
		return Added::kThere;
	}
	fs::create_directories(host, ec);
	const std::string at =
	    fs::path(path_) / kPending / (id + "." + HostName() + "." + std::to_string(getpid()));
	if (ec) {
		*error = "cannot create " + host.string() + ": " + ec.message();
		return Added::kFailed;
	}
	if (!ExportRun(from, options, format, at, error, status, warnings))
		return Added::kFailed;
	if (rename(at.c_str(), to.c_str()) == 0) {
		SyncDirectory(host);
		*status = 0;
		return Added::kNew;
	}
	const int why = errno;
	fs::remove_all(at, ec);
	if (why == EEXIST || why == ENOTEMPTY) { // another process was first
		*status = 0;
		return Added::kThere;
	}
	*status = 3;
	*error = "cannot create " + to.string() + ": " + strerror(why);
	return Added::kFailed;
}

std::vector<std::string> DataSet::Strangers() const
{
	std::vector<std::string> found;
	std::error_code ec;
	auto foreign = [&](const fs::path &path) {
		found.push_back(path.string() + " is not part of the data set; ignored");
	};
	auto each = [&](const fs::path &in, const char *key, auto &&enter) {
		for (const auto &entry : fs::directory_iterator(in, ec)) {
			const std::string name = entry.path().filename();
			if (name[0] == '_' || name[0] == '.')
				continue; // names that readers ignore
			if (entry.is_directory(ec) && IsPartition(name, key))
				enter(entry.path());
			else
				foreign(entry.path());
		}
	};
	each(path_, "date", [&](const fs::path &date) {
		each(date, "host", [&](const fs::path &host) {
			each(host, "run_id", [&](const fs::path &run) {
				for (const std::string &table : tables_)
					if (!fs::exists(run / (table + ".parquet"), ec)) {
						found.push_back(run.string() + " is incomplete (no " + table +
								".parquet); ignored");
						break;
					}
			});
		});
	});
	return found;
}

namespace
{

const TableKind *FindTable(const std::string &name)
{
	for (const TableKind &kind : Tables())
		if (name == kind.name)
			return &kind;
	return nullptr;
}

std::string Joined(const std::vector<std::string> &names)
{
	std::string all;
	for (const std::string &n : names)
		all += (all.empty() ? "" : ",") + n;
	return all;
}

// Adds what is missing. Columns that a newer forktail added to a table stay.
void AddOurs(const std::vector<std::string> &tables, common::Json *about)
{
	for (const std::string &name : tables) {
		common::Json &columns = (*about)["tables"][name];
		const TableKind *kind = FindTable(name);
		if (!kind || (columns.is_array() && columns.size() >= kind->columns.size()))
			continue;
		columns = ColumnsJson(*kind);
	}
	for (const CauseInfo &info : kCauseTable)
		if (common::Json &cause = (*about)["causes"][info.name]; cause.is_null())
			cause = {{"family", FamilyName(info.family)},
				 {"light", info.light},
				 {"dark", info.dark},
				 {"meaning", info.meaning}};
}

bool Write(const std::string &path, const common::Json &about, std::string *error)
{
	const std::string at = path + "." + std::to_string(getpid());
	std::ofstream out(at);
	out << about.dump(1) << "\n";
	out.close();
	if (out.good() && rename(at.c_str(), path.c_str()) == 0)
		return true;
	*error = "cannot write " + path + ": " + strerror(errno);
	unlink(at.c_str());
	return false;
}

} // namespace

bool CheckTables(const std::vector<std::string> &tables, std::string *error)
{
	for (const std::string &name : tables)
		if (!FindTable(name)) {
			*error = "unknown table '" + name +
				 "'. docs/reference/exports-and-sql.md lists the tables";
			return false;
		}
	return true;
}

bool UpdateAbout(const std::string &path, const std::vector<std::string> &asked,
		 std::vector<std::string> *tables, std::string *error)
{
	std::vector<std::string> wanted = asked;
	if (!asked.empty() && std::find(asked.begin(), asked.end(), "runs") == asked.end())
		wanted.insert(wanted.begin(), "runs"); // it identifies the rows of all other tables
	common::Json about = {{"format", "forktail data set"}, {"schema", kTablesSchema}};
	if (std::ifstream in(path); in) {
		std::ostringstream text;
		text << in.rdbuf();
		about = common::ParseObject(text.str());
		if (common::Text(about, "format") != "forktail data set") {
			*error = path + " was not written by forktail";
			return false;
		}
		if (common::Whole(about, "schema") != kTablesSchema) {
			*error = path + ": the data set has schema " + common::AsText(about["schema"]) +
				 ", and this forktail writes " + std::to_string(kTablesSchema) +
				 ". Create another data set";
			return false;
		}
	}
	const common::Json before = about;
	std::vector<std::string> has;
	if (const common::Json *there = common::Member(about, "tables"); there && there->is_object())
		for (const auto &[name, columns] : there->items())
			has.push_back(name);
	std::sort(wanted.begin(), wanted.end());
	wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
	if (!has.empty() && !wanted.empty() && has != wanted) {
		*error = "the data set has the tables " + Joined(has) + ", not " + Joined(wanted) +
			 ". Omit --tables, or create another data set";
		return false;
	}
	*tables = !has.empty() ? has : wanted;
	if (tables->empty())
		for (const TableKind &kind : Tables())
			tables->push_back(kind.name);
	AddOurs(*tables, &about);
	return about == before || Write(path, about, error);
}

} // namespace forktail::analysis::exports

// SPDX-License-Identifier: MIT
// See data_set.h.
#include "data_set.h"

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
#include <unistd.h>

#include "about.h"
#include "analysis/exports/tables/tables.h"
#include "analysis/run/run.h"
#include "analysis/source/source.h"

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

} // namespace forktail::analysis::exports

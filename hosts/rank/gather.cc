// SPDX-License-Identifier: MIT
// See gather.h. Messages between rank 0 and another rank: "HOST" / "gather RUN\nPLAN" / "none", "moved" or
// "sends NAME", then pieces up to an empty one, for each file, and "through", or "broken" where one could not
// be read / "kept" or "failed". A host's files are removed there once they are on disk here, and not before.
#include "gather.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts/host_run.h"
#include "hosts/rank_protocol.h"
#include "recording/recording.h"
#include "talk.h"

namespace forktail::hosts
{
namespace
{

namespace fs = std::filesystem;

constexpr double kGatherPatience = 120;
constexpr size_t kPieceBytes = 1 << 20;
constexpr int kGentleSeconds = 20, kHardSeconds = 5;

std::string MarkerOf(const std::string &run, const std::string &token)
{
	return run + "/.forktail-hosts-" + token;
}

int Left(const std::string &host, const std::string &why)
{
	Told told = Tell("left", host);
	told["why"] = why;
	Send(told);
	return 3;
}

// Sends SIGKILL to every process of the run: those that have this file open.
void KillHolders(const std::string &lock)
{
	std::error_code ec;
	const fs::path path = fs::canonical(lock, ec);
	for (const auto &process : fs::directory_iterator("/proc", ec)) {
		const int pid = atoi(process.path().filename().c_str());
		if (pid <= 0 || pid == getpid())
			continue;
		for (const auto &fd : fs::directory_iterator(process.path() / "fd", ec))
			if (fs::read_symlink(fd.path(), ec) == path)
				kill(pid, SIGKILL);
	}
}

// Waits until all programs of the run have closed their recordings and released the lock.
void AwaitPrograms(const std::string &directory)
{
	const std::string path = directory + "/" + kLockFile;
	const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
	auto wait = [&](int seconds) {
		for (int i = 0; i < seconds * 20; i++) {
			if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
				return true;
			usleep(50000);
		}
		return false;
	};
	if (!wait(kGentleSeconds)) {
		KillHolders(path);
		wait(kHardSeconds);
	}
	unlink(path.c_str());
	if (fd >= 0)
		close(fd);
}

// True if rank 0's directory is on this file system, so that files can be renamed.
bool SameFileSystem(const std::string &run, const std::string &token, const std::string &directory)
{
	struct stat there, here;
	std::string said;
	std::ifstream(MarkerOf(run, token)) >> said;
	return said == token && stat(run.c_str(), &there) == 0 && stat(directory.c_str(), &here) == 0 &&
	       there.st_dev == here.st_dev;
}

bool MoveFiles(const std::string &directory, const std::string &to)
{
	std::error_code ec;
	for (const auto &file : fs::directory_iterator(directory, ec))
		if (rename(file.path().c_str(), (to + "/" + file.path().filename().string()).c_str()) != 0)
			return false;
	return !ec;
}

// False: the file could not be read completely, and that is reported.
bool SendFile(const fs::path &path, const std::string &host)
{
	std::vector<char> bytes;
	const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;
	int why = errno;
	SendText(0, "sends " + path.filename().string());
	while (n > 0) {
		bytes.resize(kPieceBytes);
		n = fd < 0 ? -1 : read(fd, bytes.data(), bytes.size());
		if (n < 0 && fd >= 0)
			why = errno;
		bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
		SendPiece(0, bytes);
	}
	if (fd >= 0)
		close(fd);
	if (n < 0)
		Left(host, "cannot read " + path.string() + ": " + strerror(why));
	return n == 0;
}

// Receives all pieces of one file, even if they cannot be written (or `path` is ""). The file appears when it
// is complete.
bool TakeFile(int from, const std::string &path)
{
	std::vector<char> bytes;
	const std::string part = path.empty() ? "" : path + ".part";
	FILE *file = fopen(part.c_str(), "w");
	int why = file ? 0 : errno;
	do {
		ReceivePiece(from, &bytes);
		if (!why && fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
			why = errno;
	} while (!bytes.empty());
	if (!why && (fflush(file) != 0 || fsync(fileno(file)) != 0))
		why = errno;
	if (file && fclose(file) != 0 && !why)
		why = errno;
	if (!why && rename(part.c_str(), path.c_str()) != 0)
		why = errno;
	if (why && file)
		unlink(part.c_str());
	errno = why;
	return why == 0;
}

// True if the name cannot leave the directory.
bool IsFileName(const std::string &name)
{
	return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

// Receives the files of one host. False: the remaining files are reported.
bool TakeHost(int from, const PlanHost &host, const std::string &directory)
{
	std::string text;
	bool good = true, some = false, whole = true;
	int why = 0;
	while (ReceiveText(from, kGatherPatience, &text)) {
		if (text == "none")
			return true;
		if (text == "moved" || text == "through" || text == "broken") {
			some = true;
			whole = text != "broken";
			break;
		}
		const std::string name = text.rfind("sends ", 0) == 0 ? text.substr(6) : "";
		const std::string path = directory + "/" + name;
		if (TakeFile(from, IsFileName(name) ? path : ""))
			continue;
		good = false;
		why = errno;
	}
	SendText(from, good && some && whole ? "kept" : "failed");
	if (!good)
		Left(host.name, "cannot write to " + directory + ": " + strerror(why));
	return good && some && whole;
}

} // namespace

int Gather(const std::string &plan_path, const std::string &token, const std::string &run, int ranks)
{
	std::ifstream in(plan_path);
	std::stringstream text;
	text << in.rdbuf();
	Plan plan;
	std::string error, host;
	int status = ParsePlan(text.str(), plan_path, &plan, &error) ? 0 : 3;
	std::ofstream(MarkerOf(run, token)) << token << '\n';
	for (int i = 1; i < ranks; i++) {
		const PlanHost *known =
		    ReceiveText(i, kGatherPatience, &host) ? FindHost(plan, host) : nullptr;
		std::error_code ec;
		const std::string directory = run + "/hosts/" + host;
		if (known)
			fs::create_directories(directory, ec);
		SendText(i, "gather " + run + "\n" + text.str());
		if (!known || !TakeHost(i, *known, directory))
			status = 3;
	}
	unlink(MarkerOf(run, token).c_str());
	EndTalk();
	return status;
}

int HandOver(const std::string &token, const std::string &host)
{
	std::string text, error, answer;
	Plan plan;
	SendText(0, host);
	if (!ReceiveText(0, kGatherPatience, &text) || text.rfind("gather ", 0) != 0)
		return 3;
	const size_t line = text.find('\n');
	const std::string run = text.substr(7, line - 7);
	ParsePlan(text.substr(line + 1), "the plan", &plan, &error);
	const std::string directory = DirectoryOf(plan, token, host);
	struct stat here;
	// Not a link of another user.
	if (lstat(directory.c_str(), &here) != 0 || !S_ISDIR(here.st_mode) || here.st_uid != geteuid()) {
		SendText(0, "none");
		Send(Tell("kept", host)); // nothing to send
		EndTalk();
		return 0;
	}
	AwaitPrograms(directory);
	std::error_code ec;
	if (SameFileSystem(run, token, directory) && MoveFiles(directory, run + "/hosts/" + host)) {
		SendText(0, "moved");
	} else {
		bool whole = true;
		for (const auto &file : fs::directory_iterator(directory, ec))
			whole = SendFile(file.path(), host) && whole;
		SendText(0, whole && !ec ? "through" : "broken");
	}
	const bool kept = ReceiveText(0, kGatherPatience, &answer) && answer == "kept";
	if (kept)
		fs::remove_all(directory, ec);
	else
		Left(host, "its files are still in " + directory + " on that host");
	Send(Tell(kept ? "kept" : "left", host));
	EndTalk();
	return kept ? 0 : 3;
}

} // namespace forktail::hosts

// SPDX-License-Identifier: MIT
// Files that are complete or absent, and files that may be anything.
#include "common/files.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "common/interrupted.h"
#include "common/text.h"

namespace fs = std::filesystem;
namespace forktail::common
{

namespace
{

// Syncs a file's bytes, or a directory's names, to disk. Files that cannot be synced (a pipe) count as
// synced.
bool Sync(const std::string &path)
{
	int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	int rc = fsync(fd), why = errno;
	close(fd);
	errno = why;
	return rc == 0 || why == EINVAL || why == EROFS;
}

// Gives a file or directory, and the files in it, this mode as far as the umask allows.
bool Share(const std::string &path, bool directory, mode_t mode)
{
	const mode_t mask = umask(022);
	umask(mask);
	const mode_t files = (mode | 0600) & 0666 & ~mask;
	std::error_code ec;
	if (!directory)
		return chmod(path.c_str(), files) == 0;
	for (const auto &entry : fs::directory_iterator(path, ec))
		if (chmod(entry.path().c_str(), files))
			return false;
	return chmod(path.c_str(), files | (files >> 2 & 0111)) == 0;
}

// Temporary names in use.
std::mutex pending_lock;
std::set<std::string> pending;

void AddPending(const std::string &at)
{
	const std::lock_guard<std::mutex> lock(pending_lock);
	pending.insert(at);
}

void ForgetPending(const std::string &at)
{
	const std::lock_guard<std::mutex> lock(pending_lock);
	pending.erase(at);
}

// Waits for a signal. What another thread still writes into a directory may need a second try.
void EndBySignal(sigset_t signals)
{
	int number = 0;
	if (sigwait(&signals, &number))
		return;
	const std::lock_guard<std::mutex> lock(pending_lock);
	std::error_code ec;
	for (const std::string &at : pending)
		for (int tries = 0; tries < 10 && fs::exists(at, ec); tries++)
			fs::remove_all(at, ec);
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
	kill(getpid(), number);
	pause();
}

} // namespace

void RemovePendingOnSignals()
{
	sigset_t signals;
	sigemptyset(&signals);
	for (const int number : {SIGINT, SIGTERM, SIGHUP})
		if (struct sigaction now; sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&signals, number);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr);
	std::thread(EndBySignal, signals).detach();
}

Pending::~Pending()
{
	std::error_code ec;
	if (!committed_ && at_ != path_)
		fs::remove_all(at_, ec);
	ForgetPending(at_);
}

bool Pending::Begin(const std::string &path, Kind kind, std::string *error)
{
	std::error_code ec;
	path_ = path;
	while (path_.size() > 1 && path_.back() == '/')
		path_.pop_back();
	kind_ = kind;
	const fs::file_type there = fs::symlink_status(path_, ec).type();
	const bool nothing = there == fs::file_type::not_found;
	if (kind == kFile && (fs::is_directory(path_, ec) || (nothing && path.back() == '/'))) {
		*error = path + " is a directory, not a file";
		return false;
	}
	if (kind == kDirectory && !nothing && !(fs::is_directory(path_, ec) && fs::is_empty(path_, ec))) {
		*error = path + " already exists and is not an empty directory";
		return false;
	}
	if (const int refused = output_check(path_.c_str())) {
		*error = "cannot write " + path_ + ": " + output_why(-refused);
		return false;
	}
	at_ = path_;
	if ((kind == kDirectory || nothing || there == fs::file_type::regular) && !MakeTemporary()) {
		*error = "cannot write " + path_ + ": " + strerror(errno);
		return false;
	}
	committed_ = false;
	return true;
}

bool Pending::MakeTemporary()
{
	at_ += std::string(kUnfinished) + "XXXXXX";
	if (kind_ == kDirectory && !mkdtemp(at_.data()))
		return false;
	if (kind_ != kDirectory) {
		const int fd = mkostemp(at_.data(), O_CLOEXEC);
		if (fd < 0 || close(fd))
			return false;
	}
	AddPending(at_);
	return true;
}

bool Pending::Commit(std::string *error, mode_t mode)
{
	std::error_code ec;
	if (at_ == path_) {
		committed_ = true;
		return true;
	}
	bool ok = true;
	if (kind_ == kDirectory)
		for (const auto &entry : fs::directory_iterator(at_, ec))
			ok = ok && Sync(entry.path());
	ok = ok && Share(at_, kind_ == kDirectory, mode);
	if (ok && Sync(at_)) {
		// A signal removes all of it or nothing.
		const std::lock_guard<std::mutex> lock(pending_lock);
		committed_ = rename(at_.c_str(), path_.c_str()) == 0;
		if (committed_)
			pending.erase(at_);
	}
	if (!committed_) {
		*error = "cannot write " + path_ + ": " + strerror(errno);
		return false;
	}
	return true;
}

bool ReadRegular(const std::string &path, size_t most, std::string *text)
{
	constexpr size_t piece = 1 << 16;
	struct stat st;
	text->clear();
	const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	int why = fstat(fd, &st) ? errno : !S_ISREG(st.st_mode) ? EINVAL : 0;
	for (ssize_t n = 1; !why && n > 0;) {
		const size_t at = text->size();
		text->resize(at + piece);
		n = read(fd, text->data() + at, piece);
		why = n < 0 ? errno : at + static_cast<size_t>(n) > most ? EFBIG : 0;
		text->resize(at + static_cast<size_t>(n > 0 ? n : 0));
	}
	close(fd);
	errno = why;
	return !why;
}

} // namespace forktail::common

// SPDX-License-Identifier: MIT
// See pending.h.
#include "pending.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace fs = std::filesystem;

namespace forktail::analysis::exports
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

} // namespace

Pending::~Pending()
{
	std::error_code ec;
	if (!committed_ && at_ != path_)
		fs::remove_all(at_, ec);
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
	at_ = kind == kFile && !nothing && there != fs::file_type::regular ? path_ : path_ + ".part";
	if (at_ != path_)
		fs::remove_all(at_, ec); // left by an export that was killed
	if (kind == kDirectory && !fs::create_directory(at_, ec)) {
		*error = "cannot create " + at_ + ": " + ec.message();
		return false;
	}
	committed_ = false;
	return true;
}

bool Pending::Commit(std::string *error)
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
	if (!ok || !Sync(at_) || rename(at_.c_str(), path_.c_str())) {
		*error = "cannot write " + path_ + ": " + strerror(errno);
		return false;
	}
	committed_ = true;
	return true;
}

} // namespace forktail::analysis::exports

// SPDX-License-Identifier: MIT
// The hidden file is in the same directory, because a rename is atomic only within a file system.
#include "files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace forktail::lab
{
namespace
{

const char kUnfinished[] = ".tmp";

} // namespace

std::string ReadFile(const std::string &path)
{
	std::ifstream in(path);
	return {std::istreambuf_iterator<char>(in), {}};
}

bool ReplaceFile(const std::string &path, const std::string &text, std::string *error)
{
	std::filesystem::path file(path);
	std::string unfinished = file.parent_path() / ("." + file.filename().string() + kUnfinished);
	unlink(unfinished.c_str());
	// New: results may be in anybody's directory, who may have put a link there.
	const int fd = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *out = fd < 0 ? nullptr : fdopen(fd, "w");
	const bool written = out && fwrite(text.data(), 1, text.size(), out) == text.size();
	if (out && fclose(out) == 0 && written && rename(unfinished.c_str(), path.c_str()) == 0)
		return true;
	*error = "cannot write " + path + ": " + std::strerror(errno);
	unlink(unfinished.c_str());
	return false;
}

bool HoldsNothing(const std::string &directory)
{
	std::error_code ec;
	for (std::filesystem::recursive_directory_iterator at(directory, ec), end; at != end;
	     at.increment(ec)) {
		const std::string name = at->path().filename();
		if (!at->is_directory(ec) && !(name.starts_with(".") && name.ends_with(kUnfinished)))
			return false;
	}
	return !ec;
}

} // namespace forktail::lab

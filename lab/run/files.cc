// SPDX-License-Identifier: MIT
// The hidden name lies in the same directory, since a rename is whole only within a file system.
#include "files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
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
	std::ofstream out(unfinished, std::ios::binary);
	out << text;
	out.close();
	if (out && rename(unfinished.c_str(), path.c_str()) == 0)
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

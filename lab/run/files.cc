// SPDX-License-Identifier: MIT
// See files.h.
#include "files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/files.h"

namespace forktail::lab
{
std::string ReadFile(const std::string &path)
{
	std::ifstream in(path);
	return {std::istreambuf_iterator<char>(in), {}};
}

bool ReplaceFile(const std::string &path, const std::string &text, std::string *error)
{
	common::Pending file;
	if (!file.Begin(path, common::Pending::kFile, error))
		return false;
	std::ofstream out(file.at(), std::ios::binary);
	out << text;
	out.close();
	if (out)
		return file.Commit(error);
	*error = "cannot write " + path + ": " + std::strerror(errno);
	return false;
}

bool HoldsNothing(const std::string &directory)
{
	std::error_code ec;
	for (std::filesystem::recursive_directory_iterator at(directory, ec), end; at != end;
	     at.increment(ec)) {
		const std::string name = at->path().filename();
		if (!at->is_directory(ec) && name.find(common::Pending::kUnfinished) == std::string::npos)
			return false;
	}
	return !ec;
}

} // namespace forktail::lab

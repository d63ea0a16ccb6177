// SPDX-License-Identifier: MIT
// The hidden name lies in the same directory, since a rename is whole only within a file system.
#include "files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace forktail
{

bool ReplaceFile(const std::string &path, const std::string &text, std::string *error)
{
	std::filesystem::path file(path);
	std::string unfinished = file.parent_path() / ("." + file.filename().string() + ".tmp");
	std::ofstream out(unfinished, std::ios::binary);
	out << text;
	out.close();
	if (out && rename(unfinished.c_str(), path.c_str()) == 0)
		return true;
	*error = "can't write " + path + ": " + std::strerror(errno);
	unlink(unfinished.c_str());
	return false;
}

} // namespace forktail

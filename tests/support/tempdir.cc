// SPDX-License-Identifier: MIT
// Temporary directories. See tempdir.h.
#include "tests/support/tempdir.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <system_error>
#include <unistd.h>

namespace forktail::test
{

TempDir::TempDir()
{
	const char *base = std::getenv("TMPDIR");
	// Unix socket paths are limited to 107 bytes, so the name is short.
	path_ = std::string(base && *base ? base : "/tmp") + "/ft-XXXXXX";
	if (!mkdtemp(path_.data()))
		throw std::system_error(errno, std::generic_category(), "cannot create " + path_);
}

TempDir::~TempDir()
{
	std::error_code ignored;
	std::filesystem::remove_all(path_, ignored);
}

bool on_a_disk(const std::string &path)
{
	struct stat s;
	return stat(path.c_str(), &s) == 0 && major(s.st_dev) != 0;
}

std::string read_file(const std::string &path)
{
	std::ifstream in(path, std::ios::binary);
	return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string &path, const std::string &bytes)
{
	// A new file instead of truncating the old one, because ext4 flushes truncated files when they are
	// closed.
	unlink(path.c_str());
	std::ofstream out(path, std::ios::binary | std::ios::trunc);
	if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
		throw std::runtime_error("cannot write " + path);
}

} // namespace forktail::test

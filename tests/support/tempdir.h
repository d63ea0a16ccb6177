// SPDX-License-Identifier: MIT
// A directory of a test's own under TMPDIR or /tmp, removed with all its contents when the test leaves it.
#pragma once
#include <string>

namespace forktail::test
{

class TempDir
{
public:
	TempDir();
	~TempDir();
	TempDir(const TempDir &) = delete;
	TempDir &operator=(const TempDir &) = delete;

	const std::string &path() const { return path_; }
	std::string file(const std::string &name) const { return path_ + "/" + name; }

private:
	std::string path_;
};

// Whether a directory is on a block device: on a tmpfs nobody waits for a disk.
bool on_a_disk(const std::string &path);

// Whole files as bytes; read_file() of a file that is not there is empty; write_file() replaces it, or
// throws.
std::string read_file(const std::string &path);
void write_file(const std::string &path, const std::string &bytes);

} // namespace forktail::test

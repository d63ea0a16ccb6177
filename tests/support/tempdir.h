// SPDX-License-Identifier: MIT
// A test's own directory under TMPDIR or /tmp, removed with its contents when the test leaves it.
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

// Whether a directory is on a block device: nothing waits for a disk on a tmpfs.
bool on_a_disk(const std::string &path);

// Whole files as bytes. read_file() of a missing file is empty. write_file() replaces the file, or throws.
std::string read_file(const std::string &path);
void write_file(const std::string &path, const std::string &bytes);

} // namespace forktail::test

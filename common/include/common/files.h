// SPDX-License-Identifier: MIT
// Output that is complete or absent, and input that may be a stranger's.
#pragma once

#include <cstddef>
#include <string>
#include <sys/types.h>

namespace forktail::common
{

// A file or directory that is written under a temporary name until it is complete, so that the requested name
// never has incomplete output. The name is new and cannot be guessed, because the output's directory may be
// anybody's.

class Pending
{
public:
	enum Kind { kFile, kDirectory };
	// What a temporary name has behind the requested one. A killed program leaves it behind.
	static constexpr char kUnfinished[] = ".part-";
	Pending() = default;
	// Removes what was written, unless Commit() returned true.
	~Pending();
	Pending(const Pending &) = delete;
	Pending &operator=(const Pending &) = delete;

	// Makes an empty file or directory under a temporary name, for its owner only. A file replaces an
	// existing file; a directory replaces only an empty one. False: *error is one sentence for the user.
	bool Begin(const std::string &path, Kind kind, std::string *error);
	// Where to write. What is not a regular file (a pipe, /dev/stdout) cannot be replaced and is written
	// directly.
	const std::string &at() const { return at_; }
	// Lets others read and write it as far as `mode` (0666: as any new file) and the umask allow, and
	// renames it to its path. False: *error is one sentence.
	bool Commit(std::string *error, mode_t mode = 0666);

private:
	bool MakeTemporary(); // false: see errno

	std::string path_, at_;
	Kind kind_ = kFile;
	bool committed_ = true;
};

// Reads files that may come from a stranger: a run directory that was unpacked can have a FIFO, a device or a
// file without end in place of any file.

// Reads a whole regular file of at most `most` bytes, without blocking. False: it is absent, something else,
// or larger; errno says which (EFBIG: larger; EINVAL: no regular file).
bool ReadRegular(const std::string &path, size_t most, std::string *text);

} // namespace forktail::common

// SPDX-License-Identifier: MIT
// A file or directory that is written under a temporary name until it is complete, so that the requested name
// never has incomplete output.
#pragma once

#include <string>

namespace forktail::analysis::exports
{

class Pending
{
public:
	enum Kind { kFile, kDirectory };
	Pending() = default;
	// Removes what was written, unless Commit() returned true.
	~Pending();
	Pending(const Pending &) = delete;
	Pending &operator=(const Pending &) = delete;

	// Chooses a temporary name for `path`. A file replaces an existing file; a directory replaces only an
	// empty one. False: *error is one sentence for the user.
	bool Begin(const std::string &path, Kind kind, std::string *error);
	// Where to write: a file that does not exist yet, or an empty directory. What is not a regular file
	// (a pipe, /dev/stdout) cannot be replaced and is written directly.
	const std::string &at() const { return at_; }
	// Renames it to its path. False: *error is one sentence.
	bool Commit(std::string *error);

private:
	std::string path_, at_;
	Kind kind_ = kFile;
	bool committed_ = true;
};

} // namespace forktail::analysis::exports

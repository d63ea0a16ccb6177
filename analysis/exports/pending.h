// SPDX-License-Identifier: MIT
// A file or a directory that is written under another name until it is whole, so that nothing half is ever
// found under the name that was asked for.
#pragma once

#include <string>

namespace forktail::analysis::exports
{

class Pending
{
public:
	enum Kind { kFile, kDirectory };
	Pending() = default;
	// Goes with what was written, unless Commit() was true.
	~Pending();
	Pending(const Pending &) = delete;
	Pending &operator=(const Pending &) = delete;

	// Finds a name for what is to become `path`. A file takes the place of one that is there; a directory
	// of an empty one only. False: *error is one sentence for the user.
	bool Begin(const std::string &path, Kind kind, std::string *error);
	// Where to write meanwhile: a file that is not there yet, or a directory that is. What is no file (a
	// pipe, /dev/stdout) can't be replaced, and is itself.
	const std::string &at() const { return at_; }
	// Puts it in its place. False: *error is one sentence.
	bool Commit(std::string *error);

private:
	std::string path_, at_;
	Kind kind_ = kFile;
	bool committed_ = true;
};

} // namespace forktail::analysis::exports

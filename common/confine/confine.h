// SPDX-License-Identifier: MIT
// What a program that reads strangers' recordings may still do. Every recording is untrusted input; if one
// takes over the program, it can neither start another program nor send anything elsewhere nor change files
// but outputs.
//
// System calls are limited by an allow-list (seccomp). Others fail with ENOSYS, for which the C library has
// substitutes. Writing is limited to some directories (Landlock, Linux 5.19). Reading is not limited.
#pragma once

#include <string>
#include <vector>

namespace forktail::common
{

struct Allowed {
	// Directories in which files may be created, written, renamed and deleted. Those that do not exist
	// are skipped. /dev/null may be written to, and so may what is open already.
	std::vector<std::string> writable;
	bool children = false; // fork, but not exec. Children have the same limits
	bool sockets = false;  // Unix and IP sockets
};

// Limits this thread and those that it starts, for good; call it while there is one. A kernel without
// Landlock still limits the calls. False: *error is one sentence.
bool Confine(const Allowed &allowed, std::string *error);

// The directory in which a file of this name is written, behind links: for Allowed::writable.
std::string DirectoryOfOutput(const std::string &path);

} // namespace forktail::common

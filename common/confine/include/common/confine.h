// SPDX-License-Identifier: MIT
// What a program that reads strangers' recordings may still do. Every recording is untrusted input; if one
// takes over the program, it can start no other program and change no files but its outputs, and without
// `sockets` send nothing.
//
// System calls are limited by an allow-list (seccomp). Others fail with ENOSYS, as on a kernel that does not
// have them. Writing is limited to some directories (Landlock, Linux 5.19). Reading is not limited.
#pragma once

#include <string>
#include <vector>

namespace forktail::common
{

struct Allowed {
	// Directories below which files may be created, written, renamed and deleted, and files that may be
	// written. Those that do not exist are left out. /dev/null may be written to, and so may what is open
	// already.
	std::vector<std::string> writable = {};
	std::vector<std::string> removable =
	    {};		       // directories below which files may be deleted, and nothing else
	bool children = false; // fork, but not exec. Children have the same limits
	bool sockets = false;  // Unix and IP sockets
};

// Limits this thread and those that it starts, for good; call it while there is one. A kernel without
// Landlock still limits the calls. False: *error is one sentence.
bool Confine(const Allowed &allowed, std::string *error);

// For Allowed::writable: the directory in which a file of this name is written, behind links; a terminal
// itself; "" for a pipe or socket, which may be written to in any case.
std::string PlaceOfOutput(const std::string &path);

} // namespace forktail::common

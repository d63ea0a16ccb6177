// SPDX-License-Identifier: MIT
// What a child does between fork and exec: only async-signal-safe calls, so everything that allocates memory is
// prepared before the fork.
#pragma once

#include <sched.h>
#include <string>
#include <sys/types.h>
#include <vector>

#include "command.h"

namespace forktail::common
{

// A command in the form the child needs. It points into the command.
struct Becoming {
	const Command *command = nullptr;
	std::vector<std::string> variables;
	std::vector<char *> argv, environment;
	std::string cgroup_procs; // "": the parent's cgroup
	cpu_set_t cpus;
	pid_t parent = -1;
	int in = -1, out = -1, err = -1; // the child's ends; negative: /dev/null
	int report = -1;		 // where it writes a Failure; exec closes it
};

// What a child could not do, and why.
struct Failure {
	enum Step { kNone, kCgroup, kCpus, kProgram } step = kNone;
	int number = 0; // errno
};

// False: the command is not usable, *error is one sentence.
bool Prepare(const Command &command, Becoming *becoming, std::string *error);
// In the child. On failure, writes a Failure to `report` and exits with kNotStarted.
[[noreturn]] void Become(const Becoming &becoming);

} // namespace forktail::common

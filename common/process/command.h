// SPDX-License-Identifier: MIT
// A command as its caller writes it: a program or a function, its descriptors, and its limits.
#pragma once

#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace forktail::common
{

// For Command::in, out and err.
constexpr int kNull = -1; // /dev/null
constexpr int kPipe = -2; // a pipe; the Child has its other end

// The exit status of a child that could not run its program.
constexpr int kNotStarted = 127;

enum class Group {
	kOurs,	 // it gets what the terminal sends us
	kOwn,	 // a process group: Ctrl-C reaches only us, who end children in their order
	kSession // a session: it has no terminal, and is a group of its own to the scheduler too
};

// What is started, and within which limits.
struct Command {
	std::string name = {};		    // for messages: "redis-server"
	std::vector<std::string> argv = {}; // argv[0]: a path, or a name that is looked up in PATH
	// Runs in a fork of this program instead of argv. What it returns goes to `out` (at most 4096 bytes);
	// the exit status is 0 if that was written, else 1.
	std::function<std::string()> work = {};
	std::vector<std::pair<std::string, std::string>> environment = {}; // in addition to ours, or instead
	std::string directory = {};					   // to start in; "": ours
	// Descriptors of ours (0, 1 and 2 too), kNull or kPipe. 1 for `err` is where its own output goes.
	int in = kNull, out = 1, err = kPipe;
	std::string output = {};     // a file that is its standard output instead of `out`
	int output_flags = O_APPEND; // to open that with, in addition to O_CREAT
	int kept = -1;		     // one more descriptor of ours, under the same number
	Group group = Group::kOwn;
	bool group_ends = false; // when it ends, all that is left of its group is killed; not for kOurs
	int death_signal = 9;	 // SIGKILL; what it gets when this thread ends
	// Limits hold before the program's first instruction.
	std::string cgroup = {};   // directory of the cgroup to enter; "": ours
	std::string cpus = {};	   // where it may run, as taskset has it ("0-1,3"); "": where we may
	uint64_t memory_bytes = 0; // of its data (RLIMIT_DATA); 0: unlimited
	uint64_t limit_ns = 0;	   // HasEnded kills it when it has run for longer; 0: unlimited
	bool idle = false;	   // it gets only the CPU and disk time that nobody else wants
};

} // namespace forktail::common

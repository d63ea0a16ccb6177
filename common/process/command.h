// SPDX-License-Identifier: MIT
// A command: a program or a function, its descriptors, and its limits.
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
constexpr int kPipe = -2; // a pipe; the Child has the other end

// The exit status of a child that could not run its program.
constexpr int kNotStarted = 127;

enum class Group {
	kOurs,	 // it receives the signals of our terminal
	kOwn,	 // a process group: Ctrl-C reaches only us, and we end children in our order
	kSession // a session: without a terminal, and a separate scheduling group
};

// What is started, and its limits.
struct Command {
	std::string name = {};		    // for messages: "redis-server"
	std::vector<std::string> argv = {}; // argv[0]: a path, or a name that is looked up in PATH
	// Runs in a fork of this program instead of argv. Its return value goes to `out` (at most 4096
	// bytes); the exit status is 0 if that was written, else 1.
	std::function<std::string()> work = {};
	std::vector<std::pair<std::string, std::string>> environment = {}; // added to ours, or replacing ours
	std::string directory = {};					   // working directory; "": ours
	// Descriptors of ours (0, 1 and 2 too), kNull or kPipe. 1 for `err`: the same as its `out`.
	int in = kNull, out = 1, err = kPipe;
	std::string output = {};     // a file used as standard output instead of `out`
	int output_flags = O_APPEND; // flags for opening it, in addition to O_CREAT
	int kept = -1;		     // one more descriptor of ours, with the same number
	Group group = Group::kOwn;
	bool group_ends = false; // kills the rest of its group when it ends; not for kOurs
	int death_signal = 9;	 // the signal it receives when this thread ends, e.g. SIGKILL
	// Limits apply before the program's first instruction.
	std::string cgroup = {};   // directory of the cgroup to enter; "": ours
	std::string cpus = {};	   // where it may run, in taskset's format ("0-1,3"); "": where we may
	uint64_t memory_bytes = 0; // of its data (RLIMIT_DATA); 0: unlimited
	uint64_t limit_ns = 0;	   // HasEnded kills it after this run time; 0: unlimited
	bool idle = false;	   // it gets only CPU and disk time that no other process wants
	bool oom_victim = false;   // the kernel kills it first if memory runs out
};

} // namespace forktail::common

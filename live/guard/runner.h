// SPDX-License-Identifier: MIT
// Starts the guard's programs: explanations of snapshots, and the commands of triggers. Commands may be any
// program, so they cannot have the guard's limits (common/confine/), which children inherit. A separate
// process ("forktail-run") starts them instead. It is forked before the guard reads anything of the ring, and
// takes from the guard only the names of a snapshot and of a trigger: a guard that a recording took over
// starts nothing else.
#pragma once

#include <string>
#include <sys/types.h>

#include "common/process/child.h"
#include "options.h"

namespace forktail::live::guard
{

class Runner
{
public:
	Runner() = default;
	~Runner(); // ends the program, and waits for that
	Runner(const Runner &) = delete;
	Runner &operator=(const Runner &) = delete;

	// Forks the process. `config` is in effect until the file of `options` has another valid one;
	// `snapshots` is their directory. False: *error is one sentence.
	bool Begin(const GuardOptions &options, const Config &config, const std::string &snapshots,
		   std::string *error);
	// Explains a snapshot, by its name, into kExplanations in it; not while a program runs. False: *error
	// is one sentence. `limit_ns` is for program(): the process takes the limits from its own reading of
	// the configuration.
	bool Explain(const std::string &snapshot, uint64_t limit_ns, std::string *error);
	// Runs the trigger's command for it; `name` is for program().
	bool RunCommand(const std::string &snapshot, const std::string &trigger, const std::string &name,
			uint64_t limit_ns, std::string *error);
	// True, once: the program has ended, or could not be started.
	bool HasEnded();
	// What runs or ran last: its name and time limit, and how it ended.
	const common::Child &program() const { return program_; }
	bool running() const { return running_; }
	bool gone() const { return gone_; } // the process has ended, and can start no more
	int fd() const { return fd_; }	    // readable when HasEnded() is to be asked

private:
	bool Start(const std::string &snapshot, const std::string &trigger, const common::Command &about,
		   std::string *error);

	int fd_ = -1;
	pid_t pid_ = -1;
	bool running_ = false, gone_ = false;
	common::Child program_;
};

// Files of an explanation in its snapshot. Their names start with a dot until they are complete.
inline constexpr const char *kExplanations[] = {"explain.txt", "explain.json"};

} // namespace forktail::live::guard

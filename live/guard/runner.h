// SPDX-License-Identifier: MIT
// Starts the guard's programs: explanations, and the commands of triggers. They may be any program, so they
// cannot have the guard's limits (common/confine/), which children inherit. A separate process
// ("forktail-run") starts them instead; it is forked before the guard limits itself, and reads nothing but
// the guard's packets.
#pragma once

#include <string>
#include <sys/types.h>

#include "common/process/child.h"

namespace forktail::live::guard
{

class Runner
{
public:
	Runner() = default;
	~Runner(); // ends the program, and waits for that
	Runner(const Runner &) = delete;
	Runner &operator=(const Runner &) = delete;

	// Forks the process. False: *error is one sentence.
	bool Begin(std::string *error);
	// Starts a program; not while one runs. Of the command it uses argv, environment, directory, output
	// and the limits; its standard error is ours. False: *error is one sentence.
	bool Start(const common::Command &command, std::string *error);
	// True, once: the program has ended, or could not be started.
	bool HasEnded();
	// What runs or ran last: its command, and how it ended.
	const common::Child &program() const { return program_; }
	bool running() const { return running_; }
	bool gone() const { return gone_; } // the process has ended, and can start no more
	int fd() const { return fd_; }	    // readable when HasEnded() is to be asked

private:
	int fd_ = -1;
	pid_t pid_ = -1;
	bool running_ = false, gone_ = false;
	common::Child program_;
};

} // namespace forktail::live::guard

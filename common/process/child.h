// SPDX-License-Identifier: MIT
// Child processes: starting, limiting, reading and ending them. The guard, runs on several hosts and the lab
// supervise their programs with this.
//
// A child ends with its parent, however the parent ends: the kernel sends it `death_signal` then.
// No function here blocks except those that say "waits".
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "command.h"

namespace forktail::common
{

// Lines of a pipe or file whose descriptor does not block. '\r' also ends a line; empty lines are skipped,
// and lines over 64 KiB are split.
struct Lines {
	int fd = -1; // -1 at its end
	std::string part;
	// The complete lines so far. At the end it is closed, and a line without a line end counts. `last`:
	// treat as if it were at its end.
	std::vector<std::string> Read(bool last = false);
	void Close();
};

struct Child {
	Command command; // what it was started with
	pid_t pid = -1;
	int pidfd = -1; // readable when it has ended; -1 once it is reaped
	int in = -1;	// we write its standard input, if that is a pipe
	int report = -1;
	Lines out, err;		       // of pipes
	std::vector<std::string> last; // the last lines stored by Remember
	uint64_t deadline_ns = 0;      // of CLOCK_MONOTONIC; 0: none
	bool asked = false;	       // SignalChild was used
	bool ended = false, timed_out = false;
	int status = 0;		 // as returned by waitpid, once ended
	uint64_t peak_bytes = 0; // its maximum memory (ru_maxrss), once ended
	bool running() const { return pid > 0 && !ended; }
};

// Starts a program, and waits until it runs. False: *error is one sentence, and nothing remains of it.
bool StartChild(const Command &command, Child *child, std::string *error);
// The two halves of StartChild. Without AwaitProgram, the caller doesn't wait for disk and scheduler; if the
// program can't be run, the child then ends with kNotStarted.
bool ForkChild(const Command &command, Child *child, std::string *error);
bool AwaitProgram(Child *child, std::string *error);

// Checks whether it has ended, reaps it, and kills it if its time is over. True if it has ended, now or
// before; its lines may still have to be read.
bool HasEnded(Child *child);
// Sends a signal to a child that still runs (not to its group), and records that it was asked to end.
void SignalChild(Child *child, int signal);
// Kills it, and its group if `group_ends`; waits for its end.
void EndChild(Child *child);
// Closes our ends of its pipes.
void CloseStreams(Child *child);

// Stores a line among the last six.
void Remember(Child *child, const std::string &line);
// True if it exited with status 0 by itself.
bool EndedWell(const Child &child);
// "was killed by signal 9 (Killed)" or "ended with status 3".
std::string HowItEnded(const Child &child);

// Runs a command to its end (or `limit_ns`) and returns the lines of its standard output; none if it can't be
// started.
std::vector<std::string> LinesOf(Command command);
// Runs a program on our terminal to its end. Returns its exit status, or -1 if it can't be started or was
// killed.
int StatusOf(const std::vector<std::string> &argv);

// Waits until one of these descriptors is readable or at its end, or a signal arrived, for at most `ms`
// milliseconds. Negative descriptors are ignored.
void WaitForAny(const std::vector<int> &fds, int ms);

} // namespace forktail::common

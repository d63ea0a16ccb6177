// SPDX-License-Identifier: MIT
// Child processes: how they are started, limited, listened to and ended. The guard, runs on several hosts and
// the lab supervise their programs with this.
//
// A child ends with its parent, however the parent ends: the kernel sends it `death_signal` then.
// No function here blocks except those that say "waits".
#pragma once

#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/types.h>
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

// Lines of a pipe or file whose descriptor does not block. '\r' ends a line too; empty lines are left out,
// and lines over 64 KiB are cut in parts.
struct Lines {
	int fd = -1; // -1 once it is at its end
	std::string part;
	// The lines that have come so far. At its end it is closed, and a line without an end counts. `last`:
	// as if it were at its end.
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
	std::vector<std::string> last; // the last lines that Remember noted
	uint64_t deadline_ns = 0;      // of CLOCK_MONOTONIC; 0: none
	bool asked = false;	       // SignalChild was used
	bool ended = false, timed_out = false;
	int status = 0;		 // as waitpid has it, once ended
	uint64_t peak_bytes = 0; // the most memory it had (ru_maxrss), once ended
	bool running() const { return pid > 0 && !ended; }
};

// Starts a program, and waits until it runs. False: *error is one sentence, and nothing is left of it.
bool StartChild(const Command &command, Child *child, std::string *error);
// The two halves of StartChild. Whoever leaves out AwaitProgram doesn't wait for disk and scheduler; if the
// program can't be run, the child then ends with kNotStarted.
bool ForkChild(const Command &command, Child *child, std::string *error);
bool AwaitProgram(Child *child, std::string *error);

// Looks whether it has ended, reaps it, and kills it if its time is over. True if it has ended, now or
// before; its lines may still have to be read.
bool HasEnded(Child *child);
// Sends a signal to a child that still runs (not to its group), and notes that it was asked to end.
void SignalChild(Child *child, int signal);
// Kills it, and its group if `group_ends`; waits for its end.
void EndChild(Child *child);
// Closes our ends of its pipes.
void CloseStreams(Child *child);

// Notes a line among the last six.
void Remember(Child *child, const std::string &line);
// True if it exited with status 0 by itself.
bool EndedWell(const Child &child);
// "was killed by signal 9 (Killed)" or "ended with status 3".
std::string HowItEnded(const Child &child);

// Runs a command to its end (or `limit_ns`), for which it waits. The lines of its standard output; none if it
// can't be started.
std::vector<std::string> LinesOf(Command command);
// Runs a program on our terminal to its end, for which it waits. Its exit status; -1: it can't be started, or
// was killed.
int StatusOf(const std::vector<std::string> &argv);

// Waits until one of these descriptors is readable or at its end, or a signal came, for at most `ms`
// milliseconds. Negative descriptors are ignored.
void WaitForAny(const std::vector<int> &fds, int ms);

} // namespace forktail::common

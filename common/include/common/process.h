// SPDX-License-Identifier: MIT
// Child processes: their words, their start, their end.
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

// Parts of commands: finding programs, words.

// Directories of forktail's own programs, in PATH's format: the one of this program, then PATH.
std::string ProgramPath();
// The path of a program in the first of these directories that contains it. "": in none.
std::string FindProgram(const std::string &name, const std::string &directories = ProgramPath());

// Appends words to those of a command.
inline void Append(std::vector<std::string> *words, const std::vector<std::string> &more)
{
	words->insert(words->end(), more.begin(), more.end());
}

// A command: a program or a function, its descriptors, and its limits.

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
	uint64_t memory_bytes = 0; // of its data (RLIMIT_DATA); 0: unlimited
	uint64_t limit_ns = 0;	   // HasEnded kills it after this run time; 0: unlimited
	bool idle = false;	   // it gets only CPU and disk time that no other process wants
	bool oom_victim = false;   // the kernel kills it first if memory runs out
};

// Child processes: starting, limiting, reading and ending them. The guard and the ranks of a run
// on several hosts supervise their programs with this.
//
// A child ends with its parent, however the parent ends: the kernel sends it `death_signal` then. No function
// here blocks except those that say "waits".

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
// The same without waiting for disk and scheduler: if the program can't be run, the child ends with
// kNotStarted.
bool ForkChild(const Command &command, Child *child, std::string *error);

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

// Signals that ask a program to stop. A program that supervises others records them and ends those first.

// Counts SIGINT, SIGTERM and SIGHUP from now on; they interrupt waits. SIGHUP stays ignored if it is.
void CatchStops();
// Number of signals received.
int Stops();

} // namespace forktail::common

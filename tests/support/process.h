// SPDX-License-Identifier: MIT
// Runs tested programs. Their output goes into memory files instead of pipes, so that no reader thread is
// needed and a program with much output never blocks. Every process is ended by its pid, at the latest by its
// object's destructor. If the test itself is killed, the kernel kills the process (PR_SET_PDEATHSIG).
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/process.h"

namespace forktail::test
{

using Seconds = std::chrono::duration<double>;

struct ProcessOptions {
	std::vector<std::pair<std::string, std::string>> environment; // added to the test's own
	std::string directory;					      // where it starts; "": the test's own
	std::string input;					      // its standard input
};

class Process
{
public:
	// Starts argv[0], looked up in PATH. A program that cannot be started exits with 127.
	explicit Process(const std::vector<std::string> &argv, const ProcessOptions &options = {});
	~Process(); // SIGKILL if it still runs
	Process(const Process &) = delete;
	Process &operator=(const Process &) = delete;

	pid_t pid() const { return child_.pid; }
	bool running() { return !common::HasEnded(&child_); }
	void signal(int number) { common::SignalChild(&child_, number); } // nothing once it has ended
	// Its exit status, or 128 + n when signal n ended it. Nothing if it still runs after `limit`.
	std::optional<int> wait(Seconds limit);
	// Everything it has printed so far.
	std::string out() const;
	std::string err() const;
	// Its peak memory (ru_maxrss), once it has ended. The kernel counts from the fork on, so it is at
	// least the test's memory at that time.
	size_t peak_bytes() const { return child_.peak_bytes; }

private:
	forktail::common::Child child_;
	int out_ = -1, err_ = -1;
};

struct Result {
	int status = -1; // as from Process::wait()
	bool timed_out = false;
	std::string out, err;
	size_t peak_bytes = 0; // as from Process::peak_bytes()
};

// Runs a command to its end, or until SIGKILL after `limit`.
Result run(const std::vector<std::string> &argv, Seconds limit = Seconds(60),
	   const ProcessOptions &options = {});

// A zombie counts as gone, because the test does not control when an orphan is reaped.
bool is_gone(pid_t pid);
// Waits for the line with a number that a program writes into a file.
pid_t pid_in(const std::string &path);

// Path of one of this build's programs: program("forktail-load").
std::string program(const std::string &name);

// Polls until `done` returns true. False after `limit`. For states of other processes that cannot be waited
// for.
template <class Done> bool eventually(Done done, Seconds limit = Seconds(10));

void sleep_for(Seconds time);

// Whether CPUs 0 and 1 are online and allowed. If not, says on stderr that the test is skipped.
bool two_cpus();

template <class Done> bool eventually(Done done, Seconds limit)
{
	const auto end = std::chrono::steady_clock::now() + limit;
	while (!done()) {
		if (std::chrono::steady_clock::now() > end)
			return false;
		sleep_for(Seconds(0.005));
	}
	return true;
}

} // namespace forktail::test

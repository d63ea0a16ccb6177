// SPDX-License-Identifier: MIT
// The guard's children: a snapshot being taken, an explanation, a command. Each is in a session of its own,
// so that what it started goes with it, has a time after which it is killed, and dies with the guard.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace forktail::live::guard
{

struct ChildWords {
	std::string name;					      // for messages
	std::vector<std::string> argv;				      // argv[0] is a path
	std::vector<std::pair<std::string, std::string>> environment; // added to the guard's own
	std::string output;	   // the file that it writes; "": the guard's standard error
	bool idle = false;	   // only what nobody else wants of CPU and disk
	uint64_t memory_bytes = 0; // of its data; 0: as much as it wants
};

struct Child {
	std::string name;
	pid_t pid = -1;
	int result = -1; // of Fork: what it says
	bool ended = false, timed_out = false;
	int status = 0; // as waitpid has it
	uint64_t deadline_ns = 0;
	bool running() const { return pid > 0 && !ended; }
};

// False: *error is one sentence.
bool StartChild(const ChildWords &words, uint64_t now_ns, uint64_t limit_ns, Child *child,
		std::string *error);
// A child of this very program that does `work` and says its result, a few lines at most.
bool ForkChild(const std::string &name, const std::function<std::string()> &work, uint64_t now_ns,
	       uint64_t limit_ns, Child *child, std::string *error);
// Looks whether it has ended; kills it if its time is over. True: it has ended, just now or before.
bool HasEnded(Child *child, uint64_t now_ns);
// With all it started; waits for its end.
void EndChild(Child *child);
// What ForkChild's work said, once it has ended; "" if it was killed before.
std::string ResultOf(Child *child);

bool EndedWell(const Child &child);
// "took longer than 30 s", "ended with status 3", "was killed by signal 9 (Killed)".
std::string HowItEnded(const Child &child, uint64_t limit_ns);

} // namespace forktail::live::guard

// SPDX-License-Identifier: MIT
// Programs that run on behalf of this one, and what they say, line by line.
//
// Each is in a process group of its own, so that a Ctrl-C on the terminal reaches only us, who end them in
// their order; and each gets SIGTERM from the kernel when we die, however that is, so that a recorder closes
// its recording by itself.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace forktail::hosts
{

// Lines of a pipe that isn't waited for. A part without its end counts as a line once it is over.
struct Lines {
	int fd = -1;
	std::string part;
	// What has come so far.
	std::vector<std::string> Read();
	void Close();
};

struct StartWords {
	std::string name;	       // for messages
	std::vector<std::string> argv; // argv[0]: a path, or a name to be looked for on PATH
	std::string output;	       // the file that its standard output is added to; "": we read that
	bool input = false;	       // we write its standard input; else it is /dev/null
	int kept_fd = -1;	       // a descriptor that it keeps
};

struct Child {
	std::string name;
	pid_t pid = -1;
	int input = -1;
	Lines output, errors;
	std::vector<std::string> last; // of what it said, for messages
	bool asked = false;	       // to end, by us
	bool ended = false;
	int status = 0; // as waitpid has it, once ended
};

// False: *error is one sentence.
bool StartChild(const StartWords &words, Child *child, std::string *error);
// Notes one of its lines among the last.
void Remember(Child *child, const std::string &line);
// True if it has ended, now or before. Its lines may still be to be read.
bool HasEnded(Child *child);
void SignalChild(Child *child, int signal);
void ForgetChild(Child *child);

// "was killed by signal 9 (Killed)" or "ended with status 3"; with its last words, if it had any.
std::string HowItEnded(const Child &child);
bool EndedWell(const Child &child);

// Waits until one of these descriptors has something or a signal came; negative ones are passed over.
void WaitForAny(const std::vector<int> &fds, int ms);

// SIGINT, SIGTERM and SIGHUP are counted from now on, and SIGPIPE is ignored.
void CatchStops();
int Stops();

} // namespace forktail::hosts

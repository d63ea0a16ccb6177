// SPDX-License-Identifier: MIT
// A session is everything that one run of the lab has started: programs, temporary directories, and the one
// loop (Step) in which the lab waits. Step returns within milliseconds after a stop signal or the end of a
// needed program, so no wait outlasts either.
//
// A session ends with CloseSession, or with the death of the lab, which the keeper notices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/process.h"
#include "keeper.h"

namespace forktail::lab
{

struct Command : common::Command {
	std::function<void(const std::string &line)>
	    on_line; // called for each line of standard error; may be empty
};

struct Child : common::Child {
	std::function<void(const std::string &line)> on_line; // as in its Command
	bool needed = false;				      // Step fails when it ends
};

struct Session {
	Keeper keeper;
	std::vector<std::unique_ptr<Child>> children;
	std::map<std::string, std::function<void()>> chores; // by name: called at each Step
};

// Starts the keeper and takes over SIGINT, SIGTERM and SIGHUP. False: *error is one sentence, as below.
bool OpenSession(Session *session, std::string *error);
// Kills all running programs and removes the temporary directories.
bool CloseSession(Session *session, std::string *error);

// Kills all running programs. The session continues.
void EndChildren(Session *session);

using common::StopSignal;

// A new directory under TMPDIR (else /tmp), removed when the session ends.
bool MakeTempDirectory(Session *session, std::string *path, std::string *error);

// Starts a program in its own process group: Ctrl-C on the terminal only reaches the lab, which then ends its
// programs. The child lives as long as the session. nullptr: *error is one sentence.
Child *Start(Session *session, const Command &command, std::string *error);

// Waits up to `ms` for output or the end of a child, or for `fd` (if not negative) to be readable. False: a
// stop signal, or the end of a needed child.
bool Step(Session *session, int ms, std::string *error, int fd = -1);

// Sends a signal (0: none) and waits for the end of the child. False: as Step(), or the child still runs
// after `seconds`.
bool WaitForEnd(Session *session, Child *child, int signal, double seconds, std::string *error);

// "redis-server ended with status 1" and its last messages, for an ended child.
std::string HowItEnded(const Child &child);
// "; its last messages:" and the last lines of its standard error, else of its output; "" without any.
std::string LastWords(const Child &child);

// True if an ended child exited with status 0; else *error says how it ended, with its last lines.
bool Succeeded(const Child &child, std::string *error);

} // namespace forktail::lab

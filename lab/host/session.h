// SPDX-License-Identifier: MIT
// A session is everything one run of the lab has started: its programs, its temporary directories, and the
// one loop (Step) in which the lab waits for whatever it waits for. Step returns within milliseconds when a
// signal asks the lab to stop or when a program that is still needed ends, so no wait can outlast either.
//
// Ends of a session are all the same: CloseSession, or the death of the lab, which the keeper notices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/process/child.h"
#include "common/process/stops.h"
#include "keeper.h"

namespace forktail::lab
{

struct Command : common::Command {
	std::function<void(const std::string &line)> on_line; // each line of its standard error; may be empty
};

struct Child : common::Child {
	std::function<void(const std::string &line)> on_line; // as in its Command
	bool needed = false;				      // Step fails when it ends
};

struct Session {
	Keeper keeper;
	std::vector<std::unique_ptr<Child>> children;
	std::map<std::string, std::function<void()>> chores; // by name: done at each Step
};

// Starts the keeper and takes over SIGINT, SIGTERM and SIGHUP. False: *error is one sentence, as below.
bool OpenSession(Session *session, std::string *error);
// Kills what still runs, without listening to it any more, and removes the temporary directories.
bool CloseSession(Session *session, std::string *error);

// Kills what still runs, without listening to it any more. The session goes on.
void EndChildren(Session *session);

using common::StopSignal;

// A new directory under TMPDIR (else /tmp), removed when the session ends.
bool MakeTempDirectory(Session *session, std::string *path, std::string *error);

// Starts a program in a process group of its own: a Ctrl-C on the terminal reaches the lab only, which then
// ends each program in its turn. The child lives as long as the session. nullptr: *error says why.
Child *Start(Session *session, const Command &command, std::string *error);

// Waits up to `ms` for something to happen: output or end of a child, or `fd` (if not negative) readable.
// False: a signal asked to stop, or a needed child has ended.
bool Step(Session *session, int ms, std::string *error, int fd = -1);

// Sends a signal (0: none), and waits until the child has ended. False too if that takes longer than
// `seconds`; the child then still runs.
bool WaitForEnd(Session *session, Child *child, int signal, double seconds, std::string *error);

// "redis-server ended with status 1", and its last words. Of an ended child.
std::string HowItEnded(const Child &child);
// "; it said:" and the last lines of its standard error, or else of its output; "" if there are none.
std::string LastWords(const Child &child);

// True if an ended child exited with status 0; else *error says how it ended and repeats its last lines.
bool Succeeded(const Child &child, std::string *error);

} // namespace forktail::lab

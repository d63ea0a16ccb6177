// SPDX-License-Identifier: MIT
// The keeper ends what the lab leaves behind, however the lab ends: done, interrupted, crashed or kill -9.
//
// It is a process of its own, in a session of its own (so that Ctrl-C doesn't reach it), that holds one end
// of a socket whose other end only the lab holds. The lab tells it every process group it starts, every
// directory that must not stay, and what it changes of the machine: swap, cgroups, settings. When the socket
// closes, the keeper undoes all of that, processes first, as files, swap and cgroups are theirs. That makes
// it the one mechanism for cleaning up: the lab itself only closes the socket and waits. PR_SET_PDEATHSIG
// alone would not do, as it neither reaches grandchildren (a snapshot child) nor files.
#pragma once

#include <string>
#include <sys/types.h>

namespace forktail::lab
{

struct Keeper {
	pid_t pid = -1;
	int fd = -1;
};

// Call before anything is started: the keeper is a fork of the caller. False: *error is one sentence.
bool StartKeeper(Keeper *keeper, std::string *error);

// What a run would leave behind, and what is done about it at the end.
enum class Leftover : char {
	kGroup = 'G',	  // a process group, by its number: killed
	kDirectory = 'D', // absolute: removed
	kSwap = 'S',	  // a device or file: off and gone, see undo.h
	kCgroup = 'C',	  // removed
	kSetting = 'W'	  // a file: `content` is written into it
};

// What is said first of a setting holds: that is what it was before.
void Keep(const Keeper &keeper, Leftover kind, const std::string &name, const std::string &content = "");
void Release(const Keeper &keeper, Leftover kind, const std::string &name);

// Makes the keeper clean up and waits until it has. Reap your own children before: to the keeper one that is
// not reaped is still there. False: something is left, *error says so. Does nothing the second time.
bool CloseKeeper(Keeper *keeper, std::string *error);

} // namespace forktail::lab

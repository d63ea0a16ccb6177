// SPDX-License-Identifier: MIT
// The keeper cleans up after the lab, however the lab ends: done, interrupted, crashed or kill -9.
//
// It is a separate process in its own session (so Ctrl-C does not reach it). It holds one end of a socket
// whose other end only the lab holds. The lab sends it every process group it starts, every temporary
// directory, and every change of the machine: swap, cgroups, settings. When the socket closes, the keeper
// undoes all of that, processes first. It is the only mechanism for cleaning up: the lab itself only closes
// the socket and waits. PR_SET_PDEATHSIG is not enough, because it does not cover grandchildren (a snapshot
// child) and files.
#pragma once

#include <string>
#include <sys/types.h>

namespace forktail::lab
{

struct Keeper {
	pid_t pid = -1;
	int fd = -1;
};

// Call it before starting anything: the keeper is a fork of the caller. False: *error is one sentence.
bool StartKeeper(Keeper *keeper, std::string *error);

// What a run leaves behind, and how the keeper removes it.
enum class Leftover : char {
	kGroup = 'G',	  // a process group, by its number: killed
	kDirectory = 'D', // absolute: removed
	kSwap = 'S',	  // a device or file: switched off and removed, see undo.h
	kCgroup = 'C',	  // removed
	kSetting = 'W'	  // a file: `content` is written into it
};

// The first content of a setting is its original content.
void Keep(const Keeper &keeper, Leftover kind, const std::string &name, const std::string &content = "");
void Release(const Keeper &keeper, Leftover kind, const std::string &name);

// Lets the keeper clean up and waits for it. Reap your own children first: an unreaped child still exists for
// the keeper. False: something remains; *error is one sentence. A second call does nothing.
bool CloseKeeper(Keeper *keeper, std::string *error);

} // namespace forktail::lab

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

void KeepGroup(const Keeper &keeper, pid_t group); // kill it at the end
void ReleaseGroup(const Keeper &keeper, pid_t group);
void KeepDirectory(const Keeper &keeper, const std::string &path); // absolute; remove it at the end
void ReleaseDirectory(const Keeper &keeper, const std::string &path);
void KeepSwap(const Keeper &keeper,
	      const std::string &device); // or file: off and gone at the end, see undo.h
void ReleaseSwap(const Keeper &keeper, const std::string &device);
void KeepCgroup(const Keeper &keeper, const std::string &path); // remove it at the end
void ReleaseCgroup(const Keeper &keeper, const std::string &path);
// Write this into the file at the end. What was said first of a file holds: that is what it was before.
void KeepSetting(const Keeper &keeper, const std::string &file, const std::string &content);

// Makes the keeper clean up and waits until it has. Reap your own children before: to the keeper one that is
// not reaped is still there. False: something is left, *error says so. Does nothing the second time.
bool CloseKeeper(Keeper *keeper, std::string *error);

} // namespace forktail::lab

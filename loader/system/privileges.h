/* SPDX-License-Identifier: MIT */
/* What the recorder and its helpers may do, once each has what it needs (docs/how-it-works/security.md has the reasons).
 */
#ifndef FORKTAIL_LOADER_PRIVILEGES_H
#define FORKTAIL_LOADER_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

/* Gives up all capabilities but those to look at processes and to ask for the programs' figures; with
 * `samples` also those to open the files of processes, with `descriptors` to see what they have open. For
 * good. To be called when all is attached and the output is open, and before threads are started: each has
 * capabilities of its own, and those of whoever starts it. 0 or a negative errno. */
int privileges_drop_recorder(bool samples, bool descriptors);

/* Gives up all other system calls, of all threads there are; it can't start any more. One that the recorder
 * was not thought to need fails with EPERM and is named on stderr; one that would run another program or
 * reach into one ends the recorder. `ring`: an open directory in which files may be made and
 * removed; -1: nowhere. 0 or a negative errno. */
int privileges_filter_recorder(int ring);

/* For a process that has only just been forked from the recorder: no capabilities, no user's rights, no file
 * system, memory of its own and the files it is given. */
int privileges_confine_unwinding(pid_t recorder);

/* For a process forked from the recorder that runs another program as this user: no capabilities, and no way
 * to any; it ends with the recorder. */
int privileges_become_user(pid_t recorder, uid_t uid, gid_t gid);

/* As the unwinding's, but that it may switch the kernel's run-time statistics of BPF programs on. */
int privileges_confine_statistics(pid_t recorder);

#endif

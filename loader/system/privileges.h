/* SPDX-License-Identifier: MIT */
/* What the recorder and its helpers may do once each has what it needs. docs/how-it-works/security.md
 * explains why. */
#ifndef FORKTAIL_LOADER_PRIVILEGES_H
#define FORKTAIL_LOADER_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

/* Drops all capabilities, permanently, except those to look at processes and to read the programs' figures;
 * with `descriptors` also those to see their descriptors.
 * Call this after everything is attached and the output is open, and before threads are started: a thread
 * inherits the capabilities of its creator. Returns 0 or a negative errno. */
int privileges_drop_recorder(bool descriptors);

/* Blocks all other system calls for all existing threads; no thread can be started after this. An unexpected
 * call fails with EPERM and is reported on stderr. A call that would run a program or access another process
 * ends the recorder. `ring`: an open directory in which files may be created and deleted; -1: none. Returns 0
 * or a negative errno. */
int privileges_filter_recorder(int ring);

/* For the process that starts helpers, just forked from the recorder: the capabilities that some helper has
 * or needs to lose the others. It can run no program and look into no process. */
int privileges_confine_starter(pid_t recorder);

/* For a process just forked from that one (`parent`): no capabilities, no user's rights, no file system; only
 * its own memory and the files it is given. */
int privileges_confine_unwinding(pid_t parent);

/* Like the unwinding helper's, but it may look at processes and open files for reading. */
int privileges_confine_files(pid_t parent);

/* Like the unwinding helper's, but it may attach programs that it has, and detach them. */
int privileges_confine_switch(pid_t parent);

/* Like the unwinding helper's, but it may open perf events, with programs that it has. */
int privileges_confine_events(pid_t parent);

/* Like the unwinding helper's, for a process that only reads memory which it has mapped, and exchanges
 * packets. */
int privileges_confine_requests(pid_t parent);

/* For a process forked from the recorder that runs another program as this user: no capabilities, and no way
 * to get any, nor to reach the kernel or other processes. It ends with the recorder. */
int privileges_become_user(pid_t recorder, uid_t uid, gid_t gid);

/* Like the unwinding helper's, but it may switch the kernel's run-time statistics of BPF programs on. */
int privileges_confine_statistics(pid_t parent);

#endif

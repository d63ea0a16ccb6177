/* SPDX-License-Identifier: MIT */
/* The recorder's use of the system: helper processes and their rights, packets between them, /proc, CPUs. */
#ifndef FORKTAIL_LOADER_SYSTEM_H
#define FORKTAIL_LOADER_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "common/grow.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CPU time of the recorder's processes. */

/* CPU time of all threads of a process so far. 0 if there is no process of that id. */
uint64_t cpu_time_ns(pid_t pid);
uint64_t own_cpu_ns(void);
uint64_t thread_cpu_ns(void); /* of this thread */

/* Reads files of /proc and similar file systems as text: they have no size until they are read. */

/* Reads a file that fits in one read(), up to the given size. Returns its length or a negative errno. `text`
 * is always terminated. */
ssize_t read_text(const char *path, char *text, size_t size);

/* The same for /proc/PID/FILE, with NUL bytes replaced by spaces and trailing blanks removed. */
int read_proc(pid_t pid, const char *file, char *text, size_t size);

/* Text of a file of any length. Its memory is reused for the next file; the owner frees it. */
struct text {
	char *bytes;   /* terminated */
	size_t length; /* 0: `bytes` may be NULL */
	size_t room;
};

/* Reads all of an open file from its beginning. False if it was not read completely: an error, no memory, or
 * more than `most` bytes. */
bool text_read(struct text *t, int fd, size_t most);
/* The same for a file given by path, relative to `directory` (AT_FDCWD: the current directory). */
bool text_read_at(struct text *t, int directory, const char *path, size_t most);

/* The recorder's affinity and priority: other CPUs than the watched processes, and a lower priority. */

/* Restricts this thread, and everything it starts later, to CPUs that no thread of these processes may use.
 * Without such CPUs, as on a host without pinning, nothing changes. */
void affinity_avoid(const pid_t *pids, size_t count);

/* Lets this thread, and everything it starts later, hold a CPU for a short time only while others wait for it
 * (Linux 6.12). Returns 0 or a negative errno. */
int slices_shorten(void);

/* The same, and lowers the priority of this thread and of everything it starts later. Returns 0 or a negative
 * errno. */
int priority_lower(void);

/* For the main thread: after each sleep, */
void cpu_piece_begins(void);
/* and between two parts of its work: if it has held the CPU for half a millisecond, a thread that waits for
 * this CPU gets it. */
void cpu_offer(void);
/* The same in a loop over things that take microseconds. */
void cpu_offer_in_loop(void);

/* Looks at /proc, cgroups and the kernel's tables, which are repeated as long as the recorder runs and whose
 * cost grows with the server: a process of 4,000 threads, a table of 10,000 connections. They share one
 * budget, at most a two-hundredth of a CPU's time. A look waits longer the more its last one took, by the
 * square root of that: so a cheap look is not delayed by an expensive one. For the main thread. */

/* Zero: it is due. */
struct look {
	uint64_t due_ns;
	uint64_t begun_ns, begun_cpu_ns; /* during a look */
	uint64_t root;			 /* of what the last one took, in ns */
};

/* Whether it is due. If so, it begins, and look_ends() follows. */
bool look_begins(struct look *l, uint64_t now_ns);
/* It took the CPU time since its begin. The next one is due after `least_ns`, or later. */
void look_ends(struct look *l, uint64_t least_ns);
/* It is due whatever it took. */
void look_soon(struct look *l);
/* It is not repeated any more: the others may take its part. */
void look_close(struct look *l);

/* Packets that carry file descriptors. */

enum { PACKET_FDS = 12 }; /* descriptors of a packet at most */

/* Sends a packet, with `fd` unless it is negative. Returns 0 or a negative errno. */
int send_packet(int socket, const void *bytes, size_t size, int fd, int flags);
/* Receives a packet, and in *fd the descriptor that came with it, or -1. Returns its size, 0 if the peer has
 * closed, or a negative errno. */
ssize_t receive_packet(int socket, void *bytes, size_t size, int *fd, int flags);

/* The same with `count` descriptors, none of them negative. -E2BIG: more than PACKET_FDS. */
int send_packet_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count, int flags);
/* At most `most` descriptors; the kernel closes others. *count is how many came. */
ssize_t receive_packet_fds(int socket, void *bytes, size_t size, int *fds, size_t most, size_t *count,
			   int flags);

/* The recorder's pid namespace. Ids from users and in /proc belong to it; the kernel programs translate them.
 */

/* Returns the inode of the recorder's pid namespace. 0: the initial one, or the kernel has no others. */
uint32_t pid_namespace(void);

/* Whether /proc shows that namespace. Otherwise process ids have no meaning. */
bool proc_is_of_pid_namespace(void);

/* What the recorder knows of the machine that it is built for. Each machine has a file machine_NAME.c, of
 * which the build takes one (cmake/machine.cmake), and a header for the kernel programs
 * (bpf/machine/machine.h). */

/* An interrupt's tracepoint that only this machine has, and what a recording lacks without it. */
struct machine_interrupt {
	const char *tracepoint, *without;
};

struct machine {
	const char *name;	  /* as in `uname -m` */
	const char *call_prefix;  /* of the kernel functions of system calls */
	const char *cpu_line;	  /* of /proc/cpuinfo: names the processor */
	uint16_t elf;		  /* EM_... of its programs */
	uint64_t address_bits;	  /* of an address in user space; the others may contain its signature */
	int stack_register;	  /* as DWARF numbers them */
	int instruction_register; /* negative: DWARF does not number it */
	int saved_registers[FT_SAVED_REGISTERS]; /* in the order of a sample's */
	const struct machine_interrupt *interrupts;
	size_t interrupt_count;
};

extern const struct machine machine;

/* Sets the result of the system call that a signal handler for SIGSYS interrupted. */
void machine_set_result(void *ucontext, long result);

/* When a helper that ended is started again: the first time at once, then after 1, 2, 4 ... 60 s. After five
 * quiet minutes the next wait is 0 s again. */

/* Zero: it has not ended yet. */
struct restarts {
	uint64_t ended_ns, due_ns;
	unsigned wait_s; /* after the next end */
};

/* The helper ended at `now_ns`. */
void restarts_ended(struct restarts *r, uint64_t now_ns);
/* It could not be started: again after 5 s. */
void restarts_failed(struct restarts *r, uint64_t now_ns);
/* Whether it is time to start it. */
bool restarts_due(const struct restarts *r, uint64_t now_ns);

/* What the recorder and its helpers may do once each has what it needs. docs/how-it-works/security.md
 * explains why. */

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

/* Processes beside the recorder that do one thing each, with other privileges. All are children of a process
 * that does nothing but start and end them ("forktail-spawn"). It is forked before anything is attached or
 * opened, so a helper has no descriptor that it was not given, and one that the kernel cannot end keeps
 * nothing attached or locked. It also starts helpers later, when the recorder may no longer start any. */

enum {
	/* Its descriptors: 0 to 2 are /dev/null. */
	HELPER_SOCKET = 3, /* the other end of `socket` */
	HELPER_KEPT = 4,   /* the first of those that were passed to it */
	HELPER_KEPT_MAX = 8,
	/* Helpers that were ended and are still in a call of the kernel that does not return. With so many of
	 * them, no further one is started. */
	HELPERS_STUCK_MAX = 8,
};

struct helper_process {
	pid_t pid;  /* 0: none */
	int socket; /* packets; -1: none */
};

struct helper_setup {
	const char *name; /* as ps shows it */
	/* What the process does. `parent` is for the functions that drop privileges. The process ends with
	 * it. */
	void (*live)(pid_t parent, size_t kept_count);
	int socket_bytes;  /* of both ends; 0: the system's default */
	bool low_priority; /* not for one that the recorder waits for */
};

/* What a helper of some kind is working on, in memory that it shares with the recorder. Not to be trusted:
 * helpers read files that strangers made. */
struct helper_note {
	uint64_t progress; /* changes when the helper gets on */
	uint64_t key[4];   /* of the file that it reads; 0: none */
	char file[64];	   /* its name */
};

/* Starts the process that starts helpers of these kinds; the array stays valid. Call it before anything is
 * open that helpers should not have, once. Returns 0 or a negative errno. */
int helpers_begin(const struct helper_setup *const *kinds, size_t count);
/* Ends it and all helpers. */
void helpers_end(void);

/* Starts a helper with these descriptors; a negative one is /dev/null there. Returns 0 or a negative errno:
 * -EAGAIN: HELPERS_STUCK_MAX, -EPIPE: the process that starts helpers has ended. */
int helper_process_start(struct helper_process *h, const struct helper_setup *setup, const int *kept,
			 size_t kept_count);
/* Closes the socket and ends the process, whatever it is doing. `wait`: gives it a second to end by itself.
 * Never blocks longer, also if the kernel cannot end it. */
void helper_process_end(struct helper_process *h, bool wait);
/* Waits for an answer of this size, for three seconds at most: a helper may be in a call of the kernel that
 * does not return. Detaching functions takes a few tenths of a second each. Returns 0, or -EPIPE: the helper
 * is of no use any more. *fd: a descriptor that came with the answer, or -1. */
int helper_process_answer(const struct helper_process *h, void *answer, size_t size, int *fd);
/* Counts one that ended by itself, or that hung, and ends what is left of it. */
void helper_process_lost(struct helper_process *h, const struct helper_setup *setup);
/* How many of kind `i` were lost, and its name without the program's ("unwind"). NULL: no such kind. */
const char *helper_deaths(size_t i, uint64_t *count);

/* The note of a kind. Helpers write to it; each kind has one, so it is of the newest helper. */
volatile struct helper_note *helper_note_of(const struct helper_setup *setup);
/* Notes what is read from now on. `key`: NULL: no file. */
void helper_note_file(volatile struct helper_note *note, const uint64_t key[4], const char *file);
/* A copy, whose file name ends with a 0. */
struct helper_note helper_note_read(const struct helper_setup *setup);

/* A thread that notices if the main loop does not come back, and says which system call it is in: the loop is
 * written so that no target can hold it up, and this is how a mistake in that would be seen. */

/* Starts the thread; the calling thread is the one that is watched. Call it before the recorder's filter is
 * loaded. Returns 0 or a negative errno. */
int watchdog_start(void);
/* The main loop begins with a round, or (0) is about to wait for events. */
void watchdog_round(uint64_t now_ns);
/* How many rounds took longer than a second so far. */
uint64_t watchdog_stalls(void);

#ifdef __cplusplus
}
#endif
#endif

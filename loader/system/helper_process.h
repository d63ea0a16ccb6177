/* SPDX-License-Identifier: MIT */
/* Processes beside the recorder that do one thing each, with other privileges. All are children of a process
 * that does nothing but start and end them ("forktail-spawn"). It is forked before anything is attached or
 * opened, so a helper has no descriptor that it was not given, and one that the kernel cannot end keeps
 * nothing attached or locked. It also starts helpers later, when the recorder may no longer start any. */
#ifndef FORKTAIL_LOADER_HELPER_PROCESS_H
#define FORKTAIL_LOADER_HELPER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

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
	/* What the process does. `parent` is for the functions of privileges.h. The process ends with it. */
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

#ifdef __cplusplus
}
#endif

#endif

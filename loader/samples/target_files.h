/* SPDX-License-Identifier: MIT */
/* The recorder's side of the helper that touches what targets chose (files_helper.h). Nothing here waits for
 * that helper, but for a bounded time in target_files_title_now(). If the helper gets nowhere for two
 * seconds, it is abandoned and replaced, and the process that it was busy with is left alone for a while: 10
 * s at first, each time twice as long. If two processes of a user who is not root did that, all of that user
 * are left alone. */
#ifndef FORKTAIL_LOADER_TARGET_FILES_H
#define FORKTAIL_LOADER_TARGET_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/samples/files_helper.h"

#ifdef __cplusplus
extern "C" {
#endif

struct target_files;

/* What address spaces are made of. */
struct target_files_handler {
	/* The mapped files of a process, in order of addresses, and its program's name. */
	void (*maps)(void *context, pid_t pid, const struct mapped_place *places, size_t count,
		     const char *program);
	/* A process' maps are not known: it has exited, or its files are left alone. */
	void (*no_maps)(void *context, pid_t pid);
	/* The unwinding helper has all files of a space, or (error < 0) will not get them. */
	void (*sent)(void *context, uint32_t space, int error);
	/* The helper is a new one: the unwinding helper needs a connection to it. */
	void (*restarted)(void *context);
	void *context;
};

/* Starts the helper. NULL: it cannot be started, errno says why. */
struct target_files *target_files_open(void);
void target_files_close(struct target_files *f);
void target_files_handle(struct target_files *f, const struct target_files_handler *handler);
/* Who gets titles that were asked for. */
void target_files_on_title(struct target_files *f, void (*title)(void *context, pid_t pid, const char *title),
			   void *context);

/* Ask for something; the answer comes through a handler during target_files_take() or target_files_tick(),
 * never within these calls. False: too much is waiting, so no answer will come. */
bool target_files_ask_maps(struct target_files *f, pid_t pid);
bool target_files_send(struct target_files *f, pid_t pid, uint32_t space, bool preload);
bool target_files_ask_title(struct target_files *f, pid_t pid);
/* The command line of a process, with blanks between its words; "" if it is not known within 100 ms. */
void target_files_title_now(struct target_files *f, pid_t pid, char *title, size_t size);
/* The ends of an unwinding helper's source of address spaces and of its questions. Takes them. */
void target_files_connect(struct target_files *f, int spaces, int questions);
/* This file ended an unwinding helper: it is not sent again. */
void target_files_refuse(struct target_files *f, const uint64_t key[4]);
/* The process has ended. */
void target_files_forget(struct target_files *f, pid_t pid);

/* Readable when there is an answer; -1: there is no helper now. */
int target_files_fd(const struct target_files *f);
void target_files_take(struct target_files *f);
/* At every tick: replaces a helper that hangs or has ended. */
void target_files_tick(struct target_files *f);
/* Whether any answer is still to come. */
bool target_files_busy(const struct target_files *f);

struct target_files_figures {
	uint64_t cpu_ns; /* of all helpers */
	pid_t pid;	 /* of the helper; 0: none now */
};
struct target_files_figures target_files_so_far(const struct target_files *f);

#ifdef __cplusplus
}
#endif

#endif

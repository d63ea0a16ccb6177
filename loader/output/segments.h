/* SPDX-License-Identifier: MIT */
/* A ring of recordings: a directory of consecutive segments, of which the oldest are deleted. A segment is an
 * ordinary recording and never changes after it is sealed. So a snapshot links files and does not delay the
 * recorder. The ring's length is measured in recorded time before the newest segment: while nothing is
 * recorded, nothing is deleted, and a crash loses no older segments. */
#ifndef FORKTAIL_LOADER_SEGMENTS_H
#define FORKTAIL_LOADER_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/text/ring_limits.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The owner of the files. */
struct file_owner {
	uid_t uid;
	gid_t gid;
};

/* Finds a user by name. NULL: the user who called sudo, otherwise "forktail" if it exists, otherwise the
 * current user. -ENOENT: no such user. */
int file_owner_find(const char *name, struct file_owner *user);

struct segments;

/* Opens a directory and creates it if only the last component is missing. It must belong to the user, be
 * closed to others, and not be in use. Returns a negative errno, and in *why the reason, to follow "cannot
 * use the directory DIR for a ring: ". */
int segments_open(struct segments **out, const char *path, const struct ring_limits *limits,
		  const struct file_owner *user, const char **why);
void segments_close(struct segments *r);

/* From now on, files are created as the owner, by this thread and threads started later. This cannot be
 * undone. */
int segments_become_owner(const struct segments *r);

/* Begins the first segment, after the existing ones. */
int segments_begin(struct segments *r, struct ft_writer **out, const char *manifest, uint64_t now_ns);

/* Whether the next segment is due. */
bool segments_due(const struct segments *r, const struct ft_writer *w, uint64_t now_ns);
/* Seals the current segment, begins the next and deletes segments beyond the limits: all in the writer's
 * thread. */
int segments_next(struct segments *r, struct ft_writer *w, const char *manifest, const char *summary,
		  uint64_t now_ns);

/* Number of the current segment, and of the next. */
uint64_t segments_number(const struct segments *r);

/* After a write error: once per second deletes the oldest segment if space is missing, and requests the next
 * segment. */
bool segments_recover(struct segments *r, struct ft_writer *w, uint64_t now_ns);

/* The owner of the ring. */
const struct file_owner *segments_owner(const struct segments *r);
/* The directory, for code that may create files in it. */
int segments_directory(const struct segments *r);

/* For tests: the number of sealed segments and their bytes. */
size_t segments_count(const struct segments *r);
uint64_t segments_bytes(const struct segments *r);

#ifdef __cplusplus
}
#endif

#endif

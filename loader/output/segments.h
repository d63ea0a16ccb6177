/* SPDX-License-Identifier: MIT */
/* A ring of recordings: a directory of segments, one after the other, of which the oldest go.
 *
 * A segment is an ordinary recording, never touched again once it is sealed: who takes a part of the ring out
 * links files, and nothing has to wait for that. How much is kept is counted in time that was recorded, up to
 * the newest: while nobody records, nothing goes, and what was there before a crash is there after it. */
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

/* Whose the files are. */
struct file_owner {
	uid_t uid;
	gid_t gid;
};

/* By name; NULL: who called sudo, else "forktail" if there is one, else who runs this. -ENOENT: there is no
 * such user. */
int file_owner_find(const char *name, struct file_owner *user);

struct segments;

/* Takes a directory, which is made if only it is missing: it has to be the user's, closed to others, and
 * nobody else's at the moment. Negative errno, and in *why what is the matter, to follow "can't keep a ring
 * in DIR: ".
 */
int segments_open(struct segments **out, const char *path, const struct ring_limits *limits,
		  const struct file_owner *user, const char **why);
void segments_close(struct segments *r);

/* From here on files are made as their user, by this thread and those that it starts; never back. */
int segments_become_owner(const struct segments *r);

/* Begins the first segment, which follows those that are there. */
int segments_begin(struct segments *r, struct ft_writer **out, const char *manifest, uint64_t now_ns);

/* Whether it is time for the next one. */
bool segments_due(const struct segments *r, const struct ft_writer *w, uint64_t now_ns);
/* Seals the one that is being written, begins the next, and has go what is too old or too much: all by the
 * writer's thread. */
int segments_next(struct segments *r, struct ft_writer *w, const char *manifest, const char *summary,
		  uint64_t now_ns);

/* The number of the segment that is being written, and of the next one. */
uint64_t segments_number(const struct segments *r);

/* After an error of the writer's: once a second has the oldest segment make room, if room is what is missing,
 * and says that the next one is to be tried. */
bool segments_recover(struct segments *r, struct ft_writer *w, uint64_t now_ns);

/* Whose it is. */
const struct file_owner *segments_owner(const struct segments *r);
/* The directory, for who may make files in it. */
int segments_directory(const struct segments *r);

/* What there is, for tests: sealed segments and their bytes. */
size_t segments_count(const struct segments *r);
uint64_t segments_bytes(const struct segments *r);

#ifdef __cplusplus
}
#endif

#endif

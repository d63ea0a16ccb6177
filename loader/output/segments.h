/* SPDX-License-Identifier: MIT */
/* A ring of recordings: a directory of segments, one after the other, of which the oldest go.
 *
 * A segment is an ordinary recording, never touched again once it is sealed: who takes a part of the ring out
 * links files, and nothing has to wait for that. How much is kept is counted in time that was recorded, up to
 * the newest: while nobody records, nothing goes, and what was there before a crash is there after it. */
#ifndef FORKTAIL_LOADER_RING_H
#define FORKTAIL_LOADER_RING_H

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
struct ring_user {
	uid_t uid;
	gid_t gid;
};

/* By name; NULL: who called sudo, else "forktail" if there is one, else who runs this. -ENOENT: there is no
 * such user. */
int ring_user_find(const char *name, struct ring_user *user);

struct ring;

/* Takes a directory, which is made if only it is missing: it has to be the user's, closed to others, and
 * nobody else's at the moment. Negative errno, and in *why what is the matter, to follow "can't keep a ring
 * in DIR: ".
 */
int ring_open(struct ring **out, const char *path, const struct ring_limits *limits,
	      const struct ring_user *user, const char **why);
void ring_close(struct ring *r);

/* From here on files are made as their user, by this thread and those that it starts; never back. */
int ring_become_user(const struct ring *r);

/* Begins the first segment, which follows those that are there. */
int ring_begin(struct ring *r, struct ft_writer **out, const char *manifest, uint64_t now_ns);

/* Whether it is time for the next one. */
bool ring_is_due(const struct ring *r, const struct ft_writer *w, uint64_t now_ns);
/* Seals the one that is being written, begins the next, and has go what is too old or too much: all by the
 * writer's thread. */
int ring_next(struct ring *r, struct ft_writer *w, const char *manifest, const char *summary,
	      uint64_t now_ns);

/* The number of the segment that is being written, and of the next one. */
uint64_t ring_number(const struct ring *r);

/* After an error of the writer's: once a second has the oldest segment make room, if room is what is missing,
 * and says that the next one is to be tried. */
bool ring_recovers(struct ring *r, struct ft_writer *w, uint64_t now_ns);

/* Whose it is. */
const struct ring_user *ring_owner(const struct ring *r);
/* The directory, for who may make files in it. */
int ring_directory(const struct ring *r);

/* What there is, for tests: sealed segments and their bytes. */
size_t ring_count(const struct ring *r);
uint64_t ring_bytes(const struct ring *r);

#ifdef __cplusplus
}
#endif

#endif

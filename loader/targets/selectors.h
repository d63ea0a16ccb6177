/* SPDX-License-Identifier: MIT */
/* What a user named as targets, in the user's words: looked up once, or by a recorder that goes on for ever
 * again and again, because a server that is restarted is another process. */
#ifndef FORKTAIL_LOADER_SELECTORS_H
#define FORKTAIL_LOADER_SELECTORS_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/sockets/listeners.h"
#include "loader/targets/targets.h"

enum selector_kind { SELECT_PORT, SELECT_UNIX, SELECT_NAME, SELECT_CGROUP, SELECT_CONTAINER, SELECT_UNIT };

struct selector {
	enum selector_kind kind;
	const char *text;
	int port;
	struct inodes listening; /* that it led to, when all of their processes were found */
};

enum { SELECTORS_MAX = 64 };

struct selectors {
	struct selector all[SELECTORS_MAX];
	size_t count;
};

/* False: there are too many. `text` has to stay. */
bool selectors_add(struct selectors *s, enum selector_kind kind, const char *text, int port);

/* Adds those processes that one leads to now. As targets_add_...; */
int selector_find(const struct selector *s, struct targets *found);
/* the same, but that it returns 0 where nobody else listens than the last time, which is what would have to
 * be looked for among all descriptors of all processes. */
int selector_find_more(struct selector *s, struct targets *found);
/* Whether one leads to processes by what they have open. */
bool selectors_look_at_descriptors(const struct selectors *s);
/* Looks for all of them the next time: one of those found has ended. */
void selectors_forget(struct selectors *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Targets as the user named them. They are looked up once, or by a flight recorder repeatedly, because a
 * restarted server is another process. */
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
	struct inodes listening; /* sockets that matched when all of their processes were found */
};

enum { SELECTORS_MAX = 64 };

struct selectors {
	struct selector all[SELECTORS_MAX];
	size_t count;
};

/* False: too many. `text` must stay valid. */
bool selectors_add(struct selectors *s, enum selector_kind kind, const char *text, int port);

/* Adds the processes that one selector matches now. Returns like targets_add_... */
int selector_find(const struct selector *s, struct targets *found);
/* The same, but returns 0 if the same sockets listen as last time. Otherwise all descriptors of all processes
 * have to be searched. */
int selector_find_more(struct selector *s, struct targets *found);
/* Whether one of them finds processes by their descriptors. */
bool selectors_look_at_descriptors(const struct selectors *s);
/* Searches completely the next time, because a found process has exited. */
void selectors_forget(struct selectors *s);

#endif

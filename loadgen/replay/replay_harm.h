/* SPDX-License-Identifier: MIT */
/* Which commands of a recording are not sent again: those that would harm the server or what it holds beyond
 * what load does, and those that a connection can't take part in without ceasing to answer one reply per
 * request. A capture comes from a server whose flushes and failovers had their reasons; the server it is
 * replayed on is another one, or the same a day later. */
#ifndef FORKTAIL_LOADGEN_REPLAY_HARM_H
#define FORKTAIL_LOADGEN_REPLAY_HARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay_item.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HARM_MAX = 80, HARM_NAME = 24 };

/* Which are allowed after all, by their place in the list. */
struct harm_allowed {
	bool of[HARM_MAX];
};

/* "flushall,config", "client kill" or "all"; false, and a sentence. What would change the protocol can't be
 * allowed. */
bool harm_allow(struct harm_allowed *allowed, const char *list, char *error, size_t size);

/* Whether something in the list begins with this word: only then the rest of the command matters. */
bool harm_begins(const struct replay_word *name);
/* The place in the list of what makes a command one that is left out, or -1: it is sent. */
int harm_find(const struct harm_allowed *allowed, const struct replay_item *item);
/* "CLIENT KILL", and why: "blocks for ever". */
const char *harm_name(int harm);
const char *harm_reason(int harm);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Which commands of a recording are not sent: those that would harm the server or its data beyond load, and
 * those that prevent a connection from answering one reply per request. A capture comes from a server whose
 * flushes and failovers had reasons; it is replayed on another server, or on the same one later. */
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

/* Allowed commands, by their position in the list. */
struct harm_allowed {
	bool of[HARM_MAX];
};

/* "flushall,config", "client kill" or "all"; false, and a sentence. Commands that change the protocol can't
 * be allowed. */
bool harm_allow(struct harm_allowed *allowed, const char *list, char *error, size_t size);

/* Whether an entry in the list begins with this word: only then the rest of the command matters. */
bool harm_begins(const struct replay_word *name);
/* The position in the list of the entry that makes a command omitted, or -1: it is sent. */
int harm_find(const struct harm_allowed *allowed, const struct replay_item *item);
/* "CLIENT KILL", and why: "blocks without limit". */
const char *harm_name(int harm);
const char *harm_reason(int harm);

#ifdef __cplusplus
}
#endif
#endif

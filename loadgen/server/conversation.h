/* SPDX-License-Identifier: MIT */
/* The set-up of a connection to a server: the other half of struct protocol (loadgen/protocol.h). It
 * is separate because it needs links, options and time-outs, while a protocol only handles bytes. One file
 * per kind of server, one row per protocol in server_setup.c. All of it happens before the load; sentences
 * are for the user. */
#ifndef FORKTAIL_LOADGEN_SERVER_CONVERSATION_H
#define FORKTAIL_LOADGEN_SERVER_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>

#include "loadgen/net.h"
#include "loadgen/protocol.h"
#include "loadgen/server.h"

struct manner;

struct conversation {
	/* Rewrites the server's greeting: what a reconnected connection sends first. */
	void (*greet)(struct server *s);
	/* Like server_probe, for a server that is filled in. */
	int (*probe)(struct server *s, char *error, size_t size);
	/* Like server_enter. */
	struct link *(*enter)(struct server *s, uint32_t number, char *error, size_t size);
	/* Like server_connect, but returns a link that the load may take over. */
	struct link *(*connect)(struct server *s, uint32_t number, char *error, size_t size);
	bool names; /* the last command of the greeting names the connection and may be refused */
	const struct manner *manner; /* for memcached's protocols, which share one file: where they differ */
};

extern const struct conversation converse_redis, converse_memcached_text, converse_memcached_binary,
    converse_memcached_meta;

const struct conversation *conversation_of(enum protocol_id protocol);

/* The part of a connection's set-up that hiredis can't read: HELLO 3, whose answer is a map. */

/* Switches the connection to RESP3 and, if requested, tracks the keys it reads (or all). Returns 0, or -1 and
 * the server's reaction, to follow its address. */
int resp3_begin(struct link *l, bool tracking, bool broadcast, char *what, size_t size);
/* The same for a reconnected connection: appends the commands. Returns their number, 0 without memory. */
uint8_t resp3_greeting(bool tracking, bool broadcast, struct bytes *to);
#endif

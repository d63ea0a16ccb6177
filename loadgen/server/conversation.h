/* SPDX-License-Identifier: MIT */
/* How one comes to an understanding with a server: the other half of struct protocol
 * (loadgen/protocol/protocol.h), apart from it since it needs links, options and time-outs, while a protocol
 * is nothing but bytes. One file for each kind of server, one row for each protocol in conversation.c. All of
 * it is before the load; sentences are for the user. */
#ifndef FORKTAIL_LOADGEN_CONVERSATION_H
#define FORKTAIL_LOADGEN_CONVERSATION_H

#include "connect.h"

struct manner;

struct conversation {
	/* Writes the server's greeting, anew: what a connection says first that is opened again. */
	void (*greet)(struct server *s);
	/* As server_probe, of a server that is filled in. */
	int (*probe)(struct server *s, char *error, size_t size);
	/* As server_enter. */
	struct link *(*enter)(struct server *s, uint32_t number, char *error, size_t size);
	/* As server_connect, but for the descriptor: a link that the load may take over. */
	struct link *(*connect)(struct server *s, uint32_t number, char *error, size_t size);
	bool names; /* the last of the greeting is a name for the connection, which may be refused */
	const struct manner
	    *manner; /* of memcached's protocols, which have one file: what each does otherwise */
};

extern const struct conversation converse_redis, converse_memcached_text, converse_memcached_binary,
    converse_memcached_meta;

const struct conversation *conversation_of(enum protocol_id protocol);

#endif

/* SPDX-License-Identifier: MIT */
/* Everything that depends on the protocol, as a table: one `struct protocol` per protocol, one `struct
 * product` per kind of server. Code uses the table and does not check which protocol it is. To add a
 * protocol, write its protocol_NAME.c (requests and answers), give it a row in protocols.c, and write a test.
 * Two things are elsewhere: its scanner is a member of `union reply_scanner` (reply.h), because its state is
 * in each connection; and the set-up of a connection, which needs links, options and time-outs that this
 * module does not know, is a row of loadgen/server/conversation.c. A new kind of product also has tests of -t
 * (options/suite.c) and something to observe (observer/), or none. The hot path uses the table for
 * memcached's protocols only; Redis is recognized by its number (reply.h). */
#ifndef FORKTAIL_LOADGEN_PROTOCOL_H
#define FORKTAIL_LOADGEN_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/command/command.h"
#include "resp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Places in the table; all zeros is Redis. */
enum protocol_id { PROTOCOL_REDIS, PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY, PROTOCOL_MEMCACHE_META };
enum { PROTOCOLS = PROTOCOL_MEMCACHE_META + 1 };

/* The kinds of answers to a command. Redis' kinds have the numbers of its scanner, so that the hot path
 * compares them directly. */
enum reply_kind {
	REPLY_ANY = 0, /* any reply except an error */
	REPLY_LINE = RESP_LINE,
	REPLY_INTEGER = RESP_INTEGER,
	REPLY_VALUE = RESP_STRING, /* for memcached: values, or none */
	REPLY_LIST = RESP_ARRAY,
	REPLY_NIL = RESP_NIL,
	/* memcached's */
	REPLY_STORED = 128,
	REPLY_DELETED,
	REPLY_TOUCHED,
	REPLY_ITEM, /* to a meta command's read: with or without the value, depending on its flags */
	REPLY_VERSION,
	REPLY_DEBUG,
	REPLY_NOOP,
	REPLY_OTHER,  /* to a text command without a key */
	REPLY_OPCODE, /* to a binary one: it contains the command */
};

/* The expected answer to a command. */
struct expected {
	uint8_t kind;	/* enum reply_kind that means success */
	uint8_t miss;	/* enum reply_kind that means a miss; REPLY_ANY: none does */
	uint8_t opcode; /* of REPLY_OPCODE */
};

/* A command that a proxy doesn't route by its second word, or only in this form. */
struct key_rule {
	const char *name; /* in upper case; NULL: the end of the list */
	uint32_t one_key; /* the number of words with one key; 0: no word is a key */
};

/* A kind of server, with any protocol. */
struct product {
	const char *name;     /* written as "Redis" */
	const char *program;  /* the program that should run at the address */
	uint16_t port;	      /* unless another one is given */
	uint32_t longest_key; /* bytes; 0: longer than any of ours */
	const char *expiry;   /* what precedes a SET's expiry, with a leading blank */
	const struct key_rule *key_rules;
	/* Commands that change nothing, terminated by NULL. No list: the server knows them. */
	const char *const *reads;
	bool databases;	 /* numbered databases */
	bool records;	 /* hashes and sorted sets, which YCSB's layout needs */
	bool replicas;	 /* with clusters, Sentinels and WAIT */
	bool recordings; /* of its commands, which can be replayed */
	bool messages;	 /* pub/sub, lists and streams that consumers can wait for */
};

union reply_scanner;

struct protocol {
	const char *name; /* the name for --protocol and in recordings */
	const struct product *product;
	const char *ping; /* the cheapest command for the server */
	bool resp3;	  /* RESP3 is available, and keys can be tracked */
	bool quiet;	  /* misses can get no answer */
	bool numbers;	  /* requests contain a number that the answer repeats */
	bool redirects;	  /* errors may redirect to another server or ask to retry later */

	/* ---- requests ---- */
	/* Whether the command exists; else false, and a sentence. */
	bool (*fits)(const struct command *c, char *error, size_t size);
	void (*expect)(const struct command *c, struct expected *e);
	/* Further checks of a command before the load; `quiet`: as requested. NULL: none. False, and a
	 * sentence. */
	bool (*settle)(struct command *c, bool quiet, const char *text, char *error, size_t size);
	/* Appends one request. `patches`: NULL, or receives the positions of placeholders. False: out of
	 * memory. */
	bool (*write)(const struct command *c, const struct fill *f, const struct request_values *v,
		      struct random_stream *random, struct bytes *to, struct patches *patches);
	/* Appends the login of a new connection, as its first bytes. False: out of memory. */
	bool (*login)(const char *user, const char *password, struct bytes *to);

	/* ---- answers, whose end `s` has just found ---- */
	/* Like resp_scan: 1 complete, 0 no more bytes, -1 not a reply. */
	int (*scan)(union reply_scanner *s, const char **at, const char *end);
	/* The FT_STATUS_* of the scanned reply. For an error *word is its class, otherwise unchanged. */
	unsigned (*status)(const union reply_scanner *s, const struct expected *e, const char **word);
	/* The text of an error, as the server sent it, or its beginning and "..."; "" if it is not kept. */
	void (*error_text)(const union reply_scanner *s, char *out, size_t size);
	/* Whether a connection's greeting, such as a login, succeeded. */
	bool (*accepted)(const union reply_scanner *s);
	/* Whether another command was refused because a login is required. NULL: the protocol does not show
	 * this. */
	bool (*wants_login)(const union reply_scanner *s);
	/* The position of the value in the `length` bytes of a reply of one value. False: no value, or
	 * truncated. */
	bool (*find_value)(const char *reply, size_t length, size_t *at, size_t *bytes);
};

extern const struct product redis_product, memcached_product;

/* The table, by enum protocol_id (protocols.c). */
extern const struct protocol *const protocols[PROTOCOLS];

static inline const struct protocol *protocol_of(enum protocol_id id)
{
	return protocols[id];
}

/* The default protocol of a kind of server: its first one in the table. */
enum protocol_id product_protocol(const struct product *p);

/* Whether the second word of a command is its only key. */
bool product_one_key(const struct product *p, const struct command *c);
/* Whether a command changes nothing, for a product that has a list of those. */
bool product_reads(const struct product *p, const struct command *c);

#ifdef __cplusplus
}
#endif
#endif

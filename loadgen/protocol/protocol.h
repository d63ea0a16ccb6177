/* SPDX-License-Identifier: MIT */
/* What depends on the protocol, as a table: one `struct protocol` for each way of speaking to a server, one
 * `struct product` for each kind of server. Whoever needs to know asks the table; nobody asks which protocol
 * it is.
 *
 * To speak one more protocol, write its protocol_NAME.c (what its requests and answers are), give it a row in
 * protocols.c, and a test. Two things lie elsewhere: its scanner is a member of `union reply_scanner`
 * (reply.h), for its state lies in each connection; and how one comes to an understanding with a server that
 * speaks it, which needs links, options and time-outs that this module knows nothing of, is a row of
 * loadgen/server/conversation.c. A product of a new kind also has tests of -t (options/suite.c) and something
 * to observe (observer/), or none.
 *
 * The hot path asks the table of memcached's protocols only; that it is Redis it tells by the number
 * (reply.h).
 */
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

/* What a command is answered with. Redis' kinds have the numbers of its scanner, so that the hot path
 * compares them as they come. */
enum reply_kind {
	REPLY_ANY = 0, /* whatever is no error */
	REPLY_LINE = RESP_LINE,
	REPLY_INTEGER = RESP_INTEGER,
	REPLY_VALUE = RESP_STRING, /* of memcached: values, or none */
	REPLY_LIST = RESP_ARRAY,
	REPLY_NIL = RESP_NIL,
	/* memcached's */
	REPLY_STORED = 128,
	REPLY_DELETED,
	REPLY_TOUCHED,
	REPLY_ITEM, /* to a meta command's read: with the value or without, as its flags have it */
	REPLY_VERSION,
	REPLY_DEBUG,
	REPLY_NOOP,
	REPLY_OTHER,  /* to a text command without a key */
	REPLY_OPCODE, /* to a binary one: it names the command */
};

/* What is to come back for one command. */
struct expected {
	uint8_t kind;	/* enum reply_kind that means success */
	uint8_t miss;	/* enum reply_kind that means that nothing is there; REPLY_ANY: none does */
	uint8_t opcode; /* of REPLY_OPCODE */
};

/* A command that a proxy doesn't pass on by its second word, or only in this form. */
struct key_rule {
	const char *name; /* in capitals; NULL: the list's end */
	uint32_t one_key; /* as many words as it has with one key; 0: none is a key */
};

/* A kind of server, however it is spoken to. */
struct product {
	const char *name;     /* as one writes it: "Redis" */
	const char *program;  /* which is to run where we connect */
	uint16_t port;	      /* unless another is given */
	uint32_t longest_key; /* bytes; 0: longer than any of ours */
	const char *expiry;   /* what stands before a SET's expiry, with a blank in front */
	const struct key_rule *key_rules;
	/* Commands that change nothing, up to NULL; no list: the server says which they are. */
	const char *const *reads;
	bool databases;	 /* numbered ones */
	bool records;	 /* hashes and sorted sets, which YCSB's layout is made of */
	bool replicas;	 /* with all that goes with them: clusters, Sentinels, WAIT */
	bool recordings; /* of its commands, that can be replayed */
	bool messages;	 /* pub/sub, lists and streams that consumers wait on */
};

union reply_scanner;

struct protocol {
	const char *name; /* --protocol's word, and the recording's */
	const struct product *product;
	const char *ping; /* the command that costs the server least */
	bool resp3;	  /* there is a RESP3 to go over to, and keys can be tracked */
	bool quiet;	  /* misses can be left out of the answers */
	bool numbers;	  /* requests carry a number that comes back */
	bool redirects;	  /* errors may say that another server, or a later time, is the right one */

	/* ---- requests ---- */
	/* Whether there is such a command; else false, and a sentence. */
	bool (*fits)(const struct command *c, char *error, size_t size);
	void (*expect)(const struct command *c, struct expected *e);
	/* What else is to be known of a command before the load, `quiet` being asked for. NULL: nothing is.
	 * False, and a sentence. */
	bool (*settle)(struct command *c, bool quiet, const char *text, char *error, size_t size);
	/* Appends one request. `patches`: NULL, or takes where placeholders landed. False: out of memory. */
	bool (*write)(const struct command *c, const struct fill *f, const struct request_values *v,
		      struct random_stream *random, struct bytes *to, struct patches *patches);
	/* Appends what logs in on a new connection, behind nothing else. False: out of memory. */
	bool (*login)(const char *user, const char *password, struct bytes *to);

	/* ---- answers, of which `s` has just found the end ---- */
	/* As resp_scan: 1 complete, 0 the bytes ran out, -1 no reply. */
	int (*scan)(union reply_scanner *s, const char **at, const char *end);
	/* The FT_STATUS_* of what was scanned. For an error *word is its class, else as it was. */
	unsigned (*status)(const union reply_scanner *s, const struct expected *e, const char **word);
	/* Whether a connection's greeting, such as a login, was taken well. */
	bool (*accepted)(const union reply_scanner *s);
	/* Whether something else was refused for want of a login; NULL where that isn't told so. */
	bool (*wants_login)(const union reply_scanner *s);
	/* Where the value lies in the `length` bytes of a reply of one value. False: it has none, or is cut.
	 */
	bool (*find_value)(const char *reply, size_t length, size_t *at, size_t *bytes);
};

extern const struct product redis_product, memcached_product;

/* The table, by enum protocol_id (protocols.c). */
extern const struct protocol *const protocols[PROTOCOLS];

static inline const struct protocol *protocol_of(enum protocol_id id)
{
	return protocols[id];
}

/* The protocol that a kind of server is spoken to with, unless another is asked for: its first in the table.
 */
enum protocol_id product_protocol(const struct product *p);

/* Whether the second word of a command is its only key. */
bool product_one_key(const struct product *p, const struct command *c);
/* Whether a command changes nothing, of a product that has a list of those. */
bool product_reads(const struct product *p, const struct command *c);

#ifdef __cplusplus
}
#endif
#endif

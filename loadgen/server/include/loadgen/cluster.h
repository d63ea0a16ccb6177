/* SPDX-License-Identifier: MIT */
/* Several servers: slots of a Redis Cluster, ketama's ring, which words of a command are keys, and
 * outages. nodes.h has the table of servers. */
#ifndef FORKTAIL_LOADGEN_CLUSTER_H
#define FORKTAIL_LOADGEN_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which of a Redis Cluster's 16384 hash slots a key belongs to: CRC16 (XMODEM: polynomial 0x1021, from 0)
 * modulo 16384 of the name, or of its hash tag: the text between the first "{" and the first "}" after it,
 * unless that is empty. Source: the Redis Cluster specification, "Key distribution model" and "Hash tags". */

enum { CLUSTER_SLOTS = 16384 };

uint16_t crc16(const char *bytes, size_t length);
uint16_t cluster_slot(const char *key, size_t length);

/* Distributes keys over several servers by consistent hashing in twemproxy's default way (distribution
 * ketama, hash fnv1a_64, weight 1), so that a key goes to the same server with and without the proxy. Each
 * server has 160 points on a ring of 32 bits: the four little-endian words of MD5("name-i") for i below 40.
 * Its name is "host:port", the host alone if the port is 11211 (as in libmemcached), or the path of a Unix
 * socket. A key belongs to the first point at or after its hash: FNV-1a with the 64-bit basis and prime, both
 * truncated to 32 bits. Source: twemproxy's notes on ketama and its observable behaviour, checked against a
 * nutcracker in tests/system/load/test_servers.py. */

struct ketama {
	struct ketama_point {
		uint32_t value;
		uint16_t server;
	} * points;
	uint32_t count;
};

/* The name of a server in twemproxy's ring, unless it has an explicit name. */
void ketama_name(const struct server_address *a, char *out, size_t size);
/* `names`: of the servers, as above. -ENOMEM, or -EIO if this host's OpenSSL has no MD5. */
int ketama_init(struct ketama *k, const char *const *names, uint32_t count);
void ketama_free(struct ketama *k);

uint32_t ketama_hash(const char *key, size_t length);
/* Returns the number of the key's server. */
uint32_t ketama_server(const struct ketama *k, const char *key, size_t length);

/* Where a command has its first key, as the server reports it: COMMAND INFO once for each command name. Redis
 * 7 and Valkey describe it completely (key specifications), so the key of EVAL, XREAD or ZUNIONSTORE is found
 * without asking for each command. Older servers report fixed positions only; COMMAND GETKEYS finds the
 * others. Words are given as for redisCommandArgv: `lengths` NULL means that all end with 0. */

struct link;
struct redisReply;

enum { KEY_SPECS_MAX = 4, KEY_KEYWORD = 24 };

/* One key specification, as far as the first key depends on it
 * (https://redis.io/docs/latest/develop/reference/key-specs/). */
struct key_spec {
	char keyword[KEY_KEYWORD]; /* the keys begin after this word; "": at a fixed position */
	int32_t from; /* that position, or where the search begins; below 0: from the end, backwards */
	bool counted; /* the number of keys is among the words */
	int32_t count_at, first; /* counted: positions of the number and the first key, from the beginning */
};

struct command_keys {
	int known; /* 1: as follows. 0: the server has no such command. -1: it does not answer COMMAND INFO,
		      so the second word is assumed to be the key */
	bool reads, writes;
	bool container; /* the next word is a part of its name */
	bool ask;	/* if there is no key by these specifications, COMMAND GETKEYS may find one */
	uint32_t spec_count;
	struct key_spec specs[KEY_SPECS_MAX];
};

/* Reads the answer to COMMAND INFO for one command. */
void command_keys_read(struct command_keys *k, const struct redisReply *answer);
/* The number of the word with the first key. 0: none. */
uint32_t command_keys_first(const struct command_keys *k, uint32_t count, const char *const *words,
			    const size_t *lengths);

/* What is known of the commands of one server. NULL: out of memory. */
struct command_table *command_table_new(struct link *l);
void command_table_free(struct command_table *t);
/* Finds a command by its words, asking the server for a name that is new. NULL: no answer or out of memory;
 * link_error says why. */
const struct command_keys *command_table_find(struct command_table *t, uint32_t count,
					      const char *const *words, const size_t *lengths);
/* Asks for the first key of a command. *key is NULL without one, else as long as the reply, which
 * must be freed. NULL: no answer. */
struct redisReply *command_table_ask(struct command_table *t, uint32_t count, const char *const *words,
				     const size_t *lengths, const struct redisReply **key);

/* How long keys had no server: the gap in the answers after a failover or a crash. An outage begins when a
 * node refuses or breaks connections, or replies that it cannot serve (CLUSTERDOWN, READONLY, LOADING,
 * MASTERDOWN). It covers the slots that the node owned then. It ends with the first answer without error to a
 * request for one of those slots, from any node. The gap is the time from the last such answer before the
 * outage to the first one after it: the minimum that every user of those keys experienced. Each load thread
 * keeps its own list. outages_add merges the threads' views of one outage: the latest last answer before it,
 * the earliest first answer after it. Requests that replicas may answer (--read-from) end no outage. */

enum { OUTAGES_MAX = 64 };

struct outage {
	uint16_t node;	      /* owner of the affected slots */
	uint16_t after;	      /* the node of the first answer after the outage */
	uint64_t noticed_ns;  /* when the trouble was noticed */
	uint64_t last_ok_ns;  /* 0: no answer before */
	uint64_t first_ok_ns; /* 0: no answer after */
	uint64_t failed;      /* requests for its slots that failed, from noticed_ns on */
	uint64_t delayed;     /* requests due before first_ok_ns and answered after it */
	uint64_t longest_ns;  /* the longest latency of those */
};

struct outages {
	uint32_t count, open;
	uint64_t latest_end_ns; /* latest first_ok_ns: requests due after it belong to no outage */
	uint64_t lost;		/* outages beyond the limit */
	struct outage list[OUTAGES_MAX];
	uint8_t of_slot[CLUSTER_SLOTS]; /* the number of its latest outage plus 1; 0: none */
};

/* Whether an outage of the node is open. */
bool outages_is_open(const struct outages *o, uint16_t node);
/* A node is in trouble: opens an outage for the slots that outages_mark adds next. False: an outage of the
 * node is open already, or the list is full. */
bool outages_begin(struct outages *o, uint16_t node, uint64_t last_ok_ns, uint64_t now_ns);
/* The outage that began last also covers this slot. */
void outages_mark(struct outages *o, uint32_t slot);
/* Quick check whether the answer to a request may belong to an outage. */
static inline bool outages_concern(const struct outages *o, uint64_t intended_ns)
{
	return o->open > 0 || intended_ns < o->latest_end_ns;
}
/* A request for `slot` was answered by `node`, or failed. */
void outages_note_answer(struct outages *o, uint32_t slot, uint16_t node, uint64_t intended_ns,
			 uint64_t now_ns);
void outages_note_failure(struct outages *o, uint32_t slot);
/* Merges a thread's outages into those of other threads. */
void outages_add(struct outages *all, const struct outages *of_thread);
/* Removes outages that affected no request. */
void outages_drop_unfelt(struct outages *all);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* What is asked of the server: the operations of a run, their shares, which keys, and the bytes of each
 * request.
 *
 * An operation is one command or several, one after the other on the same connection and timed as one (YCSB's
 * insert, scan, read-modify-write). Commands of fixed width are made once, as templates, and only patched
 * while the load runs; a thread's request buffer remembers which template lies at which place, so a run of
 * one operation copies nothing but digits. Others are formatted per request.
 */
#ifndef FORKTAIL_LOADGEN_WORKLOAD_H
#define FORKTAIL_LOADGEN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keys.h"
#include "loadgen/command/command.h"
#include "loadgen/command/random.h"
#include "loadgen/protocol/protocol.h"
#include "ycsb.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OPERATIONS_MAX = 64, STEPS_MAX = 2, OPERATION_NAME = 24, NO_OPERATION = 255 };

/* How the server of a command is found when there are several (route.c). */
struct route {
	enum { ROUTE_ANY, ROUTE_KEY } kind;
	uint16_t word; /* ROUTE_KEY: the one that is the key */
	bool reads;    /* changes nothing: a replica may answer */
	bool writes;
};

/* Requests that were recorded and are not made here; loadgen/replay fills it in. */
struct replay;
struct recorded {
	const struct replay *replay;
	/* Appends the bytes of record `number`, or of a SELECT of that database. False: out of memory. NULL:
	 * requests are made here. */
	bool (*write)(const struct replay *r, bool select, uint64_t number, struct bytes *to);
};

/* A command of an operation, ready to send. */
struct step {
	struct command command;
	char *bytes;	 /* the template; NULL: formatted per request */
	uint32_t length; /* of the template; 0 without one */
	struct patches patches;
	struct expected expected;
	uint32_t least; /* an integer reply below this is a failure: too few replicas have the write (WAIT) */
	struct route route;
};

struct operation {
	char name[OPERATION_NAME];
	struct step steps[STEPS_MAX];
	uint32_t step_count;
	bool scan;     /* the last step is repeated for each key in the first one's answer */
	bool verifies; /* the reply is the value of the key */
	bool inserts;  /* the key is the next of the growing base */
	bool internal; /* a replay's own SELECT: neither counted nor logged */
};

/* All operations of a run; read-only while it runs, but for the base. Operations are numbered as the log and
 * its manifest's "ops" have them. */
struct workload {
	enum protocol_id protocol;
	struct fill fill;
	struct key_names names;
	struct values values;
	struct key_distribution distribution;
	struct operation operations[OPERATIONS_MAX];
	uint32_t operation_count;
	uint64_t keys;	       /* key space, at least 1; with a growing base, where it began */
	bool growing;	       /* an operation inserts: keys are drawn from the base */
	bool split;	       /* each connection has keys of its own */
	bool quiet;	       /* reads by memcached's meta commands leave misses out */
	bool verify;	       /* replies of operations that say so are checked byte by byte */
	struct key_base *base; /* when growing */
	struct ycsb_keys
	    *ycsb; /* keys as YCSB chooses them, copied by each thread; NULL: by the distribution */
	char *fixed_value;
	struct recorded recorded;
	uint8_t select;	       /* a replay's internal operation */
	uint8_t delivery;      /* of messages that consumers receive */
	struct stamps *stamps; /* of those messages; NULL: there are none */
};

/* One test's part of the workload. */
struct mix {
	uint32_t count;
	uint8_t operations[OPERATIONS_MAX]; /* numbers */
	uint64_t below[OPERATIONS_MAX];	    /* a draw of 64 bits up to this is operations[i] */
	bool sequential;		    /* keys in order, each once (a fill), whatever the distribution */
};

/* A thread's place in the workload. */
struct chooser {
	struct random_stream keys, operations;
	uint64_t next_key, stride; /* sequential: this thread's next, and the distance to the one after */
	struct key_drawer drawer;
	struct ycsb_keys ycsb;
	uint64_t *own_next; /* sequential and split: by connection of this thread */
	uint32_t first_connection, all_connections;
	bool plain; /* uniform over a fixed space: the quick way */
};

struct request_buffer {
	struct bytes bytes;
	struct random_stream random; /* placeholders' draws */
	struct slot {
		uint32_t at;
		uint16_t from; /* which template; TEMPLATE_NONE: nothing known */
	} * slots;
};

/* Adds an operation whose steps' commands are in `texts` (command_parse's form). Its number, or -EINVAL and a
 * sentence. */
int workload_add(struct workload *w, const char *name, const char *const *texts, uint32_t steps, char *error,
		 size_t size);
/* Lets every write of one command be followed by a WAIT for `replicas`, `wait_ms` at most. 0, or -EINVAL and
 * a sentence. */
int workload_wait(struct workload *w, uint32_t replicas, uint32_t wait_ms, char *error, size_t size);
/* Makes templates; protocol, names, values.sizes, fill and operations are set. -ENOMEM. */
int workload_prepare(struct workload *w, double compressible, uint64_t seed);
/* Operation 0 sends messages with `text`, whose data becomes a stamped message; another, `name`, is what
 * consumers receive. 0, or negative errno and a sentence. */
int workload_add_messages(struct workload *w, const char *text, const char *name, uint64_t seed, char *error,
			  size_t size);
/* An operation without a command of ours: any reply but an error will do. There must be room for it. */
struct operation *workload_add_bare(struct workload *w, const char *name);
void workload_free(struct workload *w);
/* Adds an operation with a weight above 0; mix_close turns weights into shares. */
void mix_add(struct mix *m, uint32_t operation, uint64_t weight);
void mix_close(struct mix *m);

int request_buffer_init(struct request_buffer *b, const struct workload *w, uint32_t batch,
			struct random_stream random);
void request_buffer_free(struct request_buffer *b);

static inline uint32_t choose_operation(const struct mix *m, struct chooser *c)
{
	uint64_t draw;
	uint32_t i = 0;

	if (m->count == 1)
		return m->operations[0];
	draw = random_next(&c->operations);
	while (draw > m->below[i])
		i++;
	return m->operations[i];
}

/* A thread's chooser: it takes the sequential keys `first`, `first` + `stride`, ...; `connections` of its own
 * when keys are split, numbered from first_connection among all_connections. -ENOMEM. */
int chooser_init(struct chooser *c, const struct workload *w, const struct mix *m, uint64_t seed,
		 uint32_t thread, uint64_t first, uint64_t stride, uint32_t connections,
		 uint32_t first_connection, uint32_t all_connections);
void chooser_free(struct chooser *c);
/* The key of a request of `operation`, on this thread's connection number `connection`. */
uint64_t choose_key_slowly(const struct workload *w, const struct mix *m, struct chooser *c,
			   uint32_t operation, uint32_t connection);

static inline uint64_t choose_key(const struct workload *w, const struct mix *m, struct chooser *c,
				  uint32_t operation, uint32_t connection)
{
	if (c->plain)
		return w->keys == 1 ? 0 : random_below(&c->keys, w->keys);
	return choose_key_slowly(w, m, c, operation, connection);
}

enum { TEMPLATE_NONE = 0xffff };

size_t request_put_slowly(struct request_buffer *b, const struct workload *w, uint32_t slot, size_t at,
			  const struct step *s, uint16_t number, const struct request_values *v);

/* Puts request number `slot` of a batch at byte `at`; returns the byte after it, or 0 when memory is short.
 * `s` is the step and `number` its, operation * STEPS_MAX + step. Slots are filled in order, from slot 0 at
 * byte 0. */
static inline size_t request_put(struct request_buffer *b, const struct workload *w, uint32_t slot, size_t at,
				 const struct step *s, uint32_t number, const struct request_values *v)
{
	if (b->slots[slot].from != number || b->slots[slot].at != at)
		return request_put_slowly(b, w, slot, at, s, (uint16_t)number, v);
	for (uint32_t i = 0; i < s->patches.count; i++)
		patch_apply(&s->patches.list[i], &w->fill, v, &b->random, b->bytes.at + at);
	return at + s->length;
}

#ifdef __cplusplus
}
#endif
#endif

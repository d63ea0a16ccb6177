/* SPDX-License-Identifier: MIT */
/* The requests of a load: the operations of a run, their shares, keys, and the bytes of each request. An
 * operation is one command or several, sent one after the other on the same connection and measured as one
 * (YCSB's insert, scan, read-modify-write). Commands of fixed width are formatted once, as templates, and
 * only patched during the load. A thread's request buffer remembers which template is at which position, so a
 * run of one operation copies only digits. Other commands are formatted per request. */
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

/* How the server of a command is found if there are several (route.c). */
struct route {
	enum { ROUTE_ANY, ROUTE_KEY } kind;
	uint16_t word; /* ROUTE_KEY: the one that is the key */
	bool reads;    /* changes nothing: a replica may answer */
	bool writes;
};

/* Requests that were recorded and are not generated here; loadgen/replay fills it in. */
struct replay;
enum { NO_SLOT = UINT16_MAX };
struct recorded {
	const struct replay *replay;
	const uint16_t *slots; /* of the records' keys, or NO_SLOT; NULL: not known */
	/* Appends the bytes of record `number`, or of the generator's own request of that number (SELECT, see
	 * replay.h). False: out of memory. NULL: requests are generated here. */
	bool (*write)(const struct replay *r, bool own, uint64_t number, struct bytes *to);
};

/* A command of an operation, ready to send. */
struct step {
	struct command command;
	char *bytes;	 /* the template; NULL: formatted per request */
	uint32_t length; /* of the template; 0 without one */
	struct patches patches;
	struct expected expected;
	uint32_t least; /* an integer reply below this is a failure: too few replicas acknowledged the write
			   (WAIT) */
	struct route route;
};

struct operation {
	char name[OPERATION_NAME];
	struct step steps[STEPS_MAX];
	uint32_t step_count;
	bool scan;     /* the last step is repeated for each key in the first one's answer */
	bool verifies; /* the reply is the value of the key */
	bool inserts;  /* the key is the next of the growing base */
	bool cursor;   /* the answer's first element is the next request's __cursor__ */
	bool own_keys; /* keys 0 to keys-1 by its own distribution, instead of the workload's */
	struct key_distribution distribution;
	uint64_t keys;
	bool internal; /* a replay's own SELECT: neither counted nor logged */
};

/* All operations of a run; read-only while it runs, except the base. Operations are numbered as in the log
 * and its manifest's "ops". */
struct workload {
	enum protocol_id protocol;
	struct fill fill;
	struct key_names names;
	struct values values;
	struct key_distribution distribution;
	struct operation operations[OPERATIONS_MAX];
	uint32_t operation_count;
	uint64_t keys;	       /* key space, at least 1; with a growing base, its initial size */
	bool growing;	       /* an operation inserts: keys are drawn from the base */
	bool split;	       /* each connection has separate keys */
	bool quiet;	       /* reads by memcached's meta commands get no answer for misses */
	bool verify;	       /* replies of marked operations are checked byte by byte */
	struct key_base *base; /* when growing */
	struct ycsb_keys
	    *ycsb; /* keys as YCSB chooses them, copied by each thread; NULL: by the distribution */
	char *fixed_value;
	struct data_set *data; /* rows for placeholders; NULL: none */
	struct recorded recorded;
	uint8_t select;	       /* a replay's internal operation */
	uint8_t delivery;      /* run id of messages that consumers receive */
	struct stamps *stamps; /* operation of those messages; NULL: none */
};

/* One test's part of the workload. */
struct mix {
	uint32_t count;
	uint8_t operations[OPERATIONS_MAX]; /* numbers */
	uint64_t below[OPERATIONS_MAX];	    /* a 64-bit draw up to this selects operations[i] */
	bool sequential;		    /* keys in order, each once (a fill), whatever the distribution */
};

/* A thread's keys of an operation that has its own. */
struct operation_keys {
	struct key_drawer drawer;
	uint64_t next; /* sequential */
};

/* A thread's state in the workload. */
struct chooser {
	struct random_stream keys, operations;
	uint64_t next_key, stride; /* sequential: this thread's next key, and the distance to the one after */
	struct key_drawer drawer;
	struct ycsb_keys ycsb;
	struct operation_keys *by_operation; /* for operations with own keys; NULL: none has */
	uint64_t *own_next;		     /* sequential and split: by connection of this thread */
	uint32_t first_connection, all_connections;
	bool plain; /* uniform over a fixed space: the fast path */
};

struct request_buffer {
	struct bytes bytes;
	struct random_stream random; /* random numbers for placeholders */
	struct slot {
		uint32_t at;
		uint16_t from; /* which template; TEMPLATE_NONE: unknown */
	} * slots;
};

/* Adds an operation whose steps' commands are in `texts` (command_parse's form). Returns its number, or
 * -EINVAL and a sentence. */
int workload_add(struct workload *w, const char *name, const char *const *texts, uint32_t steps, char *error,
		 size_t size);
/* Makes every write of one command be followed by a WAIT for `replicas`, at most `wait_ms`. Returns 0, or
 * -EINVAL and a sentence. */
int workload_wait(struct workload *w, uint32_t replicas, uint32_t wait_ms, char *error, size_t size);
/* Creates templates; protocol, names, values.sizes, fill and operations must be set. -ENOMEM on failure. */
int workload_prepare(struct workload *w, double compressible, uint64_t seed);
/* Operation 0 sends messages with `text`, whose data becomes a stamped message; another operation, `name`, is
 * what consumers receive. Returns 0, or a negative errno and a sentence. */
int workload_add_messages(struct workload *w, const char *text, const char *name, uint64_t seed, char *error,
			  size_t size);
/* An operation without a command to generate: any reply except an error is accepted. There must be space for
 * it. */
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

/* A thread's chooser. It takes the sequential keys `first`, `first` + `stride`, ... If keys are split, it has
 * `connections` connections, numbered from first_connection among all_connections. -ENOMEM on failure. */
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

/* Writes request number `slot` of a batch at byte `at`; returns the offset after it, or 0 without memory. `s`
 * is the step and `number` its number, operation * STEPS_MAX + step. Slots are filled in order, from slot 0
 * at byte 0. */
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

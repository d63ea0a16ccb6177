/* SPDX-License-Identifier: MIT */
/* The workload: which requests, for which keys, and when. */
#ifndef FORKTAIL_LOADGEN_WORKLOAD_H
#define FORKTAIL_LOADGEN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which key a request uses: a pattern of key numbers over a key space 0 .. items-1. No pattern needs a table:
 * a key space of 10^12 costs as much as one of 10, and one that grows during the load costs one or two
 * additional logarithms per draw. The YCSB generators are separate: they match YCSB exactly,
 * including its quirks, while these follow the distribution they are named after. */

enum key_pattern {
	KEYS_UNIFORM,
	KEYS_SEQUENTIAL, /* in order, from 0 again after the last */
	KEYS_ZIPF,	 /* key k in proportion to 1 / (k+1)^exponent */
	KEYS_GAUSSIAN,	 /* around the middle of the key space; numbers outside are drawn again */
	KEYS_LATEST,	 /* zipf from the other end: the last key is the most popular */
	KEYS_HOT,	 /* the first keys get most of the requests; uniform within each part */
};

struct key_distribution {
	enum key_pattern pattern;
	double exponent;	       /* zipf, latest: above 0 */
	double deviation;	       /* gaussian: standard deviation / items, above 0, at most 1 */
	double hot_requests, hot_keys; /* hot: shares, above 0, at most 1; at least one key is hot */
	bool scattered; /* zipf: popular keys are scattered over the key space in a fixed order, not at its
			   start */
};

/* "uniform", "sequential", "zipf", "zipf:1.2", "zipf-scattered", "zipf-scattered:1.2", "gaussian",
 * "gaussian:0.1", "latest", "latest:0.8", "hot:90:10" (90 % of requests to 10 % of keys). Exponents are 0.99
 * and the deviation 1/6 by default. Returns false with one sentence in `error`. */
bool key_distribution_parse(const char *text, struct key_distribution *d, char *error, size_t size);

/* One thread's source of keys: the distribution, and values that depend on the number of items, cached while
 * that is unchanged. */
struct key_drawer {
	struct key_distribution distribution;
	uint64_t next;	/* sequential: the next key; 0 at first, the caller may change it */
	uint64_t items; /* the cached values belong to this number; 0: none yet */
	double low, high, squeeze;
	double spare; /* gaussian: they come in pairs */
	bool has_spare;
};

void key_drawer_init(struct key_drawer *d, const struct key_distribution *distribution);

/* A key number in 0 .. items-1. `items` is 1 to 2^53 and may change from call to call. */
uint64_t key_draw(struct key_drawer *d, struct random_stream *r, uint64_t items);

/* The key of a rank in scattered zipf: a permutation of 0 .. items-1, the same in every run. */
uint64_t key_scatter(uint64_t rank, uint64_t items);

/* YCSB's core workloads A to F: their mixes, their keys, and the base of records that inserts grow. Figures
 * are comparable with YCSB's only if the same keys are requested with the same frequencies, so all of this
 * follows its source exactly, including approximate formulas. The random generator differs, so runs agree in
 * distribution, not draw by draw. */

enum { YCSB_FIELDS = 10, YCSB_FIELD_BYTES = 100 };

enum ycsb_operation {
	YCSB_READ,		/* all fields of a record */
	YCSB_UPDATE,		/* one field */
	YCSB_INSERT,		/* a record of all fields */
	YCSB_SCAN,		/* up to YCSB_SCAN_MAX records */
	YCSB_READ_MODIFY_WRITE, /* a read, then an update of the same record, measured together */
	YCSB_OPERATIONS,
};

enum ycsb_choice { YCSB_ZIPFIAN, YCSB_LATEST };

struct ycsb_workload {
	char letter;
	double shares[YCSB_OPERATIONS]; /* their sum is 1 */
	enum ycsb_choice choice;	/* for the keys of everything except inserts */
};

/* 'A' to 'F' or 'a' to 'f'; NULL for any other. */
const struct ycsb_workload *ycsb_find(char letter);

enum ycsb_operation ycsb_draw_operation(const struct ycsb_workload *w, struct random_stream *r);

static inline uint32_t ycsb_draw_field(struct random_stream *r)
{
	return (uint32_t)random_below(r, YCSB_FIELDS);
}

/* Zipf by the closed form of Gray et al. ("Quickly generating billion-record synthetic databases", SIGMOD
 * 1994): exact for the two most popular items, an approximation for the others. */
struct ycsb_zipfian {
	uint64_t items; /* at the start */
	uint64_t zeta_items;
	double zeta; /* sum of 1/i^theta for i = 1 .. zeta_items */
	double eta;
};

/* Extends zeta to `items`: some 20 ns per item. */
void ycsb_zipfian_init(struct ycsb_zipfian *z, uint64_t items);

/* 0 .. items-1 (and, as in YCSB, rarely `items` itself). zeta is extended when items have grown and stays
 * otherwise. */
uint64_t ycsb_zipfian_draw(struct ycsb_zipfian *z, struct random_stream *r, uint64_t items);

/* A thread's choice of existing records. Initialize one, then copy it to each thread. */
struct ycsb_keys {
	struct ycsb_zipfian zipfian;
	uint64_t hashed_items; /* zipfian choice: hashes are taken modulo this; 0 for latest */
};

/* `records` exist before the run (at least 1), which does `operations` of all kinds. From these YCSB predicts
 * the number of inserts and distributes popularity over future keys, too. */
void ycsb_keys_init(struct ycsb_keys *k, const struct ycsb_workload *w, uint64_t records,
		    uint64_t operations);

/* A record among 0 .. count-1; `count` is key_base_count(), at least 1. */
uint64_t ycsb_draw_key(struct ycsb_keys *k, struct random_stream *r, uint64_t count);

/* The base of records while threads insert: numbers are assigned in order and acknowledged in any order.
 * Readable records are those below the first number that isn't acknowledged. No thread ever waits. Each
 * number has a bit in a ring as large as YCSB's. A bit is flipped, not set, so it need not be cleared before
 * the ring's next lap: the value that means "acknowledged" alternates from lap to lap. */
#define KEY_BASE_WINDOW (1u << 20)
#define KEY_BASE_FULL UINT64_MAX

struct key_base {
	uint64_t start;
	uint64_t next, count; /* minus start; atomic */
	uint64_t turned[KEY_BASE_WINDOW / 64];
};

/* `start` records exist. */
void key_base_init(struct key_base *b, uint64_t start);

/* The next record to insert; KEY_BASE_FULL while KEY_BASE_WINDOW of them aren't acknowledged. */
uint64_t key_base_take(struct key_base *b);

/* Call it once for each number taken, as YCSB does whatever the result of the insert: a number that is never
 * acknowledged prevents reading of all later records. */
void key_base_ack(struct key_base *b, uint64_t n);

static inline uint64_t key_base_count(const struct key_base *b)
{
	return b->start + __atomic_load_n(&b->count, __ATOMIC_ACQUIRE);
}

/* The shape of a load over time: a rate of requests, or a number of connections, that steps, rises or
 * oscillates. A shape is a value at each instant, with its integral in closed form. The integral of a rate is
 * the number of requests due so far, so request k is due where it reaches k: that is exact for every shape,
 * while stepping through time with the current rate would drift. */

enum { PROFILE_PIECES = 64 };

enum profile_subject { PROFILE_RATE, PROFILE_CONNECTIONS };
enum profile_kind { PROFILE_LINEAR, PROFILE_SINE };

/* A stretch of time in which the value changes linearly from `first` to `last`. */
struct profile_piece {
	double first, last;
	uint64_t start_ns, length_ns;
	double start, length; /* the same in seconds */
	double before, area;  /* integral up to its start, and over it */
};

struct profile {
	enum profile_subject subject;
	enum profile_kind kind;
	bool repeat;
	uint32_t count;
	struct profile_piece pieces[PROFILE_PIECES]; /* linear */
	uint64_t length_ns;			     /* of the shape, or of one period */
	double length, area;			     /* the same in seconds; the integral over it */
	double mean, swing;			     /* sine: mean + swing * sin(2 pi t / length) */
};

/* "steps:1000x10s,2000x10s" holds each value for its time. "ramp:1000-10000x60s" changes linearly from one
 * value to the other; more ramps may follow after commas. "square:1000,5000,10s" alternates, half a period of
 * 10 s each, the low value first. "sine:1000,5000,60s" oscillates between minimum and maximum, from the mean
 * upwards at first. Steps and ramps hold their last value after their end, or start again with ",repeat" at
 * the end. "rate:" (the default, per second) or "connections:" may precede it. Values are 0 to 10^9,
 * connections to 10^6. Returns false with one sentence in `error`. */
bool profile_parse(const char *text, struct profile *p, char *error, size_t size);

/* Seconds count from the start of the load and are at least 0. At a jump, the new value applies. */
double profile_value(const struct profile *p, double seconds);

/* The integral of the value from 0 to `seconds`. */
double profile_integral(const struct profile *p, double seconds);

/* The first instant at or after `from_seconds` at which the integral has reached `value`, in seconds;
 * INFINITY if it never does. Less than 1 ns off for instants up to 10^5 s, as far as a double can hold the
 * integral. */
double profile_when(const struct profile *p, double value, double from_seconds);

/* The first instant at or after `ns` from which on the value is above 0, however small; UINT64_MAX if there
 * is none. It counts in nanoseconds so that an instant at a border is on one definite side of it. */
uint64_t profile_resume_ns(const struct profile *p, uint64_t ns);

/* Seconds until the shape's end, INFINITY if it's periodic. */
double profile_length(const struct profile *p);

/* When requests are due in an open loop: a sequence of instants that doesn't depend on the server. Latency
 * counts from these instants, so every request that falls due during a stall is charged its full delay (no
 * coordinated omission). The sequence is generated one instant ahead: a backlog needs no memory, it is only
 * instants not taken yet. The rate is fixed, or follows a profile. With a profile, the instants are where its
 * integral reaches the numbers that would be evenly or exponentially spaced at a fixed rate (time rescaling),
 * which is exact for both. */

enum arrival { ARRIVAL_CONSTANT, ARRIVAL_POISSON };

#define PACING_NEVER UINT64_MAX

struct pacing {
	uint64_t due_ns; /* the next instant, or PACING_NEVER when the sequence has ended */
	uint64_t left;	 /* maximum number of instants after that one */
	uint64_t start_ns, end_ns;
	double offset_ns;   /* of due_ns from start_ns; in full precision so that errors don't add up */
	double interval_ns; /* mean */
	uint64_t index;	    /* index of due_ns in the sequence */
	double phase_ns;
	enum arrival arrival;
	struct random_stream random;
	const struct profile *profile; /* NULL: a fixed rate */
	double reached, at_s;	       /* profile: the integral at due_ns, and its seconds from start_ns */
	double share, phase;
};

/* `rate` per second (> 0); instants are in start_ns .. end_ns-1 and at most `count`. The first instant of a
 * constant sequence is start + phase (0..1) of an interval: threads that share a rate interleave. */
void pacing_start(struct pacing *p, enum arrival arrival, double rate, double phase, uint64_t start_ns,
		  uint64_t end_ns, uint64_t count, struct random_stream random);

/* The same for a rate that follows a profile, which must outlive `p`; its time 0 is start_ns. This thread
 * gets `share` (0..1) of the rate. Instants of a constant sequence are where share * integral passes phase,
 * phase + 1, and so on. The sequence ends when the rate stays 0. */
void pacing_start_profile(struct pacing *p, enum arrival arrival, const struct profile *profile, double share,
			  double phase, uint64_t start_ns, uint64_t end_ns, uint64_t count,
			  struct random_stream random);

/* Takes the instant at due_ns and advances to the next. */
void pacing_take(struct pacing *p);

/* When the sequence ends by itself: at end_ns, or at its last instant if only their number is limited.
 * PACING_NEVER: it continues. */
uint64_t pacing_end_ns(const struct pacing *p);

/* Ends the sequence before the first instant later than at_ns. */
void pacing_stop(struct pacing *p, uint64_t at_ns);

/* The requests of a load: the operations of a run, their shares, keys, and the bytes of each request. An
 * operation is one command or several, sent one after the other on the same connection and measured as one
 * (YCSB's insert, scan, read-modify-write). Commands of fixed width are formatted once, as templates, and
 * only patched during the load. A thread's request buffer remembers which template is at which position, so a
 * run of one operation copies only digits. Other commands are formatted per request. */

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
	/* The first key of record `number`; *length 0: it has none. Set if `write` is. */
	const char *(*key)(const struct replay *r, uint64_t number, size_t *length);
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

/* Replaces `to` by the key of a request's first command as it was sent, at most `most` bytes of it. False:
 * the command has none, or it is not known. *whole: nothing of it is missing; what was drawn at random for a
 * placeholder, and what follows it, is. */
bool request_key(const struct workload *w, uint32_t operation, uint64_t key, size_t most, struct bytes *to,
		 bool *whole);

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

/* A completely gathered reply, for the few requests whose answer matters beyond its end: values that are
 * checked (--verify), the keys that a YCSB scan reads next, the number of a WAIT. It is stored up to a limit,
 * separate from the scanner, which so need not store any byte on the hot path. */

/* A longer reply is not one of our values, and is not stored. */
#define REPLY_BUFFER_BYTES_MAX ((size_t)VALUE_BYTES_MAX + 4096)

/* Where a connection's scan by an operation continues. */
struct scan_cursor {
	char text[24];	 /* a 64-bit number */
	uint32_t length; /* 0: a new scan begins */
	uint64_t key;	 /* of the scan (HSCAN and others) */
};

struct reply_buffer {
	struct scan_cursor *cursors; /* by operation; NULL: no operation has a cursor */
	struct bytes reply;
	bool overflow;
	uint32_t captured; /* keys of a scan's answer: captured_at[0 .. captured-1] into reply */
	uint32_t captured_at[YCSB_SCAN_MAX], captured_length[YCSB_SCAN_MAX];
};

/* Whether a reply to this step of an operation is gathered. */
static inline bool reply_buffer_needed(const struct workload *w, const struct operation *o, uint32_t step)
{
	return (w->verify && o->verifies) || ((o->scan || o->cursor) && step == 0) ||
	       (step < STEPS_MAX && o->steps[step].least);
}

/* NULL: no memory. */
struct reply_buffer *reply_buffer_new(const struct workload *w);
void reply_buffer_free(struct reply_buffer *g);
void reply_buffer_add(struct reply_buffer *g, const char *from, const char *to);
/* Starts with the next reply. */
void reply_buffer_reset(struct reply_buffer *g);

/* The offset of the first byte of the value in the reply that differs from the key's value, -1 if all are
 * equal, -2 if the reply is truncated or has another shape. A wrong length counts as a wrong byte at the
 * shorter one. */
int64_t reply_buffer_check_value(const struct reply_buffer *g, const struct workload *w, uint64_t key);
/* The number of an integer reply. */
uint64_t reply_buffer_number(const struct reply_buffer *g);
/* Stores the cursor of a scan's answer for the operation's next request, whose key remains `key`. */
void reply_buffer_take_cursor(struct reply_buffer *g, uint32_t operation, uint64_t key);
/* Extracts the keys from a Redis array of strings. */
void reply_buffer_take_keys(struct reply_buffer *g);

#ifdef __cplusplus
}
#endif
#endif

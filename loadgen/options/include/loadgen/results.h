/* SPDX-License-Identifier: MIT */
/* What is counted and logged of requests, and the figures made of it. */
#ifndef FORKTAIL_LOADGEN_RESULTS_H
#define FORKTAIL_LOADGEN_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a load thread counts. A thread fills one `struct stats` per second and hands it over as a whole, so
 * the hot path shares nothing: no atomics, no locks, and percentiles per second cost nothing extra. Latency
 * is counted for every request, including failed ones: until its answer, or until it was given up (time-out,
 * connection lost, never sent). Without failures, a server would look better the worse it is. */

enum { STATUSES = FT_STATUS_UNSENT + 1, ERROR_WORDS = 16, ERROR_WORD = 16, ERROR_TEXT = 112 };

/* How often an error occurred, and when first and last (CLOCK_MONOTONIC). */
struct error_times {
	uint64_t count, first_ns, last_ns;
};

/* Error replies by their first word. The last entry counts those after the table was full. */
struct error_word {
	char word[ERROR_WORD];
	char text[ERROR_TEXT]; /* the first one; "": not known */
	struct error_times times;
};

struct operation_stats {
	uint64_t status[STATUSES];
	uint64_t bytes; /* sent and received */
	struct ft_histogram latency;
};

/* Why a request was sent again: MOVED; ASK; a server that can't serve it now (CLUSTERDOWN, TRYAGAIN,
 * READONLY, ...). */
enum redirect { REDIRECT_MOVED, REDIRECT_ASK, REDIRECT_LATER, REDIRECTS };
extern const char *const redirect_names[REDIRECTS];

/* Of one of several servers. */
struct node_stats {
	uint64_t requests, errors;
	uint64_t redirects[REDIRECTS]; /* answers of this kind that it gave */
	struct ft_histogram latency;
};

/* Requests for which it is known when their answers arrived at this host. */
struct arrival_stats {
	uint64_t unread_sum_ns, unread_max_ns; /* from arrival to being read */
	struct ft_histogram latency;	       /* from being due to arrival */
};

struct stats {
	uint64_t late_sum_ns, late_max_ns; /* from being due to being passed to the kernel */
	uint64_t sent; /* of an open loop without warm-up: the number for averaging lateness */
	uint64_t last_end_ns;
	uint64_t span_ns;	  /* the time that was counted; of several threads, the longest */
	uint64_t broken;	  /* connections */
	uint64_t connects_failed; /* failures when reopening */
	uint64_t pushes;	  /* RESP3: pushed messages without warm-up */
	struct error_word errors[ERROR_WORDS];
	struct error_times statuses[STATUSES]; /* of errors, with or without a request */
	uint64_t redirected;		       /* finished requests that had been sent again */
	struct node_stats **nodes;	       /* by node; NULL: one server, or nothing counted for it */
	uint32_t node_count;
	struct arrival_stats *arrivals;			    /* NULL: not asked */
	struct operation_stats *operations[OPERATIONS_MAX]; /* NULL: not in this mix */
};

struct stats *stats_new(const struct mix *m);
/* The same, with arrivals if `arrivals`. */
struct stats *stats_new_with(const struct mix *m, bool arrivals);
void stats_free(struct stats *s);
void stats_reset(struct stats *s);
void stats_merge(struct stats *into, const struct stats *from);

/* Requests that ended in an error, and all that ended. */
uint64_t stats_errors(const struct stats *s);
uint64_t stats_requests(const struct stats *s);
/* The same of one operation. */
uint64_t operation_errors(const struct operation_stats *s);
uint64_t operation_requests(const struct operation_stats *s);
/* All operations together, in *total, which is too large for the stack. */
void stats_total(const struct stats *s, struct operation_stats *total);
/* Counts an error reply. Returns its entry, whose text the caller sets if it is empty (error_word_set_text).
 */
struct error_word *stats_error_word(struct stats *s, const char *word, uint64_t now_ns);
void error_word_set_text(struct error_word *e, const char *text);
void stats_note_error(struct stats *s, unsigned status, uint64_t now_ns);

/* Counts `times` requests that are equal, and took `bytes` together. */
static inline void stats_add(struct stats *s, unsigned operation, unsigned status, uint64_t latency_ns,
			     uint64_t bytes, uint32_t times)
{
	struct operation_stats *o = s->operations[operation];

	o->status[status] += times;
	o->bytes += bytes;
	ft_histogram_add_equal(&o->latency, latency_ns, times);
}

/* Counts a request for its node, and a node's answer that was a redirect or refusal. Without memory, they are
 * not counted. */
void stats_node(struct stats *s, uint32_t node, unsigned status, uint64_t latency_ns, bool redirected);
void stats_redirect(struct stats *s, uint32_t node, enum redirect why);

static inline void stats_add_arrival(struct stats *s, uint64_t latency_ns, uint64_t unread_ns, uint32_t times)
{
	struct arrival_stats *a = s->arrivals;

	a->unread_sum_ns += unread_ns * times;
	if (unread_ns > a->unread_max_ns)
		a->unread_max_ns = unread_ns;
	ft_histogram_add_equal(&a->latency, latency_ns, times);
}

static inline void stats_add_lateness(struct stats *s, uint64_t late_ns)
{
	s->late_sum_ns += late_ns;
	if (late_ns > s->late_max_ns)
		s->late_max_ns = late_ns;
}

static inline bool status_is_error(unsigned status)
{
	return status > FT_STATUS_MISS;
}

/* Requests that got an answer of any kind. */
static inline uint64_t status_answers(const uint64_t status[STATUSES])
{
	return status[FT_STATUS_OK] + status[FT_STATUS_MISS] + status[FT_STATUS_ERROR_REPLY] +
	       status[FT_STATUS_WRONG];
}

extern const char *const status_names[STATUSES];

/* The throughput of each second of a run: whether a server kept its throughput, which an average hides. */

struct second_rates {
	double *rates; /* answers per second */
	uint32_t count;
	size_t room;
};

/* Adds a second's counts; the incomplete ones at a run's end are left out. Without memory, it is not added.
 */
void second_rates_add(struct second_rates *r, const struct stats *second);
void second_rates_free(struct second_rates *r);

/* The rate that at least `percent` (0 < percent <= 100) of the seconds reached: the nearest rank from above.
 * 0 without seconds. Sorts the rates. */
double second_rates_reached(struct second_rates *r, double percent);

/* A finished run in numbers. Percentiles are exact if the run was logged: the log is read again, and values
 * around each wanted rank are distinguished to the nanosecond (docs/reference/load.md has the limits).
 * Without a log they come from the histogram, at most 0.1 % too high. */

enum { PERCENTILES_MAX = 40, BUCKETS_MAX = 32, TOTAL = OPERATIONS_MAX };

/* Which percentiles, ascending, and the upper limits of buckets. */
struct wanted_figures {
	uint32_t percentile_count, bucket_count;
	double points[PERCENTILES_MAX];
	char names[PERCENTILES_MAX][24]; /* "p99.9" */
	uint64_t bucket_ns[BUCKETS_MAX]; /* ascending; one more bucket contains values above the last */
};

/* "50,99,99.9", each above 0 up to 100. */
bool percentiles_parse(const char *text, struct wanted_figures *w);
/* Adds one, unless it is present. False: the list is full. */
bool percentiles_add(struct wanted_figures *w, double point);
/* "25ms,50ms,1s", ascending; "default": 25, 50, 100, 200, 300, 400, 500 ms. */
bool buckets_parse(const char *text, struct wanted_figures *w);

struct operation_figures {
	bool used;
	uint64_t requests, errors, bytes;
	uint64_t status[STATUSES];
	uint64_t min_ns, max_ns;
	double mean_ns, stddev_ns;
	uint64_t percentile_ns[PERCENTILES_MAX];
	uint64_t buckets[BUCKETS_MAX + 1];
};

struct result_figures {
	const struct wanted_figures *wanted;
	struct operation_figures operations[OPERATIONS_MAX + 1]; /* the last one: TOTAL */
	uint32_t used;						 /* operations, without the total */
	double seconds;
	bool exact;
	uint64_t log_drops;
	uint64_t broken, connects_failed, pushes;
	struct error_word errors[ERROR_WORDS];
	struct error_times statuses[STATUSES];
	struct {
		uint64_t count; /* 0: not asked, or none is known */
		uint64_t min_ns, max_ns, unread_max_ns;
		double mean_ns, stddev_ns, unread_mean_ns;
		uint64_t percentile_ns[PERCENTILES_MAX]; /* of the histogram */
	} arrivals; /* times until answers arrived at this host, over all operations */
	struct {
		uint32_t count;		/* whole seconds; fewer than 10: not reported */
		double most, half, all; /* requests/s that 99 %, 50 % and 100 % of them reached */
	} by_second;
	double late_mean_ns;
	uint64_t late_max_ns, sent;
	double cpu_s;	/* of the whole program during the run */
	double busiest; /* share of the run in which the busiest load thread was on a CPU */
};

/* Figures from the histograms, for the `wanted` percentiles and buckets. The caller sets `cpu_s`, `busiest`
 * and `log_drops`. */
void figures_from_stats(struct result_figures *f, const struct stats *s, const struct wanted_figures *wanted,
			double seconds);

/* Makes percentiles and buckets exact from the log at `path`, using the requests in blocks at or after
 * from_offset that were due at or after from_ns (0: all). Sets f->exact if log and counts agree; otherwise
 * nothing changes. */
void figures_from_log(struct result_figures *f, const char *path, uint64_t from_offset, uint64_t from_ns);

/* Requests that got an answer of any kind: the server's throughput. */
static inline uint64_t figures_answers(const struct operation_figures *f)
{
	return status_answers(f->status);
}

static inline double figures_per_second(const struct result_figures *f, double amount)
{
	return f->seconds > 0 ? amount / f->seconds : 0;
}

/* The figure of a finished run that a limit is about. */

/* The figures of the operation that a limit names, or of all; NULL: the run has no such operation. */
const struct operation_figures *limit_operation(const struct result_figures *f, const struct workload *w,
						const struct limit *l);

/* The figure in the unit of limit.value (text.h); NAN: `o` is NULL, or nothing was measured. */
double limit_figure(const struct result_figures *f, const struct operation_figures *o, const struct limit *l);

/* The request log: every request is written to a recording, and the disk never delays a load thread. A load
 * thread appends to its own block of columns. A full block (or one that is a second old) goes to the writer
 * thread, which writes it; the load thread continues with a spare block. If the disk stalls until no spare is
 * left, entries are counted as dropped, and the recording says how many and when. Latencies stay correct,
 * which they would not if the load waited. */

struct request_log;

enum { LOG_SOCKETS = 32, LOG_TCP = 256, LOG_KEYS = 200 };

/* The first bytes of a slow request's key (--keys). */
struct slow_key {
	uint64_t sent_ns, end_ns;
	uint32_t connection;
	uint8_t operation, bytes;
	bool begin; /* the key is longer, or the rest is not known */
	char text[KEY_BYTES_MOST];
};

struct log_block {
	struct ft_requests requests;
	struct ft_connection sockets[LOG_SOCKETS]; /* of connections that were reopened, or closed */
	uint32_t socket_count;
	struct ft_load_tcp tcp[LOG_TCP];
	uint32_t tcp_count;
	struct slow_key keys[LOG_KEYS];
	uint32_t key_count;
	struct ft_drop drop; /* losses before it; count 0: none */
	struct log_block *next;
};

/* A load thread's side of the log. */
struct log_lane {
	struct request_log *log; /* NULL: no log */
	struct log_block *open;	 /* NULL: dropping */
	uint64_t drop_start_ns, drops, all_drops;
	uint64_t keys_left_out;
	bool waits_for_spare; /* measuring has ended: wait for a spare instead of dropping */
};

/* Creates the recording and starts the writer thread, for up to `lanes` threads. Negative errno. */
int request_log_open(struct request_log **out, const char *path, const char *manifest, unsigned lanes);
/* Keys will be logged: at most LOG_KEYS a second, with `hash` random bytes in their place. Before the first
 * lane is opened. Negative errno. */
int request_log_keys(struct request_log *log, bool hash);
/* The recording, for blocks other than requests. These calls may wait for the disk. The writer thread itself
 * writes clock records and flushes every second. */
struct ft_writer *request_log_writer(struct request_log *log);
/* The first write error (negative errno) or 0. After an error, entries are discarded. */
int request_log_error(const struct request_log *log);
/* Waits until all blocks handed over are written. */
void request_log_drain(struct request_log *log);
/* Ends the thread and the recording, with `summary` as its last block. */
int request_log_close(struct request_log *log, const char *summary);

void log_lane_open(struct log_lane *lane, struct request_log *log);
/* Hands over the open block. */
void log_lane_flush(struct log_lane *lane, uint64_t now_ns);
/* Flushes, and reports drops. */
void log_lane_close(struct log_lane *lane, uint64_t now_ns);

/* A connection has another socket, or was closed: rare compared to requests, and does not block either. */
void log_socket(struct log_lane *lane, const struct ft_connection *c, uint64_t now_ns);

/* Where to put what TCP did with a connection. NULL: no room, because at most LOG_TCP are logged with a block
 * of requests, or in a second. */
struct ft_load_tcp *log_tcp_room(struct log_lane *lane);
/* Logs what was put there. */
void log_tcp(struct log_lane *lane);

/* Logs a key. It is left out and counted if there is no room. */
void log_key(struct log_lane *lane, const struct slow_key *key);

/* For log_append. */
void log_lane_next(struct log_lane *lane, uint64_t now_ns);

/* Logs a request `times` times. */
static inline void log_append(struct log_lane *lane, const struct ft_request *q, uint32_t times)
{
	if (!lane->log)
		return;
	while (times > 0) {
		uint32_t some = times;

		if (__builtin_expect(!lane->open, 0)) {
			log_lane_next(lane, q->end_ns);
			if (!lane->open) {
				lane->drops += times;
				return;
			}
		}
		if (__builtin_expect(some > FT_REQUEST_BLOCK - lane->open->requests.count, 0))
			some = FT_REQUEST_BLOCK - lane->open->requests.count;
		ft_requests_append_equal(&lane->open->requests, q, some);
		times -= some;
		if (__builtin_expect(ft_requests_full(&lane->open->requests), 0))
			log_lane_next(lane, q->end_ns);
	}
}

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* What a load thread counts. A thread fills one `struct stats` per second and hands it over as a whole, so
 * the hot path shares nothing: no atomics, no locks, and percentiles per second cost nothing extra. Latency
 * is counted for every request, including failed ones: until its answer, or until it was given up (time-out,
 * connection lost, never sent). Without failures, a server would look better the worse it is. */
#ifndef FORKTAIL_LOADGEN_STATS_H
#define FORKTAIL_LOADGEN_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/workload/workload.h"
#include "recording/format.h"
#include "recording/histogram.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif

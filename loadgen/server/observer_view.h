/* SPDX-License-Identifier: MIT */
/* Turns a server's statistics into series and notes of the recording. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_OBSERVER_VIEW_H
#define FORKTAIL_LOADGEN_OBSERVER_OBSERVER_VIEW_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/server.h"
#include "recording/recording.h"

/* Series, and the recording they are written to. */
struct observer_series {
	struct ft_writer *writer;
	struct series *by_name; /* hash table */
	uint32_t ids;
	bool hide_keys; /* as in struct observer_server */
};

/* A value of the series `prefix`.`name`, or `prefix`.`name`.`part` if part is not "". Announced if it is new;
 * written if it has changed, like the recorder's series. */
void observer_series_value(struct observer_series *to, const char *prefix, const char *name, const char *part,
			   double value, uint64_t t_ns);
/* Parses a decimal number as servers write it: digits, optionally a sign before and a fraction after them. */
bool observer_series_number(const char *text, double *value);
/* Takes the next number of a list "calls=3,usec=17", which is modified: *name is "calls". Parts that are no
 * numbers are passed over. False: no more. */
bool observer_series_part(char **list, char **name, double *value);
/* {"kind":"observer-refused"}: the question and the server's reply. */
void note_refusal(struct observer_series *to, const char *asked, const char *answer);
void observer_series_free(struct observer_series *to);

/* The questions to a kind of server and the handling of its answers. A view lives as long as the observer,
 * over all of its connections to the server. */

/* Rounds that took longer are noted: the observer waits in the server's queue like clients do. */
#define OBSERVER_SLOW_NS 100000000u
/* Often enough to see clients that are blocked for 50 ms. */
#define OBSERVER_LOOK_NS 50000000u

struct observer_view {
	/* NULL: out of memory. */
	void *(*create)(struct observer_series *to);
	/* A link to the server, ready for questions. NULL: s->refused and s->why say why. */
	struct link *(*enter)(void *view, struct server *s);
	/* One round of questions. Returns 0 or a negative errno. -EACCES: the server will never answer
	 * them. */
	int (*round)(void *view, struct link *l);
	/* A cheap question between two rounds, OBSERVER_LOOK_NS apart, if the view has one, else NULL.
	 * Returns as round. */
	int (*look)(void *view, struct link *l);
	/* The questions at the end, if the view has some, else NULL. */
	void (*last)(void *view, struct link *l);
	void (*free)(void *view);
};

extern const struct observer_view redis_view, memcached_view;

/* What a Redis server counted of each command since its start. */

/* {"kind":"command-stats"} from the answer to INFO commandstats, which is modified. */
void note_command_stats(struct observer_series *to, const char *run_id, char *info, uint64_t t_ns);
/* {"kind":"command-latency"} from the answer to LATENCY HISTOGRAM. */
void note_command_latency(struct observer_series *to, const char *run_id, const redisReply *histograms,
			  uint64_t t_ns);
#endif

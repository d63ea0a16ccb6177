/* SPDX-License-Identifier: MIT */
/* What the observer's files share: how series get into the recording. Private to observer*.c. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_PARTS_H
#define FORKTAIL_LOADGEN_OBSERVER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json_block.h"
#include "link.h"
#include "observer.h"

#define OBSERVER_NAME "forktail-observer"

/* How long one answer is waited for. Long, because the stall that keeps the answer back is what the observer
 * is there to see: giving up after a second would add connections to a server that is stuck already. */
#define OBSERVER_ANSWER_NS 10000000000u
/* Rounds of questions that took longer are noted: the observer waits in the server's queue as clients do. */
#define OBSERVER_SLOW_NS 100000000u
/* Longer answers are nobody's INFO. */
enum { OBSERVER_ANSWER_BYTES = 16 << 20 };

/* ---- what is written (observer.c) ---- */

/* Series, and the recording they go to. */
struct observed {
	struct ft_writer *writer;
	void *tree; /* of struct series, by name */
	uint32_t ids;
};

/* A value of the series `prefix`.`name`, or `prefix`.`name`.`part` if part is not "". Announced when it is
 * new; written when it has changed, as the recorder's are. */
void observed_value(struct observed *to, const char *prefix, const char *name, const char *part, double value,
		    uint64_t t_ns);
/* A decimal number as servers write them: digits, perhaps a sign before and a fraction behind. */
bool observed_number(const char *text, double *value);
/* {"kind":"observer-refused"}: what was asked and the server's word on it. */
void note_refused(struct observed *to, const char *asked, const char *answer);

/* ---- the servers: a view lives as long as the observer, over all connections ---- */

struct redis_view;
struct redis_view *redis_view_create(const char *user, const char *password, struct observed *to);
/* After link_open: shows who it is, logs in, says what it is. -EACCES: turned away, for good. */
int redis_view_greet(struct redis_view *v, struct link *l);
/* One round of questions. */
int redis_view_round(struct redis_view *v, struct link *l);
void redis_view_free(struct redis_view *v);

struct memcached_view;
struct memcached_view *memcached_view_create(struct observed *to);
void memcached_view_greet(struct memcached_view *v);
/* -EACCES: it does not tell. */
int memcached_view_round(struct memcached_view *v, struct link *l);
void memcached_view_free(struct memcached_view *v);

#endif

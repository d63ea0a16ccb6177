/* SPDX-License-Identifier: MIT */
/* How long keys had no server: the gap that a failover, or a crash, leaves in the answers.
 *
 * An outage begins when a node refuses or breaks connections, or says that it can't serve (CLUSTERDOWN,
 * READONLY, LOADING, MASTERDOWN), and covers the slots that were its own then. It ends with the first answer
 * that is no error to a request for one of those slots, from whichever node. The gap is the time from the
 * last such answer before to the first after: what every user of those keys saw, at least.
 *
 * Each load thread keeps its own list; outages_add puts the threads' views of one outage together: the latest
 * last answer before, the earliest first one after. Requests that replicas may answer (--read-from) end no
 * outage.
 */
#ifndef FORKTAIL_LOADGEN_OUTAGES_H
#define FORKTAIL_LOADGEN_OUTAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OUTAGES_MAX = 64 };

struct outage {
	uint16_t node;	      /* whose slots */
	uint16_t after;	      /* the node of the first answer after */
	uint64_t noticed_ns;  /* when the trouble showed */
	uint64_t last_ok_ns;  /* 0: there was no answer before */
	uint64_t first_ok_ns; /* 0: there was none after */
	uint64_t failed;      /* requests for its slots that ended in an error, from noticed_ns on */
	uint64_t delayed;     /* requests due before first_ok_ns that were answered after */
	uint64_t longest_ns;  /* of those, the longest latency */
};

struct outages {
	uint32_t count, open;
	uint64_t latest_end_ns; /* of a first_ok_ns: requests due after it concern no outage */
	uint64_t lost;		/* outages that found no place */
	struct outage list[OUTAGES_MAX];
	uint8_t of_slot[CLUSTER_SLOTS]; /* the number of its latest outage and 1; 0: none */
};

/* Whether an outage of the node has begun and not ended. */
bool outages_is_open(const struct outages *o, uint16_t node);
/* A node is in trouble: opens an outage, of the slots that outages_mark names next. False: one of its is
 * open, or there is no place for another. */
bool outages_begin(struct outages *o, uint16_t node, uint64_t last_ok_ns, uint64_t now_ns);
/* The outage that began last is of this slot, too. */
void outages_mark(struct outages *o, uint32_t slot);
/* Whether the answer to a request concerns an outage, at first sight. */
static inline bool outages_concern(const struct outages *o, uint64_t intended_ns)
{
	return o->open > 0 || intended_ns < o->latest_end_ns;
}
/* A request for `slot` was answered by `node`, or failed. */
void outages_note_answer(struct outages *o, uint32_t slot, uint16_t node, uint64_t intended_ns,
			 uint64_t now_ns);
void outages_note_failure(struct outages *o, uint32_t slot);
/* Adds a thread's outages to those of others. */
void outages_add(struct outages *all, const struct outages *of_thread);
/* Leaves out those that no request felt. */
void outages_drop_unfelt(struct outages *all);

#ifdef __cplusplus
}
#endif
#endif

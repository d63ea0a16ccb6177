/* SPDX-License-Identifier: MIT */
/* How long keys had no server: the gap in the answers after a failover or a crash. An outage begins when a
 * node refuses or breaks connections, or replies that it cannot serve (CLUSTERDOWN, READONLY, LOADING,
 * MASTERDOWN). It covers the slots that the node owned then. It ends with the first answer without error to a
 * request for one of those slots, from any node. The gap is the time from the last such answer before the
 * outage to the first one after it: the minimum that every user of those keys experienced. Each load thread
 * keeps its own list. outages_add merges the threads' views of one outage: the latest last answer before it,
 * the earliest first answer after it. Requests that replicas may answer (--read-from) end no outage. */
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

/* SPDX-License-Identifier: MIT */
/* Two sets of counters are exchanged. While the main thread still uses the other set, the current second is
 * extended. */
#include "hand_over.h"

void hand_over_tick(struct load_thread *t, uint64_t now_ns)
{
	struct hand_over *h = &t->hand_over;

	log_lane_flush(&t->lane, now_ns);
	t->stats->span_ns += now_ns - h->second_ns;
	h->second_ns = now_ns;
	pthread_mutex_lock(&h->lock);
	if (h->spare) {
		h->ready = t->stats;
		t->stats = h->spare;
		h->spare = NULL;
	}
	pthread_mutex_unlock(&h->lock);
}

struct stats *hand_over_take(struct load_thread *t)
{
	struct stats *s;

	pthread_mutex_lock(&t->hand_over.lock);
	s = t->hand_over.ready;
	t->hand_over.ready = NULL;
	pthread_mutex_unlock(&t->hand_over.lock);
	return s;
}

void hand_over_return(struct load_thread *t, struct stats *s)
{
	stats_reset(s);
	pthread_mutex_lock(&t->hand_over.lock);
	t->hand_over.spare = s;
	pthread_mutex_unlock(&t->hand_over.lock);
}

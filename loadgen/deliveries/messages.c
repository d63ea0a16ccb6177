/* SPDX-License-Identifier: MIT */
/* How an incoming message is counted: a delivery with its latency, a duplicate, or an unrelated message. */
#include "consumer.h"
#include "recording/recording.h"

/* True the first time for a number, and for numbers too old to check. */
static bool first_time(struct seen *s, uint64_t number)
{
	uint64_t *word = &s->bits[number % SEEN_NUMBERS / 64], bit = 1ull << number % 64;

	if (number >= s->highest) {
		uint64_t from = number - s->highest >= SEEN_NUMBERS ? number - SEEN_NUMBERS + 1 : s->highest;

		for (uint64_t i = from; i <= number; i++)
			s->bits[i % SEEN_NUMBERS / 64] &= ~(1ull << i % 64);
		s->highest = number + 1;
	} else if (s->highest - number > SEEN_NUMBERS) {
		return true;
	}
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

void take_message(struct consumer *c, const redisReply *payload, uint64_t end_ns)
{
	struct deliveries *d = c->deliveries;
	struct ft_request q = {
	    .end_ns = end_ns,
	    .connection = c->id,
	    .op = d->plan.operation,
	    .status = FT_STATUS_OK,
	};
	struct stamp s;

	c->backoff_ms = 0;
	if (payload->type != REDIS_REPLY_STRING ||
	    !stamp_read(payload->str, payload->len, d->plan.stamps->run, &s)) {
		d->how.foreign++;
		return;
	}
	if (!first_time(c->seen, s.number)) {
		d->how.duplicates++;
		return;
	}
	q.intended_ns = s.intended_ns;
	q.start_ns = s.start_ns;
	if (q.intended_ns >= d->measure_ns) {
		stats_add(d->stats, q.op, q.status, end_ns - q.intended_ns, payload->len, 1);
		d->stats->last_end_ns = end_ns;
		atomic_fetch_add(&d->received, 1);
	}
	if (end_ns - q.intended_ns >= d->plan.log_over_ns)
		log_append(&d->lane, &q, 1);
}

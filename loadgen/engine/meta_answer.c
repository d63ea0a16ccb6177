/* SPDX-License-Identifier: MIT */
/* Which request an answer to a memcached meta command belongs to.
 *
 * Requests carry their number on the connection as opaque, so this is checked, not assumed: an answer of
 * another number ends the connection, for nothing that follows on it can be believed. With --meta-quiet a
 * read that misses is not answered at all. Answers come in order; so an answer to a later request, or to the
 * "mn" that ends each batch, says that the reads before it have missed: that is when their latency ends.
 *
 * An error carries no opaque. Between quiet reads it is counted for the oldest, though it may be of one of
 * those behind it and that one a miss: their number is right, and which is which the server doesn't tell.
 */
#include "meta_answer.h"

#include "lifecycle.h"
#include "request_end.h"

#define BATCH_END "mn\r\n"

static const char *const out_of_step =
    "the server did not answer the oldest request first: the opaque differs";

static inline struct pending_request *oldest(const struct connection *c)
{
	return &c->pending[c->first];
}

static inline const struct step *step_of(const struct connection *c, const struct pending_request *p)
{
	return &c->thread->plan->workload->operations[p->operation].steps[0];
}

size_t meta_end_batch(struct connection *c, uint32_t count, size_t at)
{
	struct load_thread *t = c->thread;
	struct pending_request *p = NULL;

	for (uint32_t k = 0; k < count; k++) {
		p = &c->pending[ring_index(c, c->in_flight - count + k)];
		p->ends_batch = false; /* it may have, on another connection */
	}
	if (!p || !step_of(c, p)->command.quiet)
		return at;
	t->requests.bytes.length = at;
	if (!bytes_reserve(&t->requests.bytes, sizeof(BATCH_END)))
		return 0;
	bytes_add(&t->requests.bytes, BATCH_END, sizeof(BATCH_END) - 1);
	t->requests.slots[count].from = TEMPLATE_NONE; /* it lay there */
	p->ends_batch = true;
	return t->requests.bytes.length;
}

/* The oldest request, a quiet read, has missed. */
static void end_as_miss(struct connection *c, uint64_t now_ns)
{
	const struct pending_request p = *oldest(c);

	record_end(c->thread, c->id, &p, now_ns, FT_STATUS_MISS, step_of(c, &p)->length);
	if (c->thread->model->on_end)
		c->thread->model->on_end(c, &p, now_ns, FT_STATUS_MISS);
	ring_drop(c);
	c->thread->in_flight--;
}

static enum meta_match lose(struct connection *c, const char *why)
{
	connection_fail(c, FT_STATUS_WRONG, why);
	return META_LOST;
}

/* How many requests there are between the oldest and the one of this opaque; UINT32_MAX: none has it. */
static uint32_t distance(const struct connection *c, uint64_t opaque)
{
	uint32_t far;

	if (opaque > UINT32_MAX)
		return UINT32_MAX;
	far = (uint32_t)opaque - (c->taken - c->in_flight);
	return far < c->in_flight - c->to_send ? far : UINT32_MAX;
}

/* Answers that can't be without the opaque of a request that had one. */
static bool carries_opaque(uint8_t kind)
{
	return kind != MEMCACHED_META_ERROR && kind != MEMCACHED_META_MISS;
}

enum meta_match meta_answer(struct connection *c, uint64_t now_ns)
{
	const struct memcached_meta_scanner *s = &c->scan.meta;

	if (c->batch_ends) {
		c->batch_ends = false;
		return s->kind == MEMCACHED_META_NOOP
			   ? META_ANSWERS_NONE
			   : lose(c, "the server did not answer the end of a batch");
	}
	while (c->in_flight > c->to_send) {
		const struct pending_request *p = oldest(c);
		const struct command *command = &step_of(c, p)->command;
		bool last = p->ends_batch, numbered = command->numbered;
		uint32_t far = numbered && s->has_opaque ? distance(c, s->opaque) : 0;

		if (far == UINT32_MAX || (far > 0 && !command->quiet))
			return lose(c, out_of_step);
		if (numbered && !s->has_opaque && !command->quiet && carries_opaque(s->kind))
			return lose(c, out_of_step);
		/* It is this one's answer: by its number, by its turn, or an error. */
		if (!command->quiet || (s->has_opaque && far == 0) || s->kind == MEMCACHED_META_ERROR) {
			c->batch_ends = last;
			return META_ANSWERS_OLDEST;
		}
		end_as_miss(c, now_ns);
		if (last)
			return s->kind == MEMCACHED_META_NOOP
				   ? META_ANSWERS_NONE
				   : lose(c, "the server did not answer the end of a batch");
	}
	return lose(c, "the server sent an answer without a request");
}

/* SPDX-License-Identifier: MIT */
/* Which request an answer to a memcached meta command belongs to. Requests carry their number on the
 * connection as opaque, so this is checked instead of assumed: an answer with an unexpected number ends the
 * connection, because nothing after it can be trusted. With --meta-quiet a read that misses is not answered.
 * Answers arrive in order, so an answer to a later request, or to the "mn" that ends each batch, shows that
 * the reads before it have missed. Their latency ends at that time. An error carries no opaque. Between quiet
 * reads it is counted for the oldest request. The error may belong to a later one and the oldest be a miss:
 * their number is right, but the server doesn't tell which is which. */
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
		p->ends_batch = false; /* it may have ended one on another connection */
	}
	if (!p || !step_of(c, p)->command.quiet)
		return at;
	t->requests.bytes.length = at;
	if (!bytes_reserve(&t->requests.bytes, sizeof(BATCH_END)))
		return 0;
	bytes_add(&t->requests.bytes, BATCH_END, sizeof(BATCH_END) - 1);
	t->requests.slots[count].from = TEMPLATE_NONE; /* the template at this position is overwritten */
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

/* The number of requests between the oldest and the one with this opaque. UINT32_MAX: none has it. */
static uint32_t distance(const struct connection *c, uint64_t opaque)
{
	uint32_t far;

	if (opaque > UINT32_MAX)
		return UINT32_MAX;
	far = (uint32_t)opaque - (c->taken - c->in_flight);
	return far < c->in_flight - c->to_send ? far : UINT32_MAX;
}

/* Answers that must carry the opaque if their request had one. */
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
		/* It answers this request: by its number, by its position, or as an error. */
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

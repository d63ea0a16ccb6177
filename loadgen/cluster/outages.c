/* SPDX-License-Identifier: MIT */
/* Each slot stores the number of its latest outage. An answer finds it with one lookup. A request that was
 * due before the outage ended still counts as delayed when others have already been answered. */
#include "outages.h"

bool outages_is_open(const struct outages *o, uint16_t node)
{
	for (uint32_t i = o->count; i > 0; i--)
		if (o->list[i - 1].node == node)
			return !o->list[i - 1].first_ok_ns;
	return false;
}

bool outages_begin(struct outages *o, uint16_t node, uint64_t last_ok_ns, uint64_t now_ns)
{
	if (outages_is_open(o, node))
		return false;
	if (o->count == OUTAGES_MAX) {
		o->lost++;
		return false;
	}
	o->list[o->count++] =
	    (struct outage){.node = node, .after = node, .noticed_ns = now_ns, .last_ok_ns = last_ok_ns};
	o->open++;
	return true;
}

void outages_mark(struct outages *o, uint32_t slot)
{
	o->of_slot[slot] = (uint8_t)o->count;
}

void outages_note_answer(struct outages *o, uint32_t slot, uint16_t node, uint64_t intended_ns,
			 uint64_t now_ns)
{
	struct outage *x = o->of_slot[slot] ? &o->list[o->of_slot[slot] - 1] : 0;

	if (!x)
		return;
	if (!x->first_ok_ns) {
		x->first_ok_ns = now_ns;
		x->after = node;
		o->open--;
		if (now_ns > o->latest_end_ns)
			o->latest_end_ns = now_ns;
	}
	if (intended_ns >= x->first_ok_ns)
		return;
	x->delayed++;
	if (now_ns - intended_ns > x->longest_ns)
		x->longest_ns = now_ns - intended_ns;
}

void outages_note_failure(struct outages *o, uint32_t slot)
{
	if (o->of_slot[slot])
		o->list[o->of_slot[slot] - 1].failed++;
}

/* Whether two threads saw the same outage: the same node at overlapping times. An outage without an end is
 * still open. */
static bool same(const struct outage *a, const struct outage *b)
{
	return a->node == b->node && (!a->first_ok_ns || b->noticed_ns <= a->first_ok_ns) &&
	       (!b->first_ok_ns || a->noticed_ns <= b->first_ok_ns);
}

static void join(struct outage *into, const struct outage *from)
{
	if (from->noticed_ns < into->noticed_ns)
		into->noticed_ns = from->noticed_ns;
	if (from->last_ok_ns > into->last_ok_ns)
		into->last_ok_ns = from->last_ok_ns;
	if (from->first_ok_ns && (!into->first_ok_ns || from->first_ok_ns < into->first_ok_ns)) {
		into->first_ok_ns = from->first_ok_ns;
		into->after = from->after;
	}
	into->failed += from->failed;
	into->delayed += from->delayed;
	if (from->longest_ns > into->longest_ns)
		into->longest_ns = from->longest_ns;
}

void outages_drop_unfelt(struct outages *all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < all->count; i++)
		if (all->list[i].failed + all->list[i].delayed > 0)
			all->list[kept++] = all->list[i];
	all->count = kept;
}

void outages_add(struct outages *all, const struct outages *of_thread)
{
	all->lost += of_thread->lost;
	for (uint32_t i = 0; i < of_thread->count; i++) {
		const struct outage *x = &of_thread->list[i];
		uint32_t k = 0;

		while (k < all->count && !same(&all->list[k], x))
			k++;
		if (k < all->count)
			join(&all->list[k], x);
		else if (all->count < OUTAGES_MAX)
			all->list[all->count++] = *x;
		else
			all->lost++;
	}
}

/* SPDX-License-Identifier: MIT */
/* A binary heap, because each of ten thousand connections may have a timer, and the descriptor that fires
 * when the first is due. */
#include "timers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull

int timers_init(struct timers *t, uint32_t room)
{
	*t = (struct timers){.room = room, .fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
	if (t->fd < 0)
		return -errno;
	t->heap = malloc(sizeof(*t->heap) * room);
	return t->heap ? 0 : -ENOMEM;
}

void timers_free(struct timers *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->heap);
	t->heap = NULL;
}

static void arm(struct timers *t)
{
	struct itimerspec when = {0};
	uint64_t first = t->count ? t->heap[0].when_ns : 0;

	if (first == t->armed_ns)
		return;
	t->armed_ns = first;
	when.it_value.tv_sec = (time_t)(first / SECOND_NS);
	when.it_value.tv_nsec = (long)(first % SECOND_NS);
	timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void swap(struct timers *t, uint32_t a, uint32_t b)
{
	struct timer other = t->heap[a];

	t->heap[a] = t->heap[b];
	t->heap[b] = other;
}

static void push(struct timers *t, const struct timer *timer)
{
	uint32_t i = t->count++;

	t->heap[i] = *timer;
	for (; i > 0 && t->heap[(i - 1) / 2].when_ns > t->heap[i].when_ns; i = (i - 1) / 2)
		swap(t, i, (i - 1) / 2);
}

static struct timer pop(struct timers *t)
{
	struct timer first = t->heap[0];
	uint32_t i = 0;

	t->heap[0] = t->heap[--t->count];
	for (;;) {
		uint32_t least = i, left = 2 * i + 1;

		for (uint32_t k = left; k < left + 2 && k < t->count; k++)
			if (t->heap[k].when_ns < t->heap[least].when_ns)
				least = k;
		if (least == i)
			return first;
		swap(t, i, least);
		i = least;
	}
}

void timers_add(struct timers *t, uint64_t when_ns, void (*act)(void *, uint64_t), void *who)
{
	struct timer *grown;

	if (t->count == t->room) {
		grown = realloc(t->heap, sizeof(*grown) * t->room * 2);
		if (!grown)
			abort(); /* a few bytes; without the timer a connection would stay silent forever */
		t->heap = grown;
		t->room *= 2;
	}
	push(t, &(struct timer){when_ns, act, who});
	arm(t);
}

void timers_run(struct timers *t, uint64_t now_ns)
{
	t->armed_ns = 0;
	while (t->count && t->heap[0].when_ns <= now_ns) {
		struct timer due = pop(t);
		due.act(due.who, now_ns);
	}
	arm(t);
}

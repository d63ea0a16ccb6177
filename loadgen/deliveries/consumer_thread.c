/* SPDX-License-Identifier: MIT */
/* The consumers' thread. The load starts when every consumer is ready, because earlier messages would be
 * lost. The thread ends when all acknowledged messages have arrived or its time is up. Its counters are
 * protected by a lock that no load thread takes. */
#include "deliveries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "consumer.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ull
enum { READY_SECONDS = 10 };

static void on_wake(int unused_fd, short unused, void *arg)
{
	struct deliveries *d = arg;

	(void)unused_fd, (void)unused;
	event_base_loopbreak(d->base);
}

static void on_second(int unused_fd, short unused, void *arg)
{
	struct deliveries *d = arg;

	(void)unused_fd, (void)unused;
	log_lane_flush(&d->lane, ft_now_ns());
}

/* Only used to wait for this time. */
static void on_patience_end(int unused_fd, short unused, void *arg)
{
	(void)unused_fd, (void)unused, (void)arg;
}

static void *run_thread(void *arg)
{
	static const struct timeval second = {.tv_sec = 1};
	struct deliveries *d = arg;

	pthread_setname_np(pthread_self(), "consumers");
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (event_assign(&d->tick, d->base, -1, EV_PERSIST, on_second, d) == 0)
		event_add(&d->tick, &second);
	event_base_dispatch(d->base);
	log_lane_close(&d->lane, ft_now_ns());
	return NULL;
}

/* ---- interface ---- */

static int make_consumers(struct deliveries *d, const int *fds)
{
	const struct deliveries_plan *plan = &d->plan;
	bool each = plan->kind == DELIVERY_PUBSUB || plan->kind == DELIVERY_STREAM;

	d->consumers = calloc(plan->consumers, sizeof(*d->consumers));
	d->seen = calloc(each ? plan->consumers : 1, sizeof(*d->seen));
	d->stats = stats_new(&plan->mix);
	for (uint32_t i = 0; i < plan->consumers; i++) {
		if (!d->consumers) {
			close(fds[i]);
			continue;
		}
		d->consumers[i] = (struct consumer){
		    .deliveries = d,
		    .state = CONSUMER_PREPARING,
		    .fd = fds[i],
		    .number = i,
		    .id = plan->first_id + i,
		    .seen = d->seen ? &d->seen[each ? i : 0] : NULL,
		    .opened_ns = ft_now_ns(),
		    .inode = socket_inode(fds[i]),
		    .local_port = socket_local_port(fds[i]),
		};
	}
	if (!d->consumers || !d->seen || !d->stats || !d->buffer || !d->base || d->wake_fd < 0 ||
	    event_assign(&d->wake, d->base, d->wake_fd, EV_READ, on_wake, d) || event_add(&d->wake, NULL))
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->consumers; i++)
		if (!consumer_admit(&d->consumers[i]) || !consumer_prepare(&d->consumers[i]))
			return -ENOMEM;
	return 0;
}

/* Waits until all consumers are ready: messages published before that would be lost. */
static int get_ready(struct deliveries *d, char *error, size_t size)
{
	const struct timeval patience = {.tv_sec = READY_SECONDS};
	uint64_t give_up_ns = ft_now_ns() + READY_SECONDS * SECOND_NS;
	struct event end;

	for (uint32_t i = 0; i < d->plan.consumers; i++) {
		struct consumer *c = &d->consumers[i];

		if (c->awaited == 0) {
			c->state = CONSUMER_READY;
			d->ready++;
		}
		consumer_flush(c);
	}
	if (evtimer_assign(&end, d->base, on_patience_end, NULL) || event_add(&end, &patience))
		return -ENOMEM;
	while (d->ready < d->plan.consumers && d->how.broken == 0 && ft_now_ns() < give_up_ns)
		event_base_loop(d->base, EVLOOP_ONCE);
	event_del(&end);
	if (d->ready == d->plan.consumers && d->how.broken == 0)
		return 0;
	snprintf(error, size, "%u of %u consumers could not start: %s", d->plan.consumers - d->ready,
		 d->plan.consumers, d->how.why ? d->how.why : "no answer from the server within 10 s");
	return -ECONNREFUSED;
}

int deliveries_start(struct deliveries **out, const struct deliveries_plan *plan, const int *fds, char *error,
		     size_t size)
{
	struct deliveries *d = calloc(1, sizeof(*d));
	int rc;

	*out = d;
	snprintf(error, size, "not enough memory for the consumers");
	if (!d) {
		for (uint32_t i = 0; i < plan->consumers; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	d->plan = *plan;
	d->base = event_base_new();
	d->buffer = malloc(READ_AT_ONCE);
	d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->measure_ns = UINT64_MAX; /* the start isn't known yet */
	pthread_mutex_init(&d->lock, NULL);
	log_lane_open(&d->lane, plan->log);
	rc = make_consumers(d, fds);
	if (rc == 0)
		rc = get_ready(d, error, size);
	for (uint32_t i = 0; i < plan->consumers && rc == 0; i++)
		consumer_log(&d->consumers[i], false);
	if (rc == 0) {
		d->started = true;
		rc = -pthread_create(&d->handle, NULL, run_thread, d);
		d->started = rc == 0;
	}
	if (rc) {
		deliveries_free(d);
		*out = NULL;
	}
	return rc;
}

void deliveries_measure(struct deliveries *d, uint64_t measure_ns)
{
	pthread_mutex_lock(&d->lock);
	d->measure_ns = measure_ns;
	pthread_mutex_unlock(&d->lock);
}

void deliveries_take(struct deliveries *d, struct stats *into)
{
	pthread_mutex_lock(&d->lock);
	stats_merge(into, d->stats);
	stats_reset(d->stats);
	pthread_mutex_unlock(&d->lock);
}

static void stop_thread(struct deliveries *d)
{
	uint64_t one = 1;

	if (!d->started)
		return;
	(void)!write(d->wake_fd, &one, sizeof(one));
	pthread_join(d->handle, NULL);
	d->started = false;
}

void deliveries_end(struct deliveries *d, uint64_t acknowledged, uint64_t drain_ns,
		    const atomic_bool *abandon, struct delivery_counts *how)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t give_up_ns = ft_now_ns() + drain_ns;
	uint32_t each = d->plan.kind == DELIVERY_PUBSUB	  ? d->plan.consumers
			: d->plan.kind == DELIVERY_STREAM ? d->plan.consumers / d->plan.channels
							  : 1;

	while (atomic_load(&d->received) < acknowledged * each && ft_now_ns() < give_up_ns &&
	       !atomic_load(abandon))
		nanosleep(&pause, NULL);
	stop_thread(d);
	for (uint32_t i = 0; i < d->plan.consumers; i++)
		consumer_log(&d->consumers[i], true);
	*how = d->how;
	how->log_drops = d->lane.all_drops;
	how->expected = acknowledged * each;
	how->received = atomic_load(&d->received);
}

void deliveries_free(struct deliveries *d)
{
	if (!d)
		return;
	stop_thread(d);
	log_lane_close(&d->lane, ft_now_ns());
	for (uint32_t i = 0; d->consumers && i < d->plan.consumers; i++) {
		consumer_close(&d->consumers[i]);
		free(d->consumers[i].out.at);
	}
	free(d->consumers);
	free(d->seen);
	stats_free(d->stats);
	free(d->buffer);
	if (d->base)
		event_base_free(d->base);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

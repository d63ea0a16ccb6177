/* SPDX-License-Identifier: MIT */
/* A load thread's life around the hot path: set-up, timers, the hand-over of counts, the end.
 *
 * Timers are timerfds of our own rather than libevent's: those are as coarse as epoll_wait's milliseconds,
 * or with EVENT_BASE_FLAG_PRECISE_TIMER cost a timerfd_settime() at every turn of the loop. Ours is set
 * when the next request's instant changes and a connection has room for it, and being edge-triggered needs
 * no read().
 */
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "inspection.h"
#include "recording/recording.h"
#include "replay_send.h"
#include "tls.h"

#define SECOND_NS 1000000000ull

static void hand_over(struct load_thread *t, uint64_t now_ns)
{
	t->stats->span_ns += now_ns - t->second_ns;
	t->second_ns = now_ns;
	pthread_mutex_lock(&t->lock);
	if (t->spare) {
		t->ready = t->stats;
		t->stats = t->spare;
		t->spare = NULL;
	}
	pthread_mutex_unlock(&t->lock);
}

struct stats *load_thread_take(struct load_thread *t)
{
	struct stats *s;

	pthread_mutex_lock(&t->lock);
	s = t->ready;
	t->ready = NULL;
	pthread_mutex_unlock(&t->lock);
	return s;
}

void load_thread_return(struct load_thread *t, struct stats *s)
{
	stats_reset(s);
	pthread_mutex_lock(&t->lock);
	t->spare = s;
	pthread_mutex_unlock(&t->lock);
}

/* Sets tick_fd to the next whole second since the start, or to when we give up, if that is sooner. */
static void arm_tick(struct load_thread *t, uint64_t now_ns)
{
	uint64_t start = t->plan->start_ns;
	uint64_t next = start + (now_ns > start ? (now_ns - start) / SECOND_NS + 1 : 1) * SECOND_NS;
	struct itimerspec when = {0};

	if (t->give_up_ns > now_ns && t->give_up_ns < next)
		next = t->give_up_ns;
	when.it_value.tv_sec = (time_t)(next / SECOND_NS);
	when.it_value.tv_nsec = (long)(next % SECOND_NS);
	timerfd_settime(t->tick_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void give_up(struct load_thread *t, uint64_t now_ns)
{
	t->stopping = true;
	t->lane.patient = true;
	fail_unsent(t, now_ns);
	if (t->routing)
		routed_give_up(t, now_ns);
	for (uint32_t i = 0; i < t->group_count * t->connection_count; i++) {
		struct connection *c = thread_connection(t, i);
		if (c->fd >= 0 && c->in_flight > 0)
			connection_fail(c, FT_STATUS_TIMEOUT, "the server did not answer in time");
	}
	check_finished(t, now_ns);
}

void load_thread_tick(struct load_thread *t, uint64_t now_ns)
{
	log_lane_flush(&t->lane, now_ns);
	hand_over(t, now_ns);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;
	uint64_t now = ft_now_ns();

	(void)fd;
	(void)what;
	load_thread_tick(t, now);
	expire_handshakes(t, now);
	if (now >= t->give_up_ns)
		give_up(t, now);
	else
		check_finished(t, now);
	arm_tick(t, now);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;

	(void)fd;
	(void)what;
	t->armed_ns = 0;
	if (t->routing)
		routed_pump(t, ft_now_ns());
	else
		open_loop_pump(t, ft_now_ns());
}

static void on_timers(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;

	(void)fd;
	(void)what;
	timers_run(&t->timers, ft_now_ns());
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;
	uint64_t now = ft_now_ns(), wait = t->plan->drain_ns;

	(void)fd;
	(void)what;
	if (atomic_load(&t->plan->abandon)) {
		give_up(t, now);
		return;
	}
	if (!atomic_load(&t->plan->stop) || t->stopping)
		return;
	t->stopping = true;
	fail_unsent(t, now);
	t->give_up_ns = now + (wait < SECOND_NS ? wait : SECOND_NS);
	arm_tick(t, now);
	check_finished(t, now);
}

static int watch(struct load_thread *t, struct event *e, int fd, event_callback_fn handler)
{
	if (fd < 0)
		return -errno;
	if (event_assign(e, t->base, fd, EV_READ | EV_ET | EV_PERSIST, handler, t) || event_add(e, NULL))
		return -ENOMEM;
	return 0;
}

static int make_base(struct load_thread *t)
{
	struct event_config *config = event_config_new();

	if (!config)
		return -ENOMEM;
	/* One thread uses it, and no libevent timer does: neither a lock nor a look at the clock per turn. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME |
					  EVENT_BASE_FLAG_IGNORE_ENV);
	event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE);
	t->base = event_base_new_with_config(config);
	event_config_free(config);
	return t->base ? 0 : -ENOMEM;
}

/* The event loop and what it watches beside connections. */
static int make_loop(struct load_thread *t)
{
	int rc = make_base(t);

	if (rc == 0)
		rc = watch(t, &t->due_event, t->due_fd, on_due);
	if (rc == 0)
		rc = watch(t, &t->tick_event, t->tick_fd, on_tick);
	if (rc == 0)
		rc = watch(t, &t->wake_event, t->wake_fd, on_wake);
	if (rc == 0)
		rc = watch(t, &t->timers_event, t->timers.fd, on_timers);
	return rc;
}

int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, uint32_t count,
		     struct request_log *log)
{
	int rc;

	*t = (struct load_thread){
	    .plan = plan,
	    .index = index,
	    .connection_count = count,
	    .active = count,
	    .cpu = -1,
	    .counting = plan->measure_ns == 0,
	    .due_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    .tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
	    .timers.fd = -1,
	};
	pthread_mutex_init(&t->lock, NULL);
	log_lane_open(&t->lane, log);
	t->read_buffer = malloc(READ_BYTES);
	t->stats = stats_new(&plan->mix);
	t->spare = stats_new(&plan->mix);
	if (!t->read_buffer || !t->stats || !t->spare)
		return -ENOMEM;
	/* One timer for each connection, and one each for time-outs and a profile. */
	rc = timers_init(&t->timers, count + 2);
	if (rc == 0)
		rc = request_buffer_init(&t->requests, plan->workload, RING_SIZE(plan),
					 random_begin(plan->seed, index, 4));
	if (rc == 0 && !plan->blocking)
		rc = make_loop(t);
	if (rc == 0 && plan->nodes)
		rc = routing_init(t);
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void group_free(struct group *g)
{
	for (uint32_t i = 0; g && g->connections && i < g->count; i++) {
		if (g->connections[i].fd >= 0)
			close_socket(&g->connections[i]);
		free(g->connections[i].unsent);
		inspection_free(g->connections[i].inspection);
	}
	if (!g)
		return;
	free(g->queue.ring);
	free(g->asks.ring);
	free(g->connections);
	free(g->rings);
	free(g);
}

struct group *load_thread_connect(struct load_thread *t, const struct endpoint *endpoint, uint16_t node,
				  const int *fds, uint32_t first_id)
{
	uint32_t count = t->connection_count;
	struct group *g = calloc(1, sizeof(*g)), **grown;
	int rc = 0;

	grown = realloc(t->groups, (t->group_count + 1) * sizeof(*grown));
	if (grown)
		t->groups = grown;
	if (g) {
		TAILQ_INIT(&g->idle);
		TAILQ_INIT(&g->partial);
		g->count = count;
		g->endpoint = endpoint;
		g->node = node;
		g->connections = calloc(count, sizeof(*g->connections));
		g->rings = calloc((size_t)count * RING_SIZE(t->plan), sizeof(*g->rings));
	}
	if (!g || !grown || !g->connections || !g->rings) {
		for (uint32_t i = 0; fds && i < count; i++)
			tls_close(fds[i]);
		group_free(g);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		g->connections[i].fd = fds ? fds[i] : -1;
		g->connections[i].tls = fds ? tls_claim(fds[i]) : NULL;
	}
	t->groups[t->group_count++] = g;
	t->alive += count;
	if (t->routing)
		routing_add(t, g);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = connection_init(&g->connections[i], t, g, first_id + i,
				     g->rings + (size_t)i * RING_SIZE(t->plan));
	for (uint32_t i = 0; i < count && rc == 0 && !fds; i++)
		connection_begin(&g->connections[i], ft_now_ns());
	return rc ? NULL : g; /* what there is of it goes with the thread */
}

static void run_loop(struct load_thread *t)
{
	uint64_t now = ft_now_ns();

	arm_tick(t, now);
	watch_connections(t);
	if (t->routing)
		routed_pump(t, now);
	else if (t->plan->open_loop)
		open_loop_pump(t, now);
	for (uint32_t i = 0; i < t->connection_count && !t->plan->open_loop && !t->routing; i++) {
		struct connection *c = thread_connection(t, i);
		if (c->fd >= 0 && c->in_flight == 0)
			connection_refill(c, 0);
	}
	if (!t->finished)
		event_base_dispatch(t->base);
}

/* To the CPU it is to run on; one that isn't there was refused before (options). */
static void settle_on_cpu(const struct load_thread *t)
{
	cpu_set_t set;

	if (t->cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)t->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *run_thread(void *arg)
{
	struct load_thread *t = arg;
	struct rusage used;
	uint64_t one = 1;
	char name[16];

	snprintf(name, sizeof(name), "load-%u", t->index);
	pthread_setname_np(pthread_self(), name);
	atomic_store(&t->tid, (int)gettid());
	prctl(PR_SET_TIMERSLACK, 1ul);
	settle_on_cpu(t);
	if (t->plan->blocking)
		run_blocking(t);
	else
		run_loop(t);
	log_lane_close(&t->lane, ft_now_ns());
	if (getrusage(RUSAGE_THREAD, &used) == 0)
		t->cpu_ns = ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * SECOND_NS +
			    ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000;
	atomic_store(&t->ended, 1);
	if (write(t->plan->done_fd, &one, sizeof(one)) < 0) {
		/* An eventfd takes a one unless 2^64 - 2 lie there unread. */
	}
	return NULL;
}

int load_thread_start(struct load_thread *t)
{
	uint64_t end = t->plan->end_ns;

	t->second_ns = t->plan->start_ns;
	t->give_up_ns = end < PACING_NEVER - t->plan->drain_ns ? end + t->plan->drain_ns : PACING_NEVER;
	return -pthread_create(&t->handle, NULL, run_thread, t);
}

void load_thread_wake(struct load_thread *t)
{
	uint64_t one = 1;

	if (write(t->wake_fd, &one, sizeof(one)) < 0) {
		/* As above. */
	}
}

void load_thread_join(struct load_thread *t)
{
	pthread_join(t->handle, NULL);
}

void load_thread_free(struct load_thread *t)
{
	if (t->base)
		event_base_free(t->base); /* it looks at the connections' events once more */
	for (uint32_t i = 0; i < t->group_count; i++)
		group_free(t->groups[i]);
	free(t->groups);
	routing_free(t);
	replay_end(t);
	close_fd(t->due_fd);
	close_fd(t->tick_fd);
	close_fd(t->wake_fd);
	timers_free(&t->timers);
	request_buffer_free(&t->requests);
	chooser_free(&t->chooser);
	free(t->key_name.at);
	free(t->read_buffer);
	stats_free(t->stats);
	stats_free(t->ready);
	stats_free(t->spare);
	pthread_mutex_destroy(&t->lock);
}

/* SPDX-License-Identifier: MIT */
/* A load thread's event loop and what it watches besides connections. It uses timerfds directly instead of
 * libevent's timers: those have epoll_wait's resolution of milliseconds, or with
 * EVENT_BASE_FLAG_PRECISE_TIMER cost a timerfd_settime() in every iteration. Ours is set when the next
 * request's instant changes and a connection has space for it, and needs no read() because it is
 * edge-triggered. */
#include "event_loop.h"

#include <errno.h>
#include <sys/timerfd.h>

#include "connection_timers.h"
#include "hand_over.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/lifecycle.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ull

/* Sets tick_fd to the next whole second since the start, or to the end of waiting if that is earlier. */
static void arm_tick(struct load_thread *t, uint64_t now_ns)
{
	uint64_t start = t->plan->start_ns;
	uint64_t next = start + (now_ns > start ? (now_ns - start) / SECOND_NS + 1 : 1) * SECOND_NS;
	struct itimerspec when = {0};

	if (t->give_up_ns > now_ns && t->give_up_ns < next)
		next = t->give_up_ns;
	when.it_value.tv_sec = (time_t)(next / SECOND_NS);
	when.it_value.tv_nsec = (long)(next % SECOND_NS);
	timerfd_settime(t->alarms.tick_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void give_up(struct load_thread *t, uint64_t now_ns)
{
	t->stopping = true;
	t->lane.patient = true;
	fail_unsent(t, now_ns);
	if (t->model->give_up)
		t->model->give_up(t, now_ns);
	for (uint32_t i = 0; i < thread_connections(t); i++) {
		struct connection *c = thread_connection(t, i);
		if (c->fd >= 0 && c->in_flight > 0)
			connection_fail(c, FT_STATUS_TIMEOUT, "the server did not answer in time");
	}
	finish_if_done(t, now_ns);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;
	uint64_t now = ft_now_ns();

	(void)fd;
	(void)what;
	hand_over_tick(t, now);
	expire_handshakes(t, now);
	if (now >= t->give_up_ns)
		give_up(t, now);
	else
		finish_if_done(t, now);
	arm_tick(t, now);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;

	(void)fd;
	(void)what;
	t->alarms.due_ns = 0;
	t->model->pump(t, ft_now_ns());
}

/* Polls events and the clock without sleeping. A request is sent when it falls due, not when a timer wakes
 * the thread, and no answer waits for a wake-up. */
static void spin(struct load_thread *t)
{
	struct alarms *a = &t->alarms;
	uint64_t now;

	while (!t->finished && event_base_loop(t->base, EVLOOP_NONBLOCK) >= 0) {
		now = ft_now_ns();
		if (a->due_ns == 0 || now < a->due_ns)
			continue;
		a->due_ns = 0;
		t->model->pump(t, now);
	}
}

static void on_timers(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;

	(void)fd;
	(void)what;
	timers_run(&t->alarms.timers, ft_now_ns());
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct load_thread *t = arg;
	uint64_t now = ft_now_ns(), wait = t->plan->drain_ns;

	(void)fd;
	(void)what;
	if (atomic_load(&t->plan->ending.abandon)) {
		give_up(t, now);
		return;
	}
	if (!atomic_load(&t->plan->ending.stop) || t->stopping)
		return;
	t->stopping = true;
	fail_unsent(t, now);
	t->give_up_ns = now + (wait < SECOND_NS ? wait : SECOND_NS);
	arm_tick(t, now);
	finish_if_done(t, now);
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
	/* Only one thread uses it, without libevent timers: no lock, and no clock reading per iteration. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME |
					  EVENT_BASE_FLAG_IGNORE_ENV);
	event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE);
	t->base = event_base_new_with_config(config);
	event_config_free(config);
	return t->base ? 0 : -ENOMEM;
}

int event_loop_init(struct load_thread *t)
{
	struct alarms *a = &t->alarms;
	int rc = make_base(t);

	if (rc == 0)
		rc = watch(t, &a->due, a->due_fd, on_due);
	if (rc == 0)
		rc = watch(t, &a->tick, a->tick_fd, on_tick);
	if (rc == 0)
		rc = watch(t, &a->wake, a->wake_fd, on_wake);
	if (rc == 0)
		rc = watch(t, &a->timer, a->timers.fd, on_timers);
	return rc;
}

void event_loop_run(struct load_thread *t)
{
	uint64_t now = ft_now_ns();

	arm_tick(t, now);
	connection_timers_start(t);
	t->model->pump(t, now);
	if (t->plan->busy_poll)
		spin(t);
	else if (!t->finished)
		event_base_dispatch(t->base);
}

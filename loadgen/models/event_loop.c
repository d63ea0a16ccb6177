/* SPDX-License-Identifier: MIT */
/* The event loop of a load thread: its timers and groups of connections, handing over its counters, its
 * begin and end. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/grow.h"
#include "load_models.h"
#include "loadgen/engine.h"
#include "loadgen/models.h"
#include "loadgen/net.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

/* A load thread's event loop and what it watches besides connections. It uses timerfds directly instead of
 * libevent's timers: those have epoll_wait's resolution of milliseconds, or with
 * EVENT_BASE_FLAG_PRECISE_TIMER cost a timerfd_settime() in every iteration. Ours is set when the next
 * request's instant changes and a connection has space for it, and needs no read() because it is
 * edge-triggered. */

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
	t->lane.waits_for_spare = true;
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
	uint64_t now = ft_now_ns(), wait = t->plan->options->drain_ns;

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
	if (t->plan->options->busy_poll)
		spin(t);
	else if (!t->finished)
		event_base_dispatch(t->base);
}

/* Time-outs and profiles of connections: timers that repeat until the thread has finished. A time-out is
 * noticed up to a tenth of its length late, because requests have no individual timers. */

enum { PROFILE_TICK_NS = 10000000 };

static void look_for_timeouts(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	uint64_t limit = t->plan->options->timeout_ns;

	for (uint32_t i = 0; i < thread_connections(t) && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);
		/* A request still waiting to be written has no start yet. */
		if (c->fd >= 0 && c->in_flight > c->to_send &&
		    c->pending[c->first].start_ns + limit <= now_ns)
			connection_fail(c, FT_STATUS_TIMEOUT, "no answer within --timeout");
	}
	if (!t->finished)
		timers_add(&t->alarms.timers, now_ns + (limit / 10 > 1000000 ? limit / 10 : 1000000),
			   look_for_timeouts, t);
}

/* Lets as many connections send as the profile says now. */
static void follow_profile(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	const struct load_plan *plan = t->plan;
	double all =
	    profile_value(&plan->options->connections_over_time, (double)(now_ns - plan->start_ns) * 1e-9);
	uint32_t wanted =
	    all <= 0 ? 0 : (uint32_t)(all * t->connection_count / plan->options->connections + 0.5);
	bool changed = false;

	for (uint32_t i = 0; i < t->connection_count; i++) {
		struct connection *c = thread_connection(t, i);
		bool park = i >= wanted;

		if (c->parked == park)
			continue;
		c->parked = park;
		changed = true;
		if (t->model->update_list)
			t->model->update_list(c);
	}
	if (changed && !t->finished)
		t->model->pump(t, now_ns);
	if (!t->finished)
		timers_add(&t->alarms.timers, now_ns + PROFILE_TICK_NS, follow_profile, t);
}

void connection_timers_start(struct load_thread *t)
{
	uint64_t now = ft_now_ns();

	if (t->plan->options->timeout_ns)
		look_for_timeouts(t, now);
	if (t->plan->options->has_connections_profile)
		follow_profile(t, now);
}

/* Requests that fall due by the clock. The timer is set only when the next request's instant changes and
 * there is space for it: most instants pass while answers arrive anyway. */

void due_arm(struct load_thread *t, uint64_t due_ns)
{
	struct itimerspec when = {
	    .it_value = {.tv_sec = (time_t)(due_ns / 1000000000), .tv_nsec = (long)(due_ns % 1000000000)}};

	if (due_ns == PACING_NEVER || due_ns == t->alarms.due_ns)
		return;
	if (!t->plan->options->busy_poll)
		timerfd_settime(t->alarms.due_fd, TFD_TIMER_ABSTIME, &when, NULL);
	t->alarms.due_ns = due_ns;
}

bool due_more(struct load_thread *t, uint64_t now_ns)
{
	(void)now_ns;
	return t->pacing.due_ns != PACING_NEVER;
}

/* A user of a server that is gone waits until the planned end: a shorter latency would make such a run look
 * better than one whose server hangs. */
void due_fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	bool lost = loss_is_final(t);
	uint64_t end_ns = lost ? pacing_end_ns(&t->pacing) : PACING_NEVER;

	if (end_ns == PACING_NEVER)
		pacing_stop(&t->pacing, now_ns);
	end_ns = end_ns == PACING_NEVER || end_ns < now_ns ? now_ns : end_ns;
	t->lane.waits_for_spare = true; /* there may be millions, and measuring has ended */
	while (t->pacing.due_ns != PACING_NEVER) {
		struct pending_request p = {
		    .intended_ns = t->pacing.due_ns,
		    .start_ns = end_ns,
		    .operation = (uint8_t)choose_operation(&t->plan->mix, &t->chooser),
		};
		record_end(t, NO_CONNECTION, &p, end_ns, FT_STATUS_UNSENT, 0);
		pacing_take(&t->pacing);
		/* Ctrl-C, or --max-errors: what falls due later does not count. */
		if (lost && atomic_load_explicit(&t->plan->ending.stop, memory_order_relaxed))
			pacing_stop(&t->pacing, now_ns);
	}
}

/* Two sets of counters are exchanged. While the main thread still uses the other set, the current second is
 * extended. */

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

/* A group's connections are in one array and their rings in another, with sizes known from the start.
 * Descriptors that were passed in are closed even without memory. */

void group_free(struct group *g)
{
	for (uint32_t i = 0; g && g->connections && i < g->count; i++) {
		if (g->connections[i].fd >= 0)
			close_socket(&g->connections[i]);
		free(g->connections[i].backlog);
		reply_buffer_free(g->connections[i].reply);
	}
	if (!g)
		return;
	free(g->queue.ring);
	free(g->asks.ring);
	free(g->connections);
	free(g->rings);
	free(g);
}

struct group *group_connect(struct load_thread *t, const struct endpoint *endpoint, uint16_t node,
			    const int *fds, uint32_t first_id)
{
	uint32_t count = t->connection_count;
	struct group *g = calloc(1, sizeof(*g));
	bool grown = grow(&t->groups, &t->group_room, t->group_count, sizeof(struct group *));
	int rc = 0;

	if (g) {
		TAILQ_INIT(&g->idle);
		TAILQ_INIT(&g->partial);
		g->endpoint = endpoint;
		g->node = node;
		g->connections = calloc(count, sizeof(*g->connections));
		g->rings = calloc((size_t)count * plan_ring_size(t->plan), sizeof(*g->rings));
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
	g->count = count;
	t->groups[t->group_count++] = g;
	t->alive += count;
	if (t->model->on_group)
		t->model->on_group(t, g);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = connection_init(&g->connections[i], t, g, first_id + i,
				     g->rings + (size_t)i * plan_ring_size(t->plan));
	for (uint32_t i = 0; i < count && rc == 0 && !fds; i++)
		connection_begin(&g->connections[i], ft_now_ns());
	return rc ? NULL : g; /* the incomplete group is freed with the thread */
}

/* Set-up of a load thread, including its load model, its start and its end. */

/* The only place that chooses the load model. */
static const struct load_model *model_of(const struct load_plan *plan)
{
	if (plan->workload->recorded.replay)
		return plan->nodes ? &routed_replay : &replay_send;
	if (plan->options->blocking)
		return plan->open_loop ? &blocking_open_loop : &blocking_closed_loop;
	if (plan->nodes)
		return plan->open_loop ? &routed_open_loop : &routed_closed_loop;
	return plan->open_loop ? &open_loop : &closed_loop;
}

int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, uint32_t count,
		     struct request_log *log)
{
	struct alarms *a = &t->alarms;
	int rc;

	*t = (struct load_thread){
	    .plan = plan,
	    .model = model_of(plan),
	    .index = index,
	    .connection_count = count,
	    .cpu = -1,
	    .counting = plan->measure_ns == 0,
	    .alarms.due_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    .alarms.tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    .alarms.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
	    .alarms.timers.fd = -1,
	};
	pthread_mutex_init(&t->hand_over.lock, NULL);
	log_lane_open(&t->lane, log);
	t->read_buffer = malloc(READ_BYTES);
	t->stats = stats_new_with(&plan->mix, plan->options->arrival_times);
	t->hand_over.spare = stats_new_with(&plan->mix, plan->options->arrival_times);
	if (!t->read_buffer || !t->stats || !t->hand_over.spare)
		return -ENOMEM;
	/* One timer per connection, and one each for time-outs and a profile. */
	rc = timers_init(&a->timers, count + 2);
	if (rc == 0)
		rc = request_buffer_init(&t->requests, plan->workload, plan_ring_size(plan),
					 random_begin(plan->options->seed, index, 4));
	if (rc == 0)
		rc = t->model->init(t);
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Pins it to its CPU. The options have already refused CPUs that don't exist. */
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
	t->model->run(t);
	for (uint32_t i = 0; i < thread_connections(t); i++)
		connection_note_end(thread_connection(t, i), ft_now_ns());
	log_lane_close(&t->lane, ft_now_ns());
	if (getrusage(RUSAGE_THREAD, &used) == 0)
		t->cpu_ns = ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * SECOND_NS +
			    ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000;
	atomic_store(&t->ended, 1);
	if (write(t->plan->ending.done_fd, &one, sizeof(one)) < 0) {
		/* Writing one to an eventfd fails only if 2^64 - 2 are unread. */
	}
	return NULL;
}

int load_thread_start(struct load_thread *t)
{
	uint64_t end = t->plan->end_ns;

	t->hand_over.second_ns = t->plan->start_ns;
	t->give_up_ns =
	    end < PACING_NEVER - t->plan->options->drain_ns ? end + t->plan->options->drain_ns : PACING_NEVER;
	return -pthread_create(&t->handle, NULL, run_thread, t);
}

void load_thread_wake(struct load_thread *t)
{
	uint64_t one = 1;

	if (write(t->alarms.wake_fd, &one, sizeof(one)) < 0) {
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
		event_base_free(t->base); /* it checks the connections' events once more */
	for (uint32_t i = 0; i < t->group_count; i++)
		group_free(t->groups[i]);
	free(t->groups);
	if (t->model->free)
		t->model->free(t);
	close_fd(t->alarms.due_fd);
	close_fd(t->alarms.tick_fd);
	close_fd(t->alarms.wake_fd);
	timers_free(&t->alarms.timers);
	request_buffer_free(&t->requests);
	chooser_free(&t->chooser);
	free(t->key_name.at);
	free(t->read_buffer);
	stats_free(t->stats);
	stats_free(t->hand_over.ready);
	stats_free(t->hand_over.spare);
	pthread_mutex_destroy(&t->hand_over.lock);
}

/* SPDX-License-Identifier: MIT */
/* One test: connects, starts load threads, monitors them, and computes figures from their counts. The main
 * thread does no load. Once per second it takes the load threads' counts and prints a line. In between it
 * waits for signals, so that Ctrl-C ends a run with a complete table and log. */
#include "phase.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "complain.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/models/group.h"
#include "loadgen/models/hand_over.h"
#include "loadgen/models/replay_lanes.h"
#include "loadgen/models/thread_lifecycle.h"
#include "loadgen/server/connect.h"
#include "phase_deliveries.h"
#include "phase_report.h"
#include "prepare.h"
#include "recording/json/json_block.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ull
/* How long after the threads' own tick the main thread collects: their tick takes microseconds. */
#define TICK_DELAY_NS 20000000ull

/* The size of one of `parts` parts that differ by at most one. */
static uint64_t share(uint64_t all, uint32_t parts, uint32_t part)
{
	return all / parts + (part < all % parts);
}

double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* ---- set-up ---- */

/* Logged twice for each connection: when it is opened, and at the end, when its lifetime is known. */
static void log_connections(struct run *r, const struct load_thread *t, bool ended)
{
	for (uint32_t i = 0; r->log && i < thread_connections(t); i++) {
		struct ft_connection record = connection_record(thread_connection(t, i));

		if (ended && record.closed_ns == 0)
			record.closed_ns = ft_now_ns();
		ft_writer_record(request_log_writer(r->log), FT_BLOCK_CONNECTION, &record);
	}
}

/* Connects one group of a thread's connections. With several servers, one that can't be reached now may
 * return: its connections are then opened in the background. */
static int make_group(struct run *r, struct phase *p, struct load_thread *t, struct server *server,
		      const struct endpoint *endpoint, uint16_t node)
{
	uint32_t first = atomic_fetch_add(&p->plan.next_connection, t->connection_count);
	char error[512];
	int *fds = server_connect_all(server, first, t->connection_count, error, sizeof(error));
	struct group *g;

	if (!fds && !r->nodes) {
		complain(r, error);
		return -ECONNREFUSED;
	}
	g = group_connect(t, endpoint, node, fds, first);
	free(fds);
	if (!g)
		complain(r, "not enough memory for the connections");
	return g ? 0 : -ENOMEM;
}

/* Connects to each node that requests may currently go to. */
static int make_groups(struct run *r, struct phase *p, struct load_thread *t)
{
	struct nodes *n = r->nodes;
	uint32_t count = atomic_load(&n->count);
	int rc = 0;

	for (uint32_t i = 0; i < count && rc == 0; i++) {
		struct node *node = nodes_at(n, (uint16_t)i);

		if (!nodes_serves(n, (uint16_t)i))
			continue;
		rc = make_group(r, p, t, &node->server, &node->endpoint, (uint16_t)i);
		/* Now it is known whether the server accepts a connection name. */
		node->endpoint = server_endpoint(&node->server);
	}
	return rc;
}

/* Creates a thread with its connections. */
static int make_thread(struct run *r, struct phase *p, uint32_t index)
{
	const struct options *o = r->o;
	struct load_thread *t = &p->threads[index];
	int rc =
	    load_thread_init(t, &p->plan, index, (uint32_t)share(o->connections, o->threads, index), r->log);

	p->thread_count++;
	if (rc) {
		complain(r, "not enough memory for the connections");
		return rc;
	}
	rc = r->nodes ? make_groups(r, p, t) : make_group(r, p, t, &r->server, &p->plan.endpoint, 0);
	if (rc == 0)
		log_connections(r, t, false);
	return rc;
}

static void make_plan(struct run *r, struct phase *p, const struct test *test)
{
	const struct options *o = r->o;

	p->plan = (struct load_plan){
	    .workload = r->workload,
	    .mix = test->mix,
	    .log_over_ns = o->log_mode == LOG_SLOW ? o->slow_ns : 0,
	    .drain_ns = o->drain_ns,
	    .think_ns = o->think_ns,
	    .timeout_ns = o->timeout_ns,
	    .seed = o->seed,
	    .pipeline = o->pipeline,
	    .batch = o->batch,
	    .reconnect_after = o->reconnect_after,
	    .connections = o->connections,
	    .connections_over_time = o->has_connections_profile ? &o->connections_over_time : NULL,
	    .open_loop = r->rate > 0 || o->has_rate_profile || o->replay,
	    .stamped = o->delivery != DELIVERY_NONE,
	    .arrival_times = o->arrival_times,
	    .busy_poll = o->busy_poll,
	    .replay_loop = o->loop,
	    .first_id = r->next_connection,
	    .database = o->database,
	    .blocking = o->blocking,
	    .no_wait = o->no_wait,
	    .resp3 = o->resp3,
	    .on_error = o->on_error,
	    .backoff_ms = o->backoff_ms,
	    .endpoint = server_endpoint(&r->server),
	    .nodes = r->nodes,
	    .proxy_ring = r->o->behind_count ? &r->proxy_ring : NULL,
	    .retry_ns = o->retry_ns,
	    .next_connection = r->next_connection,
	    .ending = {.max_errors = o->max_errors, .done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)},
	    .measure_ns = o->warmup_ns ? UINT64_MAX : 0, /* the start isn't known yet */
	};
}

static int prepare(struct run *r, struct phase *p, const struct test *test)
{
	const struct options *o = r->o;
	struct mix counted; /* messages that consumers receive are counted, but not drawn */
	char error[512];

	if (prepare_servers(&r->server, r->nodes, test->preparation, r->workload->keys, error,
			    sizeof(error))) {
		complain(r, error);
		return -1;
	}
	make_plan(r, p, test);
	p->threads = calloc(o->threads, sizeof(*p->threads));
	counted = p->plan.mix;
	if (o->delivery)
		counted.operations[counted.count++] = r->workload->delivery;
	p->totals = stats_new_with(&counted, o->arrival_times);
	p->second = stats_new_with(&counted, o->arrival_times);
	if (p->plan.ending.done_fd < 0 || !p->threads || !p->totals || !p->second) {
		complain(r, "not enough memory for the load");
		return -1;
	}
	for (uint32_t i = 0; i < o->threads; i++)
		if (make_thread(r, p, i))
			return -1;
	if (o->delivery && phase_deliveries_start(r, p))
		return -1;
	return 0;
}

static void wake_all(struct phase *p)
{
	for (uint32_t i = 0; i < p->started; i++)
		load_thread_wake(&p->threads[i]);
}

/* When a thread's requests fall due in an open loop. */
static void start_pacing(const struct run *r, struct phase *p, uint32_t i, uint64_t requests)
{
	const struct options *o = r->o;
	struct load_thread *t = &p->threads[i];
	double phase = (double)i / o->threads;
	struct random_stream random = random_begin(o->seed, i, 3);

	if (o->has_rate_profile)
		pacing_start_profile(&t->pacing, o->arrival, &o->rate_over_time, 1.0 / o->threads, phase,
				     p->plan.start_ns, p->plan.end_ns, requests, random);
	else
		pacing_start(&t->pacing, o->arrival, r->rate / o->threads, phase, p->plan.start_ns,
			     p->plan.end_ns, requests, random);
}

/* A thread's part of the load. */
static int hand_out(const struct run *r, struct phase *p, uint32_t i, uint32_t first_connection)
{
	const struct options *o = r->o;
	struct load_thread *t = &p->threads[i];
	uint64_t all = options_requests(o), requests = all ? share(all, o->threads, i) : UINT64_MAX;

	t->left = requests;
	t->cpu = o->cpu_count ? o->cpus[i % o->cpu_count] : -1;
	t->pacing.due_ns = PACING_NEVER;
	if (o->replay && replay_begin(t, first_connection))
		return -ENOMEM;
	if (p->plan.open_loop && !o->replay)
		start_pacing(r, p, i, requests);
	return chooser_init(&t->chooser, r->workload, &p->plan.mix, o->seed, i, i, o->threads,
			    t->connection_count, first_connection, o->connections);
}

/* Waits for --start-at, which applies to the first test, by the monotonic clock, so that setting the other
 * clock meanwhile changes nothing. False: a signal arrived first. */
static bool await_start(struct run *r)
{
	uint64_t now = ft_now_ns(), at = now;
	struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};
	struct timespec real;

	if (r->awaited || !r->o->start_at_ns)
		return true;
	r->awaited = true;
	clock_gettime(CLOCK_REALTIME, &real);
	at += r->o->start_at_ns - ((uint64_t)real.tv_sec * SECOND_NS + (uint64_t)real.tv_nsec);
	if ((int64_t)(at - now) < 0) {
		end_progress(r);
		fprintf(stderr, "forktail-load: --start-at was %.3f s ago: starting now\n",
			(double)(now - at) * 1e-9);
	}
	while ((int64_t)(at - (now = ft_now_ns())) > 0) {
		struct timespec wait = {.tv_sec = (time_t)((at - now) / SECOND_NS),
					.tv_nsec = (long)((at - now) % SECOND_NS)};
		if (ppoll(&fd, 1, &wait, NULL) > 0)
			return false;
	}
	return true;
}

/* Gives each thread its part and starts the load. */
static void start(struct run *r, struct phase *p)
{
	const struct options *o = r->o;
	uint32_t connections = 0;

	if (r->log)
		p->log_offset = ft_writer_bytes(request_log_writer(r->log));
	p->plan.start_ns = p->second_ns = ft_now_ns();
	p->plan.end_ns = o->duration_ns ? p->plan.start_ns + o->warmup_ns + o->duration_ns : PACING_NEVER;
	p->plan.measure_ns = o->warmup_ns ? p->plan.start_ns + o->warmup_ns : 0;
	if (p->deliveries)
		deliveries_measure(p->deliveries, p->plan.measure_ns);
	for (uint32_t i = 0; i < o->threads; i++) {
		struct load_thread *t = &p->threads[i];

		if (hand_out(r, p, i, connections) || load_thread_start(t)) {
			complain(r, "cannot start a load thread");
			atomic_store(&p->plan.ending.abandon, true);
			wake_all(p);
			return;
		}
		connections += t->connection_count;
		p->started++;
	}
}

/* ---- during the load ---- */

static double eta_seconds(const struct run *r, const struct phase *p, uint64_t now_ns)
{
	double elapsed = (double)(now_ns - p->plan.start_ns) * 1e-9, eta = -1;
	uint64_t done = stats_requests(p->totals), all = options_requests(r->o);

	if (p->plan.end_ns != PACING_NEVER)
		eta = p->plan.end_ns > now_ns ? (double)(p->plan.end_ns - now_ns) * 1e-9 : 0;
	if (all && done > 0 && done <= all) {
		double left = elapsed * (double)(all - done) / (double)done;
		if (eta < 0 || left < eta)
			eta = left;
	}
	return eta;
}

/* Adds the counts that were handed over to the files and the totals. */
static void take_second(struct run *r, struct phase *p, uint64_t now)
{
	second_outputs_write(&r->outputs, p->name, r->workload, p->second, p->second_ns, now);
	load_metrics_add(r->metrics, r->workload, p->second, r->rate);
	if (p->second_ns >= p->plan.measure_ns)
		second_rates_add(&p->rates, p->second);
	stats_merge(p->totals, p->second);
	stats_reset(p->second);
	p->second_ns = now;
}

/* Takes the counts of the threads and prints them. */
void phase_tick(struct run *r, struct phase *p)
{
	bool tty = isatty(STDERR_FILENO);
	uint64_t now = ft_now_ns();
	char text[256];

	for (uint32_t i = 0; i < p->started; i++) {
		struct stats *s = hand_over_take(&p->threads[i]);
		if (!s)
			continue;
		stats_merge(p->second, s);
		hand_over_return(&p->threads[i], s);
	}
	if (r->log && !r->log_failed && request_log_error(r->log)) {
		r->log_failed = true;
		snprintf(text, sizeof(text), "cannot write the log %s: %s. The load continues without it",
			 r->o->log_path, strerror(-request_log_error(r->log)));
		complain(r, text);
	}
	if (r->o->progress) {
		r->progress_open |= tty && p->second->span_ns > 0;
		report_progress(stderr, tty, p->name, (double)(now - p->plan.start_ns) * 1e-9, p->second,
				stats_errors(p->totals) + stats_errors(p->second), eta_seconds(r, p, now));
	}
	if (p->deliveries)
		deliveries_take(p->deliveries, p->second);
	take_second(r, p, now);
}

static void on_signal(struct run *r, struct phase *p)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) < 0)
		return;
	if (atomic_exchange(&p->plan.ending.stop, true))
		atomic_store(&p->plan.ending.abandon, true);
	r->end = RUN_INTERRUPTED;
	wake_all(p);
}

/* The event means that a thread has ended, or that the error limit was reached. */
static void poll_events(struct run *r, struct phase *p, uint64_t *ended)
{
	*ended = 0;
	for (uint32_t i = 0; i < p->started; i++)
		*ended += atomic_load(&p->threads[i].ended);
	if (!atomic_exchange(&p->plan.ending.gave_up, false))
		return;
	r->end = RUN_ERRORS;
	wake_all(p);
}

static void supervise(struct run *r, struct phase *p)
{
	struct pollfd fds[2] = {{.fd = r->signal_fd, .events = POLLIN},
				{.fd = p->plan.ending.done_fd, .events = POLLIN}};
	uint64_t next = p->plan.start_ns + SECOND_NS + TICK_DELAY_NS, ended = 0, count, now;

	while (ended < p->started) {
		now = ft_now_ns();
		if (now >= next) {
			phase_tick(r, p);
			next += ((now - next) / SECOND_NS + 1) * SECOND_NS;
			continue;
		}
		if (poll(fds, 2, (int)((next - now) / 1000000) + 1) <= 0)
			continue;
		if (fds[0].revents)
			on_signal(r, p);
		if (fds[1].revents && read(p->plan.ending.done_fd, &count, sizeof(count)) == sizeof(count))
			poll_events(r, p, &ended);
	}
	end_progress(r);
}

/* ---- the end ---- */

static void collect(struct run *r, struct phase *p)
{
	for (uint32_t i = 0; i < p->started; i++) {
		struct load_thread *t = &p->threads[i];

		load_thread_join(t);
		if (t->hand_over.ready)
			stats_merge(p->second, t->hand_over.ready);
		stats_merge(p->second, t->stats);
	}
	take_second(r, p, ft_now_ns());
	if (p->deliveries) {
		phase_deliveries_end(r, p);
		take_second(r, p, ft_now_ns());
	}
	if (r->log)
		request_log_drain(r->log); /* threads have logged sockets, too: the last entry counts */
	for (uint32_t i = 0; i < p->thread_count; i++)
		log_connections(r, &p->threads[i], true);
	r->next_connection = atomic_load(&p->plan.next_connection);
}

static void release(struct phase *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++)
		load_thread_free(&p->threads[i]);
	free(p->threads);
	deliveries_free(p->deliveries);
	stats_free(p->totals);
	stats_free(p->second);
	second_rates_free(&p->rates);
	if (p->plan.ending.done_fd >= 0)
		close(p->plan.ending.done_fd);
}

/* A thread stores its id first, but it may not have run yet. */
static uint64_t tid_of(struct load_thread *t)
{
	int tid;

	while (!(tid = atomic_load(&t->tid)))
		usleep(100);
	return (uint64_t)tid;
}

/* Logs which threads were the load, so that a recording of this host can identify them. */
static void note_start(struct run *r, const struct phase *p)
{
	json_t *n, *tids;

	if (!r->log)
		return;
	n = json_note(p->plan.start_ns, "load-start");
	json_put_text(n, "name", p->name);
	if (r->find)
		json_put_number(n, "rate", r->rate);
	if (p->plan.measure_ns)
		json_put_count(n, "warmup_end_ns", p->plan.measure_ns);
	tids = json_put_array(n, "tids");
	for (uint32_t i = 0; i < p->started; i++)
		json_put_count(tids, NULL, tid_of(&p->threads[i]));
	write_json_note(request_log_writer(r->log), n);
}

void run_phase(struct run *r, const struct test *test)
{
	struct phase *p = calloc(1, sizeof(*p));
	bool prepared;
	double cpu_s;

	if (!p) {
		complain(r, "not enough memory for the load");
		return;
	}
	p->plan.ending.done_fd = -1;
	p->name = test->name;
	prepared = prepare(r, p, test) == 0;
	if (prepared && !await_start(r)) {
		r->end = RUN_INTERRUPTED;
	} else if (prepared) {
		cpu_s = cpu_seconds();
		start(r, p);
		note_start(r, p);
		supervise(r, p);
		cpu_s = cpu_seconds() - cpu_s;
		collect(r, p);
		phase_report(r, p, cpu_s);
	}
	release(p);
	free(p);
}

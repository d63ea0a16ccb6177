/* SPDX-License-Identifier: MIT */
/* One test: connects, starts load threads, monitors them, and computes figures from their counts. The main
 * thread does no load. Once per second it takes the load threads' counts and prints a line. In between it
 * waits for signals, so that Ctrl-C ends a run with a complete table and log. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"
#include "loadgen/engine.h"
#include "loadgen/models.h"
#include "loadgen/net.h"
#include "loadgen/nodes.h"
#include "loadgen/output.h"
#include "loadgen/results.h"
#include "loadgen/server.h"
#include "recording/json_block.h"
#include "recording/recording.h"
#include "run_state.h"
#include "suite.h"

/* Stores the data that redis-benchmark's tests need, on the single server, or on those of several that own
 * the keys. */

/* A list of PREPARED_LIST elements, or `keys` sets of PREPARED_MEMBERS members. `several` NULL: all on `one`.
 * Returns 0, or -1 and a sentence. */
static int prepare_servers(struct server *one, struct nodes *several, enum preparation what,
			   const struct workload *workload, char *error, size_t size);

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
	    .options = o,
	    .workload = r->workload,
	    .mix = test->mix,
	    .log_over_ns = o->log_mode == LOG_SLOW ? o->slow_ns : 0,
	    .open_loop = r->rate > 0 || o->has_rate_profile || o->replay,
	    .stamped = o->delivery != DELIVERY_NONE,
	    .first_id = r->next_connection,
	    .endpoint = server_endpoint(&r->server),
	    .nodes = r->nodes,
	    .proxy_ring = r->o->behind_count ? &r->proxy_ring : NULL,
	    .next_connection = r->next_connection,
	    .ending = {.done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)},
	    .measure_ns = o->warmup_ns ? UINT64_MAX : 0, /* the start isn't known yet */
	};
}

static int prepare(struct run *r, struct phase *p, const struct test *test)
{
	const struct options *o = r->o;
	struct mix counted; /* messages that consumers receive are counted, but not drawn */
	char error[512];

	if (prepare_servers(&r->server, r->nodes, test->preparation, r->workload, error, sizeof(error))) {
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
		fprintf(stderr, "forktail load: --start-at was %.3f s ago: starting now\n",
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
	const bool tty = can_rewrite_line();
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

/* A test's consumers: their connections, their figures, and their messages at the end. */

int phase_deliveries_start(struct run *r, struct phase *p)
{
	const struct options *o = r->o;
	struct deliveries_plan plan = {
	    .options = o,
	    .workload = r->workload,
	    .endpoint = p->plan.endpoint,
	    .log = r->log,
	    .log_over_ns = p->plan.log_over_ns,
	    .stop = &p->plan.ending.stop,
	    .gave_up = &p->plan.ending.gave_up,
	    .done_fd = p->plan.ending.done_fd,
	};
	char error[512];
	int *fds, rc;

	mix_add(&plan.mix, r->workload->delivery, 1);
	plan.first_id = atomic_fetch_add(&p->plan.next_connection, o->consumers);
	fds = server_connect_all(&r->server, plan.first_id, o->consumers, error, sizeof(error));
	if (!fds) {
		complain(r, error);
		return -ECONNREFUSED;
	}
	/* Data left by another repeat does not count. */
	r->workload->stamps->run++;
	rc = deliveries_start(&p->deliveries, &plan, fds, error, sizeof(error));
	free(fds);
	if (rc)
		complain(r, error);
	return rc;
}

void phase_deliveries_end(struct run *r, struct phase *p)
{
	const struct operation_stats *sent = p->totals->operations[0];

	deliveries_end(p->deliveries, sent ? sent->status[FT_STATUS_OK] : 0, r->o->drain_ns,
		       &p->plan.ending.abandon, &p->delivery_counts);
	deliveries_take(p->deliveries, p->second);
}

void phase_deliveries_report(struct run *r, const struct phase *p, FILE *to)
{
	const struct delivery_counts *d = &p->delivery_counts;
	uint64_t lost = d->expected > d->received ? d->expected - d->received : 0;
	char text[300];

	if (to) {
		fprintf(to,
			"deliveries: %" PRIu64 " of %" PRIu64 " expected by %u consumer%s, lost %" PRIu64
			", duplicates %" PRIu64,
			d->received, d->expected, r->o->consumers, r->o->consumers == 1 ? "" : "s", lost,
			d->duplicates);
		if (d->foreign)
			fprintf(to, ", unrelated messages %" PRIu64, d->foreign);
		if (d->broken)
			fprintf(to, ", consumer connections lost or refused %" PRIu64, d->broken);
		fputc('\n', to);
	}
	if (d->broken) {
		fprintf(stderr,
			"forktail load: consumer connections were lost %" PRIu64 " times: ", d->broken);
		put_visible(stderr, d->why ? d->why : "the reason is not known");
		fputc('\n', stderr);
	} else if (lost) {
		snprintf(text, sizeof(text), "%" PRIu64 " acknowledged messages were not delivered", lost);
		complain(r, text);
	}
}

void phase_deliveries_json(const struct phase *p, const struct options *o, json_t *j)
{
	const struct delivery_counts *d = &p->delivery_counts;
	json_t *deliveries = json_put_object(j, "deliveries");

	json_put_count(deliveries, "consumers", o->consumers);
	json_put_count(deliveries, "expected", d->expected);
	json_put_count(deliveries, "received", d->received);
	json_put_count(deliveries, "lost", d->expected > d->received ? d->expected - d->received : 0);
	json_put_count(deliveries, "duplicates", d->duplicates);
	json_put_count(deliveries, "foreign", d->foreign);
	json_put_count(deliveries, "broken", d->broken);
}

/* The end of a test: its figures, error messages, its table, and its limits. */

static void complain_of_replay(struct run *r, struct phase *p)
{
	const struct replay *replay = r->o->replay;
	uint64_t abandoned = 0;
	int64_t refused = -1;
	char text[160];

	for (uint32_t i = 0; i < p->thread_count; i++) {
		abandoned += replay_abandoned_count(&p->threads[i]);
		if (replay_refused_database(&p->threads[i]) >= 0)
			refused = replay_refused_database(&p->threads[i]);
	}
	if (refused >= 0) {
		snprintf(text, sizeof(text),
			 "%s database %lld, which the recording uses. Its commands were not sent",
			 r->nodes ? "a cluster has no" : "the server refused", (long long)refused);
		complain(r, text);
	}
	if (abandoned) {
		snprintf(text, sizeof(text),
			 "%llu commands were not sent because their connections were lost",
			 (unsigned long long)abandoned);
		complain(r, text);
	}
	/* Every live file may have a truncated tail; after other damage, commands are missing. */
	if (replay && replay->damage && !replay->cut)
		r->status = EXIT_ENVIRONMENT;
}

/* Prints a sentence for each problem. */
static void complain_of(struct run *r, struct phase *p, const struct result_figures *f)
{
	const uint64_t *status = f->operations[TOTAL].status;
	const char *why = NULL;
	uint32_t lost = 0, away = 0, all = 0;
	uint64_t drops = 0;
	char text[512];

	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct load_thread *t = &p->threads[i];

		lost += t->trouble.lost;
		all += thread_connections(t);
		for (uint32_t k = 0; k < thread_connections(t); k++) {
			const struct connection *c = thread_connection(t, k);
			away += c->fd < 0 && c->life.backoff_ms > 0;
		}
		drops += t->lane.all_drops + (i == 0 ? p->delivery_counts.log_drops : 0);
		if (t->trouble.why)
			why = t->trouble.why;
		if (t->trouble.wrong.found) {
			snprintf(text, sizeof(text),
				 "--verify: the value of key number %llu is not what was written: %s%lld",
				 (unsigned long long)t->trouble.wrong.key,
				 t->trouble.wrong.offset < 0 ? "unexpected type of reply, code "
							     : "the first wrong byte is at offset ",
				 (long long)t->trouble.wrong.offset);
			complain_of_limit(r, text);
		}
	}
	if (status[FT_STATUS_TIMEOUT] + status[FT_STATUS_UNSENT] && r->end == RUN_DONE && lost < all &&
	    away < all && !r->o->timeout_ns && !r->find) {
		snprintf(
		    text, sizeof(text),
		    "within --drain after the end, %llu requests were not answered and %llu were not sent",
		    (unsigned long long)status[FT_STATUS_TIMEOUT],
		    (unsigned long long)status[FT_STATUS_UNSENT]);
		complain(r, text);
	}
	if (r->end == RUN_ERRORS) {
		snprintf(text, sizeof(text), "stopped at an error (%s)",
			 r->o->on_error == ON_ERROR_STOP ? "--on-error stop" : "--max-errors");
		complain(r, text);
	}
	if (all > 0 && (lost == all || away == all)) {
		size_t length = (size_t)snprintf(text, sizeof(text), "all %u connections were lost%s: %s",
						 all, lost == all ? "" : " and not reopened before the end",
						 why ? why : "the reason is not known");

		if (status[FT_STATUS_UNSENT] && length < sizeof(text))
			snprintf(text + length, sizeof(text) - length,
				 ". %llu requests that were due by the planned end were never sent",
				 (unsigned long long)status[FT_STATUS_UNSENT]);
		complain(r, text);
		if (r->end == RUN_DONE)
			r->end = RUN_SERVER_LOST;
	} else if (lost > 0) {
		fprintf(stderr, "forktail load: %u of %u connections were lost: ", lost, all);
		put_visible(stderr, why ? why : "the reason is not known");
		fputc('\n', stderr);
	}
	complain_of_replay(r, p);
	if (drops)
		fprintf(stderr,
			"forktail load: the disk was too slow: %llu requests are missing from the log\n",
			(unsigned long long)drops);
}

/* "ERR unknown command 'FROB'; no answer": the first text of each kind of error. */
static void errors_text(const struct result_figures *f, char *out, size_t size)
{
	size_t at = 0;

	*out = 0;
	for (int i = 0; i < ERROR_WORDS && f->errors[i].times.count && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "; " : "",
				       *f->errors[i].text ? f->errors[i].text : f->errors[i].word);
	for (unsigned k = 0; k < STATUSES && at < size; k++)
		if (status_is_error(k) && k != FT_STATUS_ERROR_REPLY && f->operations[TOTAL].status[k])
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "; " : "", status_names[k]);
}

static const struct error_word *moved_reply(const struct result_figures *f)
{
	for (int i = 0; i < ERROR_WORDS && f->errors[i].times.count; i++)
		if (strcmp(f->errors[i].word, "MOVED") == 0)
			return &f->errors[i];
	return NULL;
}

/* A test that shows nothing about the server: all of its requests failed, or only one node of a cluster was
 * asked. A search runs rates that are too high, so there it counts for the closed loop only. `explained`: a
 * sentence has said why requests failed. */
static void complain_of_failure(struct run *r, const struct result_figures *f, const char *test,
				bool explained)
{
	const struct operation_figures *total = &f->operations[TOTAL];
	const struct error_word *moved = r->o->deployment == DEPLOYMENT_CLUSTER ? NULL : moved_reply(f);
	int status = r->status;
	char text[512], errors[384];

	if (moved) {
		snprintf(text, sizeof(text),
			 "%llu of %llu requests were answered with MOVED (first: %s), because the server is "
			 "a node of a cluster. Use --cluster",
			 (unsigned long long)moved->times.count, (unsigned long long)total->requests,
			 moved->text);
	} else {
		if (explained || !total->requests || total->errors < total->requests ||
		    (r->find && r->rate > 0))
			return;
		errors_text(f, errors, sizeof(errors));
		if (r->suite.count > 1)
			snprintf(text, sizeof(text), "%s: every request failed: %s", test, errors);
		else
			snprintf(text, sizeof(text), "every request failed: %s", errors);
	}
	complain(r, text);
	r->status = status;
	r->moved |= moved != NULL;
	r->failed_tests++;
}

static void check_limits(struct run *r, const struct result_figures *f, const char *name)
{
	char sentence[192], text[256];

	for (uint32_t i = 0; i < r->o->limit_count; i++) {
		const struct limit *l = &r->o->limits[i];
		const struct operation_figures *o = limit_operation(f, r->workload, l);
		double value = limit_figure(f, o, l);

		if (!o && r->suite.count > 1)
			continue; /* belongs to another test */
		if (!limit_broken(l, LIMIT_FAILS_IF, value))
			continue;
		limit_sentence(l, LIMIT_FAILS_IF, value, sentence, sizeof(sentence));
		snprintf(text, sizeof(text), "%s: %s", name, sentence);
		complain_of_limit(r, text);
	}
}

/* Writes a histogram to the log if single requests are not logged. */
static void log_histograms(struct run *r, const struct phase *p)
{
	for (uint32_t i = 0; i < r->workload->operation_count; i++) {
		const struct operation_stats *s = p->totals->operations[i];
		json_t *b, *slots;

		if (!s)
			continue;
		b = json_object();
		json_put_text(b, "test", p->name);
		json_put_text(b, "operation", r->workload->operations[i].name);
		json_put_count(b, "op", i);
		json_put_count(b, "start_ns", p->plan.measure_ns ? p->plan.measure_ns : p->plan.start_ns);
		json_put_count(b, "end_ns", p->totals->last_end_ns);
		json_put_count(b, "sub_bits", FT_HIST_SUB_BITS);
		json_put_count(b, "count", s->latency.count);
		json_put_count(b, "min_ns", s->latency.min_ns);
		json_put_count(b, "max_ns", s->latency.max_ns);
		slots = json_put_array(b, "slots"); /* [highest value in ns, count], ... */
		for (unsigned k = 0; k < FT_HIST_SLOTS; k++) {
			json_t *slot;

			if (!s->latency.slots[k])
				continue;
			slot = json_put_array(slots, NULL);
			json_put_count(slot, NULL, ft_histogram_slot_value(k));
			json_put_count(slot, NULL, s->latency.slots[k]);
		}
		write_json_block(request_log_writer(r->log), FT_BLOCK_HISTOGRAM, b);
	}
}

static void exact_from_log(struct run *r, struct phase *p, struct result_figures *f)
{
	if (!r->log || request_log_error(r->log))
		return;
	request_log_drain(r->log);
	if (r->o->log_mode == LOG_SLOW)
		log_histograms(r, p);
	ft_writer_flush(request_log_writer(r->log));
	if (r->o->log_mode == LOG_ALL)
		figures_from_log(f, r->o->log_path, p->log_offset, p->plan.measure_ns);
}

/* The merged outages of all threads, which the caller frees. NULL: one server, or no memory. */
static struct outages *all_outages(const struct run *r, const struct phase *p)
{
	struct outages *all = r->nodes ? calloc(1, sizeof(*all)) : NULL;

	for (uint32_t i = 0; all && i < p->thread_count; i++)
		if (p->threads[i].routing)
			outages_add(all, routing_outages(&p->threads[i]));
	if (all)
		outages_drop_unfelt(all);
	return all;
}

static void print(struct run *r, struct phase *p, const struct result_figures *f, const struct outages *o)
{
	char headline[256];

	if (r->csv) {
		report_csv_row(r->csv, p->name, f);
		fflush(r->csv);
	}
	if (r->csv != stdout) {
		report_headline(headline, sizeof(headline), r->o, p->name);
		report_table(stdout, f, r->workload, headline, p->plan.start_ns);
		if (o)
			node_report(stdout, r->nodes, p->totals, o, p->plan.start_ns, f->seconds);
		if (r->o->replay)
			replay_describe(r->o->replay, stdout);
		if (r->o->distribution_table)
			report_distribution(stdout, p->totals);
		fflush(stdout);
	}
}

void phase_report(struct run *r, struct phase *p, double cpu_s)
{
	uint64_t last = p->totals->last_end_ns, now = ft_now_ns(), busiest_ns = 0;
	uint64_t begin = p->plan.measure_ns ? p->plan.measure_ns : p->plan.start_ns;
	uint64_t end = last > begin ? last : now;
	struct result_figures *f = malloc(sizeof(*f));
	struct outages *o;
	json_t *figures;
	int status = r->status;

	if (!f) {
		complain(r, "not enough memory for the figures");
		return;
	}
	figures_from_stats(f, p->totals, &r->o->wanted, (double)(end - begin) * 1e-9);
	f->cpu_s = cpu_s;
	f->by_second.count = p->rates.count;
	f->by_second.most = second_rates_reached(&p->rates, 99);
	f->by_second.half = second_rates_reached(&p->rates, 50);
	f->by_second.all = second_rates_reached(&p->rates, 100);
	for (uint32_t i = 0; i < p->started; i++) {
		f->log_drops += p->threads[i].lane.all_drops;
		if (p->threads[i].cpu_ns > busiest_ns)
			busiest_ns = p->threads[i].cpu_ns;
	}
	f->busiest = (double)busiest_ns / (double)(now - p->plan.start_ns);
	o = all_outages(r, p);
	if (o && r->log)
		node_report_notes(request_log_writer(r->log), r->nodes, o);
	exact_from_log(r, p, f);
	r->status = EXIT_DONE;
	complain_of(r, p, f);
	complain_of_failure(r, f, p->name, r->status != EXIT_DONE);
	if (r->status == EXIT_DONE || status == EXIT_ENVIRONMENT)
		r->status = status;
	figures = json_put_object(r->runs, NULL);
	if (r->find) {
		find_take(r, p, f, figures);
	} else {
		print(r, p, f, o);
		if (p->deliveries)
			phase_deliveries_report(r, p, r->csv == stdout ? NULL : stdout);
		check_limits(r, f, p->name);
		report_summarize(&r->summaries[r->summary_count++], p->name, f);
	}
	json_put_text(figures, "name", p->name);
	json_put_count(figures, "start_ns", begin);
	json_put_count(figures, "end_ns", end);
	report_json(figures, f, r->workload);
	if (p->deliveries)
		phase_deliveries_json(p, r->o, figures);
	if (o)
		node_report_json(figures, r->nodes, p->totals, o);
	free(o);
	free(f);
}

/* Sends a command per element, many at a time: a million sets, one answer after the other, would take
 * minutes. */

enum { AT_ONCE = 1000, AT_ONCE_BYTES = 16 << 20, WORD_BYTES = 32 };

struct preparing {
	struct server *one;
	struct nodes *several; /* NULL: one server */
	struct {
		struct link *link; /* created when first needed */
		struct bytes commands;
		uint32_t count;
	} at[NODES_MAX]; /* by node; [0] for a single server */
	uint32_t count;	 /* over all */
	size_t bytes;	 /* likewise */
	char *error;
	size_t size;
};

static struct server *server_at(const struct preparing *p, uint16_t node)
{
	return p->several ? &nodes_at(p->several, node)->server : p->one;
}

static uint16_t node_of(const struct preparing *p, const char *key)
{
	const struct nodes *n = p->several;

	if (!n)
		return 0;
	return nodes_choose(n,
			    n->kind == DEPLOYMENT_CLUSTER ? cluster_slot(key, strlen(key))
			    : n->kind == DEPLOYMENT_RING  ? ketama_server(&n->ketama, key, strlen(key))
							  : 0,
			    false, 0);
}

static int take_answer(struct preparing *p, uint16_t node)
{
	redisReply *r = link_answer(p->at[node].link, "the preparation of a test");
	int rc = !r || r->type == REDIS_REPLY_ERROR ? -1 : 0;

	if (!r)
		snprintf(p->error, p->size, "%s", link_error(p->at[node].link));
	else if (rc)
		server_say(server_at(p, node), p->error, p->size,
			   "refused a command that prepares a test: %.150s", r->str);
	if (r)
		freeReplyObject(r);
	return rc;
}

/* Sends what was gathered for all servers, then reads the answers of each. */
static int flush(struct preparing *p)
{
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		struct bytes *commands = &p->at[i].commands;

		if (p->at[i].count == 0)
			continue;
		if (link_send(p->at[i].link, commands->at, commands->length, ft_now_ns() + LINK_ANSWER_NS)) {
			server_say(server_at(p, (uint16_t)i), p->error, p->size,
				   "closed the connection while a test was prepared");
			return -1;
		}
		commands->length = 0;
	}
	for (uint32_t i = 0; i < NODES_MAX; i++)
		for (; p->at[i].count > 0; p->at[i].count--)
			if (take_answer(p, (uint16_t)i))
				return -1;
	p->count = 0;
	p->bytes = 0;
	return 0;
}

/* Adds a member to a list or set. */
static int put(struct preparing *p, const char *command, const char *key, const char *member)
{
	const char *words[] = {command, key, member};
	uint16_t node = node_of(p, key);
	char *text = NULL;
	int length;
	bool room;

	if (node == NODE_NONE) {
		snprintf(p->error, p->size, "no server has the slot of a key that a test needs");
		return -1;
	}
	if (!p->at[node].link)
		p->at[node].link = server_enter(server_at(p, node), 0, p->error, p->size);
	if (!p->at[node].link)
		return -1;
	length = redisFormatCommandArgv(&text, 3, words, NULL);
	room = length > 0 && bytes_reserve(&p->at[node].commands, (size_t)length);
	if (room)
		bytes_add(&p->at[node].commands, text, (size_t)length);
	else
		snprintf(p->error, p->size, "not enough memory to prepare a test");
	redisFreeCommand(text);
	if (!room)
		return -1;
	p->at[node].count++;
	p->bytes += (size_t)length;
	return ++p->count < AT_ONCE && p->bytes < AT_ONCE_BYTES ? 0 : flush(p);
}

/* Its elements are values of the load. */
static int prepare_list(struct preparing *p, const struct workload *w)
{
	const struct values *values = &w->values;
	char *member = malloc(values->sizes.high + 1u);
	int rc = member ? 0 : -1;

	if (!member)
		snprintf(p->error, p->size, "not enough memory to prepare a test");
	for (uint64_t i = 0; i < PREPARED_LIST && rc == 0; i++) {
		uint32_t bytes =
		    w->fixed_value ? values->sizes.high : value_size(values, value_seed_of_key(i));

		if (w->fixed_value)
			memcpy(member, w->fixed_value, bytes);
		else
			value_copy(values, value_seed_of_key(i), 0, member, bytes);
		member[bytes] = 0;
		rc = put(p, "LPUSH", "mylist", member);
	}
	free(member);
	return rc;
}

static int prepare_sets(struct preparing *p, uint64_t keys)
{
	char key[WORD_BYTES], member[WORD_BYTES];
	int rc = 0;

	for (uint64_t i = 0; i < keys * PREPARED_MEMBERS && rc == 0; i++) {
		snprintf(key, sizeof(key), "set:%012llu", (unsigned long long)(i / PREPARED_MEMBERS));
		snprintf(member, sizeof(member), "member:%02llu", (unsigned long long)(i % PREPARED_MEMBERS));
		rc = put(p, "SADD", key, member);
	}
	return rc;
}

static int prepare_servers(struct server *one, struct nodes *several, enum preparation what,
			   const struct workload *workload, char *error, size_t size)
{
	struct preparing p = {.one = one, .several = several, .error = error, .size = size};
	int rc = what == PREPARE_LIST	? prepare_list(&p, workload)
		 : what == PREPARE_SETS ? prepare_sets(&p, workload->keys)
					: 0;

	if (rc == 0)
		rc = flush(&p);
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		link_free(p.at[i].link);
		free(p.at[i].commands.at);
	}
	return rc;
}

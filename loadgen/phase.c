/* SPDX-License-Identifier: MIT */
/* One test: connects, starts load threads, watches over them, and turns what they counted into figures.
 *
 * The main thread does no load. Once a second it takes over what the load threads counted, and prints a
 * line; it waits for signals in between, so that Ctrl-C ends a run with its table and its log in order.
 */
#include "phase.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "connect.h"
#include "figures.h"
#include "recording/recording.h"
#include "report.h"
#include "thread.h"

#define SECOND_NS 1000000000ull
/* How long after the threads' own tick the main thread looks: theirs is a matter of microseconds. */
#define TICK_DELAY_NS 20000000ull

/* What is sent, by which threads, and what they counted. */
struct phase {
	char name[32];
	struct load_plan plan;
	struct load_thread *threads;
	uint32_t thread_count, started;
	struct stats *totals;
	struct progress progress;
};

static void end_line(struct run *r)
{
	if (r->progress_open)
		fputc('\n', stderr);
	r->progress_open = false;
}

void complain(struct run *r, const char *text)
{
	end_line(r);
	fprintf(stderr, "forktail-load: %s\n", text);
	r->status = EXIT_ENVIRONMENT;
}

/* The size of one of `parts` parts that differ by one at most. */
static uint64_t share(uint64_t all, uint32_t parts, uint32_t part)
{
	return all / parts + (part < all % parts);
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* ---- set-up ---- */

/* Said twice of each: when it's opened, and at the end, when it's known how long it lived. */
static void log_connections(struct run *r, const struct load_thread *t, bool ended)
{
	for (uint32_t i = 0; r->log && i < t->connection_count; i++) {
		const struct connection *c = &t->connections[i];
		struct ft_connection record = {
		    .opened_ns = c->opened_ns,
		    .closed_ns = ended && c->closed_ns == 0 ? ft_now_ns() : c->closed_ns,
		    .id = c->id,
		    .thread = t->index,
		    .local_port = c->local_port,
		};
		ft_writer_record(request_log_writer(r->log), FT_BLOCK_CONNECTION, &record);
	}
}

/* Connects one thread's connections and makes the thread. */
static int make_thread(struct run *r, struct phase *p, uint32_t index)
{
	const struct options *o = r->o;
	struct load_thread *t = &p->threads[index];
	uint32_t count = (uint32_t)share(o->connections, o->threads, index), made = 0;
	int *fds = malloc(sizeof(*fds) * count), rc = fds ? 0 : -ENOMEM;
	char error[512];

	while (fds && made < count) {
		fds[made] = server_connect(o, error, sizeof(error));
		if (fds[made] < 0) {
			complain(r, error);
			break;
		}
		made++;
	}
	if (fds && made == count) {
		rc = load_thread_init(t, &p->plan, index, fds, count, r->next_connection, r->log);
		p->thread_count++;
		if (rc == 0)
			log_connections(r, t, false);
		r->next_connection += count;
		if (rc)
			complain(r, "not enough memory for the connections");
	} else {
		while (made > 0)
			close(fds[--made]);
		rc = -ECONNREFUSED;
	}
	free(fds);
	return rc;
}

static int prepare(struct run *r, struct phase *p)
{
	const struct options *o = r->o;

	p->plan.drain_ns = o->drain_ns;
	p->plan.pipeline = o->pipeline;
	p->plan.open_loop = o->rate > 0;
	p->plan.done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->threads = calloc(o->threads, sizeof(*p->threads));
	if (p->plan.done_fd < 0 || !p->threads ||
	    workload_prepare(&p->plan.workload, o->value_bytes, o->seed) ||
	    !(p->totals = stats_new(&p->plan.workload))) {
		complain(r, "not enough memory for the load");
		return -1;
	}
	for (uint32_t i = 0; i < o->threads; i++)
		if (make_thread(r, p, i))
			return -1;
	return 0;
}

static void wake_all(struct phase *p)
{
	for (uint32_t i = 0; i < p->started; i++)
		load_thread_wake(&p->threads[i]);
}

/* Gives each thread its part and lets them loose. */
static void start(struct run *r, struct phase *p)
{
	const struct options *o = r->o;
	uint64_t next_key = 0;

	p->plan.start_ns = ft_now_ns();
	p->plan.end_ns = o->duration_ns ? p->plan.start_ns + o->duration_ns : PACING_NEVER;
	for (uint32_t i = 0; i < o->threads; i++) {
		struct load_thread *t = &p->threads[i];
		uint64_t requests = o->requests ? share(o->requests, o->threads, i) : UINT64_MAX;

		t->left = requests;
		t->chooser = (struct chooser){
		    .keys = random_begin(o->seed, i, 1),
		    .operations = random_begin(o->seed, i, 2),
		    .next_key = next_key,
		};
		next_key += requests;
		if (p->plan.open_loop)
			pacing_start(&t->pacing, o->arrival, o->rate / o->threads, (double)i / o->threads,
				     p->plan.start_ns, p->plan.end_ns, requests, random_begin(o->seed, i, 3));
		if (load_thread_start(t)) {
			complain(r, "a load thread can't be started");
			atomic_store(&p->plan.abandon, true);
			wake_all(p);
			return;
		}
		p->started++;
	}
}

/* ---- while it runs ---- */

static double eta_seconds(const struct run *r, const struct phase *p, uint64_t now_ns)
{
	double elapsed = (double)(now_ns - p->plan.start_ns) * 1e-9, eta = -1;
	uint64_t done = stats_requests(p->totals);

	if (p->plan.end_ns != PACING_NEVER)
		eta = p->plan.end_ns > now_ns ? (double)(p->plan.end_ns - now_ns) * 1e-9 : 0;
	if (r->o->requests && done > 0 && done <= r->o->requests) {
		double left = elapsed * (double)(r->o->requests - done) / (double)done;
		if (eta < 0 || left < eta)
			eta = left;
	}
	return eta;
}

/* Takes over what the threads handed out, and shows it. */
static void tick(struct run *r, struct phase *p)
{
	bool tty = isatty(STDERR_FILENO);
	uint64_t now = ft_now_ns();
	char text[256];

	for (uint32_t i = 0; i < p->started; i++) {
		struct stats *s = load_thread_take(&p->threads[i]);
		if (!s)
			continue;
		stats_merge(p->totals, s);
		if (!r->o->quiet)
			progress_add(&p->progress, s);
		load_thread_return(&p->threads[i], s);
	}
	if (r->log && !r->log_failed && request_log_error(r->log)) {
		r->log_failed = true;
		snprintf(text, sizeof(text),
			 "the log %s can't be written any more: %s; the load goes on without it",
			 r->o->log_path, strerror(-request_log_error(r->log)));
		complain(r, text);
	}
	if (!r->o->quiet) {
		r->progress_open |= tty && p->progress.span_ns > 0;
		report_progress(stderr, tty, p->name, (double)(now - p->plan.start_ns) * 1e-9, &p->progress,
				stats_errors(p->totals), eta_seconds(r, p, now));
	}
}

static void on_signal(struct run *r, struct phase *p)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) < 0)
		return;
	if (atomic_exchange(&p->plan.stop, true))
		atomic_store(&p->plan.abandon, true);
	r->end = RUN_INTERRUPTED;
	wake_all(p);
}

static void supervise(struct run *r, struct phase *p)
{
	struct pollfd fds[2] = {{.fd = r->signal_fd, .events = POLLIN},
				{.fd = p->plan.done_fd, .events = POLLIN}};
	uint64_t next = p->plan.start_ns + SECOND_NS + TICK_DELAY_NS, ended = 0, count, now;

	while (ended < p->started) {
		now = ft_now_ns();
		if (now >= next) {
			tick(r, p);
			next += ((now - next) / SECOND_NS + 1) * SECOND_NS;
			continue;
		}
		if (poll(fds, 2, (int)((next - now) / 1000000) + 1) <= 0)
			continue;
		if (fds[0].revents)
			on_signal(r, p);
		if (fds[1].revents && read(p->plan.done_fd, &count, sizeof(count)) == sizeof(count))
			ended += count;
	}
	end_line(r);
}

/* ---- the end ---- */

static void collect(struct run *r, struct phase *p)
{
	for (uint32_t i = 0; i < p->started; i++) {
		struct load_thread *t = &p->threads[i];

		load_thread_join(t);
		if (t->ready)
			stats_merge(p->totals, t->ready);
		stats_merge(p->totals, t->stats);
	}
	for (uint32_t i = 0; i < p->thread_count; i++)
		log_connections(r, &p->threads[i], true);
}

/* What went wrong short of everything, in a sentence each. */
static void complain_of(struct run *r, struct phase *p, const struct figures *f)
{
	const uint64_t *status = f->operations[TOTAL].status;
	const char *why = NULL;
	uint32_t lost = 0, all = 0;
	uint64_t drops = 0;
	char text[512];

	for (uint32_t i = 0; i < p->thread_count; i++) {
		lost += p->threads[i].lost;
		all += p->threads[i].connection_count;
		drops += p->threads[i].lane.all_drops;
		if (p->threads[i].broken)
			why = p->threads[i].broken;
	}
	if (status[FT_STATUS_TIMEOUT] + status[FT_STATUS_UNSENT] && r->end == RUN_DONE && lost < all) {
		snprintf(text, sizeof(text),
			 "%llu requests got no answer and %llu were never sent within --drain after the end",
			 (unsigned long long)status[FT_STATUS_TIMEOUT],
			 (unsigned long long)status[FT_STATUS_UNSENT]);
		complain(r, text);
	}
	if (lost == all) {
		snprintf(text, sizeof(text), "all %u connections were lost: %s", all, why ? why : "?");
		complain(r, text);
		if (r->end == RUN_DONE)
			r->end = RUN_SERVER_LOST;
	} else if (lost > 0) {
		fprintf(stderr, "forktail-load: %u of %u connections were lost: %s\n", lost, all,
			why ? why : "?");
	}
	if (drops)
		fprintf(stderr,
			"forktail-load: the disk did not keep up: %llu requests are missing in the log\n",
			(unsigned long long)drops);
}

static void report(struct run *r, struct phase *p, double cpu_s)
{
	uint64_t last = p->totals->last_end_ns, now = ft_now_ns(), busiest_ns = 0;
	uint64_t end = last > p->plan.start_ns ? last : now;
	double seconds = (double)(end - p->plan.start_ns) * 1e-9;
	char headline[256];
	struct figures f;

	figures_from_stats(&f, p->totals, seconds);
	f.cpu_s = cpu_s;
	for (uint32_t i = 0; i < p->started; i++) {
		f.log_drops += p->threads[i].lane.all_drops;
		if (p->threads[i].cpu_ns > busiest_ns)
			busiest_ns = p->threads[i].cpu_ns;
	}
	f.busiest = (double)busiest_ns / (double)(now - p->plan.start_ns);
	if (r->log && !request_log_error(r->log)) {
		request_log_drain(r->log);
		ft_writer_flush(request_log_writer(r->log));
		figures_from_log(&f, p->totals, r->o->log_path, p->plan.start_ns, now);
	}
	complain_of(r, p, &f);
	report_headline(headline, sizeof(headline), r->o, p->name);
	report_table(stdout, &f, headline);
	fflush(stdout);
	json_begin(&r->runs, NULL, '{');
	json_text(&r->runs, "name", p->name);
	json_count(&r->runs, "start_ns", p->plan.start_ns);
	json_count(&r->runs, "end_ns", end);
	report_json(&r->runs, &f);
	json_end(&r->runs, '}');
}

static void release(struct phase *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++)
		load_thread_free(&p->threads[i]);
	free(p->threads);
	workload_free(&p->plan.workload);
	stats_free(p->totals);
	if (p->plan.done_fd >= 0)
		close(p->plan.done_fd);
}

/* Says in the log which threads were the load, so that a recording of this host can tell them. */
static void note_start(struct run *r, const struct phase *p)
{
	char *text = NULL;
	size_t size = 0;
	struct json j = {r->log ? open_memstream(&text, &size) : NULL, true};

	if (!j.to)
		return;
	json_begin(&j, NULL, '{');
	json_count(&j, "t_ns", p->plan.start_ns);
	json_text(&j, "kind", "load-start");
	json_text(&j, "name", p->name);
	json_begin(&j, "tids", '[');
	for (uint32_t i = 0; i < p->started; i++)
		json_count(&j, NULL, (uint64_t)atomic_load(&p->threads[i].tid));
	json_end(&j, ']');
	json_end(&j, '}');
	if (fclose(j.to) == 0)
		ft_writer_json(request_log_writer(r->log), FT_BLOCK_NOTE, text);
	free(text);
}

void run_phase(struct run *r, const char *name, const struct workload *w)
{
	struct phase *p = calloc(1, sizeof(*p)); /* a histogram is too large for the stack */
	double cpu_s;

	if (!p) {
		complain(r, "not enough memory for the load");
		return;
	}
	p->plan.workload = *w;
	p->plan.done_fd = -1;
	snprintf(p->name, sizeof(p->name), "%s", name);
	if (prepare(r, p) == 0) {
		cpu_s = cpu_seconds();
		start(r, p);
		note_start(r, p);
		supervise(r, p);
		cpu_s = cpu_seconds() - cpu_s;
		collect(r, p);
		report(r, p, cpu_s);
	}
	release(p);
	free(p);
}

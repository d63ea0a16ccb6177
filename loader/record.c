/* SPDX-License-Identifier: MIT */
/* The recorder's start, loop and end. One thread is woken four times per second, or twenty times while
 * something is slow, or when the ring fills quickly. It empties the ring, and twice per second reads /proc
 * and hands its blocks to the writer's thread, so that a kill -9 loses less than a second. Nothing here waits
 * for the disk. The recorder does little work on purpose: it shares the host with the server it watches, and
 * a recording can be interpreted later. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"
#include "loader/attach.h"
#include "loader/requests.h"
#include "loader/samples.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recorder.h"
#include "recording/json_block.h"
#include "recording/recording.h"

#define TICK_NS (TICK_MS * 1000000ull)
#define SLOW_LASTS_NS 1000000000ull   /* after the last sign of it */
#define SWEEP_EVERY_NS 10000000000ull /* or more rarely */

enum {
	TICK_MS = 50,
	CALM_TICKS = 250 / TICK_MS,
	CHILD_LOOK_MS = 1,
	NAMED_MOST = 16,	     /* targets that are printed with their names */
	COST_TICKS = 5000 / TICK_MS, /* between two cost blocks */
	MISSES_TICKS = 200 / TICK_MS,
	WRITES_TICKS = 1000 / TICK_MS,
	FLUSH_TICKS = 500 / TICK_MS,
	METRICS_MS = 500, /* between two readings of the host while nothing is slow */
	METRICS_TICKS = METRICS_MS / TICK_MS,
	QUEUE_BYTES = 16 << 20, /* for blocks that wait for the disk */
};

static void note_missing(struct recorder *r, const char *what, const char *why)
{
	json_array_append_new(r->missing, json_pack("{s:s, s:s}", "what", what, "why", why));
}

/* `program` may contain the name of a thread, which the thread chose itself. */
static void skipped(void *context, const char *program, int error)
{
	struct recorder *r = context;
	json_t *note = json_note(ft_now_ns(), "missing");
	char why[300];
	snprintf(why, sizeof why, "cannot attach %s: %s", program, strerror(-error));
	fputs("forktail record: ", stderr);
	put_visible(stderr, why);
	fputc('\n', stderr);
	json_put_text(note, "what", program);
	json_put_text(note, "why", why);
	write_json_note(r->writer, note);
}

static void look_at_cgroups(struct recorder *r)
{
	const bool quota = quotas_look(r->quotas, r->targets->pids, r->targets->count, ft_now_ns());
	const int err = programs_quota(r->programs, quota);
	if (err)
		skipped(r, "wake-ups, which show what a CPU quota delays", err);
	cgroup_memory_look(r->cgroup_memory, r->targets->pids, r->targets->count, ft_now_ns());
}

/* A directory that is created belongs to the caller only, as the recording does. */
static int make_parent(const char *path)
{
	char copy[4096];
	snprintf(copy, sizeof copy, "%s", path);
	const char *dir = dirname(copy);
	if (mkdir(dir, 0700))
		return errno == EEXIST ? 0 : -errno;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ft_give_to_caller(fd);
	close(fd);
	return 0;
}

/* Opens the accounts of targets and of load generators that already run. Later load generators are detected
 * as they start. A recording without them is still valid. Only targets stay named: a load generator's process
 * id may be reused. */
static int open_accounts(struct recorder *r)
{
	static struct targets clients;
	int err = programs_trace(r->programs, r->targets->pids, r->targets->count, FT_TRACED_TARGET);
	if (err)
		return err;
	if (r->options->wanted.with_client)
		targets_add_name(&clients, FT_CLIENT_COMM);
	err = programs_trace(r->programs, clients.pids, clients.count, FT_TRACED_CLIENT);
	if (err)
		skipped(r, "tracing of load generators", err);
	err = programs_open_accounts(r->programs);
	for (size_t i = 0; i < clients.count; i++)
		if (!targets_has(r->targets, clients.pids[i]))
			programs_forget(r->programs, clients.pids[i]);
	return err;
}

static void note_unwanted(struct recorder *r)
{
	const struct programs_wanted *wanted = &r->options->wanted;
	if (wanted->softirqs == SOFTIRQS_NONE)
		note_missing(r,
			     "soft interrupts during the server's CPU slices: their time counts as what they "
			     "interrupted",
			     wanted->interrupts ? "--softirqs=none was given" : "--light was given");
	if (!wanted->interrupts)
		note_missing(r,
			     "hardware interrupts during the server's CPU slices: their time counts as what "
			     "they interrupted",
			     "--light was given");
}

/* --start-at: waits for that time. Returns the exit status: 3 if a signal came first. */
static int wait_for_start(const struct recorder *r, int signals)
{
	const uint64_t at_ns = r->options->start_at_ns;
	const struct itimerspec at = {{0, 0}, {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)}};
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			       {.fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC), .events = POLLIN}};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	const double late_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - (double)at_ns * 1e-9;
	if (late_s > 0)
		fprintf(stderr, "forktail record: --start-at was %.3f s ago: starting now\n", late_s);
	if (fds[1].fd < 0 || timerfd_settime(fds[1].fd, TFD_TIMER_ABSTIME, &at, NULL)) {
		fprintf(stderr, "forktail record: --start-at: %s\n", strerror(errno));
		return 3;
	}
	bool ended = false;
	while (!ended && !fds[1].revents) {
		struct signalfd_siginfo s;
		if (poll(fds, 2, -1) < 0)
			continue;
		/* SIGHUP and SIGUSR1 concern a flight recorder that records. */
		ended = fds[0].revents && read(signals, &s, sizeof s) == sizeof s &&
			(!r->ring || s.ssi_signo == SIGINT || s.ssi_signo == SIGTERM);
	}
	close(fds[1].fd);
	if (ended)
		fputs("forktail record: ended before --start-at: nothing is recorded\n", stderr);
	return ended ? 3 : 0;
}

static int load_probes(struct recorder *r)
{
	r->probes = probes_open(r->options->probes, r->options->probe_count,
				programs_targets_map(r->programs), pid_namespace());
	if (!r->probes) {
		fprintf(
		    stderr,
		    "forktail record: --probe: the kernel refused the programs: %s. They need Linux 5.15\n%s",
		    strerror(errno), programs_log());
		return 3;
	}
	programs_include(r->programs, probes_programs(r->probes));
	/* Before the file is begun: a mistyped name must not replace an earlier recording. */
	char why[500];
	if (!probes_attach(r->probes, r->targets->count ? r->targets->pids[0] : 0, why, sizeof why))
		return 0;
	fprintf(stderr, "forktail record: %s\n", why);
	return 3;
}

/* Returns the exit status. */
static int load_requests(struct recorder *r)
{
	char why[200];
	int err = support_requests_error(why, sizeof why);
	if (err) {
		fprintf(stderr, "forktail record: --requests: %s\n", why);
		return 3;
	}
	err = requests_load(r->requests, programs_targets_map(r->programs), pid_namespace());
	if (err) {
		fprintf(stderr, "forktail record: --requests: the kernel rejected the BPF programs: %s\n%s",
			strerror(-err), programs_log());
		return 3;
	}
	programs_include(r->programs, requests_programs(r->requests));
	json_t *all = descriptions_all(r->descriptions), *one;
	size_t i;
	json_array_foreach(all, i, one) requests_target(r->requests, NULL, one);
	json_decref(all);
	return 0;
}

static size_t thread_count(pid_t pid)
{
	char path[32];
	struct stat s;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	return stat(path, &s) == 0 && s.st_nlink > 2 ? s.st_nlink - 2 : 0;
}

/* The ring is resident memory, and holds the events while the recorder gets no CPU: with the least of it two
 * seconds of a server with 100,000 requests/s. More servers have more events, and threads that wake at the
 * same time have a tally of 800 bytes each. Targets that come later are not known. */
static uint32_t ring_bytes(const struct targets *targets)
{
	enum { LEAST = 4 << 20, MOST = 16 << 20, THREADS = 1000 };
	size_t parts = 0;
	uint32_t bytes = LEAST;
	for (size_t i = 0; i < targets->count; i++)
		parts += 1 + thread_count(targets->pids[i]) / THREADS;
	while (bytes < MOST && (!parts || bytes < parts * LEAST))
		bytes *= 2;
	return bytes;
}

/* Probes the host and loads what is wanted and available. Returns the exit status. */
static int load(struct recorder *r)
{
	r->descriptions = descriptions_open();
	for (size_t i = 0; i < r->targets->count; i++) {
		char cmdline[DESCRIPTION_CMDLINE_BYTES];
		target_files_title_now(r->files, r->targets->pids[i], cmdline, sizeof cmdline);
		descriptions_add(r->descriptions, r->targets->pids[i], cmdline, ft_now_ns());
	}
	support_probe(&r->support);
	symbols_begin();
	const struct feature *blocker = support_blocker(&r->support);
	if (blocker) {
		fprintf(stderr, "forktail record: this host cannot make a recording: %s\n", blocker->why);
		return 3;
	}
	for (size_t i = 0; i < r->support.count; i++) {
		const struct feature *f = &r->support.features[i];
		if (!f->available && f->need != NEED_EXTRA)
			note_missing(r, f->without, f->why);
	}
	note_unwanted(r);
	char why[160];
	int err = support_choose_exact(&r->support, r->options->wanted.exact, why, sizeof why);
	if (err) {
		fprintf(stderr, "forktail record: --exact: %s\n", why);
		return 3;
	}
	struct programs_wanted wanted = r->options->wanted;
	wanted.ring_bytes = ring_bytes(r->targets);
	err = programs_load(&r->programs, &r->support, &wanted, drain_event, &r->drain);
	if (err) {
		fprintf(stderr, "forktail record: the kernel rejected the BPF programs: %s\n%s",
			strerror(-err), programs_log());
		return 3;
	}
	r->tcp = tcp_open(r->targets->pids, r->targets->count);
	if (!r->tcp)
		note_missing(r, "TCP retransmissions, resets and dropped packets", strerror(errno));
	programs_include(r->programs, tcp_programs(r->tcp));
	json_t *all = descriptions_all(r->descriptions), *one;
	size_t i;
	json_array_foreach(all, i, one) tcp_target(r->tcp, one);
	json_decref(all);
	int status = r->options->probe_count ? load_probes(r) : 0;
	status = status || !r->requests ? status : load_requests(r);
	symbols_wait();
	return status;
}

static int begin_file(struct recorder *r)
{
	json_t *o = manifest(r->options, descriptions_all(r->descriptions), &r->support, r->programs,
			     r->start_ns, r->missing);
	requests_manifest(r->requests, o);
	char *text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	int err = make_parent(r->options->output);
	err = err ? err : text ? ft_writer_open(&r->writer, r->options->output, text) : -ENOMEM;
	free(text);
	if (!err && ft_writer_moved(r->writer))
		fprintf(stderr, "forktail record: the earlier recording is now %s.old\n", r->options->output);
	return err;
}

/* Opens the file, then attaches, then opens the accounts. Returns the exit status. */
static int start(struct recorder *r)
{
	const char *output = r->options->output;
	r->start_ns = ft_now_ns();
	losses_begin(&r->losses, r->start_ns);
	int err = r->ring ? flight_recorder_begin(r) : begin_file(r);
	if (err) {
		fprintf(stderr, "forktail record: cannot create %s: %s\n", output, ft_writer_why(err));
		return 3;
	}
	r->drain.writer = r->writer;
	r->drain.threads = &r->threads;
	r->drain.files = r->files;
	r->metrics = proc_metrics_open(r->writer, "/proc");
	r->quotas = quotas_open(r->writer, r->metrics, "/proc");
	r->cgroup_memory = cgroup_memory_open(r->metrics, "/proc");
	look_at_cgroups(r);
	if (r->unwind_queue && r->support.has_cpu_clock)
		r->drain.samples = samples_open(r->writer, &r->threads, r->unwind_queue);
	for (size_t i = 0; i < r->targets->count; i++)
		samples_prepare(r->drain.samples, r->targets->pids[i]);
	r->drain.sockets = sockets_open(r->writer, r->targets->pids, r->targets->count);
	report_clock(r);
	err = programs_attach(r->programs, skipped, r);
	const int without_tcp = err ? 0 : tcp_attach(r->tcp);
	if (without_tcp)
		skipped(r, "TCP's tracepoints", without_tcp);
	err = err ? err : open_accounts(r);
	if (err) {
		fprintf(stderr, "forktail record: cannot attach to the kernel: %s\n%s", strerror(-err),
			programs_log());
		return 3;
	}
	report_softirqs_sampled(r);
	if (!support_requests_by_functions())
		r->readers = readers_open(programs_targets_map(r->programs), pid_namespace());
	programs_include(r->programs, readers_programs(r->readers));
	err = r->requests ? requests_attach(r->requests) : 0;
	if (err) {
		fprintf(stderr, "forktail record: --requests: cannot attach to the kernel: %s\n%s",
			strerror(-err), programs_log());
		return 3;
	}
	r->attached_ns = ft_now_ns();
	r->load_cpu_ns = own_cpu_ns() - r->base.cpu_ns;
	r->base =
	    (struct self_report_base){.t_ns = r->attached_ns, .cpu_ns = r->base.cpu_ns + r->load_cpu_ns};
	support_forget_btf();
	malloc_trim(0); /* loading needs much more memory than recording */
	programs_drain(r->programs);
	if (!r->threads.begun && !r->ring) {
		fprintf(stderr, "forktail record: nothing recorded: the target processes exited before the "
				"recorder had attached\n");
		return 3;
	}
	return 0;
}

static bool any_target_alive(struct recorder *r)
{
	for (size_t i = 0; i < r->targets->count; i++)
		if (threads_alive(&r->threads, r->targets->pids[i]))
			return true;
	return false;
}

/* Ticks between two wake-ups while there is something to do. A flight recorder in light mode wakes half as
 * often; the kernel's ring wakes it earlier when it fills. */
static uint64_t step(const struct recorder *r)
{
	return r->ring && !r->options->wanted.interrupts ? 2 : 1;
}

/* The next tick after `number`. Windows of the kernel's statistics, which make the programs slower, are short
 * and begin in time in any case. Sampled soft interrupts that delay a target are to be timed soon. */
static uint64_t next_tick(const struct recorder *r, uint64_t number)
{
	uint64_t unused;
	const bool calm = number && !r->requests && !r->window_from_ns && !r->drain.slow &&
			  !programs_softirqs_sampled(r->programs, &unused) &&
			  ft_now_ns() >= r->slow_until_ns && !samples_wait(r->drain.samples);
	const uint64_t ticks = calm ? CALM_TICKS : step(r);
	const uint64_t next = (number / ticks + 1) * ticks,
		       window = (r->next_window_ms + TICK_MS - 1) / TICK_MS;
	return window > number && window < next ? window : next;
}

/* Whether a task due every `every` ticks is due. `before` is the last tick that was counted, `number` the
 * current one. A recorder that had to wait for a CPU missed the ticks between them. */
static bool due(uint64_t before, uint64_t number, uint64_t every)
{
	return number / every > before / every;
}

/* Which threads serve which connections. */
static void look_at_sockets(struct recorder *r)
{
	if (r->readers)
		readers_tick(r->readers, r->writer, sockets_several(r->drain.sockets), ft_now_ns());
	else
		sockets_look(r->drain.sockets, ft_now_ns());
}

static void look_at_tcp(struct recorder *r)
{
	tcp_tick(r->tcp, r->writer, r->drain.slow, ft_now_ns());
}

/* The state of the host matters while something is slow. Then it is read at every second tick, at once when
 * it begins, otherwise twice per second. */
static void look_at_host(struct recorder *r, uint64_t before, uint64_t number)
{
	const uint64_t now_ns = ft_now_ns();
	const bool was_slow = now_ns < r->slow_until_ns;
	if (r->drain.slow)
		r->slow_until_ns = now_ns + SLOW_LASTS_NS;
	const bool slow = now_ns < r->slow_until_ns;
	r->drain.slow = false;
	if (slow != was_slow || due(before, number, slow ? 2 * step(r) : METRICS_TICKS))
		report_host(r);
}

static void sweep_threads(struct recorder *r)
{
	if (!look_begins(&r->sweep_look, ft_now_ns()))
		return;
	drain_sweep(&r->drain);
	look_ends(&r->sweep_look, SWEEP_EVERY_NS);
}

/* Runs every 50 ms, 100 ms or 250 ms, or later on a host without a free CPU. */
static void tick(struct recorder *r, uint64_t before, uint64_t number)
{
	target_files_tick(r->files);
	samples_tick(r->drain.samples);
	report_cpus(r);
	follow_softirqs(r);
	programs_drain_piece(r->programs);
	report_drops(r);
	threads_tick(&r->threads, r->writer);
	look_at_sockets(r);
	look_at_tcp(r);
	probes_tick(r->probes, r->writer);
	look_at_host(r, before, number);
	requests_tick(r->requests, r->writer, (uint32_t)(number * TICK_MS % REQUESTS_PERIOD_MS));
	if (due(before, number, FLUSH_TICKS)) {
		requests_flush(r->requests, r->writer);
		ft_writer_flush(r->writer);
	}
	cpu_offer();
	sweep_threads(r);
	if (due(before, number, WRITES_TICKS))
		programs_take_writes(r->programs);
	if (due(before, number, ft_now_ns() < r->slow_until_ns ? MISSES_TICKS : FLUSH_TICKS))
		report_misses(r);
	measure_cost(r, number * TICK_MS);
	if (due(before + step(r), number + step(r), COST_TICKS))
		report_cost(r);
	cpu_offer();
	if (r->ring) {
		follow_tick(r);
		flight_recorder_tick(r);
	}
}

/* Handles a signal. Returns whether it ends the recording. */
static bool takes_signal(struct recorder *r, int signals)
{
	struct signalfd_siginfo s;
	if (!r->ring || read(signals, &s, sizeof s) != sizeof s)
		return true;
	if (s.ssi_signo == SIGUSR1)
		flight_recorder_trigger(r);
	if (s.ssi_signo == SIGHUP) {
		follow_soon(r);
		flight_recorder_reload(r);
	}
	return s.ssi_signo == SIGINT || s.ssi_signo == SIGTERM;
}

static const char cannot_wait[] = "poll failed";

static int ms_until(uint64_t t_ns)
{
	const uint64_t now_ns = ft_now_ns();
	return now_ns < t_ns ? (int)((t_ns - now_ns + 999999) / 1000000) : 0;
}

/* Runs until there is a reason to end, and returns the reason. */
static const char *run(struct recorder *r, int signals)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			       {.fd = programs_fd(r->programs), .events = POLLIN},
			       {.fd = -1, .events = POLLIN},
			       {.fd = -1, .events = POLLIN}};
	uint64_t ticked_ns = ft_now_ns(); /* when the last tick was due */
	uint64_t deadline = r->options->duration_ns ? r->attached_ns + r->options->duration_ns : UINT64_MAX;
	for (uint64_t number = 0;;) {
		fds[2].fd = target_files_fd(r->files);
		fds[3].fd = requests_fd(r->requests);
		watchdog_round(0);
		const uint64_t due_ns = ticked_ns + (next_tick(r, number) - number) * TICK_NS;
		/* A child names itself soon after it starts, and may exit soon after that. */
		const int wait_ms = threads_unnamed(&r->threads)
					? CHILD_LOOK_MS
					: ms_until(due_ns < deadline ? due_ns : deadline);
		if (poll(fds, sizeof fds / sizeof *fds, wait_ms) < 0 && errno != EINTR) {
			fprintf(stderr, "forktail record: cannot wait for events: %s\n", strerror(errno));
			return cannot_wait;
		}
		watchdog_round(ft_now_ns());
		cpu_piece_begins();
		threads_look(&r->threads, r->writer);
		if (fds[1].revents)
			programs_drain_piece(r->programs);
		if (fds[2].revents)
			target_files_take(r->files);
		if (fds[3].revents)
			requests_take(r->requests, r->writer);
		if (ft_now_ns() >= due_ns) {
			const uint64_t before = number, ticks = (ft_now_ns() - ticked_ns) / TICK_NS;
			number += ticks;
			ticked_ns += ticks * TICK_NS;
			tick(r, before, number);
		}
		if (!r->ring && ft_writer_error(r->writer))
			return "write error";
		if (fds[0].revents && takes_signal(r, signals))
			return "signal";
		if (ft_now_ns() >= deadline)
			return "duration";
		if (!r->ring && !any_target_alive(r))
			return "targets ended";
	}
}

static json_t *ended_targets(const struct recorder *r)
{
	json_t *all = json_array();
	for (size_t i = 0; i < r->threads.ended_count; i++) {
		const struct ended_target *e = &r->threads.ended[i];
		if (!e->t_ns)
			continue;
		json_t *one = json_put_object(all, NULL);
		json_put_count(one, "pid", (uint64_t)e->pid);
		json_put(one, "comm", json_text(e->comm, strnlen(e->comm, sizeof e->comm)));
		json_put_count(one, "t_ns", e->t_ns);
		json_put_exit(one, e->exit_code, e->exit_flags);
	}
	return all;
}

/* Prints targets that exited before the end. Otherwise the user would not notice: a restarted target is
 * another process, which is not in the recording. */
static void print_ended(const struct recorder *r)
{
	for (size_t i = 0; i < r->threads.ended_count; i++) {
		const struct ended_target *e = &r->threads.ended[i];
		if (!e->t_ns)
			continue;
		uint64_t ns = e->t_ns > r->attached_ns ? e->t_ns - r->attached_ns : 0;
		char visible[VISIBLE_MOST * sizeof e->comm + 1];
		visible_text(visible, sizeof visible, e->comm, strnlen(e->comm, sizeof e->comm));
		char how[64];
		exit_text(e->exit_code, e->exit_flags, how, sizeof how);
		fprintf(stderr, "%s (%d) exited after %.1f s%s%s\n", visible, e->pid, (double)ns * 1e-9,
			*how ? ", " : "", how);
	}
}

/* A proxy connects to the servers behind it when it first needs them. */
static void note_peers(const struct recorder *r)
{
	for (size_t i = 0; i < r->targets->count; i++) {
		json_t *note = json_note(ft_now_ns(), "peers");
		json_put_count(note, "pid", (uint64_t)r->targets->pids[i]);
		peers_put(note, r->targets->pids[i]);
		write_json_note(r->writer, note);
	}
}

/* Ends the recording and prints a summary. Returns the exit status. */
static int finish(struct recorder *r, const char *reason)
{
	watchdog_round(0); /* the end may take longer than a round */
	measure_cost_end(r);
	programs_drain(r->programs); /* threads that have exited */
	look_at_sockets(r);
	look_at_tcp(r);
	r->threads.closing = true;
	ft_writer_wait_for_space(r->writer);
	uint64_t end_ns = ft_now_ns();
	requests_stop(r->requests, r->writer);
	programs_stop(r->programs);
	samples_settle(r->drain.samples);
	tcp_tick(r->tcp, r->writer, false, end_ns);
	probes_stop(r->probes, r->writer);
	report_drops(r);
	report_misses(r);
	report_host(r);
	note_peers(r);
	report_clock(r);
	report_cost(r);
	ft_writer_drain(r->writer);
	uint64_t lost = losses_total(&r->losses) + ft_writer_lost(r->writer);
	char *text = summary_text(r, reason, end_ns, ended_targets(r));
	uint64_t bytes = ft_writer_bytes(r->writer);
	int err = ft_writer_close(r->writer, text);
	r->writer = NULL;
	free(text);
	fprintf(stderr, "recorded %.1f s (%s): ", (double)(end_ns - r->attached_ns) * 1e-9, reason);
	if (r->ring)
		fprintf(stderr, "%" PRIu64 " segments, ", r->segments);
	else
		fprintf(stderr, "%" PRIu64 " spans, %" PRIu64 " tallies, %" PRIu64 " disk requests, ",
			r->drain.spans, r->drain.tallies, r->drain.io);
	if (r->requests)
		fprintf(stderr, "%" PRIu64 " requests of clients, ", requests_so_far(r->requests).requests);
	if (lost)
		fprintf(stderr, "%" PRIu64 " events DROPPED; ", lost);
	else
		fprintf(stderr, "none dropped; ");
	if (r->ring)
		fprintf(stderr, "in %s\n", r->options->output);
	else
		fprintf(stderr, bytes < 1000000 ? "%.0f kB in %s\n" : "%.1f MB in %s\n",
			(double)bytes * (bytes < 1000000 ? 1e-3 : 1e-6), r->options->output);
	print_ended(r);
	if (err) {
		fprintf(stderr,
			"forktail record: cannot write %s: %s. It ends with the last complete block\n",
			r->options->output, strerror(-err));
		return 3;
	}
	return 0;
}

/* Of threads. */
static void ask_title(void *context, pid_t pid)
{
	target_files_ask_title(((struct recorder *)context)->files, pid);
}

static void on_title(void *context, pid_t pid, const char *title)
{
	struct recorder *r = context;
	if (r->writer)
		threads_title(&r->threads, pid, title, r->writer);
}

static void on_pipe(void *context, const struct ft_event_pipe *wait, const struct pipe_end *ends,
		    size_t count)
{
	struct recorder *r = context;
	if (!r->writer)
		return;
	json_t *note = json_note(ft_now_ns(), "pipe"), *all = json_put_array(note, "ends");
	json_put_count(note, "pid", wait->tgid);
	json_put_count(note, "fd", wait->fd);
	json_put_count(note, "inode", wait->inode);
	for (size_t i = 0; i < count; i++) {
		json_t *end = json_put_object(all, NULL);
		json_put_count(end, "pid", (uint64_t)ends[i].pid);
		json_put(end, "comm", json_text(ends[i].comm, strnlen(ends[i].comm, sizeof ends[i].comm)));
		json_put(end, "state", json_text(&ends[i].state, ends[i].state != 0));
	}
	write_json_note(r->writer, note);
}

/* Starts helpers before anything is open that they should not have. Returns the exit status. */
static int start_helpers(struct recorder *r)
{
	static const struct helper_setup *const kinds[] = {&files_helper,  &unwind_helper, &stats_helper,
							   &events_helper, &switch_helper, &requests_helper};
	int err = helpers_begin(kinds, sizeof kinds / sizeof *kinds);
	r->files = err ? NULL : target_files_open();
	if (!r->files) {
		fprintf(stderr, "forktail record: cannot start its helper processes: %s\n",
			strerror(err ? -err : errno));
		return 3;
	}
	target_files_on_title(r->files, on_title, r);
	target_files_on_pipe(r->files, on_pipe, r);
	r->threads.ask_title = ask_title;
	r->threads.ask_context = r;
	err = stats_switch_start();
	if (err)
		note_missing(r, "CPU time of the recorder's BPF programs", strerror(-err));
	if (r->options->wanted.samples_slow) {
		r->unwind_queue = unwind_queue_open(r->files);
		if (!r->unwind_queue)
			note_missing(r, "on-CPU time by function: no CPU samples",
				     "the helper process that names samples could not be started");
	}
	if (!r->options->requests.wanted)
		return 0;
	r->requests = requests_start(&r->options->requests);
	if (!r->requests)
		fprintf(stderr, "forktail record: cannot start the helper process that finds requests: %s\n",
			strerror(errno));
	return r->requests ? 0 : 3;
}

/* After this, nothing is attached or opened for writing. */
static int confine(struct recorder *r)
{
	int err = r->ring ? segments_become_owner(r->ring) : 0;
	err =
	    err ? err
		: privileges_drop_recorder(r->drain.samples ||
					   (r->ring && selectors_look_at_descriptors(r->options->selectors)));
	/* The writer's thread starts after privileges were dropped, and shares the filter. */
	err = err ? err : ft_writer_background(r->writer, QUEUE_BYTES);
	err = err ? err : watchdog_start();
	err = err ? err : privileges_filter_recorder(r->ring ? segments_directory(r->ring) : -1);
	if (err)
		fprintf(stderr, "forktail record: cannot drop the root privileges it no longer needs: %s\n",
			strerror(-err));
	return err ? 3 : 0;
}

/* Prints what is recorded. */
static void print_begin(const struct recorder *r)
{
	const struct targets *targets = r->targets;
	fprintf(stderr, targets->count ? "recording " : "recording nothing yet");
	for (size_t i = 0; i < targets->count && i < NAMED_MOST; i++) {
		char comm[32], visible[VISIBLE_MOST * sizeof comm];
		int n = read_proc(targets->pids[i], "comm", comm, sizeof comm);
		visible_text(visible, sizeof visible, comm, n > 0 ? (size_t)n : 0);
		fprintf(stderr, "%s%s (%d)", i ? ", " : "", visible, targets->pids[i]);
	}
	if (targets->count > NAMED_MOST)
		fprintf(stderr, " and %zu others", targets->count - NAMED_MOST);
	fprintf(stderr, " to %s\n", r->options->output);
}

/* The kernel ends a process that outgrows its cgroup without a word. */
static void say_if_memory_is_short(void)
{
	enum { NEEDED_MB = 60 }; /* loading takes 48 MB, and recording 25 MB or more */
	const uint64_t limit = cgroup_memory_limit("/proc");
	if (limit < NEEDED_MB * 1000000ull)
		fprintf(stderr,
			"forktail record: its cgroup may use only %" PRIu64
			" MB of memory. The recorder needs up to %d MB; with "
			"less the kernel may kill it\n",
			limit / 1000000, NEEDED_MB);
}

/* Everything is attached: from here on little CPU time and few rights are needed. */
static int settle(struct recorder *r)
{
	int err = priority_lower();
	if (err)
		fprintf(stderr, "forktail record: cannot lower its own priority: %s\n", strerror(-err));
	return confine(r);
}

int record(const struct record_options *options, struct targets *targets)
{
	struct recorder r = {.options = options, .targets = targets, .missing = json_array(), .manager = -1};
	r.base.cpu_ns = own_cpu_ns();
	/* Before anything is attached: a signal at any time after this ends the recording properly. */
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (options->keep.age_ns)
		sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	int signals = signalfd(-1, &set, SFD_CLOEXEC);
	int status = options->keep.age_ns ? flight_recorder_open(&r) : 0;
	say_if_memory_is_short();
	/* The helpers inherit the affinity. */
	affinity_avoid(targets->pids, targets->count);
	if (status == 0) {
		status = start_helpers(&r);
		status = status == 0 && r.ring ? flight_recorder_start_guard(&r) : status;
	}
	if (status == 0) {
		slices_shorten();
		status = load(&r);
	}
	if (status == 0 && options->start_at_ns)
		status = wait_for_start(&r, signals);
	if (status == 0)
		status = start(&r);
	if (status == 0)
		status = settle(&r);
	if (status == 0) {
		print_begin(&r);
		if (options->tell_fd >= 0) {
			dprintf(options->tell_fd, "%s\n", options->output);
			close(options->tell_fd);
		}
		const char *reason = run(&r, signals);
		status = finish(&r, reason);
		if (reason == cannot_wait)
			status = 3;
	}
	if (r.writer)
		ft_writer_close(r.writer, NULL);
	requests_close(r.requests);
	programs_free(r.programs);
	quotas_close(r.quotas);
	cgroup_memory_close(r.cgroup_memory);
	proc_metrics_close(r.metrics);
	samples_close(r.drain.samples);
	sockets_close(r.drain.sockets);
	readers_close(r.readers);
	tcp_close(r.tcp);
	probes_close(r.probes);
	unwind_queue_close(r.unwind_queue);
	target_files_close(r.files);
	stats_switch_end();
	helpers_end();
	drain_free(&r.drain);
	threads_free(&r.threads);
	json_decref(r.missing);
	json_decref(r.manifest);
	descriptions_close(r.descriptions);
	segments_close(r.ring);
	guard_end();
	if (r.manager >= 0)
		close(r.manager);
	close(signals);
	return status;
}

/* Members of the manifest. Everything is looked up once, when the programs are loaded and nothing is attached
 * yet. The file must contain everything that a reader needs to interpret numbers (devices, system calls,
 * programs), because the host will not be available then. */

/* {"254:0": "vda", ...}: block requests carry numbers, but readers know names. Empty without sysfs. */
static json_t *block_devices(void)
{
	json_t *names = json_object();
	DIR *d = opendir("/sys/dev/block");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], target[512], *name;
		ssize_t n;

		snprintf(path, sizeof path, "/sys/dev/block/%s", e->d_name);
		n = readlink(path, target, sizeof target - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		name = strrchr(target, '/');
		json_put_text(names, e->d_name, name ? name + 1 : target);
	}
	if (d)
		closedir(d);
	return names;
}

/* {"0": "read", ...}: spans contain system call numbers, whose meaning depends on the machine. */
static json_t *syscall_names(void)
{
	json_t *names = json_object();
	for (int i = 0; i < ft_syscall_limit(); i++) {
		char number[16];
		snprintf(number, sizeof number, "%d", i);
		if (ft_syscall_name(i))
			json_object_set_new(names, number, json_string(ft_syscall_name(i)));
	}
	return names;
}

/* Of a file's "always [madvise] never" the active one. */
static void put_choice(json_t *manifest, const char *name, const char *path)
{
	char line[256], *text;
	if (read_text(path, line, sizeof line) > 0 && (text = strchr(line, '['))) {
		text[strcspn(text, "]")] = 0;
		json_put_text(manifest, name, text + 1);
	}
}

/* The machine, the processor's name, and the active settings of transparent huge pages: two runs to be
 * compared should agree in them. */
static void put_host(json_t *manifest)
{
	char line[256], *text;
	FILE *in = fopen("/proc/cpuinfo", "re");
	while (in && fgets(line, sizeof line, in)) {
		if (strncmp(line, machine.cpu_line, strlen(machine.cpu_line)) || !(text = strchr(line, ':')))
			continue;
		text += strspn(text, ": \t");
		text[strcspn(text, "\n")] = 0;
		json_put_text(manifest, "cpu", text);
		break;
	}
	if (in)
		fclose(in);
	json_put_text(manifest, "machine", machine.name);
	put_choice(manifest, "thp", "/sys/kernel/mm/transparent_hugepage/enabled");
	put_choice(manifest, "thp_defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
}

json_t *manifest(const struct record_options *options, json_t *targets, const struct support *support,
		 struct programs *p, uint64_t start_ns, json_t *missing)
{
	json_t *argv = json_array(), *programs = json_array();
	struct program_cost costs[PROGRAMS_MAX];
	size_t count = programs_costs(p, costs, PROGRAMS_MAX);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(programs, json_string(costs[i].name));
	for (int i = 0; i < options->argc; i++)
		json_put_text(argv, NULL, options->argv[i]);
	struct utsname u;
	uname(&u);
	char boot[40];
	ft_boot_id(boot);
	json_t *all =
	    json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:I, s:b, s:s, s:s, s:o, s:i, s:I, s:O, s:o, s:o, s:o}",
		      "program", "forktail-record", "version", FORKTAIL_VERSION, "host",
		      json_text(u.nodename, strlen(u.nodename)), "kernel", u.release, "boot_id", boot, "argv",
		      argv, "min_span_ns", (json_int_t)options->wanted.min_span_ns, "exact",
		      support->exact != EXACT_NOT, "exact_by", support_exact_name(support->exact),
		      "accounts_in", support->has_task_storage ? "task storage" : "hash", "targets", targets,
		      "cpus", support->cpus, "start_ns", (json_int_t)start_ns, "missing", missing,
		      "block_devices", block_devices(), "programs", programs, "syscalls", syscall_names());
	if (all) {
		char clock[FT_CLOCK_ID_BYTES];
		ft_clock_id(clock);
		json_put_text(all, "clock_id", clock);
		json_put_count(all, "metrics_ns", METRICS_MS * 1000000ull);
		json_put_text(all, "counters", support_counters_name(programs_cpu_counters(p)));
		put_host(all);
	}
	return all;
}

/* Written to the recording at intervals or on change. In a ring, every segment has its own reports that count
 * from its beginning, so those of several segments add up. */

void report_drops(struct recorder *r)
{
	uint64_t now = ft_now_ns(), drops[FT_DROP_SLOTS];
	programs_drops(r->programs, drops);
	drops[FT_DROP_SLOT_UNWIND] = samples_so_far(r->drain.samples).unwinding.not_unwound;
	drops[FT_DROP_SLOT_REQUESTS] = requests_so_far(r->requests).dropped_events;
	drops[FT_DROP_SLOT_TCP] = tcp_lost(r->tcp) + probes_lost(r->probes);
	losses_dropped(&r->losses, r->writer, drops, now);
}

/* A read takes one system call per program, so it happens less often than reading drops. */
void report_misses(struct recorder *r)
{
	struct program_cost costs[PROGRAMS_MAX];
	uint64_t now = ft_now_ns();
	losses_missed(&r->losses, r->writer, costs, programs_costs(r->programs, costs, PROGRAMS_MAX), now);
}

static uint64_t rss_bytes(pid_t pid)
{
	unsigned long pages = 0;
	char text[64];
	if (pid && read_proc(pid, "statm", text, sizeof text) > 0 && sscanf(text, "%*u %lu", &pages) != 1)
		pages = 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void measure_cost_end(struct recorder *r)
{
	if (!r->window_from_ns)
		return;
	const uint64_t on_ns = ft_now_ns() - r->window_from_ns;
	r->window_from_ns = 0;
	programs_measure(r->programs, false);
	struct program_cost costs[PROGRAMS_MAX];
	cost_window(&r->cost, costs, programs_costs(r->programs, costs, PROGRAMS_MAX), on_ns);
	requests_measured(r->requests, on_ns);
}

/* A window lasts until the next tick. */
void measure_cost(struct recorder *r, uint64_t now_ms)
{
	if (r->window_from_ns) {
		measure_cost_end(r);
		r->next_window_ms = cost_next_window_ms(now_ms);
	} else if (now_ms >= r->next_window_ms && programs_measure(r->programs, true)) {
		r->window_from_ns = ft_now_ns();
	}
}

/* Runs are those of the whole recording or segment. Without enough windows their time is left out. Returns
 * the programs. */
static json_t *put_programs(struct recorder *r, json_t *cost)
{
	struct program_cost costs[PROGRAMS_MAX];
	const size_t n = programs_costs(r->programs, costs, PROGRAMS_MAX);
	const bool known = cost_known(&r->cost);
	json_t *programs = json_array();
	double total_ns = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t runs = costs[i].runs - r->base.program_runs[i];
		if (!costs[i].counted || !runs)
			continue;
		json_t *one = json_put_object(programs, NULL);
		json_put_text(one, "name", costs[i].name);
		json_put_count(one, "runs", runs);
		if (!known || !costs[i].sampled)
			continue;
		const double ns = cost_ns(&r->cost, i, &costs[i]) - r->base.program_ns[i];
		total_ns += ns > 0 ? ns : 0;
		json_put(one, "ns_per_run", json_real(ns > 0 ? ns / (double)runs : 0));
		json_put_count(one, "total_ns", ns > 0 ? (uint64_t)ns : 0);
	}
	json_put_count(cost, "windows", r->cost.windows);
	json_put_count(cost, "measured_ns", r->cost.measured_ns);
	if (known) {
		json_put_count(cost, "bpf_ns", (uint64_t)total_ns);
		json_put(cost, "bpf_ns_is_estimate", json_true());
	}
	return programs;
}

void report_cost(struct recorder *r)
{
	uint64_t now = ft_now_ns();
	uint64_t counters[FT_COUNTERS];
	programs_counters(r->programs, counters);
	for (int i = 0; i < FT_COUNTERS; i++)
		counters[i] -= r->base.counters[i];
	const struct unwind_queue_figures unwinding = samples_so_far(r->drain.samples).unwinding;
	const char *name;
	json_t *o = json_object();
	json_put_count(o, "t_ns", now);
	json_t *programs = put_programs(r, o);
	json_put_count(o, "recorder_cpu_ns",
		       own_cpu_ns() - r->base.cpu_ns + unwinding.helper_cpu_ns +
			   requests_so_far(r->requests).helper_cpu_ns - r->base.helper_cpu_ns);
	json_put_count(o, "load_cpu_ns", r->load_cpu_ns);
	json_put_count(o, "recorder_rss_bytes",
		       rss_bytes(getpid()) + rss_bytes(unwinding.helper) + rss_bytes(unwinding.files_helper) +
			   rss_bytes(requests_so_far(r->requests).helper));
	json_put_count(o, "fault_begins", counters[FT_COUNT_FAULT_BEGIN]);
	json_put_count(o, "fault_ends", counters[FT_COUNT_FAULT_END]);
	json_put_count(o, "faults_abandoned", counters[FT_COUNT_FAULT_ABANDONED]);
	json_put_count(o, "fault_ends_unpaired", counters[FT_COUNT_FAULT_UNPAIRED]);
	json_put_count(o, "irqs_unpaired", counters[FT_COUNT_IRQ_UNPAIRED]);
	json_put_count(o, "switches_unseen", counters[FT_COUNT_SWITCH_UNSEEN]);
	json_put_count(o, "cpu_samples", counters[FT_COUNT_SAMPLE]);
	json_put_count(o, "unwound", unwinding.unwound - r->base.unwound);
	json_put_count(o, "unwind_ns", unwinding.unwind_ns - r->base.unwind_ns);
	json_put(o, "programs", programs);
	/* Since the recorder began. */
	json_t *deaths = json_put_object(o, "helper_deaths");
	uint64_t count = 0;
	for (size_t i = 0; (name = helper_deaths(i, &count)); i++)
		json_put_count(deaths, name, count);
	json_put_count(o, "main_loop_stalls", watchdog_stalls());
	write_json_block(r->writer, FT_BLOCK_COST, o);
}

static void on_cpu(void *context, int cpu, int error)
{
	struct recorder *r = context;
	char what[160], why[160];
	snprintf(
	    what, sizeof what,
	    "page faults and CPU samples on CPU %d%s: copy-on-write counted as on-CPU time of the server",
	    cpu, error ? "" : " for a moment");
	snprintf(why, sizeof why, "the CPU came online, and its perf events %s%s",
		 error ? "cannot be opened: " : "were opened again", error ? strerror(-error) : "");
	fprintf(stderr, "forktail record: CPU %d came online: %s\n", cpu,
		error ? why : "its page faults and samples are recorded again");
	json_t *note = json_note(ft_now_ns(), "missing");
	json_put_text(note, "what", what);
	json_put_text(note, "why", why);
	write_json_note(r->writer, note);
}

void report_cpus(struct recorder *r)
{
	programs_follow_cpus(r->programs, on_cpu, r);
}

static void report_softirqs(struct recorder *r)
{
	uint64_t per_second;
	json_t *note = json_note(ft_now_ns(), "softirqs-sampled");
	json_put(note, "on", json_boolean(programs_softirqs_sampled(r->programs, &per_second)));
	json_put_count(note, "per_second", per_second);
	if (r->options->wanted.softirqs == SOFTIRQS_SAMPLED)
		json_put(note, "asked", json_true());
	write_json_note(r->writer, note);
}

void report_softirqs_sampled(struct recorder *r)
{
	uint64_t per_second;
	if (programs_softirqs_sampled(r->programs, &per_second))
		report_softirqs(r);
}

void follow_softirqs(struct recorder *r)
{
	const int changed = programs_follow_softirqs(r->programs, ft_now_ns());
	if (changed < 0)
		skipped(r, "the programs of soft interrupts and wake-ups again", changed);
	if (changed)
		report_softirqs(r);
}

void report_host(struct recorder *r)
{
	cpu_offer();
	proc_metrics_sample(r->metrics, r->targets->pids, r->targets->count);
	look_at_cgroups(r);
	cpu_offer();
}

void report_clock(struct recorder *r)
{
	struct ft_clock c;
	ft_clock_read(&c);
	ft_writer_record(r->writer, FT_BLOCK_CLOCK, &c);
}

void self_report_begin_segment(struct recorder *r)
{
	const struct unwind_queue_figures unwinding = samples_so_far(r->drain.samples).unwinding;
	r->base = (struct self_report_base){.t_ns = ft_now_ns(),
					    .cpu_ns = own_cpu_ns(),
					    .helper_cpu_ns = unwinding.helper_cpu_ns +
							     requests_so_far(r->requests).helper_cpu_ns,
					    .unwound = unwinding.unwound,
					    .unwind_ns = unwinding.unwind_ns,
					    .lost = losses_total(&r->losses) + ft_writer_lost(r->writer)};
	programs_counters(r->programs, r->base.counters);
	struct program_cost costs[PROGRAMS_MAX];
	const size_t n = programs_costs(r->programs, costs, PROGRAMS_MAX);
	for (size_t i = 0; i < n; i++) {
		r->base.program_runs[i] = costs[i].runs;
		r->base.program_ns[i] = cost_ns(&r->cost, i, &costs[i]);
	}
}

char *summary_text(struct recorder *r, const char *reason, uint64_t end_ns, json_t *ended)
{
	uint64_t lost = losses_total(&r->losses) + ft_writer_lost(r->writer) - r->base.lost;
	json_t *o =
	    json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "end_ns", (json_int_t)end_ns, "reason", reason,
		      "spans", (json_int_t)r->drain.spans, "tallies", (json_int_t)r->drain.tallies, "io",
		      (json_int_t)r->drain.io, "cpu_samples",
		      (json_int_t)samples_so_far(r->drain.samples).samples, "dropped", (json_int_t)lost);
	json_put(o, "ended", ended);
	char *text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

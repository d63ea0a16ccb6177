/* SPDX-License-Identifier: MIT */
/* Continuous recording in segments. Each segment must be explainable on its own. So each repeats the
 * information that a recording contains once, and counts from its own beginning. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recorder.h"
#include "recording/json_block.h"

#define OPEN_NS 1000000000ull
#define CALM_NS 3000000000ull
#define ALIVE_NS 1000000000ull

int flight_recorder_open(struct recorder *r)
{
	const struct record_options *o = r->options;
	struct file_owner user;
	const char *why;
	if (file_owner_find(o->user, &user)) {
		fprintf(stderr, "forktail record: --user: no such user: %s\n", o->user);
		return 3;
	}
	if (segments_open(&r->ring, o->output, &o->keep, &user, &why)) {
		fprintf(stderr, "forktail record: cannot use the directory %s for a ring: %s\n", o->output,
			why);
		return 3;
	}
	return 0;
}

int flight_recorder_start_guard(struct recorder *r)
{
	const struct record_options *o = r->options;
	r->manager = manager_connect(getenv("NOTIFY_SOCKET")); /* now: its filter will allow no sockets */
	int err = o->guard.count ? guard_start(&o->guard, o->output, segments_owner(r->ring)) : 0;
	if (err)
		fprintf(stderr,
			"forktail record: cannot start forktail-guard, which must be in the directory of "
			"forktail-record%s: %s\n",
			err == -EACCES ? " and accessible to the ring's user" : "", strerror(-err));
	return err ? 3 : 0;
}

/* Returns the manifest of the segment that begins now. The caller frees it. */
static char *segment_manifest(struct recorder *r, uint64_t number)
{
	if (!r->manifest)
		r->manifest =
		    manifest(r->options, json_array(), &r->support, r->programs, r->start_ns, r->missing);
	json_put(r->manifest, "targets", descriptions_all(r->descriptions));
	json_put_count(r->manifest, "start_ns", r->start_ns);
	json_put_count(r->manifest, "ring_start_ns", r->ring_start_ns);
	json_put_count(r->manifest, "segment", number);
	json_put_text(r->manifest, "keep", r->options->keep_text);
	requests_manifest(r->requests, r->manifest);
	return r->manifest ? json_dumps(r->manifest, JSON_COMPACT) : NULL;
}

int flight_recorder_begin(struct recorder *r)
{
	r->ring_start_ns = r->start_ns;
	r->segments = 1;
	char *text = segment_manifest(r, segments_number(r->ring) + 1);
	int err = text ? segments_begin(r->ring, &r->writer, text, r->start_ns) : -ENOMEM;
	free(text);
	return err;
}

/* Writes the information from earlier segments that the new segment needs. */
static void begin_segment(struct recorder *r)
{
	report_clock(r);
	report_softirqs_sampled(r);
	threads_begin_segment(&r->threads, r->writer);
	drain_begin_segment(&r->drain);
	samples_begin_segment(r->drain.samples);
	proc_metrics_begin_segment(r->metrics);
	quotas_begin_segment(r->quotas);
	sockets_begin_segment(r->drain.sockets);
	readers_begin_segment(r->readers);
	requests_begin_segment(r->requests);
	drain_write_open(&r->drain);
	report_host(r);
	self_report_begin_segment(r);
}

/* Once per second, or more rarely on a host with very many threads. */
static void ask_for_open(struct recorder *r)
{
	if (!look_begins(&r->open_look, ft_now_ns()))
		return;
	r->drain.open_count = 0;
	programs_report_open(r->programs);
	programs_drain(r->programs);
	drain_write_open(&r->drain);
	look_ends(&r->open_look, OPEN_NS);
}

static void next_segment(struct recorder *r)
{
	look_soon(&r->open_look);
	ask_for_open(r);
	requests_flush(r->requests, r->writer);
	report_drops(r);
	report_misses(r);
	report_clock(r);
	report_cost(r);
	uint64_t now = ft_now_ns();
	char *summary = summary_text(r, "segment", now, json_array());
	r->start_ns = now;
	char *text = segment_manifest(r, segments_number(r->ring) + 1);
	if (summary && text && segments_next(r->ring, r->writer, text, summary, now) == 0) {
		r->segments++;
		begin_segment(r);
	}
	free(summary);
	free(text);
}

/* Write errors do not end the recorder: a ring with a gap is better than none. The error is over after a
 * period without errors, because removing old segments may allow short writes repeatedly. */
static void print_disk_state(struct recorder *r, uint64_t now)
{
	static const char alive[] = "WATCHDOG=1";
	int err = ft_writer_error(r->writer);
	if (err)
		r->disk_error_ns = now;
	/* The guard reports to the manager what it finds in the ring. While nothing can be written there it
	 * cannot distinguish a disk that refuses to write from a recorder that hangs. */
	if (err && now - r->alive_ns > ALIVE_NS) {
		r->alive_ns = now;
		manager_send(r->manager, alive, sizeof alive - 1);
	}
	if (err && !r->disk_error_reported) {
		fprintf(
		    stderr,
		    "forktail record: cannot write to %s: %s. Events are lost until writing works again\n",
		    r->options->output, strerror(-err));
		r->disk_error_reported = true;
	} else if (r->disk_error_reported && now - r->disk_error_ns > CALM_NS) {
		fprintf(stderr, "forktail record: writing to %s works again\n", r->options->output);
		r->disk_error_reported = false;
	}
}

void flight_recorder_tick(struct recorder *r)
{
	uint64_t now = ft_now_ns();
	bool again = segments_recover(r->ring, r->writer, now);
	print_disk_state(r, now);
	ask_for_open(r);
	if (again || segments_due(r->ring, r->writer, now))
		next_segment(r);
}

void flight_recorder_reload(struct recorder *r)
{
	write_json_note(r->writer, json_note(ft_now_ns(), "reload"));
	ft_writer_flush(r->writer);
}

void flight_recorder_trigger(struct recorder *r)
{
	json_t *note = json_note(ft_now_ns(), "trigger");
	json_put_text(note, "name", "SIGUSR1");
	write_json_note(r->writer, note);
	ft_writer_flush(r->writer);
}

/* A process that matches what the user named gets accounts in the same way as the first targets: it is added
 * to the targets, and an iterator over all tasks opens the accounts of its threads. Its events before it was
 * found, at most a second, are not in the recording. */

#define LOOK_NS 1000000000ull
#define LONGEST_NS 5000000000ull

/* Printed on stderr, so that the log of a service contains it. */
static void print(pid_t pid, const char *comm, size_t length, const char *what)
{
	char visible[VISIBLE_MOST * 16 + 1];
	visible_text(visible, sizeof visible, comm, length);
	fprintf(stderr, "%s (%d) %s\n", visible, pid, what);
}

static void print_ended(const struct recorder *r, pid_t pid)
{
	for (size_t i = 0; i < r->threads.ended_count; i++) {
		const struct ended_target *e = &r->threads.ended[i];
		if (e->pid != pid || !e->t_ns)
			continue;
		char how[64], what[80];
		exit_text(e->exit_code, e->exit_flags, how, sizeof how);
		snprintf(what, sizeof what, "ended%s%s", *how ? ", " : "", how);
		print(pid, e->comm, strnlen(e->comm, sizeof e->comm), what);
	}
}

/* Targets without remaining threads. Other processes may get their ids. */
static void drop_ended(struct recorder *r)
{
	for (size_t i = 0; i < r->targets->count;) {
		pid_t pid = r->targets->pids[i];
		if (threads_alive(&r->threads, pid)) {
			i++;
			continue;
		}
		print_ended(r, pid);
		programs_forget(r->programs, pid);
		r->targets->pids[i] = r->targets->pids[--r->targets->count];
		descriptions_forget(r->descriptions, pid);
		tcp_forget(r->tcp, pid);
		selectors_forget(r->options->selectors);
	}
}

/* A zombie no longer has a program. */
static bool is_alive(pid_t pid)
{
	char path[32], text[8];
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return readlink(path, text, sizeof text) > 0;
}

/* Skips processes that are already traced, including children of targets. */
static void keep_new(struct recorder *r, struct targets *found)
{
	size_t left = 0;
	programs_drain(r->programs); /* a child that was forked a moment ago */
	for (size_t i = 0; i < found->count && r->targets->count + left < TARGETS_MAX; i++)
		if (!targets_has(r->targets, found->pids[i]) &&
		    !threads_of_other(&r->threads, found->pids[i]) && is_alive(found->pids[i]))
			found->pids[left++] = found->pids[i];
	found->count = left;
}

/* Has threads announced again whose begin was lost because the ring was full. */
static void find_lost(struct recorder *r)
{
	const uint64_t lost = r->losses.drops[FT_DROP_SLOT_THREAD_EVENT];
	if (lost != r->thread_events_lost && programs_open_more(r->programs) == 0)
		r->thread_events_lost = lost;
}

static void begin(struct recorder *r, pid_t pid)
{
	char comm[32];
	int n = read_proc(pid, "comm", comm, sizeof comm);
	json_t *note = json_note(ft_now_ns(), "target-began");
	if (!threads_alive(&r->threads, pid) || targets_add_pid(r->targets, pid) < 0) {
		programs_forget(r->programs, pid); /* it has exited, or there are too many */
		selectors_forget(r->options->selectors);
		json_decref(note);
		return;
	}
	char cmdline[DESCRIPTION_CMDLINE_BYTES];
	target_files_title_now(r->files, pid, cmdline, sizeof cmdline);
	json_t *described = descriptions_add(r->descriptions, pid, cmdline, ft_now_ns());
	json_object_update(note, described);
	write_json_note(r->writer, note);
	samples_prepare(r->drain.samples, pid);
	requests_target(r->requests, r->writer, described);
	tcp_target(r->tcp, described);
	print(pid, comm, n > 0 ? (size_t)n : 0, "began");
}

static void look(struct recorder *r)
{
	static struct targets found;
	find_lost(r);
	found.count = 0;
	for (size_t i = 0; i < r->options->selectors->count; i++)
		selector_find_more(&r->options->selectors->all[i], &found);
	keep_new(r, &found);
	if (!found.count)
		return;
	if (programs_trace(r->programs, found.pids, found.count, FT_TRACED_TARGET) ||
	    programs_open_more(r->programs))
		selectors_forget(r->options->selectors); /* again in one second */
	programs_drain(r->programs);
	for (size_t i = 0; i < found.count; i++)
		begin(r, found.pids[i]);
}

void follow_tick(struct recorder *r)
{
	uint64_t now = ft_now_ns();
	drop_ended(r);
	json_t *renewed = descriptions_tick(r->descriptions, now);
	requests_target(r->requests, r->writer, renewed);
	tcp_target(r->tcp, renewed);
	if (!look_begins(&r->follow_look, now))
		return;
	look(r);
	look_ends(&r->follow_look, LOOK_NS);
	if (r->follow_look.due_ns > now + LONGEST_NS)
		r->follow_look.due_ns = now + LONGEST_NS;
}

void follow_soon(struct recorder *r)
{
	look_soon(&r->follow_look);
	selectors_forget(r->options->selectors);
}

/* The starter is forked while the recorder has nothing open that it should not have. It drops its privileges
 * before anything else. */

enum { LONGEST_PAUSE_S = 60, USAGE = 2, END = 3 };

/* The recorder's side of the starter. END is the starter's end of this socket, which tells it to end. */
static struct {
	pid_t pid;
	int socket;
} starter = {.socket = -1};

int guard_args_add(struct guard_args *g, const char *option, const char *value)
{
	if (g->count + 2 > GUARD_ARGS_MAX)
		return -E2BIG;
	g->all[g->count++] = option;
	if (value)
		g->all[g->count++] = value;
	return 0;
}

/* Finds the program in the directory of this one. */
static int find_guard(char path[PATH_MAX])
{
	static const char name[] = "forktail-guard";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof name);
	if (n <= 0)
		return -errno;
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, name);
	return access(path, X_OK) ? -errno : 0;
}

/* Resets signals to their defaults and closes everything except the standard descriptors and the socket,
 * which becomes END. */
static void reset_process(int socket)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);
	dup2(null, STDIN_FILENO);
	dup2(socket, END);
	fcntl(END, F_SETFD, FD_CLOEXEC);
	close_range(END + 1, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

/* The caller's environment may hold passwords, and the guard and its commands belong to another user. */
static void keep_environment(const char *kept[], size_t room)
{
	static const char *const names[] = {"PATH=", "LANG=", "LC_", "TZ=", "NOTIFY_SOCKET=", "WATCHDOG_"};
	size_t count = 0;
	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < sizeof names / sizeof *names && count + 1 < room; i++)
			if (strncmp(*e, names[i], strlen(names[i])) == 0)
				kept[count++] = *e;
	kept[count] = NULL;
}

/* Waits for the end of a child, for so many milliseconds. */
static void await_end(pid_t pid, int ms)
{
	for (int i = 0; i < ms / 10 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		usleep(10000);
}

/* Runs the guard once. Returns its exit status, or 128. The guard ends with the recorder, which has no right
 * to send a signal to another user's process: it writes to END, or it was killed, which is looked for each
 * second. */
static int run(pid_t recorder, const char *path, char *const *argv)
{
	pid_t parent = getpid(), pid = fork();
	int status = 0;
	if (pid < 0)
		return 128;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
		if (getppid() != parent)
			_exit(0);
		signal(SIGINT, SIG_DFL);
		const char *environment[32];
		keep_environment(environment, sizeof environment / sizeof *environment);
		execve(path, argv, (char *const *)environment);
		_exit(USAGE);
	}
	struct pollfd end = {.fd = END, .events = POLLIN};
	while (waitpid(pid, &status, WNOHANG) == 0)
		if (poll(&end, 1, 1000) > 0 || getppid() != recorder) {
			kill(pid, SIGTERM);
			await_end(pid, 2000);
			_exit(0);
		}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Becomes the ring's user and tells the recorder whether that user can run the guard. */
static int begin_guard(pid_t recorder, int answer, const char *path, const struct file_owner *user)
{
	int err = privileges_become_user(recorder, user->uid, user->gid);
	if (!err && access(path, X_OK))
		err = -errno;
	if (write(answer, &err, sizeof err) != sizeof err)
		err = -EPIPE; /* the recorder has exited */
	return err;
}

__attribute__((noreturn)) static void live(pid_t recorder, int socket, const char *path, char *const *argv,
					   const struct file_owner *user)
{
	prctl(PR_SET_NAME, "forktail-start");
	signal(SIGINT, SIG_IGN); /* Ctrl-C is for the recorder, and the guard ends with it */
	if (begin_guard(recorder, socket, path, user))
		_exit(3);
	reset_process(socket);
	for (unsigned pause_s = 1;;) {
		time_t begun = time(NULL);
		int status = getppid() == recorder ? run(recorder, path, argv) : USAGE;
		if (status == USAGE) {
			if (getppid() == recorder)
				fputs("forktail record: forktail-guard did not accept its options. The "
				      "recording continues without triggers, snapshots and metrics\n",
				      stderr);
			_exit(USAGE);
		}
		if (time(NULL) - begun > LONGEST_PAUSE_S)
			pause_s = 1;
		fprintf(stderr, "forktail record: forktail-guard exited; restarting it in %u s\n", pause_s);
		if (poll(&(struct pollfd){.fd = END, .events = POLLIN}, 1, (int)pause_s * 1000) > 0)
			_exit(0);
		pause_s = 2 * pause_s < LONGEST_PAUSE_S ? 2 * pause_s : LONGEST_PAUSE_S;
	}
}

int guard_start(const struct guard_args *g, const char *ring, const struct file_owner *user)
{
	char path[PATH_MAX];
	const char *argv[GUARD_ARGS_MAX + 3] = {path, ring};
	pid_t recorder = getpid();
	int err = find_guard(path);
	if (err)
		return err;
	memcpy(argv + 2, g->all, g->count * sizeof *g->all);
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	starter.pid = fork();
	if (starter.pid == 0) {
		close(ends[0]);
		live(recorder, ends[1], path, (char *const *)argv, user);
	}
	err = starter.pid < 0 ? -errno : 0;
	close(ends[1]);
	starter.socket = ends[0];
	if (!err && read(ends[0], &err, sizeof err) != sizeof err)
		err = -ECHILD;
	return err;
}

void guard_end(void)
{
	if (starter.socket >= 0 && write(starter.socket, "", 1) == 1)
		await_end(starter.pid, 3000);
}

/* SPDX-License-Identifier: MIT */
/* forktail-record's command line, for users of `forktail record` and `forktail doctor`, which end up here.
 * What a user got wrong is said here, in one sentence each; everything behind it returns numbers. */
#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "namespaces.h"
#include "record.h"
#include "support.h"
#include "units/parse.h"

const char *argp_program_version = "forktail-record " FORKTAIL_VERSION;

enum {
	EXIT_USAGE = 2,
	EXIT_ENVIRONMENT = 3,
	OPTION_UNIX = 256,
	OPTION_NAME,
	OPTION_PORT,
	OPTION_CGROUP,
	OPTION_CONTAINER,
	OPTION_DURATION,
	OPTION_MIN_SPAN,
	OPTION_WITH_CLIENT,
	OPTION_NO_CLIENT,
	OPTION_NO_SAMPLES,
	OPTION_NO_SOFTIRQS,
	OPTION_LIGHT,
	OPTION_EXACT,
	OPTION_DOCTOR
};

/* In sixteenths of a millisecond: 250 a second, 1000, 100. */
enum { SAMPLES_SLOW = 64, SAMPLES_FAST = 16, LIGHT_SAMPLES_SLOW = 160, LIGHT_SAMPLES_FAST = SAMPLES_SLOW };

static const struct argp_option options[] = {
    {"pid", 'p', "PID[,PID...]", 0, "Trace these processes", 1},
    {"port", OPTION_PORT, "N", 0, "Trace whoever listens on TCP port N", 1},
    {"unix", OPTION_UNIX, "PATH", 0, "Trace whoever listens on this Unix socket", 1},
    {"name", OPTION_NAME, "NAME", 0, "Trace every process of this name, e.g. redis-server", 1},
    {"container", OPTION_CONTAINER, "NAME|ID", 0,
     "Trace every process of a container, by its name (Docker, Podman, LXC) or the beginning of its id", 1},
    {"cgroup", OPTION_CGROUP, "PATH", 0,
     "Trace every process in this cgroup and those below it, e.g. system.slice/redis.service", 1},
    {"output", 'o', "FILE", 0, "The recording; its directory is made if it is missing", 2},
    {"duration", OPTION_DURATION, "TIME", 0,
     "End after this time, e.g. 30s, 5m (default: at SIGINT or SIGTERM, or when the "
     "last target has ended)",
     2},
    {"min-span", OPTION_MIN_SPAN, "TIME", 0,
     "Intervals from this length on are recorded one by one, shorter ones summed up per "
     "millisecond (default 20us; 1us to 1s)",
     2},
    {"no-client", OPTION_NO_CLIENT, NULL, 0,
     "Don't trace when the threads of every forktail-load on this host ran, which tells what made it late",
     2},
    {"with-client", OPTION_WITH_CLIENT, NULL, OPTION_HIDDEN, "What is done anyway", 2},
    {"no-samples", OPTION_NO_SAMPLES, NULL, 0,
     "Take no CPU samples: what the server's own code was stays unknown", 2},
    {"no-softirqs", OPTION_NO_SOFTIRQS, NULL, 0,
     "Don't trace soft interrupts, which over loopback TCP cost the server most of what recording does", 2},
    {"light", OPTION_LIGHT, NULL, 0,
     "For a server that can spare nothing: no interrupts, and fewer CPU samples", 2},
    {"exact", OPTION_EXACT, "fentry|tracepoints", OPTION_ARG_OPTIONAL,
     "Trace system calls too, for what that costs every process of the host: each turn of an event loop that "
     "never waits, connections that come and go, the CPU time of an fsync. By the kernel's functions where "
     "that can be done, which costs the others nothing, else by tracepoints",
     2},
    {"doctor", OPTION_DOCTOR, NULL, 0, "Say what this host offers and what a recording would lack, and end",
     3},
    {0},
};

struct arguments {
	struct record_options record;
	struct targets targets;
	bool light, doctor;
};

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("forktail record: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

static void add_pids(struct targets *t, const char *text)
{
	pid_t which;
	int n = targets_add_pids(t, text, &which);
	if (n == -EINVAL)
		fail(EXIT_USAGE, "--pid takes process ids, not \"%s\"", text);
	if (n == -ESRCH)
		fail(EXIT_ENVIRONMENT, "there is no process %d%s", which,
		     pid_namespace()
			 ? " in this pid namespace (a container's, unless it is run with the host's)"
			 : "");
	if (n < 0)
		fail(EXIT_USAGE, "more than %d processes named", TARGETS_MAX);
}

/* What came of looking for a listener or a name. */
static void check_found(int n, const char *what, const char *which)
{
	if (n == -ENOENT)
		fail(EXIT_ENVIRONMENT, "%s %s", what, which);
	if (n == -EACCES)
		fail(EXIT_ENVIRONMENT,
		     "%s is listened on, but by no process that can be seen from here (another container, or "
		     "not root)",
		     which);
	if (n == -E2BIG)
		fail(EXIT_USAGE, "%s matches more than %d processes", which, TARGETS_MAX);
	if (n < 0)
		fail(EXIT_ENVIRONMENT, "%s: %s", which, strerror(-n));
}

static void add_container(struct targets *t, const char *which)
{
	int n = targets_add_container(t, which);
	if (n == -ENOTUNIQ)
		fail(EXIT_USAGE, "the ids of several containers begin with \"%s\"", which);
	check_found(n, "no process is in a container", which);
}

static enum exact_way exact_way(const char *arg)
{
	if (!arg)
		return EXACT_EITHER;
	if (strcmp(arg, support_exact_name(EXACT_BY_FUNCTIONS)) == 0)
		return EXACT_BY_FUNCTIONS;
	if (strcmp(arg, support_exact_name(EXACT_BY_TRACEPOINTS)) == 0)
		return EXACT_BY_TRACEPOINTS;
	fail(EXIT_USAGE, "--exact takes fentry or tracepoints, or nothing, not \"%s\"", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	char text[64];
	switch (key) {
	case 'p':
		add_pids(&a->targets, arg);
		return 0;
	case OPTION_PORT: {
		int port = port_number(arg);
		if (port < 0)
			fail(EXIT_USAGE, "--port takes a number from 1 to 65535, not \"%s\"", arg);
		snprintf(text, sizeof text, "port %d", port);
		check_found(targets_add_port(&a->targets, port), "nothing listens on", text);
		return 0;
	}
	case OPTION_UNIX:
		check_found(targets_add_unix(&a->targets, arg), "nothing listens on", arg);
		return 0;
	case OPTION_NAME:
		check_found(targets_add_name(&a->targets, arg), "no process is named", arg);
		return 0;
	case OPTION_CGROUP:
		check_found(targets_add_cgroup(&a->targets, arg), "no process is in the cgroup", arg);
		return 0;
	case OPTION_CONTAINER:
		add_container(&a->targets, arg);
		return 0;
	case 'o':
		a->record.output = arg;
		return 0;
	case OPTION_DURATION:
		if (!parse_duration(arg, TIME_ANY, TIME_S, &a->record.duration_ns) || !a->record.duration_ns)
			fail(EXIT_USAGE, "--duration takes a time such as 30s or 5m, not \"%s\"", arg);
		return 0;
	case OPTION_MIN_SPAN:
		if (!parse_duration(arg, TIME_ANY, TIME_US, &a->record.wanted.min_span_ns) ||
		    a->record.wanted.min_span_ns < 1000 || a->record.wanted.min_span_ns > 1000000000)
			fail(EXIT_USAGE, "--min-span takes a time from 1us to 1s, not \"%s\"", arg);
		return 0;
	case OPTION_WITH_CLIENT:
		a->record.wanted.with_client = true;
		return 0;
	case OPTION_NO_CLIENT:
		a->record.wanted.with_client = false;
		return 0;
	case OPTION_NO_SAMPLES:
		a->record.wanted.samples_slow = 0;
		return 0;
	case OPTION_NO_SOFTIRQS:
		a->record.wanted.softirqs = false;
		return 0;
	case OPTION_LIGHT:
		a->light = true;
		return 0;
	case OPTION_EXACT:
		a->record.wanted.exact = exact_way(arg);
		return 0;
	case OPTION_DOCTOR:
		a->doctor = true;
		return 0;
	case ARGP_KEY_ARG:
		fail(EXIT_USAGE,
		     "what is \"%s\"? Targets are given with --pid, --port, --unix, --name, --container or "
		     "--cgroup",
		     arg);
	}
	return ARGP_ERR_UNKNOWN;
}

static void lighten(struct programs_wanted *wanted)
{
	wanted->interrupts = wanted->softirqs = false;
	if (wanted->samples_slow) {
		wanted->samples_slow = LIGHT_SAMPLES_SLOW;
		wanted->samples_fast = LIGHT_SAMPLES_FAST;
	}
}

int main(int argc, char **argv)
{
	static struct arguments a;
	a.record = (struct record_options){.wanted = {.min_span_ns = 20000,
						      .with_client = true,
						      .samples_slow = SAMPLES_SLOW,
						      .samples_fast = SAMPLES_FAST,
						      .interrupts = true,
						      .softirqs = true},
					   .argc = argc,
					   .argv = argv};
	static const struct argp argp = {options,
					 parse,
					 NULL,
					 "Records what the kernel does to the threads of redis-server, "
					 "memcached and the like: every fork, page "
					 "fault, fsync, interrupt and wait, for `forktail explain`.\vExit "
					 "status: 0 done, 2 usage, 3 this host or "
					 "the target can't be recorded.",
					 NULL,
					 NULL,
					 NULL};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.doctor)
		return doctor_print();
	if (a.light && a.record.wanted.exact)
		fail(EXIT_USAGE, "--light and --exact exclude each other");
	if (a.light)
		lighten(&a.record.wanted);
	if (!a.targets.count)
		fail(
		    EXIT_USAGE,
		    "nothing to record: name it with --pid, --port, --unix, --name, --container or --cgroup");
	if (!proc_is_of_pid_namespace())
		fail(EXIT_ENVIRONMENT,
		     "/proc shows another pid namespace than this one, so process ids mean nothing here; "
		     "mount it anew: mount -t proc proc /proc (or unshare --mount-proc)");
	if (!a.record.output)
		fail(EXIT_USAGE, "where to? Name the recording with -o FILE");
	return record(&a.record, &a.targets);
}

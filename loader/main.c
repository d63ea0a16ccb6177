/* SPDX-License-Identifier: MIT */
/* forktail-record's command line, which also serves `forktail record` and `forktail doctor`. User errors are
 * reported here, in one sentence each. All code behind it returns numbers. */
#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "loader/attach.h"
#include "loader/system.h"
#include "recorder.h"

const char *argp_program_version = "forktail-record " FORKTAIL_VERSION;

enum {
	EXIT_USAGE = 2,
	EXIT_ENVIRONMENT = 3,
	OPTION_UNIX = 256,
	OPTION_NAME,
	OPTION_PORT,
	OPTION_CGROUP,
	OPTION_CONTAINER,
	OPTION_UNIT,
	OPTION_DURATION,
	OPTION_KEEP,
	OPTION_USER,
	OPTION_ON,
	OPTION_METRICS,
	OPTION_METRICS_TEXTFILE,
	OPTION_CONTROL,
	OPTION_CONFIG,
	OPTION_MIN_SPAN,
	OPTION_WITH_CLIENT,
	OPTION_NO_CLIENT,
	OPTION_NO_SAMPLES,
	OPTION_NO_SOFTIRQS,
	OPTION_LIGHT,
	OPTION_EXACT,
	OPTION_COUNTERS,
	OPTION_REQUESTS,
	OPTION_HASH_CLIENTS,
	OPTION_DOCTOR
};

/* In sixteenths of a millisecond: about 250 samples per second, 1000, 100. None is near a multiple of a
 * millisecond: samples in step with a server's timer would hit, or miss, the same work for seconds. */
enum { SAMPLES_SLOW = 65, SAMPLES_FAST = 17, LIGHT_SAMPLES_SLOW = 163, LIGHT_SAMPLES_FAST = SAMPLES_SLOW };

/* At 20,000 requests per second, a ring with a minimum span of 20 us takes twice the CPU time and three times
 * the space. The additional short stalls are not examined minutes later. */
enum { MIN_SPAN_NS = 20000, MIN_SPAN_KEEP_NS = 50000 };

static const struct argp_option options[] = {
    {"pid", 'p', "PID[,PID...]", 0, "Trace these processes", 1},
    {"port", OPTION_PORT, "N", 0, "Trace the processes that listen on TCP port N", 1},
    {"unix", OPTION_UNIX, "PATH", 0, "Trace the processes that listen on this Unix socket", 1},
    {"name", OPTION_NAME, "NAME", 0, "Trace every process of this name, e.g. redis-server", 1},
    {"container", OPTION_CONTAINER, "NAME|ID", 0,
     "Trace every process of a container, given its name (Docker, Podman, LXC) or the first characters of "
     "its id",
     1},
    {"unit", OPTION_UNIT, "NAME", 0, "Trace every process of a systemd unit, e.g. redis-server", 1},
    {"cgroup", OPTION_CGROUP, "PATH", 0,
     "Trace every process in this cgroup and its child cgroups, e.g. system.slice/redis.service", 1},
    {"output", 'o', "FILE", 0, "Write the recording to FILE. Create its directory if it is missing", 2},
    {"duration", OPTION_DURATION, "TIME", 0,
     "Stop after TIME, e.g. 30s or 5m (default: at SIGINT or SIGTERM, or when the last target has exited)",
     2},
    {"keep", OPTION_KEEP, "TIME[,SIZE]", 0,
     "Record continuously, keeping the last TIME (10s to 7d) and at most SIZE (default 1GB, at least 4MB), "
     "e.g. 10m,2GB. -o then names a directory of segments, each a complete recording. Targets that restart "
     "or appear later are followed",
     2},
    {"user", OPTION_USER, "NAME", 0,
     "With --keep: set the owner of the files (default: the user who called sudo, else forktail if that user "
     "exists)",
     2},
    {"on", OPTION_ON, "RULE", 0,
     "With --keep: take a snapshot when RULE is met: \"iteration > 50ms\" (an event-loop iteration), "
     "\"stall(fork) > 20ms\", \"rate(page-in) > 100/s\", \"drops > 0\". May be repeated",
     2},
    {"metrics", OPTION_METRICS, "ADDR:PORT|/PATH.sock", 0,
     "With --keep: serve metrics for Prometheus at this address or Unix socket", 2},
    {"metrics-textfile", OPTION_METRICS_TEXTFILE, "DIR", 0,
     "With --keep: write metrics into DIR for node_exporter", 2},
    {"control", OPTION_CONTROL, NULL, 0,
     "With --keep: accept triggers at DIR/control, where `forktail trigger` sends them", 2},
    {"config", OPTION_CONFIG, "FILE", 0,
     "With --keep: read triggers, snapshots and metrics from FILE. `forktail record --config FILE` reads all "
     "options of the recorder",
     2},
    {"min-span", OPTION_MIN_SPAN, "TIME", 0,
     "Record each interval of at least TIME separately and sum up shorter ones per millisecond (default "
     "20us, with --keep 50us; 1us to 1s)",
     2},
    {"no-client", OPTION_NO_CLIENT, NULL, 0,
     "Don't trace the forktail-load processes of this host. Tracing them, the default, shows why a client "
     "was late",
     2},
    {"with-client", OPTION_WITH_CLIENT, NULL, OPTION_HIDDEN,
     "Trace the forktail-load processes of this host (the default)", 2},
    {"no-samples", OPTION_NO_SAMPLES, NULL, 0,
     "Take no CPU samples. The recording then lacks on-CPU time by function", 2},
    {"no-softirqs", OPTION_NO_SOFTIRQS, NULL, 0,
     "Don't trace soft interrupts. With TCP over loopback, tracing them is most of what recording costs the "
     "server",
     2},
    {"light", OPTION_LIGHT, NULL, 0,
     "Reduce the cost to the server: trace no interrupts and take fewer CPU samples", 2},
    {"counters", OPTION_COUNTERS, "hardware|software|none", 0,
     "Counters that CPU samples read: the CPU's cycles, instructions and cache misses (hardware: the "
     "default, "
     "on hosts with a PMU), or software events in their place, to try this without a PMU",
     2},
    {"exact", OPTION_EXACT, "fentry|tracepoints", OPTION_ARG_OPTIONAL,
     "Also trace system calls: each iteration of an event loop that never waits, connections that open and "
     "close, the CPU time of an fsync. fentry costs other processes nothing; tracepoints slow every process "
     "of the host (default: fentry where the kernel supports it)",
     2},
    {"requests", OPTION_REQUESTS, "auto|1/N", OPTION_ARG_OPTIONAL,
     "Also record the requests of all clients, as the server's kernel sees them: arrival, read, answer, "
     "command and client, without keys and values. 1/N: of one in N connections, all of the time. auto, the "
     "default: 1/1, and 1/16 from 10,000 requests/s on; with --keep 1/1 for as long as the "
     "programs take 1 % of a CPU",
     2},
    {"hash-clients", OPTION_HASH_CLIENTS, NULL, 0,
     "With --requests: store random bytes in place of each client's address, the same ones in this recording",
     2},
    {"doctor", OPTION_DOCTOR, NULL, 0,
     "Print what this host supports and what a recording would lack, then exit", 3},
    {0},
};

struct arguments {
	struct record_options record;
	struct targets targets;
	struct selectors selectors;
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
		fail(EXIT_USAGE, "--pid: expected process ids, got \"%s\"", text);
	if (n == -ESRCH)
		fail(EXIT_ENVIRONMENT, "--pid: no process %d%s", which,
		     pid_namespace() ? " in this pid namespace. For processes outside this container, start "
				       "it in the host's pid namespace"
				     : "");
	if (n < 0)
		fail(EXIT_USAGE, "--pid: more than %d processes", TARGETS_MAX);
}

static void add(struct arguments *a, enum selector_kind kind, const char *text, int port)
{
	if (!selectors_add(&a->selectors, kind, text, port))
		fail(EXIT_USAGE,
		     "more than %d --port, --unix, --name, --container, --unit and --cgroup options",
		     SELECTORS_MAX);
}

static void guard(struct arguments *a, const char *option, const char *value)
{
	if (guard_args_add(&a->record.guard, option, value))
		fail(EXIT_USAGE, "%s is given too often", option);
}

static int port(const char *text)
{
	int n = port_number(text);
	if (n < 0)
		fail(EXIT_USAGE, "--port: expected a number from 1 to 65535, got \"%s\"", text);
	return n;
}

/* Finds the processes that a selector matches. With `keep` they may appear later. */
static void find(struct targets *t, const struct selector *s, bool keep)
{
	static const char *const nothing[] = {
	    [SELECT_PORT] = "nothing listens on",
	    [SELECT_UNIX] = "nothing listens on",
	    [SELECT_NAME] = "no process is named",
	    [SELECT_CGROUP] = "no process is in the cgroup",
	    [SELECT_CONTAINER] = "no process is in a container",
	    [SELECT_UNIT] = "no process is in the unit",
	};
	char which[64];
	const char *text = s->text;
	int n = selector_find(s, t);
	if (s->kind == SELECT_PORT) {
		snprintf(which, sizeof which, "port %d", s->port);
		text = which;
	}
	if (n == -ENOTUNIQ)
		fail(EXIT_USAGE, "--container: several container ids begin with \"%s\". Give more of the id",
		     text);
	if (n == -E2BIG)
		fail(EXIT_USAGE, "%s matches more than %d processes", text, TARGETS_MAX);
	if (n >= 0 || keep)
		return;
	if (n == -ENOENT)
		fail(EXIT_ENVIRONMENT, "%s %s", nothing[s->kind], text);
	if (n == -EACCES)
		fail(EXIT_ENVIRONMENT,
		     "cannot see the process that listens on %s: it runs in another container, or forktail "
		     "record does not run as root",
		     text);
	fail(EXIT_ENVIRONMENT, "%s: %s", text, strerror(-n));
}

static enum exact_way exact_way(const char *arg)
{
	if (!arg)
		return EXACT_EITHER;
	if (strcmp(arg, support_exact_name(EXACT_BY_FUNCTIONS)) == 0)
		return EXACT_BY_FUNCTIONS;
	if (strcmp(arg, support_exact_name(EXACT_BY_TRACEPOINTS)) == 0)
		return EXACT_BY_TRACEPOINTS;
	fail(EXIT_USAGE, "--exact: expected fentry, tracepoints or no value, got \"%s\"", arg);
}

static enum ft_cpu_counters counters(const char *arg)
{
	for (enum ft_cpu_counters c = FT_COUNTERS_NONE; c <= FT_COUNTERS_SOFTWARE; c++)
		if (strcmp(arg, support_counters_name(c)) == 0)
			return c;
	fail(EXIT_USAGE, "--counters: expected hardware, software or none, got \"%s\"", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	switch (key) {
	case 'p':
		add_pids(&a->targets, arg);
		return 0;
	case OPTION_PORT:
		add(a, SELECT_PORT, arg, port(arg));
		return 0;
	case OPTION_UNIX:
		add(a, SELECT_UNIX, arg, 0);
		return 0;
	case OPTION_NAME:
		add(a, SELECT_NAME, arg, 0);
		return 0;
	case OPTION_CGROUP:
		add(a, SELECT_CGROUP, arg, 0);
		return 0;
	case OPTION_CONTAINER:
		add(a, SELECT_CONTAINER, arg, 0);
		return 0;
	case OPTION_UNIT:
		add(a, SELECT_UNIT, arg, 0);
		return 0;
	case 'o':
		a->record.output = arg;
		return 0;
	case OPTION_DURATION:
		if (!parse_duration(arg, TIME_ANY, TIME_S, &a->record.duration_ns) || !a->record.duration_ns)
			fail(EXIT_USAGE, "--duration: expected a time such as 30s or 5m, got \"%s\"", arg);
		return 0;
	case OPTION_KEEP:
		if (!ring_limits_parse(arg, &a->record.keep))
			fail(EXIT_USAGE, "--keep: expected " RING_LIMITS_WANTED ", got \"%s\"", arg);
		a->record.keep_text = arg;
		a->record.wanted.keep = true;
		return 0;
	case OPTION_USER:
		a->record.user = arg;
		return 0;
	case OPTION_ON:
		guard(a, "--on", arg);
		return 0;
	case OPTION_METRICS:
		guard(a, "--metrics", arg);
		return 0;
	case OPTION_METRICS_TEXTFILE:
		guard(a, "--metrics-textfile", arg);
		return 0;
	case OPTION_CONTROL:
		guard(a, "--control", NULL);
		return 0;
	case OPTION_CONFIG:
		guard(a, "--config", arg);
		return 0;
	case OPTION_MIN_SPAN:
		if (!parse_duration(arg, TIME_ANY, TIME_US, &a->record.wanted.min_span_ns) ||
		    a->record.wanted.min_span_ns < 1000 || a->record.wanted.min_span_ns > 1000000000)
			fail(EXIT_USAGE, "--min-span: expected a time from 1us to 1s, got \"%s\"", arg);
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
	case OPTION_COUNTERS:
		a->record.wanted.counters = counters(arg);
		return 0;
	case OPTION_REQUESTS:
		a->record.requests.wanted = true;
		if (arg && !parse_sample(arg, &a->record.requests.sample))
			fail(EXIT_USAGE, "--requests: expected " SAMPLE_WANTED ", got \"%s\"", arg);
		return 0;
	case OPTION_HASH_CLIENTS:
		a->record.requests.hash_clients = true;
		return 0;
	case OPTION_DOCTOR:
		a->doctor = true;
		return 0;
	case ARGP_KEY_ARG:
		fail(EXIT_USAGE,
		     "unexpected argument \"%s\". Name targets with --pid, --port, --unix, --name, "
		     "--container, --unit or --cgroup",
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
	a.record = (struct record_options){.wanted = {.with_client = true,
						      .samples_slow = SAMPLES_SLOW,
						      .samples_fast = SAMPLES_FAST,
						      .counters = FT_COUNTERS_HARDWARE,
						      .interrupts = true,
						      .softirqs = true},
					   .argc = argc,
					   .argv = argv};
	static const struct argp argp = {
	    options,
	    parse,
	    NULL,
	    "Record what the kernel does to the threads of redis-server, memcached and similar servers: "
	    "every fork, page fault, fsync, interrupt and wait, for `forktail explain`.\vExit status: 0 "
	    "done, 2 wrong usage, 3 this host or the target cannot be recorded.",
	    NULL,
	    NULL,
	    NULL};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.doctor)
		return doctor_print();
	if (a.light && a.record.wanted.exact)
		fail(EXIT_USAGE, "--light and --exact are mutually exclusive");
	if (a.light)
		lighten(&a.record.wanted);
	if (!a.record.wanted.min_span_ns)
		a.record.wanted.min_span_ns = a.record.keep.age_ns ? MIN_SPAN_KEEP_NS : MIN_SPAN_NS;
	if (!a.targets.count && !a.selectors.count)
		fail(EXIT_USAGE, "no target. Name one with --pid, --port, --unix, --name, --container, "
				 "--unit or --cgroup");
	if (!proc_is_of_pid_namespace())
		fail(EXIT_ENVIRONMENT,
		     "/proc belongs to another pid namespace, so process ids do not match. Mount it again: "
		     "mount -t proc proc /proc (or use unshare --mount-proc)");
	for (size_t i = 0; i < a.selectors.count; i++)
		find(&a.targets, &a.selectors.all[i], a.record.keep.age_ns);
	a.record.selectors = &a.selectors;
	if (!a.record.output)
		fail(EXIT_USAGE, "no output. Name the recording with -o FILE");
	a.record.requests.keep = a.record.keep.age_ns != 0;
	if (a.record.requests.hash_clients && !a.record.requests.wanted)
		fail(EXIT_USAGE, "--hash-clients needs --requests");
	if (a.record.guard.count && !a.record.keep.age_ns)
		fail(EXIT_USAGE, "%s needs --keep", a.record.guard.all[0]);
	if (a.record.user && !a.record.keep.age_ns)
		fail(EXIT_USAGE, "--user needs --keep");
	return record(&a.record, &a.targets);
}

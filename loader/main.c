/* SPDX-License-Identifier: MIT */
/* forktail-record's command line, which also serves `forktail record` and `forktail doctor`. User errors are
 * reported here, in one sentence each. All code behind it returns numbers. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "common/text.h"
#include "loader/attach.h"
#include "loader/system.h"
#include "recorder.h"

const char *argp_program_version = "forktail-record " FORKTAIL_VERSION;

enum {
	EXIT_USAGE = 2,
	EXIT_ENVIRONMENT = 3,
};

/* In sixteenths of a millisecond: about 250 samples per second, 1000, 100. None is near a multiple of a
 * millisecond: samples in step with a server's timer would hit, or miss, the same work for seconds. */
enum { SAMPLES_SLOW = 65, SAMPLES_FAST = 17, LIGHT_SAMPLES_SLOW = 163, LIGHT_SAMPLES_FAST = SAMPLES_SLOW };

/* At 20,000 requests per second, a ring with a minimum span of 20 us takes twice the CPU time and three times
 * the space. The additional short stalls are not examined minutes later. */
enum { MIN_SPAN_NS = 20000, MIN_SPAN_KEEP_NS = 50000 };

struct options {
	struct record_options record;
	struct targets targets;
	struct selectors selectors;
	bool light, doctor, json, json_schema;
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

static error_t read_pids(const char *text, struct options *o)
{
	pid_t which;
	int n = targets_add_pids(&o->targets, text, &which);
	if (n == -EINVAL)
		return option_refuse("--pid: expected process ids, got \"%s\"", text);
	if (n == -ESRCH)
		fail(EXIT_ENVIRONMENT, "--pid: no process %d%s", which,
		     pid_namespace() ? " in this pid namespace. For processes outside this container, start "
				       "it in the host's pid namespace"
				     : "");
	return n < 0 ? option_refuse("--pid: more than %d processes", TARGETS_MAX) : 0;
}

/* `low` of the row is the kind of selector. */
static error_t read_selector(const struct option_row *row, const char *text, struct options *o)
{
	const enum selector_kind kind = (enum selector_kind)row->low;
	int port = kind == SELECT_PORT ? port_number(text) : 0;
	if (port < 0)
		return option_refuse("--port: expected a number from 1 to 65535, got \"%s\"", text);
	return selectors_add(&o->selectors, kind, text, port)
		   ? 0
		   : option_refuse(
			 "more than %d --port, --unix, --name, --container, --unit and --cgroup options",
			 SELECTORS_MAX);
}

static error_t read_duration(const char *text, struct options *o)
{
	return parse_duration(text, TIME_ANY, TIME_S, &o->record.duration_ns) && o->record.duration_ns
		   ? 0
		   : option_refuse("--duration: expected a time such as 30s or 5m, got \"%s\"", text);
}

static error_t read_start(const char *text, struct options *o)
{
	return option_start_at(text, &o->record.start_at_ns);
}

static error_t read_tell(const char *text, struct options *o)
{
	uint64_t fd = 0;

	/* One that is not open may be the recording's own later. */
	const bool is_open = parse_count(text, 3, 1 << 20, &fd) && fcntl((int)fd, F_SETFD, FD_CLOEXEC) == 0;
	o->record.tell_fd = is_open ? (int)fd : -1;
	return is_open ? 0 : option_refuse("--tell: expected an open descriptor, got \"%s\"", text);
}

static error_t read_keep(const char *text, struct options *o)
{
	o->record.keep_text = text;
	o->record.wanted.keep = true;
	return ring_limits_parse(text, &o->record.keep)
		   ? 0
		   : option_refuse("--keep: expected " RING_LIMITS_WANTED ", got \"%s\"", text);
}

/* Options that the guard gets as they are. `names` has the option as the guard takes it. */
static error_t pass_on(const struct option_row *row, const char *text, struct options *o)
{
	return guard_args_add(&o->record.guard, *row->names, text)
		   ? option_refuse("%s is given too often", *row->names)
		   : 0;
}

static error_t read_min_span(const char *text, struct options *o)
{
	uint64_t *ns = &o->record.wanted.min_span_ns;
	return parse_duration(text, TIME_ANY, TIME_US, ns) && *ns >= 1000 && *ns <= 1000000000
		   ? 0
		   : option_refuse("--min-span: expected a time from 1us to 1s, got \"%s\"", text);
}

static error_t read_no_samples(const char *text, struct options *o)
{
	(void)text;
	o->record.wanted.samples_slow = 0;
	return 0;
}

static error_t read_softirqs(const char *text, struct options *o)
{
	static const char *const ways[] = {[SOFTIRQS_NONE] = "none",
					   [SOFTIRQS_AUTO] = "auto",
					   [SOFTIRQS_EXACT] = "exact",
					   [SOFTIRQS_SAMPLED] = "sampled"};
	for (enum softirq_way way = SOFTIRQS_NONE; way <= SOFTIRQS_SAMPLED; way++)
		if (strcmp(text, ways[way]) == 0) {
			o->record.wanted.softirqs = way;
			return 0;
		}
	return option_refuse("--softirqs: expected auto, exact, sampled or none, got \"%s\"", text);
}

static error_t read_no_softirqs(const char *text, struct options *o)
{
	(void)text;
	o->record.wanted.softirqs = SOFTIRQS_NONE;
	return 0;
}

static error_t read_exact(const char *text, struct options *o)
{
	static const enum exact_way ways[] = {EXACT_BY_FUNCTIONS, EXACT_BY_TRACEPOINTS};
	o->record.wanted.exact = EXACT_EITHER;
	for (size_t i = 0; text && i < sizeof ways / sizeof *ways; i++)
		if (strcmp(text, support_exact_name(ways[i])) == 0)
			o->record.wanted.exact = ways[i];
	return text && o->record.wanted.exact == EXACT_EITHER
		   ? option_refuse("--exact: expected fentry, tracepoints or no value, got \"%s\"", text)
		   : 0;
}

static error_t read_counters(const char *text, struct options *o)
{
	for (enum ft_cpu_counters c = FT_COUNTERS_NONE; c <= FT_COUNTERS_SOFTWARE; c++)
		if (strcmp(text, support_counters_name(c)) == 0) {
			o->record.wanted.counters = c;
			return 0;
		}
	return option_refuse("--counters: expected hardware, software or none, got \"%s\"", text);
}

static error_t read_requests(const char *text, struct options *o)
{
	return !text || parse_sample(text, &o->record.requests.sample)
		   ? 0
		   : option_refuse("--requests: expected " SAMPLE_WANTED ", got \"%s\"", text);
}

static error_t read_keys(const char *text, struct options *o)
{
	uint64_t bytes = 0;
	const bool valid = parse_count(text, 1, SCAN_TEXT, &bytes);
	o->record.requests.key_bytes = (uint32_t)bytes;
	return valid ? 0
		     : option_refuse("--keys: expected a number from 1 to %d, got \"%s\"", SCAN_TEXT, text);
}

static error_t read_probe(const char *text, struct options *o)
{
	if (o->record.probe_count == FT_PROBES_MAX)
		return option_refuse("more than %d --probe options", FT_PROBES_MAX);
	return probe_parse(text, &o->record.probes[o->record.probe_count++])
		   ? 0
		   : option_refuse(
			 "--probe: expected uprobe:FILE:FUNCTION or usdt:FILE:PROVIDER:NAME, got \"%s\"",
			 text);
}

static const struct option_row rows[] = {
    {.help = "", .kind = OPTION_GROUP}, /* the targets */
    {"pid", 'p', "PID[,PID...]", "Trace these processes", IS_READ(read_pids)},
    {"port", 0, "N", "Trace the processes that listen on TCP port N", IS_READ_ROW(read_selector),
     .low = SELECT_PORT},
    {"unix", 0, "PATH", "Trace the processes that listen on this Unix socket", IS_READ_ROW(read_selector),
     .low = SELECT_UNIX},
    {"name", 0, "NAME", "Trace every process of this name, e.g. redis-server", IS_READ_ROW(read_selector),
     .low = SELECT_NAME},
    {"container", 0, "NAME|ID",
     "Trace every process of a container, given its name (Docker, Podman, LXC) or the first characters of "
     "its id",
     IS_READ_ROW(read_selector), .low = SELECT_CONTAINER},
    {"unit", 0, "NAME", "Trace every process of a systemd unit, e.g. redis-server",
     IS_READ_ROW(read_selector), .low = SELECT_UNIT},
    {"cgroup", 0, "PATH",
     "Trace every process in this cgroup and its child cgroups, e.g. system.slice/redis.service",
     IS_READ_ROW(read_selector), .low = SELECT_CGROUP},
    {.help = "", .kind = OPTION_GROUP},
    {"output", 'o', "FILE", "Write the recording to FILE. Create its directory if it is missing",
     IS_TEXT(record.output)},
    {"duration", 0, "TIME",
     "Stop after TIME, e.g. 30s or 5m (default: at SIGINT or SIGTERM, or when the last target has exited)",
     IS_READ(read_duration)},
    {"start-at", 0, "SECONDS",
     "Load the programs now, and start recording at SECONDS since 1970 of this host's clock, such as "
     "1795412345.5 (default: start immediately)",
     IS_READ(read_start)},
    {"keep", 0, "TIME[,SIZE]",
     "Record continuously, keeping the last TIME (10s to 7d) and at most SIZE (default 1GB, at least 4MB), "
     "e.g. 10m,2GB. -o then names a directory of segments, each a complete recording. Targets that restart "
     "or appear later are followed",
     IS_READ(read_keep)},
    {"user", 0, "NAME",
     "With --keep: set the owner of the files (default: the user who called sudo, else forktail if that user "
     "exists)",
     IS_TEXT(record.user)},
    {"on", 0, "RULE",
     "With --keep: take a snapshot when RULE is met: \"iteration > 50ms\" (an event-loop iteration), "
     "\"stall(fork) > 20ms\", \"rate(page-in) > 100/s\", \"drops > 0\". May be repeated",
     IS_READ_ROW(pass_on), .names = (const char *const[]){"--on"}},
    {"metrics", 0, "ADDR:PORT|/PATH.sock",
     "With --keep: serve metrics for Prometheus at this address or Unix socket", IS_READ_ROW(pass_on),
     .names = (const char *const[]){"--metrics"}},
    {"metrics-textfile", 0, "DIR", "With --keep: write metrics into DIR for node_exporter",
     IS_READ_ROW(pass_on), .names = (const char *const[]){"--metrics-textfile"}},
    {"control", 0, NULL, "With --keep: accept triggers at DIR/control, where `forktail trigger` sends them",
     IS_READ_ROW(pass_on), .names = (const char *const[]){"--control"}},
    {"config", 0, "FILE",
     "With --keep: read triggers, snapshots and metrics from FILE. `forktail record --config FILE` reads all "
     "options of the recorder",
     IS_READ_ROW(pass_on), .names = (const char *const[]){"--config"}},
    {"min-span", 0, "TIME",
     "Record each interval of at least TIME separately and sum up shorter ones per millisecond (default "
     "20us, with --keep 50us; 1us to 1s)",
     IS_READ(read_min_span)},
    {"no-client", 0, NULL,
     "Don't trace the forktail-load processes of this host. Tracing them, the default, shows why a client "
     "was late",
     IS_FALSE(record.wanted.with_client)},
    {"with-client", 0, NULL, "Trace the forktail-load processes of this host (the default)",
     IS_TRUE(record.wanted.with_client), .flags = OPTION_HIDDEN},
    {"no-samples", 0, NULL, "Take no CPU samples. The recording then lacks on-CPU time by function",
     IS_READ(read_no_samples)},
    {"softirqs", 0, "auto|exact|sampled|none",
     "How to trace soft interrupts: each of them (exact), by CPU samples, or not at all. auto, the default: "
     "exact, but sampled while the host has more than 50,000 a second and they take little of the targets' "
     "time",
     IS_READ(read_softirqs)},
    {"no-softirqs", 0, NULL, "The same as --softirqs=none", IS_READ(read_no_softirqs),
     .flags = OPTION_HIDDEN},
    {"light", 0, NULL, "Reduce the cost to the server: trace no interrupts and take fewer CPU samples",
     IS_TRUE(light)},
    {"counters", 0, "hardware|software|none",
     "Counters that CPU samples read: the CPU's cycles, instructions and cache misses (hardware: the "
     "default, on hosts with a PMU), or software events in their place, to try this without a PMU",
     IS_READ(read_counters)},
    {"exact", 0, "fentry|tracepoints",
     "Also trace system calls: each iteration of an event loop that never waits, connections that open and "
     "close, the CPU time of an fsync. fentry costs other processes nothing; tracepoints slow every process "
     "of the host (default: fentry where the kernel supports it)",
     IS_READ(read_exact), .flags = OPTION_ARG_OPTIONAL},
    {"requests", 0, "auto|1/N",
     "Also record the requests of all clients, as the server's kernel sees them: arrival, read, answer, "
     "command and client, without keys and values. 1/N: of one in N connections, all of the time. auto, the "
     "default: 1/1, and 1/16 from 10,000 requests/s on; with --keep 1/1 for as long as the programs take 1 % "
     "of a CPU",
     IS_READ(read_requests), GIVEN(record.requests.wanted), .flags = OPTION_ARG_OPTIONAL},
    {"hash-clients", 0, NULL,
     "With --requests: store random bytes in place of each client's address, the same ones in this recording",
     IS_TRUE(record.requests.hash_clients)},
    {"keys", 0, "N",
     "With --requests: store the first N bytes (1 to 32) of the keys of requests that the server had read "
     "for a "
     "millisecond or more before it answered, so that explain names the key of a slow command",
     IS_READ(read_keys)},
    {"hash-keys", 0, NULL,
     "With --keys: store random bytes in place of these, the same ones for the same bytes in this recording",
     IS_TRUE(record.requests.hash_keys)},
    {"probe", 0, "PROBE",
     "Mark when a function of a program runs, and for how long (uprobe:FILE:FUNCTION), or when a static "
     "probe is "
     "reached (usdt:FILE:PROVIDER:NAME). FILE may be empty: the target's program. May be repeated",
     IS_READ(read_probe)},
    {.help = "", .kind = OPTION_GROUP},
    {"tell", 0, "FD", "Write the recording's path to this descriptor when it has begun", IS_READ(read_tell),
     .flags = OPTION_HIDDEN},
    {"doctor", 0, NULL, "Print what this host supports and what a recording would lack, then exit",
     IS_TRUE(doctor)},
    {"json", 0, NULL, "With --doctor: print JSON", IS_TRUE(json)},
    {"json-schema", 0, NULL, "With --doctor: print the JSON Schema (draft 2020-12) of --json, then exit",
     IS_TRUE(json_schema)},
    {0},
};

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
		     "lacks CAP_SYS_PTRACE or CAP_DAC_READ_SEARCH. Name it with --name or --container",
		     text);
	fail(EXIT_ENVIRONMENT, "%s: %s", text, strerror(-n));
}

static void lighten(struct programs_wanted *wanted)
{
	wanted->interrupts = false;
	wanted->softirqs = SOFTIRQS_NONE;
	if (wanted->samples_slow) {
		wanted->samples_slow = LIGHT_SAMPLES_SLOW;
		wanted->samples_fast = LIGHT_SAMPLES_FAST;
	}
}

int main(int argc, char **argv)
{
	static struct options a;
	a.record = (struct record_options){.wanted = {.with_client = true,
						      .samples_slow = SAMPLES_SLOW,
						      .samples_fast = SAMPLES_FAST,
						      .counters = FT_COUNTERS_HARDWARE,
						      .interrupts = true,
						      .softirqs = SOFTIRQS_AUTO},
					   .tell_fd = -1,
					   .argc = argc,
					   .argv = argv};
	static const struct option_program program = {
	    .name = "forktail record",
	    .about =
		"Record what the kernel does to the threads of redis-server, memcached and similar servers: "
		"every fork, page fault, fsync, interrupt and wait, for `forktail explain`.\vExit status: 0 "
		"done, 2 wrong usage, 3 this host or the target cannot be recorded.",
	    .rows = rows,
	    .examples = "  forktail record --port 6379 --duration 60s -o monday/server.forktail\n"
			"  forktail record --port 6379 -o monday/server.forktail -- ./benchmark\n"
			"  forktail record -- redis-server --port 7000\n"
			"  forktail record --name redis-server --light --keep 10m -o /run/forktail\n",
	    .arguments = "[-- COMMAND...]",
	    .no_arguments =
		"Name targets with --pid, --port, --unix, --name, --container, --unit or --cgroup"};
	argp_err_exit_status = EXIT_USAGE;
	if (option_parse(&program, argc, argv, &a))
		return EXIT_USAGE;
	if ((a.json || a.json_schema) && !a.doctor)
		fail(EXIT_USAGE, "--json and --json-schema are options of forktail doctor");
	if (a.doctor)
		return a.json_schema ? doctor_print_schema() : a.json ? doctor_print_json() : doctor_print();
	if (a.light && a.record.wanted.exact)
		fail(EXIT_USAGE, "--light and --exact are mutually exclusive");
	if (a.light)
		lighten(&a.record.wanted);
	if (!a.record.wanted.min_span_ns)
		a.record.wanted.min_span_ns = a.record.keep.age_ns ? MIN_SPAN_KEEP_NS : MIN_SPAN_NS;
	if (!a.targets.count && !a.selectors.count)
		fail(EXIT_USAGE, "no target. Name one with --pid, --port, --unix, --name, --container, "
				 "--unit or --cgroup");
	if (!a.record.output)
		fail(EXIT_USAGE, "no output. Name the recording with -o FILE");
	a.record.requests.keep = a.record.keep.age_ns != 0;
	if (a.record.requests.hash_clients && !a.record.requests.wanted)
		fail(EXIT_USAGE, "--hash-clients needs --requests");
	if (a.record.requests.key_bytes && !a.record.requests.wanted)
		fail(EXIT_USAGE, "--keys needs --requests");
	if (a.record.requests.hash_keys && !a.record.requests.key_bytes)
		fail(EXIT_USAGE, "--hash-keys needs --keys");
	if (a.record.guard.count && !a.record.keep.age_ns)
		fail(EXIT_USAGE, "%s needs --keep", a.record.guard.all[0]);
	if (a.record.user && !a.record.keep.age_ns)
		fail(EXIT_USAGE, "--user needs --keep");
	/* Before anything that only root can see is missed. */
	if (geteuid())
		fail(EXIT_ENVIRONMENT,
		     "cannot record as user %u, because BPF programs need root. Run with sudo",
		     (unsigned)geteuid());
	if (!proc_is_of_pid_namespace())
		fail(EXIT_ENVIRONMENT,
		     "/proc belongs to another pid namespace, so process ids do not match. Mount it again: "
		     "mount -t proc proc /proc (or use unshare --mount-proc)");
	for (size_t i = 0; i < a.selectors.count; i++)
		find(&a.targets, &a.selectors.all[i], a.record.keep.age_ns);
	a.record.selectors = &a.selectors;
	return record(&a.record, &a.targets);
}

/* SPDX-License-Identifier: MIT */
/* Reads command line and environment. A password on the command line is refused, because every user of the
 * host can read it there; the message names the safe ways. */
#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/text/parse.h"
#include "options_check.h"
#include "options_foreign.h"
#include "options_table.h"

const char *argp_program_version = "forktail-load " FORKTAIL_VERSION;

struct reading {
	struct options *o;
	struct given_options given;
};

/* An option that only sets a member of struct options. */
struct place {
	int key;
	size_t at;
};

static const struct place texts[] = {
    {OPTION_CACERT, offsetof(struct options, tls.cacert)},
    {OPTION_CACERTDIR, offsetof(struct options, tls.cacertdir)},
    {OPTION_CERT, offsetof(struct options, tls.cert)},
    {OPTION_KEY, offsetof(struct options, tls.key)},
    {OPTION_SNI, offsetof(struct options, tls.sni)},
    {OPTION_USER, offsetof(struct options, user)},
    {OPTION_PASSWORD_FILE, offsetof(struct options, password_file)},
    {'t', offsetof(struct options, tests)},
    {OPTION_KEY_PREFIX, offsetof(struct options, key_prefix)},
    {OPTION_KEY_LENGTH, offsetof(struct options, key_length)},
    {OPTION_REPLAY, offsetof(struct options, replay_path)},
    {'o', offsetof(struct options, log_path)},
    {OPTION_JSON, offsetof(struct options, json_path)},
    {OPTION_SVG, offsetof(struct options, svg_path)},
    {OPTION_METRICS, offsetof(struct options, metrics)},
    {OPTION_HLOG, offsetof(struct options, hlog_path)},
    {OPTION_SERIES, offsetof(struct options, series_path)},
    {0},
};

static const struct place truths[] = {
    {'3', offsetof(struct options, resp3)},
    {OPTION_META_QUIET, offsetof(struct options, meta_quiet)},
    {OPTION_CHECK, offsetof(struct options, check)},
    {OPTION_TLS, offsetof(struct options, tls.on)},
    {OPTION_INSECURE, offsetof(struct options, tls.insecure)},
    {OPTION_KEY_SPLIT, offsetof(struct options, split)},
    {OPTION_VERIFY, offsetof(struct options, verify)},
    {'l', offsetof(struct options, loop)},
    {OPTION_BLOCKING, offsetof(struct options, blocking)},
    {OPTION_BUSY_POLL, offsetof(struct options, busy_poll)},
    {OPTION_ARRIVAL_TIMES, offsetof(struct options, arrival_times)},
    {OPTION_DISTRIBUTION, offsetof(struct options, distribution_table)},
    {OPTION_NO_OBSERVER, offsetof(struct options, no_observer)},
    {OPTION_PROGRESS, offsetof(struct options, progress)},
    {0},
};

/* NULL: no such option. */
static void *place_of(int key, const struct place *p, struct options *o)
{
	while (p->key && p->key != key)
		p++;
	return p->key ? (char *)o + p->at : NULL;
}

static error_t read_plain(int key, char *arg, struct reading *r)
{
	const char **text = place_of(key, texts, r->o);
	bool *truth = place_of(key, truths, r->o);

	if (text)
		*text = arg;
	else if (truth)
		*truth = true;
	return text || truth ? 0 : ARGP_ERR_UNKNOWN;
}

static error_t read_where(int key, char *arg, struct reading *r)
{
	struct options *o = r->o;

	switch (key) {
	case 'h':
		return options_read_host(arg, o, &r->given);
	case 'p':
		return options_read_count32(arg, "-p", 1, 65535, &r->given.port);
	case 's':
		r->given.socket = arg;
		return 0;
	case OPTION_SERVER:
		return options_read_server(arg, "--server", o, &r->given);
	case 'u':
		return options_read_server(arg, "-u", o, &r->given);
	case 'a':
		return options_refuse("every user of this host can read a password on the command line. Set "
				      "FORKTAIL_PASSWORD in the environment or use --password-file");
	case OPTION_PROTOCOL:
		return options_read_protocol(arg, o);
	case OPTION_TRACKING:
		o->tracking = true;
		o->broadcast = arg != NULL;
		return !arg || strcmp(arg, "bcast") == 0
			   ? 0
			   : options_refuse("--tracking: expected no value or --tracking=bcast, got \"%s\"",
					    arg);
	case OPTION_DATABASE:
		return options_read_count32(arg, "--dbnum", 0, 1000000, &o->database);
	case OPTION_CLUSTER:
		r->given.cluster = true;
		return 0;
	case OPTION_SENTINEL:
		return options_read_sentinel(arg, o, &r->given);
	case OPTION_MASTER:
		r->given.master = true;
		o->master = arg;
		return 0;
	case OPTION_BEHIND:
		return options_read_behind(arg, o);
	case OPTION_READ_FROM:
		return options_read_read_from(arg, o);
	case OPTION_WAIT:
		return options_read_wait(arg, o);
	case OPTION_RETRY:
		return options_read_time(arg, "--retry", false, &o->retry_ns);
	case OPTION_LOADING_WAIT:
		return options_read_time(arg, "--loading-wait", true, &o->loading_ns);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t read_what(int key, char *arg, struct reading *r)
{
	struct options *o = r->o;
	char error[256];
	error_t result;

	switch (key) {
	case OPTION_RATIO:
		o->mixed = true;
		return parse_ratio(arg, &o->sets, &o->gets)
			   ? 0
			   : options_refuse("--ratio: expected SETS:GETS such as 1:10, got \"%s\"", arg);
	case OPTION_COMMAND:
		return options_read_command(arg, o);
	case OPTION_COMMAND_RATIO:
		return options_read_command_ratio(arg, o);
	case OPTION_COMMANDS:
		return options_read_commands(arg, o);
	case OPTION_YCSB:
		return options_read_ycsb(arg, o);
	case OPTION_FILL:
		return options_read_count(arg, "--fill", 1, KEY_SPACE_MAX, &o->fill);
	case 'r':
		r->given.key_space = true;
		return options_read_count(arg, "-r", 1, KEY_SPACE_MAX, &o->keys);
	case OPTION_KEY_PATTERN:
	case OPTION_SEQUENTIAL: /* valkey-benchmark's name of one pattern */
		return key_distribution_parse(arg ? arg : "sequential", &o->distribution, error,
					      sizeof(error))
			   ? 0
			   : options_refuse("%s", error);
	case 'd':
		r->given.sizes = true;
		return value_sizes_parse(arg, &o->sizes, error, sizeof(error)) ? 0
									       : options_refuse("%s", error);
	case OPTION_COMPRESSIBLE:
		return options_read_percent(arg, "--compressible", &o->compressible);
	case OPTION_FIELDS:
		return options_read_count32(arg, "--fields", 1, 1000000000, &o->fields);
	case OPTION_EXPIRY:
		return options_read_expiry(arg, o);
	case OPTION_SEED:
		result = options_read_count(arg, "--seed", 0, UINT64_MAX, &o->seed);
		o->replay_seed = o->seed;
		return result;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Deliveries, replay and probes. */
static error_t read_mode(int key, char *arg, struct reading *r)
{
	struct options *o = r->o;
	char error[256];

	switch (key) {
	case OPTION_PUBSUB:
		return options_read_pubsub(arg, o);
	case OPTION_HANDOFF:
		return options_read_handoff(arg, o);
	case OPTION_CONSUMERS:
		r->given.consumers = true;
		return options_read_count32(arg, "--consumers", 1, 100000, &o->consumers);
	case OPTION_REPLAY_FORMAT:
		r->given.replay = true;
		return options_read_replay_format(arg, o);
	case OPTION_REPLAY_SPEED:
		r->given.replay = true;
		return options_read_replay_speed(arg, o);
	case OPTION_REPLAY_ALLOW:
		r->given.replay = true;
		return harm_allow(&o->replay_allowed, arg, error, sizeof(error))
			   ? 0
			   : options_refuse("%s", error);
	case OPTION_REPLAY_ORDER:
		r->given.replay = true;
		return options_read_replay_order(arg, o);
	case OPTION_REPLAY_SAMPLE:
		r->given.replay = true;
		return options_read_replay_sample(arg, o);
	case OPTION_LATENCY:
		o->mode = MODE_LATENCY;
		return 0;
	case OPTION_INTRINSIC:
		o->mode = MODE_INTRINSIC;
		return 0;
	case OPTION_PERIOD:
		return options_read_time(arg, "--period", false, &o->period_ns);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t read_how(int key, char *arg, struct reading *r)
{
	struct options *o = r->o;
	uint64_t ns = 0;
	error_t result;

	switch (key) {
	case 'c':
		r->given.connections = true;
		return options_read_count32(arg, "-c", 1, 1000000, &o->connections);
	case OPTION_IDLE:
		return options_read_count32(arg, "--idle", 0, 1000000, &o->idle);
	case OPTION_THREADS:
		return options_read_count32(arg, "--threads", 1, 1024, &o->threads);
	case 'P':
		r->given.pipeline = true;
		return options_read_count32(arg, "-P", 1, 100000, &o->pipeline);
	case OPTION_BATCH:
		r->given.batch = true;
		return options_read_count32(arg, "--batch", 1, 100000, &o->batch);
	case 'n':
		return options_read_count(arg, "-n", 1, UINT64_MAX / 2, &o->requests);
	case OPTION_DURATION:
		return options_read_time(arg, "--duration", false, &o->duration_ns);
	case OPTION_START_AT:
		return options_read_start(arg, &o->start_at_ns);
	case OPTION_WARMUP:
		return options_read_time(arg, "--warmup", true, &o->warmup_ns);
	case OPTION_RATE:
		return parse_positive(arg, 1e9, &o->rate)
			   ? 0
			   : options_refuse(
				 "--rate: expected a number of requests per second above 0, got \"%s\"", arg);
	case OPTION_ARRIVAL:
		return options_read_arrival(arg, o, &r->given);
	case OPTION_PROFILE:
		return options_read_profile(arg, o);
	case OPTION_FIND:
		return options_read_find(arg, o);
	case OPTION_DRAIN:
		r->given.drain = true;
		return options_read_time(arg, "--drain", true, &o->drain_ns);
	case OPTION_THINK:
		return options_read_time(arg, "--think", true, &o->think_ns);
	case OPTION_TIMEOUT:
		return options_read_time(arg, "--timeout", false, &o->timeout_ns);
	case OPTION_RECONNECT:
		return options_read_count32(arg, "--reconnect", 1, 1000000000, &o->reconnect_after);
	case 'k':
		result = options_read_count(arg, "-k", 0, 1, &ns);
		o->reconnect_after = result == 0 && ns == 0 ? 1 : 0;
		return result;
	case OPTION_NO_WAIT:
		o->blocking = o->no_wait = true;
		return 0;
	case OPTION_CPUS:
		return options_read_cpus(arg, o);
	case OPTION_ON_ERROR:
		r->given.on_error = true;
		return options_read_on_error(arg, o);
	case OPTION_BACKOFF:
		result = options_read_time(arg, "--backoff", false, &ns);
		o->backoff_ms = ns < 1000000 ? 1 : ns > 5000000000u ? 5000 : (uint32_t)(ns / 1000000);
		return result;
	case OPTION_MAX_ERRORS:
		return options_read_count(arg, "--max-errors", 1, UINT64_MAX / 2, &o->max_errors);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t read_report(int key, char *arg, struct reading *r)
{
	struct options *o = r->o;

	switch (key) {
	case OPTION_LOG:
		return options_read_log_mode(arg, o);
	case OPTION_CSV:
		o->csv = true;
		o->csv_path = arg;
		return 0;
	case OPTION_PERCENTILES:
		return percentiles_parse(arg, &o->wanted)
			   ? 0
			   : options_refuse(
				 "--percentiles: expected a list of up to %d such as 50,99,99.9, got \"%s\"",
				 PERCENTILES_MAX, arg);
	case OPTION_BUCKETS:
		return buckets_parse(arg ? arg : "default", &o->wanted)
			   ? 0
			   : options_refuse("--buckets: expected a list of up to %d growing times such as "
					    "1ms,10ms,100ms, got \"%s\"",
					    BUCKETS_MAX, arg);
	case OPTION_STATSD:
		return options_read_statsd(arg, o);
	case OPTION_REPEAT:
		r->given.repeat = true;
		return options_read_count32(arg, "--repeat", 1, 1000, &o->repeat);
	case OPTION_FAIL_IF:
		return options_read_limit(arg, o);
	case 'q':
		o->progress = false;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t (*const groups[])(int, char *, struct reading *) = {read_plain, read_where, read_what,
								   read_mode,  read_how,   read_report};

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	struct reading *r = state->input;
	char error[512] = "";
	error_t result;

	if (key == ARGP_KEY_ARG)
		return options_refuse("unexpected argument \"%s\". There are only options, see --help", arg);
	if (key == ARGP_KEY_END) {
		result = options_read_environment(r->o, &r->given);
		if (result)
			return result;
		options_check(r->o, &r->given, error, sizeof(error));
		return *error ? options_refuse("%s", error) : 0;
	}
	result = ARGP_ERR_UNKNOWN;
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups) && result == ARGP_ERR_UNKNOWN; i++)
		result = groups[i](key, arg, r);
	return result;
}

/* The first line of a file, without its line end. */
static char *first_line(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length = f ? getline(&line, &room, f) : -1;

	if (length < 0) {
		options_refuse("cannot read the password from %s: %s", path,
			       errno ? strerror(errno) : "the first line is empty");
		free(line);
		line = NULL;
	} else {
		line[strcspn(line, "\r\n")] = 0;
	}
	if (f)
		fclose(f);
	return line;
}

static int read_password(struct options *o)
{
	static const char *const names[] = {"FORKTAIL_PASSWORD", "REDISCLI_AUTH"};
	const char *value = NULL;

	errno = 0;
	if (o->password_file) {
		free(o->password); /* from FORKTAIL_URI */
		o->password = first_line(o->password_file);
		return o->password ? 0 : EXIT_ENVIRONMENT;
	}
	for (size_t i = 0; i < 2 && !(value && *value) && !o->password; i++)
		value = getenv(names[i]);
	if (value && *value)
		o->password = strdup(value);
	if (o->user && !o->password) {
		options_refuse("--user needs a password. Set FORKTAIL_PASSWORD or use --password-file");
		return EXIT_USAGE;
	}
	return 0;
}

int options_read(struct options *o, int argc, char **argv)
{
	static const char about[] =
	    "Put load on a Redis or memcached server, measure every request and log it.\vIn an open loop "
	    "(--rate), latency counts from the time a request was due, so a stalled server is charged for "
	    "every request that had to wait. Exit status: 0 done, 1 a --fail-if limit was exceeded, 2 wrong "
	    "usage, 3 the server, the disk or this host stopped the run.";
	const struct argp argp = {options_table, read_option, 0, about, options_foreign(), 0, 0};
	struct reading r = {.o = o};
	int status;

	*o = (struct options){
	    .connections = 50,
	    .threads = 1,
	    .pipeline = 1,
	    .key_prefix = "key:",
	    .sizes = {.kind = SIZE_FIXED, .low = 3, .high = 3},
	    .fields = 10,
	    .replay_speed = 1,
	    .replay_share = 1,
	    .drain_ns = 10000000000u,
	    .loading_ns = 60000000000u,
	    .master = "mymaster",
	    .retry_ns = 30000000000u,
	    .backoff_ms = 100,
	    .repeat = 1,
	    .progress = isatty(STDERR_FILENO),
	};
	percentiles_parse("50,90,95,99,99.9,99.99", &o->wanted);
	if (getrandom(&o->seed, sizeof(o->seed), GRND_NONBLOCK) < 0)
		o->seed = 1;
	o->seed >>= 11; /* a number that every JSON reader represents exactly */
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, &r) != 0)
		return EXIT_USAGE;
	status = read_password(o);
	return status == 0 && o->replay_path ? options_read_replay(o, &r.given) : status;
}

void options_free(struct options *o)
{
	if (o->password)
		explicit_bzero(o->password, strlen(o->password));
	free(o->password);
	o->password = NULL;
	free(o->commands_text);
	free(o->data_path);
	replay_free(o->replay);
	o->replay = NULL;
	for (uint32_t i = 0; i < o->server_count; i++)
		free(o->server_memory[i]);
	for (uint32_t i = 0; i < o->sentinel_count; i++)
		free(o->sentinel_memory[i]);
	for (uint32_t i = 0; i < o->behind_count; i++) {
		free(o->behind_names[i]);
		free(o->behind_memory[i]);
	}
	o->server_count = o->behind_count = 0;
}

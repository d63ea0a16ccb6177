/* SPDX-License-Identifier: MIT */
/* Reads command line and environment. A password on the command line is refused, because every user of the
 * host can read it there; the message names the safe ways. */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"
#include "loadgen/options.h"
#include "loadgen/protocol.h"
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

/* Options of redis-benchmark, valkey-benchmark (9.1) and memtier_benchmark (2.4) whose meaning differs here,
 * or that are missing. Names with the same meaning are aliases in options_table.c. */

#define NO_SECOND_TRY                                                                                        \
	"errors are counted, not repeated. --retry TIME is for several servers, where a request was not "    \
	"executed"
#define DATA_SET "use --commands FILE with a line \"data DATASET\""
#define EACH_SECOND "use --series FILE, which has the figures of each second"
#define FEWER_FIRST "use --profile connections:steps:10x5s,20x5s"
#define NO_FUNCTIONS "no test calls functions. Use --command 'FCALL NAME 1 __key__'"
#define NOT_RANDOM "commands are never random. Use --command, --commands or --replay"
#define ONLY_TCP "connections use TCP (-h) or a Unix socket (-s)"
#define OPEN_ALL                                                                                             \
	"all connections open before the load begins. Add them during the load with --profile "              \
	"connections:ramp:"
#define SEE_ADDRESS "use -h with an address of this family"
#define SEE_LOG "use -o FILE, which logs each request with its connection"
#define SEED "omit it. The seed is random without --seed, and connections share no sequence of keys"
#define STATSD "use --statsd HOST:PORT,PREFIX"
#define TEXT "omit it. Values are random text unless --compressible is given"
#define TLS_CIPHERS "--tls uses the ciphers of the system's OpenSSL configuration"

const struct foreign_option foreign_options[] = {
    /* redis-benchmark and valkey-benchmark */
    {"x", "use --repeat N for memtier_benchmark's runs, --command for valkey-benchmark's standard input"},
    {"I", "use --idle N for idle connections"},
    {"e", "use --on-error stop. Errors are always counted and printed"},
    {"precision", "times have three decimals in ms. Use --json FILE for ns"},
    {"enable-tracking", "use -3 --tracking, because servers push invalidations in RESP3 only"},
    {"rfr", "use --cluster --read-from with primary (no), replica (yes) or any (all)"},
    {"num-functions", NO_FUNCTIONS},
    {"num-keys-in-fcall", NO_FUNCTIONS},
    {"dataset", DATA_SET},
    {"maxdocs", "the data set of --commands is read completely. Shorten the file"},
    {"mptcp", ONLY_TCP},
    {"rdma", ONLY_TCP},
    {"tls-ciphers", TLS_CIPHERS},
    {"tls-ciphersuites", TLS_CIPHERS},
    {"fuzz", NOT_RANDOM},
    {"fuzz-mode", NOT_RANDOM},
    {"fuzz-loglevel", NOT_RANDOM},
    /* memtier_benchmark: server */
    {"S", "use -s PATH for a Unix socket"},
    {"4", SEE_ADDRESS},
    {"6", SEE_ADDRESS},
    {"ipv4", SEE_ADDRESS},
    {"ipv6", SEE_ADDRESS},
    {"tls-protocols", "--tls uses TLS 1.2 or later"},
    {"read-preference", "use --read-from with primary, replica, any or nearest"},
    {"read-preference-fallback", "--read-from replica uses the primary of a shard without replicas"},
    {"read-server", "--read-from finds the replicas itself"},
    /* requests */
    {"data-offset", "use --command 'SETRANGE __key__ OFFSET __data__'"},
    {"R", TEXT},
    {"random-data", TEXT},
    {"data-size-pattern", "sizes are drawn at random from -d LOW-HIGH"},
    {"data-import", DATA_SET},
    {"generate-keys", "use -r N, and __key__ in the file of --commands"},
    {"no-expiry", "omit it. Keys expire only with --expiry"},
    {"data-verify", "use --verify, which checks each value when it is read"},
    {"verify-only", "use --verify --ratio 0:1"},
    {"key-minimum", "keys are 0 to N-1. Use -r N"},
    {"key-maximum", "keys are 0 to N-1. Use -r N"},
    {"key-stddev", "use --key-pattern gaussian:SD, where SD is a share of the key space"},
    {"key-median", "--key-pattern gaussian is centred on the middle of the key space"},
    {"key-zipf-exp", "use --key-pattern zipf:S"},
    {"multi-key-get", "use --command 'MGET __key__ __other_key__'"},
    {"wait-ratio", "use --wait N, which waits after each write"},
    {"num-slaves", "use --wait N"},
    {"wait-timeout", "use --wait N,TIME"},
    {"command-key-pattern", "use --commands FILE with key-pattern=NAME before the command"},
    {"monitor-input", "use --replay FILE"},
    {"monitor-pattern", "--replay keeps the recorded order"},
    {"scan-incremental-iteration", "use --command 'SCAN __cursor__'"},
    {"scan-incremental-max-iterations", "--command 'SCAN __cursor__' follows the cursor to its end"},
    {"transaction", "a request is one command. Use --command 'EVAL ...' instead of MULTI and EXEC"},
    {"randomize", SEED},
    {"distinct-client-seed", SEED},
    /* connections, rate and time */
    {"clients", "memtier_benchmark counts this per thread. Use -c N, the total over all threads"},
    {"rate-limiting",
     "memtier_benchmark counts this per connection. Use --rate N, the total over all connections"},
    {"clients-start", FEWER_FIRST},
    {"clients-step", FEWER_FIRST},
    {"step-duration", FEWER_FIRST},
    {"thread-conn-start-min-jitter-micros", OPEN_ALL},
    {"thread-conn-start-max-jitter-micros", OPEN_ALL},
    {"connection-timeout", "connecting takes at most 5 s. Use --timeout TIME to limit each request"},
    {"reconnect-on-error", "use --on-error reconnect"},
    {"reconnect-backoff-factor", "use --backoff TIME for the first pause, which doubles up to 5 s"},
    {"max-reconnect-attempts", "use --max-errors N, because each failed attempt is an error"},
    {"max-retries", NO_SECOND_TRY},
    {"max-retry-queue", NO_SECOND_TRY},
    {"retry-on", NO_SECOND_TRY},
    {"retry-on-error", NO_SECOND_TRY},
    {"retry-backoff-ms", NO_SECOND_TRY},
    {"retry-backoff-factor", NO_SECOND_TRY},
    {"failed-keys-file", SEE_LOG},
    /* output */
    {"out-file", "redirect standard output. -o FILE logs the requests"},
    {"hdr-file-prefix", "use --hlog FILE, which has all operations in one file"},
    {"client-stats", SEE_LOG},
    {"D", SEE_LOG},
    {"debug", SEE_LOG},
    {"show-config", "use -o FILE, whose manifest has the command line"},
    {"hide-histogram", "omit it. The distribution is printed only with --distribution"},
    {"print-all-runs", "omit it. --repeat prints every run"},
    {"command-stats-breakdown", "omit it. Each --command has its own figures"},
    {"realtime-latencies", EACH_SECOND},
    {"latency-window", EACH_SECOND},
    {"statsd-host", STATSD},
    {"statsd-port", STATSD},
    {"statsd-prefix", STATSD},
    {"statsd-run-label", STATSD},
    {"graphite-port", EACH_SECOND},
    {0},
};

enum {
	FOREIGN_OPTIONS = sizeof(foreign_options) / sizeof(*foreign_options) - 1,
	FIRST_KEY = 256, /* above the letters; argp separates our keys from those of options_table.c */
};

static bool is_letter(const struct foreign_option *f)
{
	return !f->name[1];
}

static error_t refuse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	(void)state;
	for (int i = 0; i < FOREIGN_OPTIONS; i++) {
		const struct foreign_option *f = &foreign_options[i];

		if (key == (is_letter(f) ? f->name[0] : FIRST_KEY + i))
			return options_refuse("%s%s: %s", is_letter(f) ? "-" : "--", f->name, f->sentence);
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp_child *options_foreign(void)
{
	static struct argp_option table[FOREIGN_OPTIONS + 1];
	static const struct argp argp = {table, refuse, 0, 0, 0, 0, 0};
	static const struct argp_child children[] = {{&argp, 0, 0, 0}, {0}};

	for (int i = 0; i < FOREIGN_OPTIONS; i++) {
		const struct foreign_option *f = &foreign_options[i];

		/* An optional value, because a value in a separate word would be refused as an argument. */
		table[i] = (struct argp_option){
		    .name = is_letter(f) ? NULL : f->name,
		    .key = is_letter(f) ? f->name[0] : FIRST_KEY + i,
		    .arg = "VALUE",
		    .flags = OPTION_HIDDEN | OPTION_ARG_OPTIONAL,
		};
	}
	return children;
}

/* Options with addresses: -h, --server, -u and --sentinel accept the same forms, and a URI contains more than
 * an address. A password in a URI is refused on the command line, where every user of the host can read it.
 * $FORKTAIL_URI may contain one. */

/* Two addresses, or an address and an option, that contradict each other. */
static error_t take_login(const struct address *a, const char *what, struct options *o)
{
	if (a->user && o->user && strcmp(a->user, o->user) != 0)
		return options_refuse("%s names user %s and another option names %s. A run has one user",
				      what, a->user, o->user);
	if (a->has_database && o->database && a->database != o->database)
		return options_refuse(
		    "%s names database %u and another option names %u. A run has one database", what,
		    a->database, o->database);
	if (a->user)
		o->user = a->user;
	if (a->has_database)
		o->database = a->database;
	return 0;
}

/* Parses `text` and applies its parts besides the address. *a: the caller keeps it when 0 is returned. */
static error_t take(const char *text, const char *what, struct options *o, struct given_options *g,
		    bool secret, struct address *a)
{
	char error[512];
	error_t result = 0;

	if (!address_parse(a, text, error, sizeof(error)))
		result = options_refuse("%s: %s", what, error);
	else if (a->password && !secret)
		result = options_refuse(
		    "every user of this host can read a password on the command line. Remove it from the URI "
		    "and set FORKTAIL_PASSWORD, put the whole URI into FORKTAIL_URI, or use --password-file");
	else if (a->password && !(o->password = strdup(a->password)))
		result = options_refuse("not enough memory for a password");
	else
		result = take_login(a, what, o);
	if (result) {
		address_free(a);
		return result;
	}
	if (a->password)
		explicit_bzero((char *)a->password, strlen(a->password));
	g->says_redis |= a->scheme == ADDRESS_REDIS;
	g->says_memcached |= a->scheme == ADDRESS_MEMCACHED;
	return 0;
}

static error_t read_server(const char *text, const char *what, struct options *o, struct given_options *g,
			   bool secret)
{
	struct address a;
	error_t result;

	if (o->server_count == SERVERS_MAX)
		return options_refuse("more than %d --server", SERVERS_MAX);
	result = take(text, what, o, g, secret, &a);
	if (result)
		return result;
	o->server_memory[o->server_count] = a.memory;
	o->servers[o->server_count++] = a.server;
	return 0;
}

error_t options_read_server(const char *text, const char *what, struct options *o, struct given_options *g)
{
	return read_server(text, what, o, g, false);
}

error_t options_read_host(const char *text, struct options *o, struct given_options *g)
{
	if (strstr(text, "://"))
		return read_server(text, "-h", o, g, false);
	g->host = text;
	return 0;
}

error_t options_read_sentinel(const char *text, struct options *o, struct given_options *g)
{
	struct address a;
	error_t result;

	if (o->sentinel_count == SENTINELS_MAX)
		return options_refuse("more than %d --sentinel", SENTINELS_MAX);
	result = take(text, "--sentinel", o, g, false, &a);
	if (result)
		return result;
	if (!a.server.port)
		a.server.port = SENTINEL_PORT;
	if (a.server.tls)
		o->tls.on = true; /* the same for all servers of a deployment */
	o->sentinel_memory[o->sentinel_count] = a.memory;
	o->sentinels[o->sentinel_count++] = a.server;
	return 0;
}

/* An entry of --behind: "server0=127.0.0.1:6380", or without the name. */
static error_t read_one_behind(char *text, struct options *o)
{
	size_t name = strcspn(text, "=/:[");
	struct address a;
	char error[512];

	if (o->behind_count == BEHIND_MAX)
		return options_refuse("--behind: more than %d servers", BEHIND_MAX);
	name = text[name] == '=' ? name + 1 : 0;
	if (name == 1)
		return options_refuse("--behind: \"%s\" has no name before its =", text);
	if (!address_parse(&a, text + name, error, sizeof(error))) {
		address_free(&a);
		return options_refuse("--behind: %s", error);
	}
	if (strstr(text + name, "://")) {
		address_free(&a);
		return options_refuse(
		    "--behind: expected HOST:PORT or /PATH as in the proxy's list of servers, got a URI");
	}
	o->behind_names[o->behind_count] = name ? strndup(text, name - 1) : NULL;
	o->behind_memory[o->behind_count] = a.memory;
	o->behind[o->behind_count++] = a.server;
	return 0;
}

error_t options_read_behind(const char *text, struct options *o)
{
	char *list = strdup(text), *rest = list, *one;
	error_t result = list ? 0 : options_refuse("not enough memory for --behind");

	while (!result && (one = strsep(&rest, ",")))
		result = read_one_behind(one, o);
	free(list);
	return result;
}

error_t options_read_environment(struct options *o, struct given_options *g)
{
	const char *uri = getenv("FORKTAIL_URI");

	if (!uri || !*uri || o->server_count || o->sentinel_count || g->host || g->socket || g->port)
		return 0;
	return read_server(uri, "FORKTAIL_URI", o, g, true);
}

void options_check_schemes(struct options *o, const struct given_options *g, char *error, size_t size)
{
	const struct product *product = protocol_of(o->protocol)->product;

	if (g->says_redis && (g->says_memcached || product != &redis_product))
		snprintf(error, size, "memcached does not use a redis:// address. Choose one");
	else if (g->says_memcached && product != &memcached_product)
		o->protocol = product_protocol(&memcached_product);
}

/* The servers of the load: addresses, kind of deployment, and options that can't be combined with several
 * servers. */

/* The addresses of --server, or the one of -h, -p and -s. */
static void settle_servers(struct options *o, const struct given_options *g, char *error, size_t size)
{
	uint32_t port = g->port ? g->port : protocol_of(o->protocol)->product->port;

	if (g->socket && strlen(g->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(error, size, "-s: longer than the path of a Unix socket can be (%zu bytes)",
			 sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return;
	}
	if (o->server_count && (g->host || g->socket)) {
		snprintf(error, size, "-h and -s are mutually exclusive with --server");
		return;
	}
	if (o->sentinel_count && (o->server_count || g->host || g->socket || g->port)) {
		snprintf(error, size, "--sentinel finds the server. Remove --server, -h, -p and -s");
		return;
	}
	if (!o->server_count)
		o->servers[o->server_count++] =
		    (struct server_address){.host = g->host ? g->host : "127.0.0.1", .socket = g->socket};
	for (uint32_t i = 0; i < o->server_count; i++)
		if (!o->servers[i].port)
			o->servers[i].port = port;
}

static void settle_deployment(struct options *o, const struct given_options *g, char *error, size_t size)
{
	const struct product *product = protocol_of(o->protocol)->product;

	o->deployment = g->cluster		       ? DEPLOYMENT_CLUSTER
			: o->sentinel_count	       ? DEPLOYMENT_PRIMARY
			: o->server_count > 1	       ? DEPLOYMENT_RING
			: o->read_from != READ_PRIMARY ? DEPLOYMENT_PRIMARY
						       : DEPLOYMENT_SINGLE;
	if (!product->replicas &&
	    (g->cluster || o->sentinel_count || o->read_from != READ_PRIMARY || o->wait_replicas))
		snprintf(error, size,
			 "--cluster, --sentinel, --read-from and --wait need Redis; %s has no replicas",
			 product->name);
	else if (g->cluster && o->sentinel_count)
		snprintf(
		    error, size,
		    "--cluster and --sentinel are mutually exclusive: a cluster fails over without Sentinel");
	else if (g->master && !o->sentinel_count)
		snprintf(error, size, "--master needs --sentinel");
	else if (o->deployment == DEPLOYMENT_RING && o->read_from != READ_PRIMARY)
		snprintf(error, size,
			 "--read-from needs --cluster, --sentinel or one --server: several --server are not "
			 "replicas of each other");
	else if (g->cluster && o->database)
		snprintf(error, size, "a cluster has database 0 only. Remove --dbnum");
}

/* Options that concern one connection or one server. */
static void check_several(const struct options *o, const struct given_options *g, char *error, size_t size)
{
	const struct {
		bool given;
		const char *name;
	} all[] = {
	    {o->blocking, o->no_wait ? "--no-wait" : "--blocking"},
	    {o->think_ns > 0, "--think"},
	    {o->reconnect_after > 0, "--reconnect and -k 0"},
	    {o->split, "--key-split"},
	    {o->has_connections_profile, "a profile of connections"},
	    {g->batch, "--batch"},
	    {o->idle > 0, "--idle"},
	    {o->ycsb == 'E', "--ycsb E, whose scans read keys of all servers,"},
	    {o->mode == MODE_INTRINSIC, "--intrinsic"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !*error; i++)
		if (all[i].given)
			snprintf(error, size, "%s does not work with several servers yet", all[i].name);
}

static void check_behind(struct options *o, char *error, size_t size)
{
	char text[300], other[300];

	for (uint32_t i = 0; i < o->behind_count; i++) {
		if (!o->behind[i].port)
			o->behind[i].port = protocol_of(o->protocol)->product->port;
		address_text(&o->behind[i], text, sizeof(text));
		for (uint32_t k = 0; k < i && !*error; k++) {
			address_text(&o->behind[k], other, sizeof(other));
			if (strcmp(text, other) == 0)
				snprintf(error, size, "--behind names %.200s twice", text);
		}
	}
	if (*error || !o->behind_count)
		return;
	if ((o->deployment != DEPLOYMENT_SINGLE && o->deployment != DEPLOYMENT_RING) || o->wait_replicas)
		snprintf(error, size,
			 "--behind lists the servers of a proxy. Remove --cluster, --sentinel, --read-from "
			 "and --wait");
	else if (o->replay_path || o->delivery != DELIVERY_NONE || o->mode != MODE_LOAD)
		snprintf(error, size,
			 "--behind needs a workload whose keys it knows. Remove --replay, --pubsub, "
			 "--handoff and probes");
	else if (!o->log_path)
		snprintf(error, size, "--behind is written to the log. Name the log with -o");
}

void options_check_servers(struct options *o, const struct given_options *g, char *error, size_t size)
{
	settle_servers(o, g, error, size);
	if (!*error)
		settle_deployment(o, g, error, size);
	if (!*error)
		check_behind(o, error, size);
	if (!*error && o->wait_replicas && o->ycsb)
		snprintf(error, size, "--wait does not work with --ycsb. Remove one");
	if (o->deployment == DEPLOYMENT_SINGLE || *error)
		return;
	check_several(o, g, error, size);
	/* Connections are reopened to a node that returns, or to its successor. */
	if (!g->on_error)
		o->on_error = ON_ERROR_RECONNECT;
}

/* TLS may be enabled for all servers (--tls) or by the address of one, so related options are checked when
 * all addresses are known. */

bool options_tls(const struct options *o)
{
	for (uint32_t i = 0; i < o->server_count; i++)
		if (o->servers[i].tls)
			return true;
	return o->tls.on;
}

const char *options_tls_word(const struct options *o)
{
	return !options_tls(o) || o->mode == MODE_INTRINSIC ? "none"
	       : o->tls.insecure			    ? "not verified"
							    : "verified";
}

void options_check_tls(struct options *o, char *error, size_t size)
{
	struct tls_options *t = &o->tls;
	bool any;

	for (uint32_t i = 0; i < o->server_count; i++)
		o->servers[i].tls |= t->on;
	any = options_tls(o);
	/* Servers that a server names use the same TLS setting. */
	if (any && o->server_count == 1)
		t->on = true;
	if (!any && (t->cacert || t->cacertdir || t->cert || t->key || t->sni || t->insecure))
		snprintf(error, size,
			 "--cacert, --cacertdir, --cert, --key, --sni and --insecure need --tls");
	else if (any && o->delivery != DELIVERY_NONE)
		snprintf(error, size, "--pubsub and --handoff do not support TLS. Remove --tls");
	else if (!t->cert != !t->key)
		snprintf(error, size, "--cert and --key need each other: a certificate and its private key");
	else if (t->insecure && (t->cacert || t->cacertdir))
		snprintf(error, size,
			 "--insecure and --cacert are mutually exclusive: --insecure verifies nothing");
	for (uint32_t i = 0; any && i < o->server_count && !*error; i++)
		if (o->servers[i].socket && o->servers[i].tls && !t->sni && !t->insecure)
			snprintf(error, size,
				 "a Unix socket has no host name to verify. Name the one in the certificate "
				 "with --sni");
}

/* The file of --commands: a command per line, with what belongs to it in front.
 *
 *   # a comment
 *   data products.csv
 *   9 key-pattern=zipf:1.1 key-space=100000 HGETALL __key__
 *   1 FT.SEARCH products "@name:__field:name__"
 *
 * A number is the command's weight (1 without). `data` names a data set, relative to the file. */

enum { FILE_BYTES_MAX = 1 << 20 };

/* The next word of a line, ended with a 0; *line moves behind it. */
static char *take_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t length = strcspn(word, " \t");

	*line = word + length;
	if (**line)
		*(*line)++ = 0;
	*line += strspn(*line, " \t");
	return word;
}

static bool is_number(const char *word)
{
	size_t digits = strspn(word, "0123456789");

	return digits > 0 && (word[digits] == ' ' || word[digits] == '\t' || !word[digits]);
}

/* What is in front of a command: a weight, key-pattern=, key-space=. */
static bool take_front(char **line, struct custom_command *c, char *why, size_t size)
{
	uint64_t weight;
	char *word;

	*c = (struct custom_command){.weight = 1};
	if (is_number(*line)) {
		word = take_word(line);
		if (!parse_count(word, 1, 1000000, &weight)) {
			snprintf(why, size, "expected a weight from 1 to 1000000, got \"%s\"", word);
			return false;
		}
		c->weight = (uint32_t)weight;
	}
	for (;;) {
		if (strncmp(*line, "key-pattern=", 12) == 0) {
			word = take_word(line) + 12;
			c->has_distribution = true;
			if (!key_distribution_parse(word, &c->distribution, why, size))
				return false;
		} else if (strncmp(*line, "key-space=", 10) == 0) {
			word = take_word(line) + 10;
			if (!parse_count(word, 1, KEY_SPACE_MAX, &c->keys)) {
				snprintf(why, size, "key-space: expected a number of keys, got \"%s\"", word);
				return false;
			}
		} else {
			break;
		}
	}
	if (!**line)
		snprintf(why, size, "there is no command in this line");
	else
		c->text = *line;
	return **line != 0;
}

/* `name`, relative to the folder of `beside`. NULL: no memory. */
static char *path_beside(const char *beside, const char *name)
{
	const char *slash = *name == '/' ? NULL : strrchr(beside, '/');
	size_t folder = slash ? (size_t)(slash - beside) + 1 : 0, size = folder + strlen(name) + 1;
	char *path = malloc(size);

	if (path)
		snprintf(path, size, "%.*s%s", (int)folder, beside, name);
	return path;
}

static bool take_line(char *line, const char *path, struct options *o, char *why, size_t size)
{
	char *end = line + strlen(line);
	struct command parsed;

	while (end > line && isspace((unsigned char)end[-1]))
		*--end = 0;
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return true;
	if (strncmp(line, "data ", 5) == 0) {
		take_word(&line);
		if (o->data_path)
			snprintf(why, size, "there are two data sets");
		else if (!(o->data_path = path_beside(path, line)))
			snprintf(why, size, "not enough memory");
		return !*why;
	}
	if (o->command_count == COMMANDS_MAX) {
		snprintf(why, size, "there are more than %d commands", COMMANDS_MAX);
		return false;
	}
	if (!take_front(&line, &o->commands[o->command_count++], why, size) ||
	    !command_parse(&parsed, line, why, size))
		return false;
	command_free(&parsed);
	return true;
}

error_t options_read_commands(const char *path, struct options *o)
{
	char why[256] = "", *rest, *line;
	uint32_t before = o->command_count, number = 0;
	struct bytes text = {0};
	int rc;

	if (o->commands_text)
		return options_refuse("--commands: only one file can be given");
	rc = bytes_add_file(&text, path, FILE_BYTES_MAX);
	if (rc == 0)
		rc = bytes_reserve(&text, 1) ? 0 : -ENOMEM;
	o->commands_text = rest = text.at;
	if (rc)
		return options_refuse("--commands: cannot read %s: %s", path, strerror(-rc));
	text.at[text.length] = 0;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		if (!take_line(line, path, o, why, sizeof(why)))
			return options_refuse("%s:%u: %s", path, number, why);
	}
	return o->command_count > before ? 0 : options_refuse("%s has no commands", path);
}

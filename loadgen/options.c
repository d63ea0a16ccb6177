/* SPDX-License-Identifier: MIT */
/* Command line and environment. Letters that redis-benchmark has keep its meaning here; long names are
 * memtier_benchmark's where it has the same thing. A password never comes from the command line, where
 * every user of the host can read it: -a is refused with the way that works. */
#include "options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "options_values.h"
#include "parse.h"
#include "suite.h"

enum {
	OPTION_SERVER = 256,
	OPTION_TLS,
	OPTION_CACERT,
	OPTION_CACERTDIR,
	OPTION_CERT,
	OPTION_KEY,
	OPTION_SNI,
	OPTION_INSECURE,
	OPTION_USER,
	OPTION_PASSWORD_FILE,
	OPTION_DATABASE,
	OPTION_PROTOCOL,
	OPTION_TRACKING,
	OPTION_META_QUIET,
	OPTION_LOADING_WAIT,
	OPTION_CLUSTER,
	OPTION_SENTINEL,
	OPTION_MASTER,
	OPTION_READ_FROM,
	OPTION_WAIT,
	OPTION_RETRY,
	OPTION_RATIO,
	OPTION_COMMAND,
	OPTION_COMMAND_RATIO,
	OPTION_YCSB,
	OPTION_KEY_PATTERN,
	OPTION_KEY_SPLIT,
	OPTION_KEY_PREFIX,
	OPTION_KEY_LENGTH,
	OPTION_COMPRESSIBLE,
	OPTION_FIELDS,
	OPTION_EXPIRY,
	OPTION_VERIFY,
	OPTION_FILL,
	OPTION_SEED,
	OPTION_REPLAY,
	OPTION_REPLAY_FORMAT,
	OPTION_REPLAY_SPEED,
	OPTION_REPLAY_ALLOW,
	OPTION_PUBSUB,
	OPTION_HANDOFF,
	OPTION_CONSUMERS,
	OPTION_LATENCY,
	OPTION_INTRINSIC,
	OPTION_PERIOD,
	OPTION_IDLE,
	OPTION_THREADS,
	OPTION_BATCH,
	OPTION_DURATION,
	OPTION_WARMUP,
	OPTION_RATE,
	OPTION_ARRIVAL,
	OPTION_PROFILE,
	OPTION_DRAIN,
	OPTION_THINK,
	OPTION_TIMEOUT,
	OPTION_RECONNECT,
	OPTION_BLOCKING,
	OPTION_NO_WAIT,
	OPTION_CPUS,
	OPTION_ON_ERROR,
	OPTION_BACKOFF,
	OPTION_MAX_ERRORS,
	OPTION_LOG,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_HLOG,
	OPTION_SERIES,
	OPTION_PERCENTILES,
	OPTION_BUCKETS,
	OPTION_DISTRIBUTION,
	OPTION_REPEAT,
	OPTION_FAIL_IF,
	OPTION_NO_OBSERVER,
	OPTION_PROGRESS,
};

static const struct argp_option table[] = {
    {0, 0, 0, 0, "The server:", 1},
    {"host", 'h', "HOST", 0, "Host name or address, IPv4 or IPv6 (127.0.0.1)", 0},
    {"port", 'p', "PORT", 0, "TCP port (6379, memcached 11211)", 0},
    {"socket", 's', "PATH", 0, "Unix socket, in place of host and port", 0},
    {"unix-socket", 0, 0, OPTION_ALIAS, 0, 0},
    {"server", OPTION_SERVER, "ADDRESS", 0,
     "HOST, HOST:PORT, [IPV6]:PORT, /PATH of a socket or a URI; may be repeated", 0},
    {"uri", 'u', "URI", 0,
     "redis://[USER@]HOST[:PORT][/DB], rediss:// (TLS), unix:///PATH[?db=N] or memcached://HOST[:PORT]; else "
     "$FORKTAIL_URI",
     0},
    {"protocol", OPTION_PROTOCOL, "NAME", 0, "redis, memcache_text, memcache_binary or memcache_meta (redis)",
     0},
    {"resp3", '3', 0, 0, "Speak RESP3 (HELLO 3)", 0},
    {"tracking", OPTION_TRACKING, "bcast", OPTION_ARG_OPTIONAL,
     "With RESP3: have the server push invalidations of the keys that are read (or of all), and count them",
     0},
    {"meta-quiet", OPTION_META_QUIET, 0, 0,
     "Of memcache_meta: reads that miss aren't answered, and mn ends a batch", 0},
    {"tls", OPTION_TLS, 0, 0, "Speak TLS, and verify the server's certificate", 0},
    {"cacert", OPTION_CACERT, "FILE", 0, "Trust the CAs in FILE in place of the system's", 0},
    {"cacertdir", OPTION_CACERTDIR, "DIR", 0, "Trust the CAs in DIR (hashed names)", 0},
    {"cert", OPTION_CERT, "FILE", 0, "Our own certificate, for a server that wants one", 0},
    {"key", OPTION_KEY, "FILE", 0, "The private key of --cert", 0},
    {"sni", OPTION_SNI, "NAME", 0, "Name to ask for and to find in the certificate (the host)", 0},
    {"insecure", OPTION_INSECURE, 0, 0, "Don't verify the certificate; the output says so", 0},
    {"user", OPTION_USER, "NAME", 0, "ACL user to log in as (the default user)", 0},
    {"password-file", OPTION_PASSWORD_FILE, "FILE", 0,
     "Read the password from FILE's first line; else it is $FORKTAIL_PASSWORD or $REDISCLI_AUTH", 0},
    {"dbnum", OPTION_DATABASE, "N", 0, "Database number (0)", 0},
    {"select-db", 0, 0, OPTION_ALIAS, 0, 0},
    {"loading-wait", OPTION_LOADING_WAIT, "TIME", 0,
     "How long to wait for a server that loads its data (60s)", 0},
    {"cluster", OPTION_CLUSTER, 0, 0, "The servers are nodes of a Redis Cluster; one that answers is enough",
     0},
    {"sentinel", OPTION_SENTINEL, "ADDRESS", 0,
     "Ask this Sentinel where the primary is (port 26379); may be repeated", 0},
    {"master", OPTION_MASTER, "NAME", 0, "The primary's name among Sentinels (mymaster)", 0},
    {"read-from", OPTION_READ_FROM, "WHO", 0,
     "Who answers commands that only read: primary, replica, any, nearest (primary)", 0},
    {"wait", OPTION_WAIT, "N[,TIME]", 0,
     "After each write, WAIT for N replicas to have it, TIME at most (1s); both are one request", 0},
    {"retry", OPTION_RETRY, "TIME", 0,
     "With several servers: how long a request that finds no server is kept and sent again (30s)", 0},
    {0, 0, 0, 0, "What is sent:", 2},
    {"ratio", OPTION_RATIO, "SETS:GETS", 0, "Mix SET and GET at random in this proportion (1:10)", 0},
    {"tests", 't', "LIST", 0, "Run redis-benchmark's tests, one after the other: set,get,lrange_100 or all",
     0},
    {"command", OPTION_COMMAND, "TEXT", 0,
     "Send this command, with placeholders __key__, __data__, __int__, __field__, ...; may be repeated", 0},
    {"command-ratio", OPTION_COMMAND_RATIO, "N", 0, "Weight of the --command before it (1)", 0},
    {"ycsb", OPTION_YCSB, "LETTER", 0, "YCSB core workload A to F; load: its load phase; records are -r", 0},
    {"fill", OPTION_FILL, "N", 0, "Set the first N keys in order, each once, and end", 0},
    {"key-space", 'r', "N", 0, "Keys key:000000000000 to N-1 (one fixed key)", 0},
    {"key-pattern", OPTION_KEY_PATTERN, "NAME", 0,
     "uniform, sequential, zipf[:S], zipf-scattered[:S], gaussian[:SD], latest[:S], hot:X:Y (uniform)", 0},
    {"key-split", OPTION_KEY_SPLIT, 0, 0, "Each connection has a part of the keys to itself", 0},
    {"key-prefix", OPTION_KEY_PREFIX, "TEXT", 0, "What names of keys begin with (key:)", 0},
    {"key-length", OPTION_KEY_LENGTH, "BYTES[-MAX]", 0, "Length of names, up to 65536 (prefix and 12 digits)",
     0},
    {"data-size", 'd', "SIZE", 0,
     "Values: BYTES, LOW-HIGH, SIZE:WEIGHT,..., lognormal:MEDIAN,SIGMA[,MAX] (3)", 0},
    {"data-size-range", 0, 0, OPTION_ALIAS, 0, 0},
    {"data-size-list", 0, 0, OPTION_ALIAS, 0, 0},
    {"compressible", OPTION_COMPRESSIBLE, "PERCENT", 0, "Share of a value that is one letter (0)", 0},
    {"fields", OPTION_FIELDS, "N", 0, "Fields that __field__ is drawn from (10)", 0},
    {"expiry", OPTION_EXPIRY, "SECONDS[-MAX]", 0, "Keys that are set expire after this", 0},
    {"expiry-range", 0, 0, OPTION_ALIAS, 0, 0},
    {"verify", OPTION_VERIFY, 0, 0, "Values follow from their keys, and GETs check every byte", 0},
    {"seed", OPTION_SEED, "N", 0, "Repeat a run's keys, operations and arrivals (random)", 0},
    {"replay", OPTION_REPLAY, "FILE", 0,
     "Send what was recorded: a MONITOR capture, an append-only file, a CSV", 0},
    {"replay-format", OPTION_REPLAY_FORMAT, "NAME", 0, "monitor, aof or csv (told by the content)", 0},
    {"replay-speed", OPTION_REPLAY_SPEED, "FACTOR", 0,
     "original, a factor such as 2 or 0.5, or max: as fast as possible (original)", 0},
    {"replay-allow", OPTION_REPLAY_ALLOW, "LIST", 0,
     "Send these although they can harm: flushall,config or all (left out and counted)", 0},
    {"pubsub", OPTION_PUBSUB, "SUBSCRIBERS[:CHANNELS]", 0,
     "PUBLISH to channels, and time each delivery to each subscriber (1 channel)", 0},
    {"handoff", OPTION_HANDOFF, "KIND[:QUEUES]", 0,
     "list: RPUSH and BLPOP; stream: XADD and XREAD; group: XADD and XREADGROUP; each hand-over is timed", 0},
    {"consumers", OPTION_CONSUMERS, "N", 0, "Of --handoff: connections that wait for elements (one a queue)",
     0},
    {"latency", OPTION_LATENCY, 0, 0, "Only probe: PING on one connection, 100 a second", 0},
    {"intrinsic", OPTION_INTRINSIC, 0, 0, "No server: how late this host wakes a thread", 0},
    {"period", OPTION_PERIOD, "TIME", 0, "Of --intrinsic: a wake-up every TIME (1ms)", 0},
    {0, 0, 0, 0, "How it is sent:", 3},
    {"connections", 'c', "N", 0, "Connections over all threads (50)", 0},
    {"idle", OPTION_IDLE, "N", 0, "Further connections that send nothing (0)", 0},
    {"threads", OPTION_THREADS, "N", 0, "Load threads (1)", 0},
    {"pipeline", 'P', "N", 0, "Requests on their way per connection (1; 64 for --fill)", 0},
    {"batch", OPTION_BATCH, "N", 0, "Requests per write, at most the pipeline's (all of it)", 0},
    {"requests", 'n', "N", 0, "Requests in all (100000, or no limit with --duration)", 0},
    {"duration", OPTION_DURATION, "TIME", 0, "How long to send: 60, 500ms, 2m, 1h", 0},
    {"test-time", 0, 0, OPTION_ALIAS, 0, 0},
    {"loop", 'l', 0, 0, "Until Ctrl-C", 0},
    {"warmup", OPTION_WARMUP, "TIME", 0, "What falls due in this time is left out of the figures", 0},
    {"rate", OPTION_RATE, "N", 0, "Open loop: N requests per second fall due, whatever the server does", 0},
    {"arrival", OPTION_ARRIVAL, "KIND", 0, "Of an open loop: constant or poisson (constant)", 0},
    {"profile", OPTION_PROFILE, "SHAPE", 0,
     "Rate (or connections:) over time: steps:1000x10s,2000x10s ramp:1000-9000x60s square:LOW,HIGH,PERIOD "
     "sine:LOW,HIGH,PERIOD",
     0},
    {"drain", OPTION_DRAIN, "TIME", 0, "How long to await answers after the duration (10s)", 0},
    {"think", OPTION_THINK, "TIME", 0, "Closed loop: pause of a connection between answer and request", 0},
    {"timeout", OPTION_TIMEOUT, "TIME", 0,
     "A request older than this has failed, and its connection is closed", 0},
    {"reconnect", OPTION_RECONNECT, "N", 0, "A new connection every N requests", 0},
    {"reconnect-interval", 0, 0, OPTION_ALIAS, 0, 0},
    {"keep-alive", 'k', "0|1", 0, "0: a new connection for every request (1)", 0},
    {"blocking", OPTION_BLOCKING, 0, 0, "A thread per connection, write and read, no event loop", 0},
    {"no-wait", OPTION_NO_WAIT, 0, 0, "Like --blocking, but answers are read later, -P of them at once", 0},
    {"cpus", OPTION_CPUS, "LIST", 0, "Pin load threads to these CPUs in turn: 0,2-3", 0},
    {"on-error", OPTION_ON_ERROR, "POLICY", 0, "continue, reconnect or stop (continue)", 0},
    {"backoff", OPTION_BACKOFF, "TIME", 0, "First pause before connecting again; doubles up to 5s (100ms)",
     0},
    {"max-errors", OPTION_MAX_ERRORS, "N", 0, "End the run at the Nth error", 0},
    {0, 0, 0, 0, "What is reported:", 4},
    {"output", 'o', "FILE", 0, "Log every request to FILE, a recording for forktail explain", 0},
    {"log", OPTION_LOG, "WHAT", 0,
     "all, or slow:TIME: only requests that took that long, and a histogram (all)", 0},
    {"json", OPTION_JSON, "FILE", 0, "Write the closing figures to FILE as JSON", 0},
    {"json-out-file", 0, 0, OPTION_ALIAS, 0, 0},
    {"csv", OPTION_CSV, "FILE", OPTION_ARG_OPTIONAL,
     "redis-benchmark's CSV, to FILE or in place of the table", 0},
    {"hlog", OPTION_HLOG, "FILE", 0,
     "Write HdrHistogram's interval log (V2), a line per second and operation", 0},
    {"series", OPTION_SERIES, "FILE", 0, "Write figures of each second to FILE as CSV", 0},
    {"percentiles", OPTION_PERCENTILES, "LIST", 0, "Percentiles to report (50,90,95,99,99.9,99.99)", 0},
    {"print-percentiles", 0, 0, OPTION_ALIAS, 0, 0},
    {"buckets", OPTION_BUCKETS, "LIST", OPTION_ARG_OPTIONAL,
     "How many requests took up to 25ms,50ms,100ms,200ms,300ms,400ms,500ms and more, or up to LIST", 0},
    {"distribution", OPTION_DISTRIBUTION, 0, 0, "Print the distribution of latencies", 0},
    {"repeat", OPTION_REPEAT, "N", 0, "Run N times and say best, worst, mean and spread (1)", 0},
    {"run-count", 0, 0, OPTION_ALIAS, 0, 0},
    {"fail-if", OPTION_FAIL_IF, "LIMIT", 0,
     "Exit with 1 if so: 'p99>2ms', 'GET.max>1s', 'errors>0.1%'; may be repeated", 0},
    {"no-observer", OPTION_NO_OBSERVER, 0, 0,
     "Don't ask the server for INFO, SLOWLOG and LATENCY each second", 0},
    {"progress", OPTION_PROGRESS, 0, 0,
     "A line of progress each second, on a terminal or not (on a terminal)", 0},
    {"quiet", 'q', 0, 0, "No line of progress", 0},
    {"password", 'a', "PASSWORD", OPTION_HIDDEN, 0, 0},
    {0},
};

const char *argp_program_version = "forktail-load " FORKTAIL_VERSION;

struct reading {
	struct options *o;
	struct given given;
};

static error_t read_where(int key, char *arg, struct reading *r);
static error_t read_what(int key, char *arg, struct reading *r);
static error_t read_how(int key, char *arg, struct reading *r);
static error_t read_report(int key, char *arg, struct reading *r);

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	struct reading *r = state->input;
	char error[512] = "";
	error_t result;

	if (key == ARGP_KEY_ARG)
		return options_refuse("what is \"%s\"? Everything is said with options; see --help", arg);
	if (key == ARGP_KEY_END) {
		result = options_read_environment(r->o, &r->given);
		if (result)
			return result;
		options_check(r->o, &r->given, error, sizeof(error));
		return *error ? options_refuse("%s", error) : 0;
	}
	result = read_where(key, arg, r);
	if (result == ARGP_ERR_UNKNOWN)
		result = read_what(key, arg, r);
	if (result == ARGP_ERR_UNKNOWN)
		result = read_how(key, arg, r);
	return result == ARGP_ERR_UNKNOWN ? read_report(key, arg, r) : result;
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
		return options_refuse(
		    "a password on the command line can be read by every user of this host; set "
		    "FORKTAIL_PASSWORD in the environment or use --password-file");
	case OPTION_PROTOCOL:
		return options_read_protocol(arg, o);
	case '3':
		o->resp3 = true;
		return 0;
	case OPTION_TRACKING:
		o->tracking = true;
		o->broadcast = arg != NULL;
		return !arg || strcmp(arg, "bcast") == 0
			   ? 0
			   : options_refuse("--tracking is that alone, or --tracking=bcast, not \"%s\"", arg);
	case OPTION_META_QUIET:
		o->meta_quiet = true;
		return 0;
	case OPTION_TLS:
		o->tls.on = true;
		return 0;
	case OPTION_CACERT:
		o->tls.cacert = arg;
		return 0;
	case OPTION_CACERTDIR:
		o->tls.cacertdir = arg;
		return 0;
	case OPTION_CERT:
		o->tls.cert = arg;
		return 0;
	case OPTION_KEY:
		o->tls.key = arg;
		return 0;
	case OPTION_SNI:
		o->tls.sni = arg;
		return 0;
	case OPTION_INSECURE:
		o->tls.insecure = true;
		return 0;
	case OPTION_USER:
		o->user = arg;
		return 0;
	case OPTION_PASSWORD_FILE:
		o->password_file = arg;
		return 0;
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

	switch (key) {
	case OPTION_RATIO:
		o->mixed = true;
		return parse_ratio(arg, &o->sets, &o->gets)
			   ? 0
			   : options_refuse("--ratio is SETS:GETS such as 1:10, not \"%s\"", arg);
	case 't':
		o->tests = arg;
		return 0;
	case OPTION_COMMAND:
		return options_read_command(arg, o);
	case OPTION_COMMAND_RATIO:
		return options_read_command_ratio(arg, o);
	case OPTION_YCSB:
		return options_read_ycsb(arg, o);
	case OPTION_FILL:
		return options_read_count(arg, "--fill", 1, KEY_SPACE_MAX, &o->fill);
	case 'r':
		r->given.key_space = true;
		return options_read_count(arg, "-r", 1, KEY_SPACE_MAX, &o->keys);
	case OPTION_KEY_PATTERN:
		return key_distribution_parse(arg, &o->distribution, error, sizeof(error))
			   ? 0
			   : options_refuse("%s", error);
	case OPTION_KEY_SPLIT:
		o->split = true;
		return 0;
	case OPTION_KEY_PREFIX:
		o->key_prefix = arg;
		return 0;
	case OPTION_KEY_LENGTH:
		o->key_length = arg;
		return 0;
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
	case OPTION_VERIFY:
		o->verify = true;
		return 0;
	case OPTION_SEED:
		return options_read_count(arg, "--seed", 0, UINT64_MAX, &o->seed);
	case OPTION_PUBSUB:
		return options_read_pubsub(arg, o);
	case OPTION_HANDOFF:
		return options_read_handoff(arg, o);
	case OPTION_CONSUMERS:
		r->given.consumers = true;
		return options_read_count32(arg, "--consumers", 1, 100000, &o->consumers);
	case OPTION_REPLAY:
		o->replay_path = arg;
		return 0;
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
	case 'l':
		o->loop = true;
		return 0;
	case OPTION_DURATION:
		return options_read_time(arg, "--duration", false, &o->duration_ns);
	case OPTION_WARMUP:
		return options_read_time(arg, "--warmup", true, &o->warmup_ns);
	case OPTION_RATE:
		return parse_positive(arg, 1e9, &o->rate)
			   ? 0
			   : options_refuse("--rate is a number of requests per second above 0, not \"%s\"",
					    arg);
	case OPTION_ARRIVAL:
		return options_read_arrival(arg, o, &r->given);
	case OPTION_PROFILE:
		return options_read_profile(arg, o);
	case OPTION_DRAIN:
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
	case OPTION_BLOCKING:
		o->blocking = true;
		return 0;
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
	case 'o':
		o->log_path = arg;
		return 0;
	case OPTION_LOG:
		return options_read_log_mode(arg, o);
	case OPTION_JSON:
		o->json_path = arg;
		return 0;
	case OPTION_CSV:
		o->csv = true;
		o->csv_path = arg;
		return 0;
	case OPTION_HLOG:
		o->hlog_path = arg;
		return 0;
	case OPTION_SERIES:
		o->series_path = arg;
		return 0;
	case OPTION_PERCENTILES:
		return percentiles_parse(arg, &o->wanted)
			   ? 0
			   : options_refuse(
				 "--percentiles is a list of up to %d such as 50,99,99.9, not \"%s\"",
				 PERCENTILES_MAX, arg);
	case OPTION_BUCKETS:
		return buckets_parse(arg ? arg : "default", &o->wanted)
			   ? 0
			   : options_refuse(
				 "--buckets is a list of up to %d growing times such as 1ms,10ms,100ms, "
				 "not \"%s\"",
				 BUCKETS_MAX, arg);
	case OPTION_DISTRIBUTION:
		o->distribution_table = true;
		return 0;
	case OPTION_REPEAT:
		return options_read_count32(arg, "--repeat", 1, 1000, &o->repeat);
	case OPTION_FAIL_IF:
		return options_read_limit(arg, o);
	case OPTION_NO_OBSERVER:
		o->no_observer = true;
		return 0;
	case OPTION_PROGRESS:
		o->progress = true;
		return 0;
	case 'q':
		o->progress = false;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The first line of a file, without its end. */
static char *first_line(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length = f ? getline(&line, &room, f) : -1;

	if (length < 0) {
		options_refuse("can't read the password from %s: %s", path,
			       errno ? strerror(errno) : "it is empty");
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
		free(o->password); /* FORKTAIL_URI's */
		o->password = first_line(o->password_file);
		return o->password ? 0 : EXIT_ENVIRONMENT;
	}
	for (size_t i = 0; i < 2 && !(value && *value) && !o->password; i++)
		value = getenv(names[i]);
	if (value && *value)
		o->password = strdup(value);
	if (o->user && !o->password) {
		options_refuse("--user needs a password: set FORKTAIL_PASSWORD or use --password-file");
		return EXIT_USAGE;
	}
	return 0;
}

int options_read(struct options *o, int argc, char **argv)
{
	static const char about[] =
	    "Puts load on a Redis or memcached server, times every request and logs it.\v"
	    "Latency of an open loop (--rate) counts from when a request was due, so a server that stalls is "
	    "charged for every request that had to wait. Exit status: 0 done, 1 a --fail-if came true, 2 "
	    "wrong "
	    "usage, 3 the server, the disk or this host didn't let it finish.";
	const struct argp argp = {table, read_option, 0, about, 0, 0, 0};
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
	o->seed >>= 11; /* a number that every JSON reader keeps */
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
	replay_free(o->replay);
	o->replay = NULL;
	for (uint32_t i = 0; i < o->server_count; i++)
		free(o->server_memory[i]);
	for (uint32_t i = 0; i < o->sentinel_count; i++)
		free(o->sentinel_memory[i]);
	o->server_count = 0;
}

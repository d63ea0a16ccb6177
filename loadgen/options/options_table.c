/* SPDX-License-Identifier: MIT */
/* One row per option: its name, letter and argument, what --help says, where it is stored, its range and
 * default; before them, the readers of those that are more than a number, a text or a time. Letters that
 * redis-benchmark uses keep their meaning here; long names follow memtier_benchmark where it has the same
 * option. options_read.c has the names that these programs have and this one lacks. */
#include "options_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { STATSD_PORT = 8125 };

static error_t read_start(const char *text, struct options *o)
{
	return option_start_at(text, &o->start_at_ns);
}

/* "1", "1,500ms" */
static error_t read_wait(const char *text, struct options *o)
{
	const char *comma = strchr(text, ',');
	char number[16];
	uint64_t ns = 1000000000;
	error_t result;

	snprintf(number, sizeof(number), "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
	result = option_count32(number, "--wait", 1, 1000, &o->wait_replicas);
	if (result == 0 && comma)
		result = option_time(comma + 1, "the time of --wait", false, &ns);
	o->wait_ms = ns < 1000000 ? 1 : ns > 3600000000000u ? 3600000 : (uint32_t)(ns / 1000000);
	return result;
}

static error_t read_protocol(const char *text, struct options *o)
{
	const char *names[PROTOCOLS];
	error_t result;
	int which = 0;

	for (int i = 0; i < PROTOCOLS; i++)
		names[i] = protocols[i]->name;
	result = option_name(text, "--protocol", names, PROTOCOLS, 0, &which);
	o->protocol = (enum protocol_id)which;
	return result;
}

static error_t read_ycsb(const char *text, struct options *o)
{
	if (strcmp(text, "load") == 0)
		o->ycsb = 'L';
	else if (text[0] && !text[1] && ycsb_find(text[0]))
		o->ycsb = ycsb_find(text[0])->letter;
	else
		return option_refuse("--ycsb: expected A, B, C, D, E, F or load, got \"%s\"", text);
	return 0;
}

static error_t read_command(const char *text, struct options *o)
{
	struct command c;
	char error[256];

	if (o->command_count == COMMANDS_MAX)
		return option_refuse("more than %d --command", COMMANDS_MAX);
	if (!command_parse(&c, text, error, sizeof(error)))
		return option_refuse("%s", error);
	command_free(&c);
	o->commands[o->command_count++] = (struct custom_command){.text = text, .weight = 1};
	return 0;
}

static error_t read_command_ratio(const char *text, struct options *o)
{
	if (o->command_count == 0)
		return option_refuse("--command-ratio needs a --command before it");
	return option_count32(text, "--command-ratio", 1, 1000000, &o->commands[o->command_count - 1].weight);
}

/* "LOW" or "LOW-HIGH" */
static error_t read_expiry(const char *text, struct options *o)
{
	char *copy = strdup(text), *dash = copy ? strchr(copy, '-') : NULL;
	uint64_t low = 0, high = 0;
	bool good = copy != NULL;

	if (dash)
		*dash++ = 0;
	good = good && parse_count(copy, 1, 100000000, &low) &&
	       parse_count(dash ? dash : copy, low, 100000000, &high);
	free(copy);
	o->expiry_low = (uint32_t)low;
	o->expiry_high = (uint32_t)high;
	return good ? 0
		    : option_refuse("--expiry: expected SECONDS or LOW-HIGH, each 1 to 100000000, got \"%s\"",
				    text);
}

static error_t read_keys(const char *text, struct options *o)
{
	uint64_t bytes = 0;
	const bool valid = parse_count(text, 1, KEY_BYTES_MOST, &bytes);

	o->key_bytes = (uint32_t)bytes;
	return valid ? 0
		     : option_refuse("--keys: expected a number from 1 to %d, got \"%s\"", KEY_BYTES_MOST,
				     text);
}

static error_t read_profile(const char *text, struct options *o)
{
	bool connections = strncmp(text, "connections:", 12) == 0;
	struct profile *p = connections ? &o->connections_over_time : &o->rate_over_time;
	char error[256];

	if (!profile_parse(text, p, error, sizeof(error)))
		return option_refuse("%s", error);
	*(connections ? &o->has_connections_profile : &o->has_rate_profile) = true;
	return 0;
}

static error_t read_cpus(const char *text, struct options *o)
{
	char *copy = strdup(text), *rest = copy, *part;
	bool good = copy != NULL;

	o->cpu_count = 0;
	while (good && (part = strsep(&rest, ","))) {
		char *dash = strchr(part, '-');
		uint64_t low, high;

		if (dash)
			*dash++ = 0;
		good = parse_count(part, 0, CPUS_MAX - 1, &low) &&
		       parse_count(dash ? dash : part, low, CPUS_MAX - 1, &high);
		for (uint64_t i = low; good && i <= high && o->cpu_count < CPUS_MAX; i++)
			o->cpus[o->cpu_count++] = (int)i;
	}
	free(copy);
	return good ? 0 : option_refuse("--cpus: expected a list such as 0,2-3, got \"%s\"", text);
}

static error_t read_log_mode(const char *text, struct options *o)
{
	if (strcmp(text, "all") == 0) {
		o->log_mode = LOG_ALL;
		return 0;
	}
	if (strncmp(text, "slow:", 5) != 0 || !parse_duration(text + 5, TIME_ANY, TIME_S, &o->slow_ns) ||
	    !o->slow_ns)
		return option_refuse("--log: expected all or slow:TIME, got \"%s\"", text);
	o->log_mode = LOG_SLOW;
	return 0;
}

static error_t add_limit(const char *text, const char *option, struct limit *limits, uint32_t *count)
{
	struct limit *l = &limits[*count];
	char error[512];

	if (*count == LIMITS_MAX)
		return option_refuse("more than %d %s", LIMITS_MAX, option);
	if (!limit_parse(text, l, error, sizeof(error)))
		return option_refuse("%s", error);
	if (!limit_is_of_load(l))
		return option_refuse("%s: \"%s\" needs a recording and a base. Use forktail gate", option,
				     text);
	++*count;
	return 0;
}

static error_t read_fail_if(const char *text, struct options *o)
{
	return add_limit(text, "--fail-if", o->limits, &o->limit_count);
}

static error_t read_find(const char *text, struct options *o)
{
	error_t result = add_limit(text, "--find", o->find, &o->find_count);
	char error[512];

	if (result)
		return result;
	if (!limit_can_hold(&o->find[o->find_count - 1], text, error, sizeof(error)))
		return option_refuse("--find: %s", error);
	o->find_text[o->find_count - 1] = text;
	return 0;
}

/* "HOST[:PORT][,PREFIX]" */
static error_t read_statsd(const char *text, struct options *o)
{
	const char *comma = strchr(text, ',');
	char *where = strndup(text, comma ? (size_t)(comma - text) : strlen(text)), error[256];
	struct address a = {0};
	bool good = where && *where && address_parse(&a, where, error, sizeof(error)) && a.server.host &&
		    a.scheme == ADDRESS_PLAIN && (!comma || comma[1]);

	if (good) {
		snprintf(o->statsd_host, sizeof(o->statsd_host), "%s", a.server.host);
		o->statsd_port = a.server.port ? a.server.port : STATSD_PORT;
		o->statsd_prefix = comma ? comma + 1 : "forktail";
	}
	address_free(&a);
	free(where);
	return good ? 0 : option_refuse("--statsd: expected HOST[:PORT][,PREFIX], got \"%s\"", text);
}

static error_t read_replay_speed(const char *text, struct options *o)
{
	if (strcmp(text, "max") == 0)
		o->replay_speed = 0;
	else if (strcmp(text, "original") == 0)
		o->replay_speed = 1;
	else if (!parse_positive(text, 1e6, &o->replay_speed))
		return option_refuse("--replay-speed: expected original, max, or a factor above 0 such as 2 "
				     "or 0.5, got \"%s\"",
				     text);
	return 0;
}

static error_t read_replay_sample(const char *text, struct options *o)
{
	error_t result = option_percent(text, "--replay-sample", &o->replay_share);

	return result || o->replay_share > 0
		   ? result
		   : option_refuse("--replay-sample: 0 %% of the keys is nothing to send");
}

/* "NAME[:COUNT]": where the count begins, or NULL; false: not a count. */
static bool read_behind_colon(const char *text, size_t *name_length, uint32_t *count)
{
	uint64_t value = 1;

	*name_length = strcspn(text, ":");
	if (text[*name_length] && !parse_count(text + *name_length + 1, 1, 100000, &value))
		return false;
	*count = (uint32_t)value;
	return true;
}

static error_t read_pubsub(const char *text, struct options *o)
{
	char number[16] = "";
	uint64_t subscribers = 0;
	size_t length;
	bool good = read_behind_colon(text, &length, &o->channels) && length < sizeof(number);

	if (good)
		memcpy(number, text, length);
	if (!good || !parse_count(number, 1, 100000, &subscribers))
		return option_refuse(
		    "--pubsub: expected SUBSCRIBERS or SUBSCRIBERS:CHANNELS, each 1 to 100000, got \"%s\"",
		    text);
	o->delivery = DELIVERY_PUBSUB;
	o->consumers = (uint32_t)subscribers;
	return 0;
}

static error_t read_handoff(const char *text, struct options *o)
{
	static const struct {
		const char *name;
		enum delivery_kind kind;
	} kinds[] = {{"list", DELIVERY_LIST}, {"stream", DELIVERY_STREAM}, {"group", DELIVERY_GROUP}};
	size_t length;
	bool good = read_behind_colon(text, &length, &o->channels);

	o->delivery = DELIVERY_NONE;
	for (size_t i = 0; good && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0)
			o->delivery = kinds[i].kind;
	if (o->delivery == DELIVERY_NONE)
		return option_refuse("--handoff: expected list, stream or group, optionally with a number "
				     "of queues such as list:4, got \"%s\"",
				     text);
	return 0;
}

static error_t read_unwanted_password(const char *text, struct options *o)
{
	(void)text;
	(void)o;
	return option_refuse("every user of this host can read a password on the command line. Set "
			     "FORKTAIL_PASSWORD in the environment or use --password-file");
}

static error_t read_tracking(const char *text, struct options *o)
{
	o->tracking = true;
	o->broadcast = text != NULL;
	return !text || strcmp(text, "bcast") == 0
		   ? 0
		   : option_refuse("--tracking: expected no value or --tracking=bcast, got \"%s\"", text);
}

static error_t read_ratio(const char *text, struct options *o)
{
	o->mixed = true;
	return parse_ratio(text, &o->sets, &o->gets)
		   ? 0
		   : option_refuse("--ratio: expected SETS:GETS such as 1:10, got \"%s\"", text);
}

/* Also --sequential, valkey-benchmark's name of one pattern. */
static error_t read_key_pattern(const char *text, struct options *o)
{
	char error[256];

	return key_distribution_parse(text ? text : "sequential", &o->distribution, error, sizeof(error))
		   ? 0
		   : option_refuse("%s", error);
}

static error_t read_sizes(const char *text, struct options *o)
{
	char error[256];

	return value_sizes_parse(text, &o->sizes, error, sizeof(error)) ? 0 : option_refuse("%s", error);
}

static error_t read_seed(const char *text, struct options *o)
{
	error_t result = option_count(text, "--seed", 0, UINT64_MAX, &o->seed);

	o->replay_seed = o->seed;
	return result;
}

static error_t read_replay_allow(const char *text, struct options *o)
{
	char error[256];

	return harm_allow(&o->replay_allowed, text, error, sizeof(error)) ? 0 : option_refuse("%s", error);
}

static error_t read_rate(const char *text, struct options *o)
{
	return parse_rate(text, 1e9, &o->rate)
		   ? 0
		   : option_refuse("--rate: expected a number of requests per second above 0 such as 5000 or "
				   "20k, got \"%s\"",
				   text);
}

static error_t read_keep_alive(const char *text, struct options *o)
{
	uint64_t keep = 0;
	error_t result = option_count(text, "-k", 0, 1, &keep);

	o->reconnect_after = result == 0 && keep == 0 ? 1 : 0;
	return result;
}

static error_t read_no_wait(const char *text, struct options *o)
{
	(void)text;
	o->blocking = o->no_wait = true;
	return 0;
}

static error_t read_backoff(const char *text, struct options *o)
{
	uint64_t ns = 0;
	error_t result = option_time(text, "--backoff", false, &ns);

	o->backoff_ms = ns < 1000000 ? 1 : ns > 5000000000u ? 5000 : (uint32_t)(ns / 1000000);
	return result;
}

static error_t read_csv(const char *text, struct options *o)
{
	o->csv = true;
	o->csv_path = text;
	return 0;
}

static error_t read_percentiles(const char *text, struct options *o)
{
	return percentiles_parse(text, &o->wanted)
		   ? 0
		   : option_refuse(
			 "--percentiles: expected a list of up to %d such as 50,99,99.9, got \"%s\"",
			 PERCENTILES_MAX, text);
}

static error_t read_buckets(const char *text, struct options *o)
{
	return buckets_parse(text ? text : "default", &o->wanted)
		   ? 0
		   : option_refuse("--buckets: expected a list of up to %d growing times such as "
				   "1ms,10ms,100ms, got \"%s\"",
				   BUCKETS_MAX, text);
}

static const char *const arrivals[] = {"constant", "poisson"};
static const char *const readers[] = {"primary", "replica", "any", "nearest"};
static const char *const error_policies[] = {"continue", "reconnect", "stop"};

const struct option_row options_rows[] = {
    {.help = "Server:", .kind = OPTION_GROUP},
    {"host", 'h', "HOST", "Connect to this host name, IPv4 or IPv6 address (default: 127.0.0.1)",
     IS_READ(options_read_host)},
    {"port", 'p', "PORT", "Connect to this TCP port (default: 6379, memcached 11211)",
     IS_COUNT32(given.port, 1, 65535)},
    {"socket", 's', "PATH", "Connect to this Unix socket instead of a host and port", IS_TEXT(given.socket)},
    {.name = "unix-socket", IS_SAME},
    {"server", 0, "ADDRESS",
     "Connect to HOST, HOST:PORT, [IPV6]:PORT, the socket /PATH or a URI. May be repeated",
     IS_READ_ROW(options_read_server)},
    {"uri", 'u', "URI",
     "Connect to redis://[USER@]HOST[:PORT][/DB], rediss:// (TLS), unix:///PATH[?db=N] or "
     "memcached://HOST[:PORT] (default: $FORKTAIL_URI)",
     IS_READ_ROW(options_read_server)},
    {"protocol", 0, "NAME", "Use this protocol: redis, memcache_text, memcache_binary or memcache_meta",
     IS_READ(read_protocol), .normally = "redis"},
    {"resp3", '3', NULL, "Use RESP3 (HELLO 3)", IS_TRUE(resp3)},
    {"tracking", 0, "bcast",
     "With RESP3: make the server push invalidations of keys that were read, or with bcast of all keys, and "
     "count them",
     IS_READ(read_tracking), .flags = OPTION_ARG_OPTIONAL},
    {"meta-quiet", 0, NULL,
     "With memcache_meta: let the server omit answers to misses, and end each batch with mn",
     IS_TRUE(meta_quiet)},
    {"tls", 0, NULL, "Use TLS and verify the server's certificate", IS_TRUE(tls.on)},
    {"cacert", 0, "FILE", "Trust the CAs in FILE instead of the system's", IS_TEXT(tls.cacert)},
    {"cacertdir", 0, "DIR", "Trust the CAs in DIR (files named by hash)", IS_TEXT(tls.cacertdir)},
    {"cert", 0, "FILE", "Present this client certificate to servers that require one", IS_TEXT(tls.cert)},
    {"key", 0, "FILE", "Use this private key for --cert", IS_TEXT(tls.key)},
    {"sni", 0, "NAME", "Request this server name and expect it in the certificate (default: the host)",
     IS_TEXT(tls.sni)},
    {"insecure", 0, NULL, "Don't verify the certificate. The output marks this", IS_TRUE(tls.insecure)},
    {.name = "tls-skip-verify", IS_SAME},
    {"user", 0, "NAME", "Log in as this ACL user (default: the default user)", IS_TEXT(user)},
    {"password-file", 0, "FILE",
     "Read the password from FILE's first line (default: $FORKTAIL_PASSWORD or $REDISCLI_AUTH)",
     IS_TEXT(password_file)},
    {"dbnum", 0, "N", "Select this database", IS_COUNT32(database, 0, 1000000), .normally = "0"},
    {.name = "select-db", IS_SAME},
    {"loading-wait", 0, "TIME", "Wait at most TIME for a server that loads its data set",
     IS_PAUSE(loading_ns), .normally = "60s"},
    {"cluster", 0, NULL, "Treat the servers as nodes of a Redis Cluster. One node that answers is enough",
     IS_TRUE(given.cluster)},
    {.name = "cluster-mode", IS_SAME},
    {"sentinel", 0, "ADDRESS",
     "Ask this Sentinel for the primary's address (default port: 26379). May be repeated",
     IS_READ(options_read_sentinel)},
    {"master", 0, "NAME", "Use the primary of this name in Sentinel", IS_TEXT(master), GIVEN(given.master),
     .normally = "mymaster"},
    {"behind", 0, "[NAME=]ADDRESS,...",
     "Treat the server as a proxy (twemproxy) in front of these servers, listed in the proxy's order, and "
     "log the server of each request. May be repeated",
     IS_READ(options_read_behind)},
    {"read-from", 0, "WHO", "Send read-only commands to primary, replica, any or nearest",
     IS_NAME(read_from, readers, 4, READ_PRIMARY), .normally = "primary"},
    {"wait", 0, "N[,TIME]",
     "After each write, WAIT for N replicas to acknowledge it, at most TIME (default: 1s). Both count as one "
     "request",
     IS_READ(read_wait)},
    {"retry", 0, "TIME", "With several servers: retry a request that finds no server for at most TIME",
     IS_TIME(retry_ns), .normally = "30s"},
    {.help = "Requests:", .kind = OPTION_GROUP},
    {"ratio", 0, "SETS:GETS", "Mix SET and GET at random in this proportion (default: 1:10)",
     IS_READ(read_ratio)},
    {"tests", 't', "LIST",
     "Run these redis-benchmark tests one after the other, e.g. set,get,lrange_100, or all", IS_TEXT(tests)},
    {"command", 0, "TEXT",
     "Send this command with placeholders __key__, __data__, __int__, __field__, ... May be repeated",
     IS_READ(read_command)},
    {"command-ratio", 0, "N", "Set the weight of the preceding --command (default: 1)",
     IS_READ(read_command_ratio)},
    {"commands", 0, "FILE",
     "Send the commands in FILE, one per line, with weights, key patterns and a data set",
     IS_READ(options_read_commands)},
    {"ycsb", 0, "LETTER",
     "Run YCSB core workload A to F, or load for its load phase. -r sets the number of records",
     IS_READ(read_ycsb)},
    {"fill", 0, "N", "Set the first N keys in order, each once, then stop", IS_COUNT(fill, 1, KEY_SPACE_MAX)},
    {"key-space", 'r', "N", "Use N keys, from key:000000000000 to N-1 (default: one fixed key)",
     IS_COUNT(keys, 1, KEY_SPACE_MAX), GIVEN(given.key_space)},
    {"key-pattern", 0, "NAME",
     "Choose keys by uniform, sequential, zipf[:S], zipf-scattered[:S], gaussian[:SD], latest[:S] or hot:X:Y "
     "(default: uniform)",
     IS_READ(read_key_pattern)},
    {"key-split", 0, NULL, "Give each connection its own part of the keys", IS_TRUE(split)},
    {"key-prefix", 0, "TEXT", "Start key names with TEXT", IS_TEXT(key_prefix), .normally = "key:"},
    {"key-length", 0, "BYTES[-MAX]",
     "Set the length of key names, at most 65536 bytes (default: prefix and 12 digits)", IS_TEXT(key_length)},
    {"data-size", 'd', "SIZE",
     "Set the size of values in bytes: BYTES, LOW-HIGH, SIZE:WEIGHT,..., lognormal:MEDIAN,SIGMA[,MAX]",
     IS_READ(read_sizes), GIVEN(given.sizes), .normally = "3"},
    {.name = "data-size-range", IS_SAME},
    {.name = "data-size-list", IS_SAME},
    {"compressible", 0, "PERCENT", "Fill this share of each value with one repeated letter",
     IS_SHARE(compressible), .normally = "0"},
    {"fields", 0, "N", "Draw __field__ from N fields", IS_COUNT32(fields, 1, 1000000000), .normally = "10"},
    {"expiry", 0, "SECONDS[-MAX]", "Let keys expire SECONDS after they are set", IS_READ(read_expiry)},
    {.name = "expiry-range", IS_SAME},
    {"verify", 0, NULL, "Derive each value from its key, and check every byte that GET returns",
     IS_TRUE(verify)},
    {"seed", 0, "N",
     "Seed the random choice of keys, operations and arrivals, to repeat a run (default: random)",
     IS_READ(read_seed)},
    {"replay", 0, "FILE", "Send recorded commands: a MONITOR capture, an append-only file or a CSV file",
     IS_TEXT(replay_path)},
    {"replay-format", 0, "NAME", "Read the recording as monitor, aof or csv (default: auto-detected)",
     IS_NAME(replay_format, replay_format_names + 1, 3, REPLAY_MONITOR), GIVEN(given.replay)},
    {"replay-speed", 0, "FACTOR",
     "Send at the original speed, at a factor such as 2 or 0.5, or as fast as possible with max (default: "
     "original)",
     IS_READ(read_replay_speed), GIVEN(given.replay)},
    {"replay-allow", 0, "LIST",
     "Send these harmful commands too, e.g. flushall,config, or all (default: they are omitted and counted)",
     IS_READ(read_replay_allow), GIVEN(given.replay)},
    {"replay-order", 0, "NAME",
     "Keep the order of the commands of each client or of each key (default: client; with --rate and faster "
     "than recorded: key)",
     IS_NAME(replay_order, replay_order_names + 1, 2, REPLAY_ORDER_CLIENT), GIVEN(given.replay)},
    {"replay-sample", 0, "PERCENT",
     "Send the commands of this share of the keys. --seed chooses which (default: 100%)",
     IS_READ(read_replay_sample), GIVEN(given.replay)},
    {"pubsub", 0, "SUBSCRIBERS[:CHANNELS]",
     "PUBLISH to CHANNELS channels (default: 1) and measure each delivery to each subscriber",
     IS_READ(read_pubsub)},
    {"handoff", 0, "KIND[:QUEUES]",
     "Measure each hand-over through queues: list (RPUSH and BLPOP), stream (XADD and XREAD) or group (XADD "
     "and XREADGROUP)",
     IS_READ(read_handoff)},
    {"consumers", 0, "N",
     "With --handoff: open N connections that wait for elements (default: one per queue)",
     IS_COUNT32(consumers, 1, 100000), GIVEN(given.consumers)},
    {"latency", 0, NULL, "Only probe the server: PING on one connection, 100 per second",
     IS_SET(mode, MODE_LATENCY)},
    {"intrinsic", 0, NULL, "Measure how late this host wakes a thread, without a server",
     IS_SET(mode, MODE_INTRINSIC)},
    {"period", 0, "TIME", "With --intrinsic: wake a thread every TIME", IS_TIME(period_ns),
     .normally = "1ms"},
    {.help = "Connections, rate and time:", .kind = OPTION_GROUP},
    {"connections", 'c', "N", "Open N connections over all threads", IS_COUNT32(connections, 1, 1000000),
     GIVEN(given.connections), .normally = "50"},
    {"idle", 0, "N", "Open N additional connections that send nothing", IS_COUNT32(idle, 0, 1000000),
     .normally = "0"},
    {"threads", 0, "N", "Run N load threads", IS_COUNT32(threads, 1, 1024), .normally = "1"},
    {"pipeline", 'P', "N", "Keep at most N requests outstanding per connection (default: 1; 64 with --fill)",
     IS_COUNT32(pipeline, 1, 100000), GIVEN(given.pipeline)},
    {"batch", 0, "N", "Send N requests per write, at most --pipeline (default: --pipeline)",
     IS_COUNT32(batch, 1, 100000), GIVEN(given.batch)},
    {"requests", 'n', "N", "Send N requests in total (default: 100000, or no limit with --duration)",
     IS_COUNT(requests, 1, UINT64_MAX / 2)},
    {"duration", 0, "TIME", "Stop sending after TIME, e.g. 60 (seconds), 500ms, 2m, 1h",
     IS_TIME(duration_ns)},
    {.name = "test-time", IS_SAME},
    {"start-at", 0, "SECONDS",
     "Connect now and start sending at this time of this host's clock, in seconds since 1970 with decimals",
     IS_READ(read_start)},
    {"loop", 'l', NULL, "Run until Ctrl-C", IS_TRUE(loop)},
    {"warmup", 0, "TIME", "Exclude requests due in the first TIME from the figures", IS_PAUSE(warmup_ns)},
    {"rate", 0, "N", "Open loop: make N requests per second due, however slowly the server answers",
     IS_READ(read_rate)},
    {.name = "rps", IS_SAME},
    {"find", 0, "LIMIT",
     "Find the highest rate at which LIMIT holds and no request fails: 'p99 < 2ms', 'GET.max < 1s'. LIMIT is "
     "what has to hold, the opposite of --fail-if. May be repeated",
     IS_READ(read_find)},
    {"arrival", 0, "KIND", "With an open loop: space requests by constant or poisson",
     IS_NAME(arrival, arrivals, 2, ARRIVAL_CONSTANT), GIVEN(given.rate_kind), .normally = "constant"},
    {"profile", 0, "SHAPE",
     "Change the rate (or with connections: the number of connections) over time: steps:1000x10s,2000x10s "
     "ramp:1000-9000x60s square:LOW,HIGH,PERIOD sine:LOW,HIGH,PERIOD",
     IS_READ(read_profile)},
    {"drain", 0, "TIME", "Wait at most TIME for answers after the run", IS_PAUSE(drain_ns),
     GIVEN(given.drain), .normally = "10s"},
    {"think", 0, "TIME", "Closed loop: pause for TIME between an answer and the connection's next request",
     IS_PAUSE(think_ns)},
    {"timeout", 0, "TIME", "Count a request older than TIME as failed and close its connection",
     IS_TIME(timeout_ns)},
    {"reconnect", 0, "N", "Reconnect after every N requests", IS_COUNT32(reconnect_after, 1, 1000000000)},
    {.name = "reconnect-interval", IS_SAME},
    {"keep-alive", 'k', "0|1", "With 0: open a new connection for every request (default: 1)",
     IS_READ(read_keep_alive)},
    {"blocking", 0, NULL,
     "Run one thread per connection with blocking write and read instead of an event loop",
     IS_TRUE(blocking)},
    {"no-wait", 0, NULL, "Like --blocking, but read the answers later, up to -P at once",
     IS_READ(read_no_wait)},
    {"cpus", 0, "LIST", "Pin load threads to these CPUs, round robin, e.g. 0,2-3", IS_READ(read_cpus)},
    {"busy-poll", 0, NULL,
     "Poll instead of sleeping. Each load thread occupies a CPU; latencies at low rates are more accurate",
     IS_TRUE(busy_poll)},
    {"on-error", 0, "POLICY", "On an error: continue, reconnect or stop",
     IS_NAME(on_error, error_policies, 3, ON_ERROR_CONTINUE), GIVEN(given.on_error), .normally = "continue"},
    {"backoff", 0, "TIME", "Pause for TIME before the first reconnect; doubles up to 5s",
     IS_READ(read_backoff), .normally = "100ms"},
    {"max-errors", 0, "N", "Stop the run at the Nth error", IS_COUNT(max_errors, 1, UINT64_MAX / 2)},
    {.help = "Output:", .kind = OPTION_GROUP},
    {"output", 'o', "FILE", "Log every request to FILE, a recording for forktail explain", IS_TEXT(log_path)},
    {"log", 0, "WHAT",
     "Log all requests, or with slow:TIME only those that took at least TIME, and a histogram",
     IS_READ(read_log_mode), .normally = "all"},
    {"keys", 0, "N",
     "With -o: store the first N bytes (1 to 32) of the keys of requests that took a millisecond or more "
     "after they were sent, so that explain names the key of a slow command",
     IS_READ(read_keys)},
    {"hash-keys", 0, NULL,
     "With --keys: store random bytes in place of these, the same ones for the same bytes in this log",
     IS_TRUE(hash_keys)},
    {"arrival-times", 0, NULL,
     "Over TCP: ask the kernel when each answer arrived, and report socket-buffer wait separately",
     IS_TRUE(arrival_times)},
    {"json", 0, "FILE", "Write the final figures to FILE as JSON", IS_TEXT(json_path)},
    {.name = "json-out-file", IS_SAME},
    {"csv", 0, "FILE", "Write redis-benchmark's CSV to FILE, or print it instead of the table",
     IS_READ(read_csv), .flags = OPTION_ARG_OPTIONAL},
    {"svg", 0, "FILE", "With --find: draw the latencies at each rate, using gnuplot", IS_TEXT(svg_path)},
    {"hlog", 0, "FILE", "Write HdrHistogram's interval log (V2), one line per second and operation",
     IS_TEXT(hlog_path)},
    {"series", 0, "FILE", "Write the figures of each second to FILE as CSV", IS_TEXT(series_path)},
    {"metrics", 0, "[ADDR:]PORT|/PATH",
     "Serve the figures to Prometheus at this address (127.0.0.1 by default) or Unix socket",
     IS_TEXT(metrics)},
    {"statsd", 0, "HOST[:PORT][,PREFIX]",
     "Send the figures of each second to this statsd over UDP (default: port 8125, prefix forktail)",
     IS_READ(read_statsd)},
    {"percentiles", 0, "LIST", "Report these percentiles", IS_READ(read_percentiles),
     .normally = "50,90,95,99,99.9,99.99"},
    {.name = "print-percentiles", IS_SAME},
    {"buckets", 0, "LIST",
     "Count requests by latency up to these times, and above the last (default: "
     "25ms,50ms,100ms,200ms,300ms,400ms,500ms)",
     IS_READ(read_buckets), .flags = OPTION_ARG_OPTIONAL},
    {"distribution", 0, NULL, "Print the distribution of latencies", IS_TRUE(distribution_table)},
    {"repeat", 0, "N", "Run N times and print best, worst, mean and spread", IS_COUNT32(repeat, 1, 1000),
     GIVEN(given.repeat), .normally = "1"},
    {.name = "run-count", IS_SAME},
    {"fail-if", 0, "LIMIT",
     "Exit with status 1 if this is true: 'p99>2ms', 'GET.max>1s', 'errors>0.1%'. LIMIT is what must not be, "
     "the opposite of --find. May be repeated",
     IS_READ(read_fail_if)},
    {"no-observer", 0, NULL, "Don't query the server's INFO, SLOWLOG and LATENCY each second",
     IS_TRUE(no_observer)},
    {"progress", 0, NULL,
     "Print a progress line each second even without a terminal (default: only on a terminal)",
     IS_TRUE(progress)},
    {"quiet", 'q', NULL, "Print no progress line", IS_FALSE(progress)},
    {"check", 0, NULL, "Check the options, then exit without running", IS_TRUE(check)},
    {"password", 'a', "PASSWORD", NULL, IS_READ(read_unwanted_password), .flags = OPTION_HIDDEN},
    {.name = "authenticate", IS_SAME, .flags = OPTION_HIDDEN},
    {"sequential", 0, NULL, NULL, IS_READ(read_key_pattern), .flags = OPTION_HIDDEN},
    {0},
};

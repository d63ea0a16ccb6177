/* SPDX-License-Identifier: MIT */
/* The name, argument and help text of every option. Letters that redis-benchmark uses keep their meaning
 * here; long names follow memtier_benchmark where it has the same option. options_read.c has the names
 * that these programs have and this one lacks. */
#include "options_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

const struct argp_option options_table[] = {
    {0, 0, 0, 0, "Server:", 1},
    {"host", 'h', "HOST", 0, "Connect to this host name, IPv4 or IPv6 address (default: 127.0.0.1)", 0},
    {"port", 'p', "PORT", 0, "Connect to this TCP port (default: 6379, memcached 11211)", 0},
    {"socket", 's', "PATH", 0, "Connect to this Unix socket instead of a host and port", 0},
    {"unix-socket", 0, 0, OPTION_ALIAS, 0, 0},
    {"server", OPTION_SERVER, "ADDRESS", 0,
     "Connect to HOST, HOST:PORT, [IPV6]:PORT, the socket /PATH or a URI. May be repeated", 0},
    {"uri", 'u', "URI", 0,
     "Connect to redis://[USER@]HOST[:PORT][/DB], rediss:// (TLS), unix:///PATH[?db=N] or "
     "memcached://HOST[:PORT] (default: $FORKTAIL_URI)",
     0},
    {"protocol", OPTION_PROTOCOL, "NAME", 0,
     "Use this protocol: redis, memcache_text, memcache_binary or memcache_meta (default: redis)", 0},
    {"resp3", '3', 0, 0, "Use RESP3 (HELLO 3)", 0},
    {"tracking", OPTION_TRACKING, "bcast", OPTION_ARG_OPTIONAL,
     "With RESP3: make the server push invalidations of keys that were read, or with bcast of all keys, and "
     "count them",
     0},
    {"meta-quiet", OPTION_META_QUIET, 0, 0,
     "With memcache_meta: let the server omit answers to misses, and end each batch with mn", 0},
    {"tls", OPTION_TLS, 0, 0, "Use TLS and verify the server's certificate", 0},
    {"cacert", OPTION_CACERT, "FILE", 0, "Trust the CAs in FILE instead of the system's", 0},
    {"cacertdir", OPTION_CACERTDIR, "DIR", 0, "Trust the CAs in DIR (files named by hash)", 0},
    {"cert", OPTION_CERT, "FILE", 0, "Present this client certificate to servers that require one", 0},
    {"key", OPTION_KEY, "FILE", 0, "Use this private key for --cert", 0},
    {"sni", OPTION_SNI, "NAME", 0,
     "Request this server name and expect it in the certificate (default: the host)", 0},
    {"insecure", OPTION_INSECURE, 0, 0, "Don't verify the certificate. The output marks this", 0},
    {"tls-skip-verify", 0, 0, OPTION_ALIAS, 0, 0},
    {"user", OPTION_USER, "NAME", 0, "Log in as this ACL user (default: the default user)", 0},
    {"password-file", OPTION_PASSWORD_FILE, "FILE", 0,
     "Read the password from FILE's first line (default: $FORKTAIL_PASSWORD or $REDISCLI_AUTH)", 0},
    {"dbnum", OPTION_DATABASE, "N", 0, "Select this database (default: 0)", 0},
    {"select-db", 0, 0, OPTION_ALIAS, 0, 0},
    {"loading-wait", OPTION_LOADING_WAIT, "TIME", 0,
     "Wait at most TIME for a server that loads its data set (default: 60s)", 0},
    {"cluster", OPTION_CLUSTER, 0, 0,
     "Treat the servers as nodes of a Redis Cluster. One node that answers is enough", 0},
    {"cluster-mode", 0, 0, OPTION_ALIAS, 0, 0},
    {"sentinel", OPTION_SENTINEL, "ADDRESS", 0,
     "Ask this Sentinel for the primary's address (default port: 26379). May be repeated", 0},
    {"master", OPTION_MASTER, "NAME", 0, "Use the primary of this name in Sentinel (default: mymaster)", 0},
    {"behind", OPTION_BEHIND, "[NAME=]ADDRESS,...", 0,
     "Treat the server as a proxy (twemproxy) in front of these servers, listed in the proxy's order, and "
     "log the server of each request. May be repeated",
     0},
    {"read-from", OPTION_READ_FROM, "WHO", 0,
     "Send read-only commands to primary, replica, any or nearest (default: primary)", 0},
    {"wait", OPTION_WAIT, "N[,TIME]", 0,
     "After each write, WAIT for N replicas to acknowledge it, at most TIME (default: 1s). Both count as one "
     "request",
     0},
    {"retry", OPTION_RETRY, "TIME", 0,
     "With several servers: retry a request that finds no server for at most TIME (default: 30s)", 0},
    {0, 0, 0, 0, "Requests:", 2},
    {"ratio", OPTION_RATIO, "SETS:GETS", 0, "Mix SET and GET at random in this proportion (default: 1:10)",
     0},
    {"tests", 't', "LIST", 0,
     "Run these redis-benchmark tests one after the other, e.g. set,get,lrange_100, or all", 0},
    {"command", OPTION_COMMAND, "TEXT", 0,
     "Send this command with placeholders __key__, __data__, __int__, __field__, ... May be repeated", 0},
    {"command-ratio", OPTION_COMMAND_RATIO, "N", 0, "Set the weight of the preceding --command (default: 1)",
     0},
    {"commands", OPTION_COMMANDS, "FILE", 0,
     "Send the commands in FILE, one per line, with weights, key patterns and a data set", 0},
    {"ycsb", OPTION_YCSB, "LETTER", 0,
     "Run YCSB core workload A to F, or load for its load phase. -r sets the number of records", 0},
    {"fill", OPTION_FILL, "N", 0, "Set the first N keys in order, each once, then stop", 0},
    {"key-space", 'r', "N", 0, "Use N keys, from key:000000000000 to N-1 (default: one fixed key)", 0},
    {"key-pattern", OPTION_KEY_PATTERN, "NAME", 0,
     "Choose keys by uniform, sequential, zipf[:S], zipf-scattered[:S], gaussian[:SD], latest[:S] or hot:X:Y "
     "(default: uniform)",
     0},
    {"key-split", OPTION_KEY_SPLIT, 0, 0, "Give each connection its own part of the keys", 0},
    {"key-prefix", OPTION_KEY_PREFIX, "TEXT", 0, "Start key names with TEXT (default: key:)", 0},
    {"key-length", OPTION_KEY_LENGTH, "BYTES[-MAX]", 0,
     "Set the length of key names, at most 65536 bytes (default: prefix and 12 digits)", 0},
    {"data-size", 'd', "SIZE", 0,
     "Set the size of values in bytes: BYTES, LOW-HIGH, SIZE:WEIGHT,..., lognormal:MEDIAN,SIGMA[,MAX] "
     "(default: 3)",
     0},
    {"data-size-range", 0, 0, OPTION_ALIAS, 0, 0},
    {"data-size-list", 0, 0, OPTION_ALIAS, 0, 0},
    {"compressible", OPTION_COMPRESSIBLE, "PERCENT", 0,
     "Fill this share of each value with one repeated letter (default: 0)", 0},
    {"fields", OPTION_FIELDS, "N", 0, "Draw __field__ from N fields (default: 10)", 0},
    {"expiry", OPTION_EXPIRY, "SECONDS[-MAX]", 0, "Let keys expire SECONDS after they are set", 0},
    {"expiry-range", 0, 0, OPTION_ALIAS, 0, 0},
    {"verify", OPTION_VERIFY, 0, 0, "Derive each value from its key, and check every byte that GET returns",
     0},
    {"seed", OPTION_SEED, "N", 0,
     "Seed the random choice of keys, operations and arrivals, to repeat a run (default: random)", 0},
    {"replay", OPTION_REPLAY, "FILE", 0,
     "Send recorded commands: a MONITOR capture, an append-only file or a CSV file", 0},
    {"replay-format", OPTION_REPLAY_FORMAT, "NAME", 0,
     "Read the recording as monitor, aof or csv (default: auto-detected)", 0},
    {"replay-speed", OPTION_REPLAY_SPEED, "FACTOR", 0,
     "Send at the original speed, at a factor such as 2 or 0.5, or as fast as possible with max (default: "
     "original)",
     0},
    {"replay-allow", OPTION_REPLAY_ALLOW, "LIST", 0,
     "Send these harmful commands too, e.g. flushall,config, or all (default: they are omitted and counted)",
     0},
    {"replay-order", OPTION_REPLAY_ORDER, "NAME", 0,
     "Keep the order of the commands of each client or of each key (default: client; with --rate and faster "
     "than recorded: key)",
     0},
    {"replay-sample", OPTION_REPLAY_SAMPLE, "PERCENT", 0,
     "Send the commands of this share of the keys. --seed chooses which (default: 100%)", 0},
    {"pubsub", OPTION_PUBSUB, "SUBSCRIBERS[:CHANNELS]", 0,
     "PUBLISH to CHANNELS channels (default: 1) and measure each delivery to each subscriber", 0},
    {"handoff", OPTION_HANDOFF, "KIND[:QUEUES]", 0,
     "Measure each hand-over through queues: list (RPUSH and BLPOP), stream (XADD and XREAD) or group (XADD "
     "and XREADGROUP)",
     0},
    {"consumers", OPTION_CONSUMERS, "N", 0,
     "With --handoff: open N connections that wait for elements (default: one per queue)", 0},
    {"latency", OPTION_LATENCY, 0, 0, "Only probe the server: PING on one connection, 100 per second", 0},
    {"intrinsic", OPTION_INTRINSIC, 0, 0, "Measure how late this host wakes a thread, without a server", 0},
    {"period", OPTION_PERIOD, "TIME", 0, "With --intrinsic: wake a thread every TIME (default: 1ms)", 0},
    {0, 0, 0, 0, "Connections, rate and time:", 3},
    {"connections", 'c', "N", 0, "Open N connections over all threads (default: 50)", 0},
    {"idle", OPTION_IDLE, "N", 0, "Open N additional connections that send nothing (default: 0)", 0},
    {"threads", OPTION_THREADS, "N", 0, "Run N load threads (default: 1)", 0},
    {"pipeline", 'P', "N", 0,
     "Keep at most N requests outstanding per connection (default: 1; 64 with --fill)", 0},
    {"batch", OPTION_BATCH, "N", 0, "Send N requests per write, at most --pipeline (default: --pipeline)", 0},
    {"requests", 'n', "N", 0, "Send N requests in total (default: 100000, or no limit with --duration)", 0},
    {"duration", OPTION_DURATION, "TIME", 0, "Stop sending after TIME, e.g. 60 (seconds), 500ms, 2m, 1h", 0},
    {"test-time", 0, 0, OPTION_ALIAS, 0, 0},
    {"start-at", OPTION_START_AT, "SECONDS", 0,
     "Connect now and start sending at this time of this host's clock, in seconds since 1970 with decimals",
     0},
    {"loop", 'l', 0, 0, "Run until Ctrl-C", 0},
    {"warmup", OPTION_WARMUP, "TIME", 0, "Exclude requests due in the first TIME from the figures", 0},
    {"rate", OPTION_RATE, "N", 0,
     "Open loop: make N requests per second due, however slowly the server answers", 0},
    {"rps", 0, 0, OPTION_ALIAS, 0, 0},
    {"find", OPTION_FIND, "LIMIT", 0,
     "Find the highest rate at which LIMIT holds and no request fails: 'p99 < 2ms', 'GET.max < 1s'. LIMIT is "
     "what has to hold, the opposite of --fail-if. May be repeated",
     0},
    {"arrival", OPTION_ARRIVAL, "KIND", 0,
     "With an open loop: space requests by constant or poisson (default: constant)", 0},
    {"profile", OPTION_PROFILE, "SHAPE", 0,
     "Change the rate (or with connections: the number of connections) over time: steps:1000x10s,2000x10s "
     "ramp:1000-9000x60s square:LOW,HIGH,PERIOD sine:LOW,HIGH,PERIOD",
     0},
    {"drain", OPTION_DRAIN, "TIME", 0, "Wait at most TIME for answers after the run (default: 10s)", 0},
    {"think", OPTION_THINK, "TIME", 0,
     "Closed loop: pause for TIME between an answer and the connection's next request", 0},
    {"timeout", OPTION_TIMEOUT, "TIME", 0,
     "Count a request older than TIME as failed and close its connection", 0},
    {"reconnect", OPTION_RECONNECT, "N", 0, "Reconnect after every N requests", 0},
    {"reconnect-interval", 0, 0, OPTION_ALIAS, 0, 0},
    {"keep-alive", 'k', "0|1", 0, "With 0: open a new connection for every request (default: 1)", 0},
    {"blocking", OPTION_BLOCKING, 0, 0,
     "Run one thread per connection with blocking write and read instead of an event loop", 0},
    {"no-wait", OPTION_NO_WAIT, 0, 0, "Like --blocking, but read the answers later, up to -P at once", 0},
    {"cpus", OPTION_CPUS, "LIST", 0, "Pin load threads to these CPUs, round robin, e.g. 0,2-3", 0},
    {"busy-poll", OPTION_BUSY_POLL, 0, 0,
     "Poll instead of sleeping. Each load thread occupies a CPU; latencies at low rates are more accurate",
     0},
    {"on-error", OPTION_ON_ERROR, "POLICY", 0, "On an error: continue, reconnect or stop (default: continue)",
     0},
    {"backoff", OPTION_BACKOFF, "TIME", 0,
     "Pause for TIME before the first reconnect; doubles up to 5s (default: 100ms)", 0},
    {"max-errors", OPTION_MAX_ERRORS, "N", 0, "Stop the run at the Nth error", 0},
    {0, 0, 0, 0, "Output:", 4},
    {"output", 'o', "FILE", 0, "Log every request to FILE, a recording for forktail explain", 0},
    {"log", OPTION_LOG, "WHAT", 0,
     "Log all requests, or with slow:TIME only those that took at least TIME, and a histogram (default: all)",
     0},
    {"arrival-times", OPTION_ARRIVAL_TIMES, 0, 0,
     "Over TCP: ask the kernel when each answer arrived, and report socket-buffer wait separately", 0},
    {"json", OPTION_JSON, "FILE", 0, "Write the final figures to FILE as JSON", 0},
    {"json-out-file", 0, 0, OPTION_ALIAS, 0, 0},
    {"csv", OPTION_CSV, "FILE", OPTION_ARG_OPTIONAL,
     "Write redis-benchmark's CSV to FILE, or print it instead of the table", 0},
    {"svg", OPTION_SVG, "FILE", 0, "With --find: draw the latencies at each rate, using gnuplot", 0},
    {"hlog", OPTION_HLOG, "FILE", 0,
     "Write HdrHistogram's interval log (V2), one line per second and operation", 0},
    {"series", OPTION_SERIES, "FILE", 0, "Write the figures of each second to FILE as CSV", 0},
    {"metrics", OPTION_METRICS, "[ADDR:]PORT|/PATH", 0,
     "Serve the figures to Prometheus at this address (127.0.0.1 by default) or Unix socket", 0},
    {"statsd", OPTION_STATSD, "HOST[:PORT][,PREFIX]", 0,
     "Send the figures of each second to this statsd over UDP (default: port 8125, prefix forktail)", 0},
    {"percentiles", OPTION_PERCENTILES, "LIST", 0,
     "Report these percentiles (default: 50,90,95,99,99.9,99.99)", 0},
    {"print-percentiles", 0, 0, OPTION_ALIAS, 0, 0},
    {"buckets", OPTION_BUCKETS, "LIST", OPTION_ARG_OPTIONAL,
     "Count requests by latency up to these times, and above the last (default: "
     "25ms,50ms,100ms,200ms,300ms,400ms,500ms)",
     0},
    {"distribution", OPTION_DISTRIBUTION, 0, 0, "Print the distribution of latencies", 0},
    {"repeat", OPTION_REPEAT, "N", 0, "Run N times and print best, worst, mean and spread (default: 1)", 0},
    {"run-count", 0, 0, OPTION_ALIAS, 0, 0},
    {"fail-if", OPTION_FAIL_IF, "LIMIT", 0,
     "Exit with status 1 if this is true: 'p99>2ms', 'GET.max>1s', 'errors>0.1%'. LIMIT is what must not be, "
     "the opposite of --find. May be repeated",
     0},
    {"no-observer", OPTION_NO_OBSERVER, 0, 0,
     "Don't query the server's INFO, SLOWLOG and LATENCY each second", 0},
    {"progress", OPTION_PROGRESS, 0, 0,
     "Print a progress line each second even without a terminal (default: only on a terminal)", 0},
    {"quiet", 'q', 0, 0, "Print no progress line", 0},
    {"check", OPTION_CHECK, 0, 0, "Check the options, then exit without running", 0},
    {"password", 'a', "PASSWORD", OPTION_HIDDEN, 0, 0},
    {"authenticate", 0, 0, OPTION_ALIAS | OPTION_HIDDEN, 0, 0},
    {"sequential", OPTION_SEQUENTIAL, 0, OPTION_HIDDEN, 0, 0},
    {0},
};

/* Parses option values. parse.c does numbers and times; messages list all valid names and forms. */

enum { STATSD_PORT = 8125 };

error_t options_refuse(const char *format, ...)
{
	char *sentence;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&sentence, format, args);
	va_end(args);
	fputs("forktail-load: ", stderr);
	put_visible(stderr, length < 0 ? format : sentence); /* it may quote a recording of commands */
	fputc('\n', stderr);
	if (length >= 0)
		free(sentence);
	return EINVAL;
}

error_t options_read_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out)
{
	if (parse_count(text, low, high, out))
		return 0;
	return options_refuse("%s: expected a whole number from %llu to %llu, got \"%s\"", what,
			      (unsigned long long)low, (unsigned long long)high, text);
}

error_t options_read_count32(const char *text, const char *what, uint32_t low, uint32_t high, uint32_t *out)
{
	uint64_t value = 0;
	error_t result = options_read_count(text, what, low, high, &value);

	*out = (uint32_t)value;
	return result;
}

error_t options_read_time(const char *text, const char *what, bool zero, uint64_t *ns)
{
	if (parse_duration(text, TIME_ANY, TIME_S, ns) && (*ns || zero))
		return 0;
	return options_refuse("%s: expected a time%s such as 10, 2.5s, 500ms, 3m or 1h, got \"%s\"", what,
			      zero ? "" : " above 0", text);
}

/* In the format of `date +%s.%N`; a double has a resolution of a quarter of a microsecond here. */
error_t options_read_start(const char *text, uint64_t *ns)
{
	double seconds;

	if (!parse_positive(text, 1e10, &seconds))
		return options_refuse(
		    "--start-at: expected a time in seconds since 1970 such as 1795412345.5, got \"%s\"",
		    text);
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

/* One of `names`, by its number. */
static error_t read_name(const char *text, const char *what, const char *const *names, int count, int *out)
{
	char all[128] = "";

	for (int i = 0; i < count; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i == 0		  ? ""
			 : i + 1 == count ? " or "
					  : ", ",
			 names[i]);
	}
	return options_refuse("%s: expected %s, got \"%s\"", what, all, text);
}

error_t options_read_arrival(const char *text, struct options *o, struct given_options *given)
{
	static const char *const names[] = {"constant", "poisson"};
	int which = 0;
	error_t result = read_name(text, "--arrival", names, 2, &which);

	o->arrival = (enum arrival)which;
	given->rate_kind = true;
	return result;
}

error_t options_read_read_from(const char *text, struct options *o)
{
	static const char *const names[] = {"primary", "replica", "any", "nearest"};
	int which = 0;
	error_t result = read_name(text, "--read-from", names, 4, &which);

	o->read_from = (enum read_from)which;
	return result;
}

/* "1", "1,500ms" */
error_t options_read_wait(const char *text, struct options *o)
{
	const char *comma = strchr(text, ',');
	char number[16];
	uint64_t ns = 1000000000;
	error_t result;

	snprintf(number, sizeof(number), "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
	result = options_read_count32(number, "--wait", 1, 1000, &o->wait_replicas);
	if (result == 0 && comma)
		result = options_read_time(comma + 1, "the time of --wait", false, &ns);
	o->wait_ms = ns < 1000000 ? 1 : ns > 3600000000000u ? 3600000 : (uint32_t)(ns / 1000000);
	return result;
}

error_t options_read_protocol(const char *text, struct options *o)
{
	const char *names[PROTOCOLS];
	error_t result;
	int which = 0;

	for (int i = 0; i < PROTOCOLS; i++)
		names[i] = protocols[i]->name;
	result = read_name(text, "--protocol", names, PROTOCOLS, &which);
	o->protocol = (enum protocol_id)which;
	return result;
}

error_t options_read_on_error(const char *text, struct options *o)
{
	static const char *const names[] = {"continue", "reconnect", "stop"};
	int which = 0;
	error_t result = read_name(text, "--on-error", names, 3, &which);

	o->on_error = (enum on_error)which;
	return result;
}

error_t options_read_ycsb(const char *text, struct options *o)
{
	if (strcmp(text, "load") == 0)
		o->ycsb = 'L';
	else if (text[0] && !text[1] && ycsb_find(text[0]))
		o->ycsb = ycsb_find(text[0])->letter;
	else
		return options_refuse("--ycsb: expected A, B, C, D, E, F or load, got \"%s\"", text);
	return 0;
}

error_t options_read_command(const char *text, struct options *o)
{
	struct command c;
	char error[256];

	if (o->command_count == COMMANDS_MAX)
		return options_refuse("more than %d --command", COMMANDS_MAX);
	if (!command_parse(&c, text, error, sizeof(error)))
		return options_refuse("%s", error);
	command_free(&c);
	o->commands[o->command_count++] = (struct custom_command){.text = text, .weight = 1};
	return 0;
}

error_t options_read_command_ratio(const char *text, struct options *o)
{
	if (o->command_count == 0)
		return options_refuse("--command-ratio needs a --command before it");
	return options_read_count32(text, "--command-ratio", 1, 1000000,
				    &o->commands[o->command_count - 1].weight);
}

/* "LOW" or "LOW-HIGH" */
error_t options_read_expiry(const char *text, struct options *o)
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
		    : options_refuse(
			  "--expiry: expected SECONDS or LOW-HIGH, each 1 to 100000000, got \"%s\"", text);
}

error_t options_read_profile(const char *text, struct options *o)
{
	bool connections = strncmp(text, "connections:", 12) == 0;
	struct profile *p = connections ? &o->connections_over_time : &o->rate_over_time;
	char error[256];

	if (!profile_parse(text, p, error, sizeof(error)))
		return options_refuse("%s", error);
	*(connections ? &o->has_connections_profile : &o->has_rate_profile) = true;
	return 0;
}

error_t options_read_cpus(const char *text, struct options *o)
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
	return good ? 0 : options_refuse("--cpus: expected a list such as 0,2-3, got \"%s\"", text);
}

error_t options_read_log_mode(const char *text, struct options *o)
{
	if (strcmp(text, "all") == 0) {
		o->log_mode = LOG_ALL;
		return 0;
	}
	if (strncmp(text, "slow:", 5) != 0 || !parse_duration(text + 5, TIME_ANY, TIME_S, &o->slow_ns) ||
	    !o->slow_ns)
		return options_refuse("--log: expected all or slow:TIME, got \"%s\"", text);
	o->log_mode = LOG_SLOW;
	return 0;
}

static error_t read_limit(const char *text, const char *option, struct limit *limits, uint32_t *count)
{
	struct limit *l = &limits[*count];
	char error[512];

	if (*count == LIMITS_MAX)
		return options_refuse("more than %d %s", LIMITS_MAX, option);
	if (!limit_parse(text, l, error, sizeof(error)))
		return options_refuse("%s", error);
	if (!limit_is_of_load(l))
		return options_refuse("%s: \"%s\" needs a recording and a base. Use forktail gate", option,
				      text);
	++*count;
	return 0;
}

error_t options_read_limit(const char *text, struct options *o)
{
	return read_limit(text, "--fail-if", o->limits, &o->limit_count);
}

error_t options_read_find(const char *text, struct options *o)
{
	error_t result = read_limit(text, "--find", o->find, &o->find_count);
	char error[512];

	if (result)
		return result;
	if (!limit_can_hold(&o->find[o->find_count - 1], text, error, sizeof(error)))
		return options_refuse("--find: %s", error);
	o->find_text[o->find_count - 1] = text;
	return 0;
}

/* "HOST[:PORT][,PREFIX]" */
error_t options_read_statsd(const char *text, struct options *o)
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
	return good ? 0 : options_refuse("--statsd: expected HOST[:PORT][,PREFIX], got \"%s\"", text);
}

error_t options_read_percent(const char *text, const char *what, double *share)
{
	size_t length = strlen(text);
	char number[32] = "";
	double percent = 0;

	if (length > 0 && text[length - 1] == '%')
		length--;
	if (length < sizeof(number))
		memcpy(number, text, length);
	if (strcmp(number, "0") != 0 && !parse_positive(number, 100, &percent))
		return options_refuse("%s: expected a percentage from 0 to 100, got \"%s\"", what, text);
	*share = percent / 100;
	return 0;
}

error_t options_read_replay_format(const char *text, struct options *o)
{
	int which = 0;
	error_t result = read_name(text, "--replay-format", replay_format_names + 1, 3, &which);

	o->replay_format = (enum replay_format)(which + 1);
	return result;
}

error_t options_read_replay_speed(const char *text, struct options *o)
{
	if (strcmp(text, "max") == 0)
		o->replay_speed = 0;
	else if (strcmp(text, "original") == 0)
		o->replay_speed = 1;
	else if (!parse_positive(text, 1e6, &o->replay_speed))
		return options_refuse("--replay-speed: expected original, max, or a factor above 0 such as 2 "
				      "or 0.5, got \"%s\"",
				      text);
	return 0;
}

error_t options_read_replay_order(const char *text, struct options *o)
{
	int which = 0;
	error_t result = read_name(text, "--replay-order", replay_order_names + 1, 2, &which);

	o->replay_order = (enum replay_order)(which + 1);
	return result;
}

error_t options_read_replay_sample(const char *text, struct options *o)
{
	error_t result = options_read_percent(text, "--replay-sample", &o->replay_share);

	return result || o->replay_share > 0
		   ? result
		   : options_refuse("--replay-sample: 0 %% of the keys is nothing to send");
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

error_t options_read_pubsub(const char *text, struct options *o)
{
	char number[16] = "";
	uint64_t subscribers = 0;
	size_t length;
	bool good = read_behind_colon(text, &length, &o->channels) && length < sizeof(number);

	if (good)
		memcpy(number, text, length);
	if (!good || !parse_count(number, 1, 100000, &subscribers))
		return options_refuse(
		    "--pubsub: expected SUBSCRIBERS or SUBSCRIBERS:CHANNELS, each 1 to 100000, got \"%s\"",
		    text);
	o->delivery = DELIVERY_PUBSUB;
	o->consumers = (uint32_t)subscribers;
	return 0;
}

error_t options_read_handoff(const char *text, struct options *o)
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
		return options_refuse("--handoff: expected list, stream or group, optionally with a number "
				      "of queues such as list:4, got \"%s\"",
				      text);
	return 0;
}

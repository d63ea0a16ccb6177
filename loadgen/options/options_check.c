/* SPDX-License-Identifier: MIT */
/* Combinations of options that are not allowed, each refused with one sentence, and defaults that depend on
 * other options. */
#include "options_table.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "loadgen/options.h"

/* -P times the value size: how much memory a connection's batch may need. */
#define BATCH_BYTES_MAX (256u << 20)
enum {
	YCSB_RECORDS = 1000,
	LATENCY_RATE = 100,
	BLOCKING_THREADS_MAX = 1024,
	FIND_SECONDS = 5,
	FIND_WARMUP_SECONDS = 1,
	FIND_DRAIN_SECONDS = 1,
	FIND_REPEATS = 3,
};

/* Options that can't be combined with a replay, or need one. */
static bool check_replay(const struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	*error = 0;
	if (!o->replay_path && g->replay)
		snprintf(error, size,
			 "--replay-format, --replay-speed, --replay-allow, --replay-order and "
			 "--replay-sample need --replay");
	else if (!o->replay_path)
		return false;
	else if (!protocol_of(o->protocol)->product->recordings)
		snprintf(error, size, "--replay sends recorded Redis commands; %s has no such recordings",
			 protocol_of(o->protocol)->product->name);
	else if (o->deployment != DEPLOYMENT_SINGLE &&
		 (o->deployment != DEPLOYMENT_CLUSTER || o->read_from != READ_PRIMARY))
		snprintf(error, size,
			 "--replay sends to one server or to the primaries of a cluster. Remove --sentinel, "
			 "--read-from and additional --server");
	else if (o->deployment == DEPLOYMENT_CLUSTER && o->pipeline > 1)
		snprintf(
		    error, size,
		    "--replay with --cluster awaits each answer before the next command of a connection, "
		    "so that redirects keep the order. Remove -P");
	else if (o->wait_replicas)
		snprintf(error, size, "--replay sends recorded commands only. Remove --wait");
	else if (g->sizes || g->key_space || o->split || o->verify || o->expiry_high || o->key_length ||
		 o->distribution.pattern != KEYS_UNIFORM)
		snprintf(error, size,
			 "--replay sends recorded keys and values. Remove the options that generate them "
			 "(-d, -r, --key-..., --expiry, --verify)");
	else if (o->blocking || o->think_ns || o->reconnect_after || g->batch || o->has_rate_profile ||
		 o->has_connections_profile)
		snprintf(error, size,
			 "--replay sends each client's commands on one connection when they are due. Remove "
			 "--blocking, --think, --reconnect, --batch and --profile");
	else if (options_open_loop(o) && o->replay_speed != 1)
		snprintf(error, size,
			 "--rate (replaces the recorded times) and --replay-speed (scales them) are mutually "
			 "exclusive");
	return *error != 0;
}

/* Options that can't be combined with consumers, or need them. */
static bool check_deliveries(const struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	uint32_t consumers = o->consumers ? o->consumers : o->channels;

	*error = 0;
	if (g->consumers && (o->delivery == DELIVERY_NONE || o->delivery == DELIVERY_PUBSUB))
		snprintf(error, size,
			 "--consumers needs --handoff. --pubsub takes the number of subscribers itself");
	else if (o->delivery == DELIVERY_NONE)
		return false;
	else if (!protocol_of(o->protocol)->product->messages || o->deployment != DEPLOYMENT_SINGLE)
		snprintf(error, size, "--pubsub and --handoff need exactly one server, a Redis server");
	else if (o->resp3 || o->tracking || options_tls(o))
		snprintf(error, size,
			 "consumers use RESP2 without TLS. Remove -3, --tracking and TLS for --pubsub and "
			 "--handoff");
	else if (o->blocking)
		snprintf(error, size, "--pubsub and --handoff need the event loop. Remove --blocking");
	else if (g->key_space || o->verify || o->split || o->expiry_high)
		snprintf(error, size,
			 "--pubsub and --handoff take the number of channels or queues themselves. Remove "
			 "-r, --verify, --key-split and --expiry");
	else if (consumers < o->channels && o->delivery != DELIVERY_PUBSUB)
		snprintf(error, size, "--consumers: %u queues need at least one consumer each", o->channels);
	else if (o->delivery == DELIVERY_STREAM && consumers % o->channels != 0)
		snprintf(error, size,
			 "--consumers must be a multiple of %u, the number of streams: every reader of a "
			 "stream gets each entry",
			 o->channels);
	return *error != 0;
}

static void check_what(struct options *o, char *error, size_t size)
{
	const struct protocol *protocol = protocol_of(o->protocol);
	const struct product *product = protocol->product;
	int kinds = (o->tests != NULL) + o->mixed + (o->fill != 0) + (o->command_count > 0) + (o->ycsb != 0) +
		    (o->mode != MODE_LOAD) + (o->replay_path != NULL) + (o->delivery != DELIVERY_NONE);

	if (o->fill && (kinds > 1 || o->requests || o->duration_ns || options_open_loop(o) || o->keys))
		snprintf(error, size,
			 "--fill sets N keys and stops. Remove -t, --ratio, --command, --ycsb, -n, -r, "
			 "--duration and --rate");
	else if (kinds > 1)
		snprintf(error, size,
			 "-t, --ratio, --command, --ycsb, --replay, --latency and --intrinsic are mutually "
			 "exclusive. Choose one");
	else if (check_replay(o, error, size) || check_deliveries(o, error, size))
		return;
	else if (o->tests && !catalogue_check(o->tests, o->protocol, error, size))
		return;
	else if (o->resp3 && !protocol->resp3)
		snprintf(error, size, "--resp3 needs a Redis server; %s does not use RESP3", product->name);
	else if (o->tracking && !o->resp3)
		snprintf(error, size, "--tracking needs --resp3: servers push invalidations in RESP3 only");
	else if (o->meta_quiet && !protocol->quiet)
		snprintf(error, size, "--meta-quiet needs --protocol memcache_meta");
	else if (o->ycsb && !product->records)
		snprintf(error, size, "--ycsb stores records in Redis hashes; %s has none", product->name);
	else if (o->database && !product->databases)
		snprintf(error, size, "%s has no numbered databases. Remove --dbnum", product->name);
	else if (o->ycsb == 'E' && o->pipeline > 1)
		snprintf(error, size, "--ycsb E needs -P 1: the reads of a scan depend on its first answer");
	else if (o->verify && (o->ycsb || o->command_count || o->tests) && o->ycsb)
		snprintf(error, size, "--verify checks values of GET, but --ycsb uses hashes. Remove one");
	else if (o->expiry_high && o->ycsb)
		snprintf(error, size, "records of --ycsb do not expire. Remove --expiry");
	/* Here, because a profile's length becomes the duration when nothing else ends the run. */
	else if (o->has_rate_profile && !o->duration_ns && !o->requests && !o->loop &&
		 profile_length(&o->rate_over_time) > 1e9)
		snprintf(error, size, "this profile has no end. Limit the run with --duration, -n or -l");
}

static uint32_t tests_wanted(const struct options *o)
{
	const struct product *product = protocol_of(o->protocol)->product;
	uint32_t count = 0;

	for (int i = 0; i < CATALOGUE_ENTRIES; i++)
		count += catalogue[i].product == product && catalogue_wanted(o->tests, &catalogue[i]);
	return count;
}

static void check_intrinsic(const struct options *o, char *error, size_t size)
{
	if (o->mode == MODE_INTRINSIC && o->period_ns && (o->period_ns < 1000 || o->period_ns > 1000000000))
		snprintf(error, size, "--period is from 1us to 1s");
	else if (o->mode == MODE_INTRINSIC && o->duration_ns && o->duration_ns < o->period_ns)
		snprintf(error, size, "--duration is shorter than --period");
}

/* Options that leave nothing to search for, or end a search's runs differently. */
static void check_find(const struct options *o, char *error, size_t size)
{
	if (!o->find_count && o->svg_path)
		snprintf(error, size, "--svg draws the curve of --find, which is missing");
	else if (o->find_count &&
		 (o->fill || o->replay_path || o->delivery || o->mode != MODE_LOAD || o->ycsb == 'L'))
		snprintf(error, size,
			 "--find runs one workload at many rates. Remove --fill, --replay, --pubsub, "
			 "--handoff, --latency, --intrinsic and --ycsb load");
	else if (o->find_count && (o->has_rate_profile || o->has_connections_profile))
		snprintf(error, size, "--find sets the rate of its runs, --profile changes it. Choose one");
	else if (o->find_count && (o->requests || o->loop))
		snprintf(error, size, "--find ends its runs after --duration. Remove -n and -l");
	else if (o->find_count && o->limit_count)
		snprintf(error, size, "--find searches for a rate, --fail-if checks one. Choose one");
	else if (o->find_count && o->tests && tests_wanted(o) > 1)
		snprintf(error, size, "--find searches with one test, but -t names %u", tests_wanted(o));
}

static void check_how(struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	if (o->rate > 0 && o->has_rate_profile)
		snprintf(error, size,
			 "--rate (constant) and --profile (changing) are mutually exclusive. Choose one");
	else if (!options_open_loop(o) && g->rate_kind)
		snprintf(error, size, "--arrival needs an open loop. Set --rate");
	else if (options_open_loop(o) && o->think_ns)
		snprintf(error, size,
			 "--think needs a closed loop. In an open loop the clock determines when requests "
			 "are due");
	else if (options_open_loop(o) && g->batch)
		snprintf(error, size,
			 "--batch needs a closed loop. An open loop sends all due requests at once");
	else if (o->batch > o->pipeline)
		snprintf(error, size, "--batch must be at most the pipeline: -P is %u", o->pipeline);
	else if (o->has_connections_profile && o->blocking)
		snprintf(error, size, "a profile of connections needs the event loop. Remove --blocking");
	else if (o->loop && (o->requests || o->duration_ns))
		snprintf(error, size, "-l runs until Ctrl-C. Remove -n and --duration");
	else if (!g->connections && o->connections < o->threads)
		o->connections = o->threads;
	else if (o->connections < o->threads)
		snprintf(error, size, "%u threads need at least as many connections, but -c is %u",
			 o->threads, o->connections);
	if (!*error && o->blocking && o->connections > BLOCKING_THREADS_MAX)
		snprintf(error, size, "--blocking starts a thread for each connection, at most %d",
			 BLOCKING_THREADS_MAX);
}

/* Busy polling takes a complete CPU, also from the rest of this program if they share it. */
static void check_busy_poll(const struct options *o, const cpu_set_t *allowed, char *error, size_t size)
{
	cpu_set_t used = *allowed;
	int cpus;

	if (o->cpu_count)
		CPU_ZERO(&used);
	for (uint32_t i = 0; i < o->cpu_count; i++)
		CPU_SET((size_t)o->cpus[i], &used);
	cpus = CPU_COUNT(&used);
	if (o->blocking)
		snprintf(error, size,
			 "--busy-poll polls for answers, but --blocking sleeps in read(). Remove one");
	else if (o->mode == MODE_INTRINSIC)
		snprintf(
		    error, size,
		    "--intrinsic measures wake-ups, but threads with --busy-poll never sleep. Remove one");
	else if ((uint32_t)CPU_COUNT(allowed) <= o->threads)
		snprintf(error, size,
			 "--busy-poll needs one CPU per load thread and one more: this process has %d CPUs "
			 "for %u thread%s",
			 CPU_COUNT(allowed), o->threads, o->threads == 1 ? "" : "s");
	else if ((uint32_t)cpus < o->threads)
		snprintf(error, size,
			 "--busy-poll needs one CPU per load thread: --cpus has %d for %u threads", cpus,
			 o->threads);
}

static void check_cpus(const struct options *o, char *error, size_t size)
{
	cpu_set_t allowed;

	if ((o->cpu_count == 0 && !o->busy_poll) || sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	if (o->busy_poll)
		check_busy_poll(o, &allowed, error, size);
	for (uint32_t i = 0; i < o->cpu_count; i++) {
		if (CPU_ISSET((size_t)o->cpus[i], &allowed))
			continue;
		snprintf(error, size, "--cpus: CPU %d does not exist or is not allowed for this process",
			 o->cpus[i]);
		return;
	}
}

static void check_arrival_times(const struct options *o, char *error, size_t size)
{
	if (options_tls(o))
		snprintf(
		    error, size,
		    "--arrival-times needs TCP without TLS: TLS hides which bytes arrived when. Remove one");
	for (uint32_t i = 0; i < o->server_count; i++)
		if (o->servers[i].socket)
			snprintf(error, size,
				 "--arrival-times needs TCP: the kernel does not report arrival times on "
				 "Unix sockets");
}

/* False: there are more than can be reported. */
static bool add_percentiles(struct wanted_figures *wanted, const struct limit *limits, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (limits[i].figure == LIMIT_PERCENTILE && !percentiles_add(wanted, limits[i].percentile))
			return false;
	return true;
}

static void check_report(struct options *o, char *error, size_t size)
{
	static const double in_csv[] = {50, 95, 99};

	if (o->arrival_times)
		check_arrival_times(o, error, size);
	if (o->log_mode == LOG_SLOW && !o->log_path)
		snprintf(error, size, "--log needs -o FILE");
	if (o->key_bytes && !o->log_path)
		snprintf(error, size, "--keys needs -o FILE");
	if (o->hash_keys && !o->key_bytes)
		snprintf(error, size, "--hash-keys needs --keys");
	for (size_t i = 0; o->csv && i < sizeof(in_csv) / sizeof(*in_csv); i++)
		if (!percentiles_add(&o->wanted, in_csv[i]))
			snprintf(error, size,
				 "--csv adds the 50th, 95th and 99th percentile: more than %d percentiles in "
				 "total",
				 PERCENTILES_MAX);
	if (!add_percentiles(&o->wanted, o->limits, o->limit_count) ||
	    !add_percentiles(&o->wanted, o->find, o->find_count))
		snprintf(error, size, "more than %d percentiles, those of --fail-if and --find included",
			 PERCENTILES_MAX);
}

/* Names that are longer than the server allows. Invalid lengths are refused when names are prepared. */
static bool key_too_long(const struct options *o, uint32_t longest)
{
	const char *dash = o->key_length ? strchr(o->key_length, '-') : NULL;

	if (!o->key_length)
		return strlen(o->key_prefix) + KEY_DIGITS > longest;
	return strtoull(dash ? dash + 1 : o->key_length, NULL, 10) > longest;
}

/* Each run of a search is short, because there are many, and its drain is: a rate that needs one is too high.
 */
static void fill_in_find(struct options *o)
{
	const struct given_options *g = &o->given;
	if (!o->duration_ns)
		o->duration_ns = FIND_SECONDS * 1000000000ull;
	if (!o->warmup_ns)
		o->warmup_ns = FIND_WARMUP_SECONDS * 1000000000ull;
	if (!g->drain)
		o->drain_ns = FIND_DRAIN_SECONDS * 1000000000ull;
	if (!g->repeat)
		o->repeat = FIND_REPEATS;
}

/* Settings that a mode or another option implies. */
static void fill_in(struct options *o)
{
	const struct given_options *g = &o->given;
	if (o->ycsb && !o->keys)
		o->keys = YCSB_RECORDS;
	if (o->ycsb == 'L' && !o->requests)
		o->requests = o->keys;
	if (o->ycsb && !g->sizes)
		o->sizes = (struct value_sizes){
		    .kind = SIZE_FIXED, .low = YCSB_FIELD_BYTES, .high = YCSB_FIELD_BYTES};
	if (o->ycsb)
		o->fields = YCSB_FIELDS;
	if (o->delivery) {
		if (!o->consumers)
			o->consumers = o->channels;
		o->keys = o->channels;
		if (strcmp(o->key_prefix, "key:") == 0)
			o->key_prefix = o->delivery == DELIVERY_PUBSUB ? "channel:"
					: o->delivery == DELIVERY_LIST ? "queue:"
								       : "stream:";
	}
	if (o->fill && !g->pipeline)
		o->pipeline = 64;
	if (o->no_wait && !g->pipeline)
		o->pipeline = 1000;
	if (o->fill)
		o->requests = o->fill;
	if (!o->mixed && !o->tests && !o->fill && !o->command_count && !o->ycsb && !o->replay_path &&
	    !o->delivery && o->mode == MODE_LOAD) {
		o->mixed = true;
		o->sets = 1;
		o->gets = 10;
	}
	if (o->fill)
		o->sets = 1;
	if (o->mode == MODE_LATENCY) {
		o->commands[0] = (struct custom_command){.text = protocol_of(o->protocol)->ping, .weight = 1};
		o->command_count = 1;
		o->connections = g->connections ? o->connections : 1;
		o->rate = options_open_loop(o) ? o->rate : LATENCY_RATE;
		o->loop = !o->requests && !o->duration_ns;
	}
	if (o->mode == MODE_INTRINSIC)
		o->loop = !o->duration_ns;
	if (o->find_count)
		fill_in_find(o);
	if (o->has_rate_profile && !o->duration_ns && !o->requests && !o->loop)
		o->duration_ns = (uint64_t)(profile_length(&o->rate_over_time) * 1e9);
	if (!o->requests && !o->duration_ns && !o->loop && !o->replay_path)
		o->requests = 100000;
}

static void check_files(const struct options *o, char *error, size_t size)
{
	const char *const paths[] = {o->log_path,  o->json_path,   o->csv_path,
				     o->hlog_path, o->series_path, o->svg_path};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		for (size_t k = 0; k < i && !*error; k++)
			if (paths[i] && paths[k] && strcmp(paths[i], paths[k]) == 0 &&
			    strncmp(paths[i], "/dev/", 5) != 0)
				snprintf(error, size, "two options name the file %.200s. Each needs its own",
					 paths[i]);
}

void options_check(struct options *o, char *error, size_t size)
{
	const struct given_options *g = &o->given;
	const struct product *product;

	options_check_schemes(o, error, size);
	product = protocol_of(o->protocol)->product;
	if (!*error)
		options_check_servers(o, error, size);
	if (!*error)
		options_check_tls(o, error, size);
	if (!*error)
		check_what(o, error, size);
	if (!*error)
		check_find(o, error, size);
	if (!*error)
		check_intrinsic(o, error, size);
	if (!*error)
		fill_in(o);
	if (!*error)
		check_how(o, error, size);
	if (!*error)
		check_cpus(o, error, size);
	if (!*error)
		check_report(o, error, size);
	if (!*error)
		check_files(o, error, size);
	if (!*error && (uint64_t)o->pipeline * (o->sizes.high + 64u) > BATCH_BYTES_MAX)
		snprintf(error, size,
			 "a batch of %u requests of %u bytes is larger than %u MB. Lower -P or -d",
			 o->pipeline, o->sizes.high, BATCH_BYTES_MAX >> 20);
	if (!*error && product->longest_key && key_too_long(o, product->longest_key))
		snprintf(error, size, "keys of %s have at most %u bytes", product->name,
			 product->longest_key);
	if (!g->batch)
		o->batch = o->no_wait ? 1 : o->pipeline;
	if (o->blocking)
		o->threads = o->connections;
}

int options_read_replay(struct options *o)
{
	const struct given_options *g = &o->given;
	enum { PIPELINE_OF_A_STREAM = 64 };
	bool compressed;
	char error[512];

	if (replay_load(&o->replay, o->replay_path, o->replay_format, &o->replay_allowed, error,
			sizeof(error))) {
		option_refuse("%s", error);
		return EXIT_ENVIRONMENT;
	}
	compressed = o->replay_speed == 0 || o->replay_speed > 1 || o->rate > 0;
	o->replay->speed = o->replay_speed;
	o->replay->timed &= o->replay_speed > 0;
	if (o->replay_order == REPLAY_ORDER_DEFAULT)
		o->replay_order =
		    compressed && o->replay->format != REPLAY_AOF ? REPLAY_ORDER_KEY : REPLAY_ORDER_CLIENT;
	/* As many as there were clients, up to a limit. A single stream without times has only its order. */
	if (!g->connections && o->replay_order == REPLAY_ORDER_CLIENT && o->replay->clients < o->connections)
		o->connections = o->replay->clients > o->threads ? o->replay->clients : o->threads;
	if (!g->pipeline && !o->replay->timed && o->rate == 0 && o->replay->format == REPLAY_AOF &&
	    o->deployment == DEPLOYMENT_SINGLE)
		o->pipeline = PIPELINE_OF_A_STREAM;
	o->batch = o->pipeline;
	if (o->replay->damage)
		option_refuse("%s", o->replay->damage); /* the undamaged part is replayed */
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* What forktail-load was asked for: the options, and the parts of them that have a form of their own. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_H
#define FORKTAIL_LOADGEN_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text.h"
#include "loadgen/net.h"
#include "loadgen/protocol.h"
#include "loadgen/replay.h"
#include "loadgen/results.h"
#include "loadgen/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The address of a server, parsed from text: "host", "host:port", "[::1]:6379", "/run/redis.sock", or a URI
 * with %XX for bytes that have a special meaning there:
 *
 *   redis://[user[:password]@]host[:port][/database]   rediss://, the same over TLS
 *   unix://[user[:password]@]/path[?db=database]       memcached://[user[:password]@]host[:port]
 *
 * All options that take an address use this parser, so all accept the same forms. */

enum { SERVERS_MAX = 256 };

/* An address by reference: its creator owns the strings. */
struct server_address {
	const char *host, *socket; /* a Unix socket's path takes precedence */
	uint32_t port;
	bool tls;
};

/* "unix:/run/redis.sock", "127.0.0.1:6379" or "[::1]:6379". */
void address_text(const struct server_address *a, char *out, size_t size);

enum address_scheme { ADDRESS_PLAIN, ADDRESS_REDIS, ADDRESS_MEMCACHED };

/* The parsed text. Its strings are in `memory`. */
struct address {
	struct server_address server; /* port 0: not in the text */
	enum address_scheme scheme;   /* the protocol that the scheme implies */
	const char *user, *password;  /* NULL: not named */
	bool has_database;
	uint32_t database;
	char *memory;
	size_t memory_bytes;
};

/* False, and a sentence about `text`, without its password, in `error`. Call address_free in both cases. */
bool address_parse(struct address *a, const char *text, char *error, size_t size);
void address_free(struct address *a);

/* What follows an error of a request: --on-error. */

enum on_error { ON_ERROR_CONTINUE, ON_ERROR_RECONNECT, ON_ERROR_STOP };

/* How messages get from senders to consumers. */

enum delivery_kind {
	DELIVERY_NONE,
	DELIVERY_PUBSUB, /* PUBLISH to channels; every subscriber receives all of them */
	DELIVERY_LIST,	 /* RPUSH and BLPOP: one consumer gets each element */
	DELIVERY_STREAM, /* XADD and XREAD BLOCK: every consumer of a stream gets each entry */
	DELIVERY_GROUP,	 /* XADD and XREADGROUP BLOCK: one consumer of the group gets each entry */
};

/* Kinds of deployments, and which servers may answer. */

enum deployment {
	DEPLOYMENT_SINGLE,  /* one server, or one proxy */
	DEPLOYMENT_CLUSTER, /* a Redis Cluster: keys by slot */
	DEPLOYMENT_PRIMARY, /* a primary with replicas, found by Sentinel or by its ROLE */
	DEPLOYMENT_RING,    /* independent servers: keys by ketama */
};

/* Which servers may answer read-only commands. */
enum read_from { READ_PRIMARY, READ_REPLICA, READ_ANY, READ_NEAREST };

/* The tests that -t knows: their names and commands. */

/* Data that a test needs in the server before it can run. */
enum preparation { PREPARE_NOTHING, PREPARE_LIST, PREPARE_SETS };

struct catalogue_entry {
	const char *name;  /* in tables and -t */
	const char *group; /* alternative name for -t */
	const char *text;
	const struct product *product; /* the product it belongs to */
	enum preparation preparation;
	bool in_all; /* included in -t all; not so for the growing base's */
};

enum { CATALOGUE_ENTRIES = 37 };
extern const struct catalogue_entry catalogue[CATALOGUE_ENTRIES];

/* Whether a list of -t selects it. */
bool catalogue_wanted(const char *list, const struct catalogue_entry *e);
/* Whether every name in the list is a test for this protocol; else false, and a sentence. */
bool catalogue_check(const char *list, enum protocol_id protocol, char *error, size_t size);

/* All settings of forktail-load after its command line and environment were read and checked.
 * docs/reference/load.md describes each option. */

/* Exit statuses of forktail's programs. */
enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

enum { COMMANDS_MAX = 60, LIMITS_MAX = 32, CPUS_MAX = 1024, SENTINELS_MAX = 16, SENTINEL_PORT = 26379 };
enum { BEHIND_MAX = 255 }; /* the log has a byte for it, and 0 for none */

enum load_mode { MODE_LOAD, MODE_LATENCY, MODE_INTRINSIC };
enum log_mode { LOG_ALL, LOG_SLOW };

struct custom_command {
	const char *text;
	uint32_t weight; /* --command-ratio */
	bool has_distribution;
	struct key_distribution distribution; /* of its keys, instead of --key-pattern */
	uint64_t keys;			      /* instead of -r; 0: the same */
};

/* Which options were given, where their values don't show it. */
struct given_options {
	const char *host, *socket;
	uint32_t port; /* 0: not given */
	bool consumers;
	bool replay; /* one of --replay's own options */
	bool pipeline, batch, connections, rate_kind, sizes, key_space, drain, repeat;
	bool on_error, cluster, master;
	bool says_redis, says_memcached; /* from the scheme of an address */
};

struct options {
	/* the server, or servers */
	struct server_address servers[SERVERS_MAX];
	uint32_t server_count;		  /* at least 1 */
	char *server_memory[SERVERS_MAX]; /* memory of their strings, NULL: the command line */
	enum deployment deployment;
	enum read_from read_from;
	struct server_address sentinels[SENTINELS_MAX];
	uint32_t sentinel_count;
	char *sentinel_memory[SENTINELS_MAX];
	struct server_address behind[BEHIND_MAX]; /* the servers behind the proxy that receives the load */
	char *behind_names[BEHIND_MAX];		  /* in the proxy's ring; NULL: derived from the address */
	char *behind_memory[BEHIND_MAX];
	uint32_t behind_count;
	const char *master;		 /* the primary's name in Sentinel */
	uint32_t wait_replicas, wait_ms; /* --wait; 0 replicas: off */
	uint64_t retry_ns; /* how long a request is retried when servers refuse or redirect it */
	const char *user, *password_file;
	char *password; /* from the environment or password_file; NULL: none */
	struct tls_options tls;
	enum protocol_id protocol;
	bool resp3;		  /* HELLO 3 */
	bool tracking, broadcast; /* CLIENT TRACKING ON, with BCAST */
	bool check;		  /* only check the options */
	bool meta_quiet;	  /* memcached's meta commands: reads that miss get no answer */
	uint32_t database;
	uint64_t loading_ns; /* how long to wait for a server that loads its data set */

	/* requests */
	enum load_mode mode;
	bool mixed;	     /* SET and GET by ratio */
	uint32_t sets, gets; /* --ratio */
	const char *tests;   /* -t, checked; NULL: none */
	struct custom_command commands[COMMANDS_MAX];
	uint32_t command_count;
	char *commands_text; /* the file of --commands, with ends after each line; NULL: none */
	char *data_path;     /* its data set; NULL: none */
	char ycsb;	     /* 'A' .. 'F', 'L' for the load phase, 0: not YCSB */
	uint64_t keys;	     /* key space; 0: one fixed key */
	uint64_t fill;	     /* keys to fill; 0: run a workload */
	struct key_distribution distribution;
	bool split;
	const char *key_prefix, *key_length;
	struct value_sizes sizes;
	double compressible;
	uint32_t fields;
	uint32_t expiry_low, expiry_high;
	bool verify;
	uint64_t seed;
	const char *replay_path; /* a recording to replay; NULL: none */
	enum replay_format replay_format;
	double replay_speed; /* factor of its times; 0: as fast as possible */
	struct harm_allowed replay_allowed;
	enum replay_order replay_order;
	double replay_share;	      /* of the commands, by key */
	uint64_t replay_seed;	      /* of that choice */
	enum delivery_kind delivery;  /* messages are sent, and consumers wait for them */
	uint32_t consumers, channels; /* or queues */
	struct replay *replay;	      /* parsed after all options are known */

	/* connections, rate and time */
	uint32_t connections, idle, threads, pipeline, batch;
	uint64_t requests;    /* 0: no limit */
	uint64_t duration_ns; /* 0: no limit */
	uint64_t start_at_ns; /* by CLOCK_REALTIME; 0: immediately */
	uint64_t warmup_ns, think_ns, timeout_ns;
	double rate; /* requests per second over all threads; 0: closed loop */
	enum arrival arrival;
	struct profile rate_over_time, connections_over_time;
	bool has_rate_profile, has_connections_profile;
	uint64_t drain_ns; /* how long to wait for answers after the last request was due */
	uint32_t reconnect_after;
	bool blocking, no_wait, loop;
	bool arrival_times; /* the kernel is asked when answers arrived */
	bool busy_poll;	    /* load threads never sleep */
	int cpus[CPUS_MAX];
	uint32_t cpu_count;
	enum on_error on_error;
	uint32_t backoff_ms;
	uint64_t max_errors;
	uint64_t period_ns; /* --intrinsic */

	/* output */
	const char *log_path, *json_path, *csv_path, *hlog_path, *series_path;
	const char *metrics;   /* --metrics; NULL: none */
	char statsd_host[256]; /* --statsd */
	const char *statsd_prefix;
	uint32_t statsd_port; /* 0: none */
	enum log_mode log_mode;
	uint64_t slow_ns;
	uint32_t key_bytes; /* --keys: log so many of the first bytes of slow requests' keys; 0: none */
	bool hash_keys;	    /* random bytes in place of these, the same ones in this log */
	struct wanted_figures wanted;
	bool csv, distribution_table, no_observer;
	bool progress;	 /* one line per second */
	uint32_t repeat; /* --find: runs at each side of the edge */
	struct limit limits[LIMITS_MAX];
	uint32_t limit_count;
	struct limit find[LIMITS_MAX]; /* --find: the highest rate at which these hold */
	const char *find_text[LIMITS_MAX];
	uint32_t find_count;
	const char *svg_path; /* --svg: a chart of the search */

	struct given_options given;
};

/* True when an open loop paces the load; of a search, all runs but the first. */
static inline bool options_open_loop(const struct options *o)
{
	return o->rate > 0 || o->has_rate_profile || o->find_count > 0;
}

/* True when commands must be known before they are prepared for sending. */
static inline bool options_ask_first(const struct options *o)
{
	return !o->replay &&
	       (o->deployment != DEPLOYMENT_SINGLE || o->wait_replicas > 0 || o->behind_count > 0);
}

/* The number of requests to send; 0: no limit. */
static inline uint64_t options_requests(const struct options *o)
{
	return !o->replay ? o->requests : o->loop ? 0 : o->replay->count;
}

/* Reads command line and environment into *o. Returns 0, or EXIT_USAGE or EXIT_ENVIRONMENT after one sentence
 * on stderr. --help and --version print and exit. */
int options_read(struct options *o, int argc, char **argv);
void options_free(struct options *o);

/* Whether any server uses TLS, and its description in the output: "none", "verified" or "not verified"
 * (options_read.c). */
bool options_tls(const struct options *o);
const char *options_tls_word(const struct options *o);

/* Options of other load generators that forktail-load does not have. Users try them, because many names are
 * the same; each is refused with one sentence that names our option. */

/* A name of one character is a short option. */
struct foreign_option {
	const char *name, *sentence;
};

/* Ends with a name of NULL. */
extern const struct foreign_option foreign_options[];

/* For the parser of options_read.c: accepts these options, with or without a value, and hides them in --help.
 */
const struct argp_child *options_foreign(void);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The options, for options_read.c: keys of those without a letter, and argp's table. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_OPTIONS_TABLE_H
#define FORKTAIL_LOADGEN_OPTIONS_OPTIONS_TABLE_H

#include <argp.h>
#include <errno.h>

#include "loadgen/options.h"

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
	OPTION_CHECK,
	OPTION_LOADING_WAIT,
	OPTION_CLUSTER,
	OPTION_SENTINEL,
	OPTION_MASTER,
	OPTION_BEHIND,
	OPTION_READ_FROM,
	OPTION_WAIT,
	OPTION_RETRY,
	OPTION_RATIO,
	OPTION_COMMAND,
	OPTION_COMMAND_RATIO,
	OPTION_COMMANDS,
	OPTION_YCSB,
	OPTION_KEY_PATTERN,
	OPTION_SEQUENTIAL,
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
	OPTION_REPLAY_ORDER,
	OPTION_REPLAY_SAMPLE,
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
	OPTION_START_AT,
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
	OPTION_BUSY_POLL,
	OPTION_ON_ERROR,
	OPTION_BACKOFF,
	OPTION_MAX_ERRORS,
	OPTION_ARRIVAL_TIMES,
	OPTION_LOG,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_HLOG,
	OPTION_SERIES,
	OPTION_STATSD,
	OPTION_METRICS,
	OPTION_PERCENTILES,
	OPTION_BUCKETS,
	OPTION_DISTRIBUTION,
	OPTION_REPEAT,
	OPTION_FAIL_IF,
	OPTION_FIND,
	OPTION_SVG,
	OPTION_NO_OBSERVER,
	OPTION_PROGRESS,
};

extern const struct argp_option options_table[];

/* Option values, one function per kind, for options_read.c: each stores the parsed value, or prints one
 * sentence with the expected form on stderr and returns the value for argp_parse. */

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

/* Prints one sentence on stderr. Returns the value for argp_parse. */
__attribute__((format(printf, 1, 2))) error_t options_refuse(const char *format, ...);
error_t options_read_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out);
error_t options_read_count32(const char *text, const char *what, uint32_t low, uint32_t high, uint32_t *out);
error_t options_read_time(const char *text, const char *what, bool zero, uint64_t *ns);
error_t options_read_start(const char *text, uint64_t *ns);
error_t options_read_arrival(const char *text, struct options *o, struct given_options *given);
/* For -h, --server and -u, --sentinel, and $FORKTAIL_URI, which applies when no option names a server
 * (options_read.c). */
error_t options_read_host(const char *text, struct options *o, struct given_options *given);
error_t options_read_server(const char *text, const char *what, struct options *o,
			    struct given_options *given);
error_t options_read_environment(struct options *o, struct given_options *given);
error_t options_read_sentinel(const char *text, struct options *o, struct given_options *given);
error_t options_read_behind(const char *text, struct options *o);
error_t options_read_read_from(const char *text, struct options *o);
error_t options_read_wait(const char *text, struct options *o);
error_t options_read_protocol(const char *text, struct options *o);
error_t options_read_on_error(const char *text, struct options *o);
error_t options_read_ycsb(const char *text, struct options *o);
error_t options_read_command(const char *text, struct options *o);
/* A file of commands (options_read.c). */
error_t options_read_commands(const char *path, struct options *o);
error_t options_read_command_ratio(const char *text, struct options *o);
error_t options_read_expiry(const char *text, struct options *o);
error_t options_read_profile(const char *text, struct options *o);
error_t options_read_cpus(const char *text, struct options *o);
error_t options_read_log_mode(const char *text, struct options *o);
error_t options_read_limit(const char *text, struct options *o);
error_t options_read_find(const char *text, struct options *o);
error_t options_read_statsd(const char *text, struct options *o);
/* "10%" or "10", as a share from 0 to 1. */
error_t options_read_percent(const char *text, const char *what, double *share);
error_t options_read_pubsub(const char *text, struct options *o);
error_t options_read_handoff(const char *text, struct options *o);
error_t options_read_replay_format(const char *text, struct options *o);
error_t options_read_replay_speed(const char *text, struct options *o);
error_t options_read_replay_order(const char *text, struct options *o);
error_t options_read_replay_sample(const char *text, struct options *o);

/* Checks that need all options: allowed combinations, and defaults that depend on other options. `error`
 * receives a sentence for the user, or "" without one. */

/* All checks, including the next three. */
void options_check(struct options *o, const struct given_options *g, char *error, size_t size);
/* The protocol implied by the schemes of addresses (options_read.c); called first. */
void options_check_schemes(struct options *o, const struct given_options *g, char *error, size_t size);
/* The servers of the load (options_read.c). */
void options_check_servers(struct options *o, const struct given_options *g, char *error, size_t size);
/* Applies --tls to every server's address, and checks related options (options_read.c). */
void options_check_tls(struct options *o, char *error, size_t size);
/* Reads the recording that --replay names, and sets what depends on it. Returns 0, or EXIT_ENVIRONMENT after
 * one sentence on stderr. */
int options_read_replay(struct options *o, const struct given_options *g);
#endif

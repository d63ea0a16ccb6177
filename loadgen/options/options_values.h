/* SPDX-License-Identifier: MIT */
/* Option values, one function per kind, for options_read.c: each stores the parsed value, or prints one
 * sentence with the expected form on stderr and returns the value for argp_parse. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_VALUES_H
#define FORKTAIL_LOADGEN_OPTIONS_VALUES_H

#include <errno.h>

#include "options.h"

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
 * (options_address.c). */
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
/* A file of commands (options_commands.c). */
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

#endif

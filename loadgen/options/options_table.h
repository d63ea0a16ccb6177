/* SPDX-License-Identifier: MIT */
/* The rows of the options, and what is checked when all were read. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_OPTIONS_TABLE_H
#define FORKTAIL_LOADGEN_OPTIONS_OPTIONS_TABLE_H

#include "common/options.h"
#include "loadgen/options.h"

extern const struct option_row options_rows[];

/* Readers of options_read.c: servers, and a file of commands. Each stores the value, or returns an error
 * after one sentence with the expected form on stderr. */

error_t options_read_host(const char *text, struct options *o);
error_t options_read_server(const struct option_row *row, const char *text, struct options *o);
error_t options_read_sentinel(const char *text, struct options *o);
error_t options_read_behind(const char *text, struct options *o);
error_t options_read_commands(const char *path, struct options *o);

/* Checks that need all options: allowed combinations, and defaults that depend on other options. `error`
 * receives a sentence for the user, or "" without one. */

/* All checks, including the next three. */
void options_check(struct options *o, char *error, size_t size);
/* The protocol implied by the schemes of addresses (options_read.c); called first. */
void options_check_schemes(struct options *o, char *error, size_t size);
/* The servers of the load (options_read.c). */
void options_check_servers(struct options *o, char *error, size_t size);
/* Applies --tls to every server's address, and checks related options (options_read.c). */
void options_check_tls(struct options *o, char *error, size_t size);
/* Reads the recording that --replay names, and sets what depends on it. Returns 0, or EXIT_ENVIRONMENT after
 * one sentence on stderr. */
int options_read_replay(struct options *o);
#endif

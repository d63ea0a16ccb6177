/* SPDX-License-Identifier: MIT */
/* Checks that need all options: allowed combinations, and defaults that depend on other options. `error`
 * receives a sentence for the user, or "" without one. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_CHECK_H
#define FORKTAIL_LOADGEN_OPTIONS_CHECK_H

#include "options_values.h"

/* All checks, including the next three. */
void options_check(struct options *o, const struct given_options *g, char *error, size_t size);
/* The protocol implied by the schemes of addresses (options_address.c); called first. */
void options_check_schemes(struct options *o, const struct given_options *g, char *error, size_t size);
/* The servers of the load (options_servers.c). */
void options_check_servers(struct options *o, const struct given_options *g, char *error, size_t size);
/* Applies --tls to every server's address, and checks related options (options_tls.c). */
void options_check_tls(struct options *o, char *error, size_t size);
/* Reads the recording that --replay names, and sets what depends on it. Returns 0, or EXIT_ENVIRONMENT after
 * one sentence on stderr. */
int options_read_replay(struct options *o, const struct given_options *g);

#endif

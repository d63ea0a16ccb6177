/* SPDX-License-Identifier: MIT */
/* What only shows when all options are known: whether they go together, and defaults that hang on others.
 * Where `error` is given, it becomes a sentence for the user, or "" when all is well. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_CHECK_H
#define FORKTAIL_LOADGEN_OPTIONS_CHECK_H

#include "options_values.h"

/* All of them, by way of the next three. */
void options_check(struct options *o, const struct given *g, char *error, size_t size);
/* What schemes of addresses say of the protocol (options_address.c); before all else. */
void options_check_schemes(struct options *o, const struct given *g, char *error, size_t size);
/* Where the load goes (options_servers.c). */
void options_check_servers(struct options *o, const struct given *g, char *error, size_t size);
/* Puts --tls into every server's address, and checks what goes with it (options_tls.c). */
void options_check_tls(struct options *o, char *error, size_t size);
/* Reads the recording that --replay names, and fills in what hangs on it. 0, or EXIT_ENVIRONMENT after one
 * sentence on stderr. */
int options_read_replay(struct options *o, const struct given *g);

#endif

/* SPDX-License-Identifier: MIT */
/* The part of a connection's set-up that hiredis can't read: HELLO 3, whose answer is a map. */
#ifndef FORKTAIL_LOADGEN_SETUP_RESP3_H
#define FORKTAIL_LOADGEN_SETUP_RESP3_H

#include <stdbool.h>
#include <stddef.h>

#include "loadgen/command/bytes.h"
#include "loadgen/net/link.h"

/* Switches the connection to RESP3 and, if requested, tracks the keys it reads (or all). Returns 0, or -1 and
 * the server's reaction, to follow its address. */
int resp3_begin(struct link *l, bool tracking, bool broadcast, char *what, size_t size);
/* The same for a reconnected connection: appends the commands. Returns their number, 0 without memory. */
uint8_t resp3_greeting(bool tracking, bool broadcast, struct bytes *to);

#endif

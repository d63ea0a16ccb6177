/* SPDX-License-Identifier: MIT */
/* The part of a connection's set-up that hiredis can't read: HELLO 3, whose answer is a map. */
#ifndef FORKTAIL_LOADGEN_SETUP_RESP3_H
#define FORKTAIL_LOADGEN_SETUP_RESP3_H

#include <stdbool.h>
#include <stddef.h>

#include "loadgen/command/bytes.h"
#include "loadgen/net/link.h"

/* Has the connection speak RESP3 and, if asked, track the keys it reads (or all). 0, or -1 and what the
 * server did, to go behind its address. */
int resp3_begin(struct link *l, bool tracking, bool broadcast, char *what, size_t size);
/* The same for a connection that is opened again: appends the commands. Their number, 0 for want of memory.
 */
uint8_t resp3_greeting(bool tracking, bool broadcast, struct bytes *to);

#endif

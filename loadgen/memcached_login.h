/* SPDX-License-Identifier: MIT */
/* Logging in to a memcached: SASL in the binary protocol (its -S), its own -Y in the others. */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_LOGIN_H
#define FORKTAIL_LOADGEN_MEMCACHED_LOGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "reply.h"

/* Appends the request that logs in. False: out of memory. */
bool memcached_login_request(enum protocol protocol, const char *user, const char *password,
			     struct bytes *to);
/* Whether the answer says that we are in. */
bool memcached_login_accepted(enum protocol protocol, const union reply_scanner *s);
/* Whether the answer to something else says that a login is wanted first. */
bool memcached_login_wanted(enum protocol protocol, const union reply_scanner *s);

#endif

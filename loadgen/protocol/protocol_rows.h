/* SPDX-License-Identifier: MIT */
/* The rows of the table, each in a separate file; for protocols.c, which collects them. */
#ifndef FORKTAIL_LOADGEN_PROTOCOL_ROWS_H
#define FORKTAIL_LOADGEN_PROTOCOL_ROWS_H

#include "protocol.h"

extern const struct protocol protocol_redis;	       /* protocol_redis.c */
extern const struct protocol protocol_memcache_text;   /* protocol_text.c */
extern const struct protocol protocol_memcache_binary; /* protocol_binary.c */
extern const struct protocol protocol_memcache_meta;   /* protocol_meta.c */

#endif

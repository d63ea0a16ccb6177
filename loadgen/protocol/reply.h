/* SPDX-License-Identifier: MIT */
/* Answers on the hot path, for every protocol: the end of a reply, and the result of its request. Code for
 * Redis is inlined, because at a million answers per second a call is measurable; other protocols use the
 * table. */
#ifndef FORKTAIL_LOADGEN_REPLY_H
#define FORKTAIL_LOADGEN_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "recording/format.h"

#include "memcached_binary.h"
#include "memcached_meta.h"
#include "memcached_text.h"
#include "protocol.h"
#include "resp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a connection; all zeros at rest. */
union reply_scanner {
	struct resp_scanner resp;
	struct memcached_text_scanner text;
	struct memcached_binary_scanner binary;
	struct memcached_meta_scanner meta;
};

/* The decimal number at `p` that ends before `end`. A number that is far too large for a length is
 * truncated. */
static inline size_t reply_number(const char *p, const char *end)
{
	size_t n = 0;

	while (p < end && *p >= '0' && *p <= '9' && n < SIZE_MAX / 100)
		n = n * 10 + (size_t)(*p++ - '0');
	return n;
}

/* Like resp_scan: 1 complete, 0 no more bytes, -1 not a reply. */
static inline int reply_scan(enum protocol_id protocol, union reply_scanner *s, const char **at,
			     const char *end)
{
	if (__builtin_expect(protocol == PROTOCOL_REDIS, 1))
		return resp_scan(&s->resp, at, end);
	return protocol_of(protocol)->scan(s, at, end);
}

/* The FT_STATUS_* of a complete Redis reply. */
static inline unsigned reply_status_redis(const union reply_scanner *s, const struct expected *e,
					  const char **word)
{
	uint8_t kind = s->resp.kind;

	if (kind == e->kind)
		return FT_STATUS_OK;
	if (kind == RESP_ERROR) {
		*word = s->resp.word;
		return FT_STATUS_ERROR_REPLY;
	}
	if (e->kind == REPLY_ANY)
		return kind == RESP_NIL ? FT_STATUS_MISS : FT_STATUS_OK;
	return e->miss && kind == e->miss ? FT_STATUS_MISS : FT_STATUS_WRONG;
}

/* The FT_STATUS_* of a complete reply. For an error reply *word is its class: the first word, or "OOM" if a
 * server uses several words for it. */
static inline unsigned reply_status(enum protocol_id protocol, const union reply_scanner *s,
				    const struct expected *e, const char **word)
{
	if (__builtin_expect(protocol != PROTOCOL_REDIS, 0))
		return protocol_of(protocol)->status(s, e, word);
	return reply_status_redis(s, e, word);
}

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Answers of every protocol under one name: where one ends, and what became of its request. */
#ifndef FORKTAIL_LOADGEN_REPLY_H
#define FORKTAIL_LOADGEN_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "recording/format.h"

#include "memcached_binary.h"
#include "memcached_meta.h"
#include "memcached_text.h"
#include "resp.h"
#include "workload.h"

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

/* As resp_scan: 1 complete, 0 the bytes ran out, -1 no reply. */
static inline int reply_scan(enum protocol protocol, union reply_scanner *s, const char **at, const char *end)
{
	if (__builtin_expect(protocol == PROTOCOL_REDIS, 1))
		return resp_scan(&s->resp, at, end);
	return protocol == PROTOCOL_MEMCACHE_TEXT   ? memcached_text_scan(&s->text, at, end)
	       : protocol == PROTOCOL_MEMCACHE_META ? memcached_meta_scan(&s->meta, at, end)
						    : memcached_binary_scan(&s->binary, at, end);
}

/* The FT_STATUS_* of memcached's reply; *word: an error's class, else as it was. */
unsigned reply_status_memcached(enum protocol protocol, const union reply_scanner *s, const struct step *step,
				const char **word);

/* The FT_STATUS_* of a complete reply to `step`. For an error reply *word is its class: the first word, or
 * "OOM" where a server says so in more of them. */
static inline unsigned reply_status(enum protocol protocol, const union reply_scanner *s,
				    const struct step *step, const char **word)
{
	char kind;

	if (__builtin_expect(protocol != PROTOCOL_REDIS, 0))
		return reply_status_memcached(protocol, s, step, word);
	kind = (char)s->resp.kind;
	if (kind == step->kind)
		return FT_STATUS_OK;
	if (kind == '-') {
		*word = s->resp.word;
		return FT_STATUS_ERROR_REPLY;
	}
	if (step->kind == 0)
		return kind == RESP_NIL ? FT_STATUS_MISS : FT_STATUS_OK;
	return step->nil_kind && kind == step->nil_kind ? FT_STATUS_MISS : FT_STATUS_WRONG;
}

#ifdef __cplusplus
}
#endif
#endif

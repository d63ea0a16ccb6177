/* SPDX-License-Identifier: MIT */
/* memcached's replies as statuses. The text protocol doesn't say which command it answers, so any of its
 * well-formed replies is taken for what it says. */
#include "reply.h"

static unsigned status_of_text(const struct memcached_text_scanner *s, const char **word)
{
	switch ((enum memcached_text_kind)s->kind) {
	case MEMCACHED_TEXT_MISS:
	case MEMCACHED_TEXT_NOT_FOUND:
	case MEMCACHED_TEXT_NOT_STORED:
	case MEMCACHED_TEXT_EXISTS:
		return FT_STATUS_MISS;
	case MEMCACHED_TEXT_ERROR:
		*word = memcached_text_out_of_memory(s) ? "OOM" : s->word;
		return FT_STATUS_ERROR_REPLY;
	case MEMCACHED_TEXT_NONE:
		return FT_STATUS_WRONG;
	case MEMCACHED_TEXT_HIT:
	case MEMCACHED_TEXT_STORED:
	case MEMCACHED_TEXT_DELETED:
	case MEMCACHED_TEXT_TOUCHED:
	case MEMCACHED_TEXT_OK:
	case MEMCACHED_TEXT_NUMBER:
	case MEMCACHED_TEXT_VERSION:
	case MEMCACHED_TEXT_STATS:
		break;
	}
	return FT_STATUS_OK;
}

static unsigned status_of_binary(const struct memcached_binary_scanner *s, const char **word)
{
	switch ((enum memcached_binary_kind)s->kind) {
	case MEMCACHED_BINARY_OK:
		return FT_STATUS_OK;
	case MEMCACHED_BINARY_MISS:
	case MEMCACHED_BINARY_EXISTS:
	case MEMCACHED_BINARY_NOT_STORED:
		return FT_STATUS_MISS;
	case MEMCACHED_BINARY_OUT_OF_MEMORY:
		*word = "OOM";
		return FT_STATUS_ERROR_REPLY;
	case MEMCACHED_BINARY_UNKNOWN_COMMAND:
	case MEMCACHED_BINARY_ERROR:
		*word = memcached_binary_status_name(s->status);
		return FT_STATUS_ERROR_REPLY;
	case MEMCACHED_BINARY_NONE:
		break;
	}
	return FT_STATUS_WRONG;
}

unsigned reply_status_memcached(enum protocol protocol, const union reply_scanner *s, const char **word)
{
	return protocol == PROTOCOL_MEMCACHE_TEXT ? status_of_text(&s->text, word) : status_of_binary(&s->binary, word);
}

/* SPDX-License-Identifier: MIT */
/* memcached's replies as statuses. A binary reply says which command it answers. One of the text protocol
 * doesn't, nor does one to a meta command, but few commands share a reply: what cannot be the answer to this
 * one is a wrong reply. */
#include "reply.h"

#include <stdbool.h>

static unsigned status_of_text(const struct memcached_text_scanner *s, const char **word)
{
	switch ((enum memcached_text_kind)s->kind) {
	case MEMCACHED_TEXT_MISS:
	case MEMCACHED_TEXT_NOT_FOUND:
	case MEMCACHED_TEXT_NOT_STORED:
	case MEMCACHED_TEXT_EXISTS:
		return FT_STATUS_MISS;
	case MEMCACHED_TEXT_ERROR:
		*word = memcached_text_out_of_memory(s) ? "OOM" : s->line.word;
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

/* Whether a text reply may answer a command of this kind (memcached_reply_kind). Errors answer any. */
static bool answers(uint8_t reply, char kind)
{
	switch ((enum memcached_text_kind)reply) {
	case MEMCACHED_TEXT_HIT:
	case MEMCACHED_TEXT_MISS:
		return kind == 'v';
	case MEMCACHED_TEXT_STORED:
	case MEMCACHED_TEXT_NOT_STORED:
	case MEMCACHED_TEXT_EXISTS:
		return kind == 's';
	case MEMCACHED_TEXT_NOT_FOUND:
		return kind != 'v' && kind != 'b';
	case MEMCACHED_TEXT_DELETED:
		return kind == 'd';
	case MEMCACHED_TEXT_TOUCHED:
		return kind == 't';
	case MEMCACHED_TEXT_NUMBER:
		return kind == 'n';
	case MEMCACHED_TEXT_OK:
	case MEMCACHED_TEXT_VERSION:
	case MEMCACHED_TEXT_STATS:
		return kind == 'b';
	case MEMCACHED_TEXT_NONE:
	case MEMCACHED_TEXT_ERROR:
		break;
	}
	return true;
}

static unsigned status_of_meta(const struct memcached_meta_scanner *s, const char **word)
{
	switch ((enum memcached_meta_kind)s->kind) {
	case MEMCACHED_META_VALUE:
	case MEMCACHED_META_DONE:
	case MEMCACHED_META_NOOP:
	case MEMCACHED_META_DEBUG:
	case MEMCACHED_META_VERSION:
		return FT_STATUS_OK;
	case MEMCACHED_META_MISS:
	case MEMCACHED_META_NOT_FOUND:
	case MEMCACHED_META_NOT_STORED:
	case MEMCACHED_META_EXISTS:
		return FT_STATUS_MISS;
	case MEMCACHED_META_ERROR:
		*word = memcached_meta_out_of_memory(s) ? "OOM" : s->line.word;
		return FT_STATUS_ERROR_REPLY;
	case MEMCACHED_META_STORED:
	case MEMCACHED_META_NONE:
		break;
	}
	return FT_STATUS_WRONG;
}

/* Whether a meta reply may answer a command of this kind (memcached_reply_kind). Errors answer any. */
static bool answers_meta(uint8_t reply, char kind)
{
	switch ((enum memcached_meta_kind)reply) {
	case MEMCACHED_META_VALUE:
		return kind == 'v' || kind == 'g' || kind == 'n';
	case MEMCACHED_META_DONE:
		return kind != 'v' && kind != 'b' && kind != 'e' && kind != 'V';
	case MEMCACHED_META_MISS:
		return kind == 'v' || kind == 'g' || kind == 't' || kind == 'e';
	case MEMCACHED_META_NOT_FOUND:
		return kind == 's' || kind == 'd' || kind == 'n';
	case MEMCACHED_META_NOT_STORED:
		return kind == 's' || kind == 'n';
	case MEMCACHED_META_EXISTS:
		return kind == 's' || kind == 'd' || kind == 'n';
	case MEMCACHED_META_NOOP:
		return kind == 'b';
	case MEMCACHED_META_DEBUG:
		return kind == 'e';
	case MEMCACHED_META_VERSION:
		return kind == 'V';
	case MEMCACHED_META_STORED:
		return false;
	case MEMCACHED_META_NONE:
	case MEMCACHED_META_ERROR:
		break;
	}
	return true;
}

unsigned reply_status_memcached(enum protocol protocol, const union reply_scanner *s, const struct step *step,
				const char **word)
{
	if (protocol == PROTOCOL_MEMCACHE_TEXT)
		return step->kind && !answers(s->text.kind, step->kind) ? FT_STATUS_WRONG
									: status_of_text(&s->text, word);
	if (protocol == PROTOCOL_MEMCACHE_META)
		return step->kind && !answers_meta(s->meta.kind, step->kind) ? FT_STATUS_WRONG
									     : status_of_meta(&s->meta, word);
	if (step->kind && s->binary.opcode != (uint8_t)(step->kind - 1))
		return FT_STATUS_WRONG;
	return status_of_binary(&s->binary, word);
}

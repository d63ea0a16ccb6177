/* SPDX-License-Identifier: MIT */
/* Walks an RDB. The layout is that of Redis 2.4 to 8.0 (RDB versions 1 to 12): opcodes and types are bytes,
 * lengths and strings as in Redis' rdb.c. Compressed strings (LZF) contain their length, so they need not be
 * decompressed. Values of modules are distinguished by small opcodes. Every loop consumes at least a byte per
 * iteration, so a wrong count ends where the bytes do. */
#include "loadgen/replay.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC_BYTES = 9, CHECKSUM_BYTES = 8, CHECKSUM_SINCE = 5, VERSION_MAX = 12, STREAM_ID_BYTES = 16 };

enum opcode {
	OPCODE_SLOT_INFO = 244,
	OPCODE_FUNCTION = 245,
	OPCODE_FUNCTION_PRE_GA = 246,
	OPCODE_MODULE_AUX = 247,
	OPCODE_IDLE = 248,
	OPCODE_FREQ = 249,
	OPCODE_AUX = 250,
	OPCODE_RESIZE = 251,
	OPCODE_EXPIRE_MS = 252,
	OPCODE_EXPIRE_S = 253,
	OPCODE_SELECT = 254,
	OPCODE_END = 255,
};

enum type {
	TYPE_STRING = 0,
	TYPE_LIST = 1,
	TYPE_SET = 2,
	TYPE_ZSET = 3,
	TYPE_HASH = 4,
	TYPE_ZSET_2 = 5,
	TYPE_MODULE_2 = 7,
	TYPE_HASH_ZIPMAP = 9,
	TYPE_LIST_ZIPLIST = 10,
	TYPE_SET_INTSET = 11,
	TYPE_ZSET_ZIPLIST = 12,
	TYPE_HASH_ZIPLIST = 13,
	TYPE_LIST_QUICKLIST = 14,
	TYPE_STREAM = 15,
	TYPE_HASH_LISTPACK = 16,
	TYPE_ZSET_LISTPACK = 17,
	TYPE_LIST_QUICKLIST_2 = 18,
	TYPE_STREAM_2 = 19,
	TYPE_SET_LISTPACK = 20,
	TYPE_STREAM_3 = 21,
	TYPE_HASH_EXPIRING = 24,
	TYPE_HASH_LISTPACK_EXPIRING = 25,
};

/* Of a module's value. */
enum module_opcode { MODULE_END, MODULE_SINT, MODULE_UINT, MODULE_FLOAT, MODULE_DOUBLE, MODULE_STRING };

struct walk {
	const unsigned char *at, *end;
	bool bad;    /* not an RDB; otherwise the bytes ran out */
	int unknown; /* an unknown type or opcode; -1: none */
};

static bool skip(struct walk *w, uint64_t bytes)
{
	if ((uint64_t)(w->end - w->at) < bytes)
		return false;
	w->at += bytes;
	return true;
}

static bool take_byte(struct walk *w, unsigned *byte)
{
	if (w->at == w->end)
		return false;
	*byte = *w->at++;
	return true;
}

/* A length. *special: it is a string's encoding instead. */
static bool take_length(struct walk *w, uint64_t *length, bool *special)
{
	unsigned first, next;
	int bytes;

	*special = false;
	*length = 0;
	if (!take_byte(w, &first))
		return false;
	switch (first >> 6) {
	case 0:
		*length = first & 63;
		return true;
	case 1:
		if (!take_byte(w, &next))
			return false;
		*length = (first & 63) << 8 | next;
		return true;
	case 2:
		bytes = first == 0x80 ? 4 : first == 0x81 ? 8 : 0;
		w->bad = bytes == 0;
		for (int i = 0; i < bytes; i++) {
			if (!take_byte(w, &next))
				return false;
			*length = *length << 8 | next;
		}
		return bytes > 0;
	default:
		*special = true;
		*length = first & 63;
		return true;
	}
}

static bool plain_length(struct walk *w, uint64_t *length)
{
	bool special;

	if (!take_length(w, length, &special))
		return false;
	w->bad |= special;
	return !special;
}

static bool skip_lengths(struct walk *w, int count)
{
	uint64_t ignored;

	while (count-- > 0)
		if (!plain_length(w, &ignored))
			return false;
	return true;
}

static bool skip_string(struct walk *w)
{
	uint64_t length, packed;
	bool special;

	if (!take_length(w, &length, &special))
		return false;
	if (!special)
		return skip(w, length);
	if (length <= 2) /* an integer of 8, 16 or 32 bits */
		return skip(w, 1u << length);
	if (length == 3) /* LZF */
		return plain_length(w, &packed) && plain_length(w, &length) && skip(w, packed);
	w->bad = true;
	return false;
}

static bool skip_strings(struct walk *w, uint64_t count)
{
	while (count-- > 0)
		if (!skip_string(w))
			return false;
	return true;
}

/* A sorted set with scores as text: a byte gives its length, or says that it is not a number or infinite. */
static bool skip_zset(struct walk *w, uint64_t count)
{
	unsigned length;

	while (count-- > 0)
		if (!skip_string(w) || !take_byte(w, &length) || !skip(w, length < 253 ? length : 0))
			return false;
	return true;
}

static bool skip_zset_2(struct walk *w, uint64_t count)
{
	while (count-- > 0)
		if (!skip_string(w) || !skip(w, 8))
			return false;
	return true;
}

static bool skip_quicklist(struct walk *w, uint64_t count)
{
	while (count-- > 0)
		if (!skip_lengths(w, 1) || !skip_string(w))
			return false;
	return true;
}

/* Fields with individual times to live. */
static bool skip_expiring_hash(struct walk *w)
{
	uint64_t count;

	if (!skip(w, 8) || !plain_length(w, &count))
		return false;
	while (count-- > 0)
		if (!skip_lengths(w, 1) || !skip_strings(w, 2))
			return false;
	return true;
}

static bool skip_consumers(struct walk *w, enum type type)
{
	uint64_t consumers, pending;

	if (!plain_length(w, &consumers))
		return false;
	while (consumers-- > 0) {
		if (!skip_string(w) || !skip(w, type >= TYPE_STREAM_3 ? 16 : 8) || !plain_length(w, &pending))
			return false;
		while (pending-- > 0)
			if (!skip(w, STREAM_ID_BYTES))
				return false;
	}
	return true;
}

static bool skip_stream(struct walk *w, enum type type)
{
	uint64_t count;

	if (!plain_length(w, &count))
		return false;
	while (count-- > 0) /* listpacks by their first id */
		if (!skip_strings(w, 2))
			return false;
	/* length, last id; since 7.0 first id, greatest deleted id, entries added */
	if (!skip_lengths(w, type == TYPE_STREAM ? 3 : 8) || !plain_length(w, &count))
		return false;
	while (count-- > 0) {
		uint64_t pending;

		/* a group's name, last id, and since 7.0 entries read */
		if (!skip_string(w) || !skip_lengths(w, type == TYPE_STREAM ? 2 : 3) ||
		    !plain_length(w, &pending))
			return false;
		while (pending-- > 0)
			if (!skip(w, STREAM_ID_BYTES + 8) || !skip_lengths(w, 1))
				return false;
		if (!skip_consumers(w, type))
			return false;
	}
	return true;
}

/* The data of a module, up to its end mark. */
static bool skip_module(struct walk *w)
{
	uint64_t opcode;

	for (;;) {
		bool good = false;

		if (!plain_length(w, &opcode))
			return false;
		switch (opcode) {
		case MODULE_END:
			return true;
		case MODULE_SINT:
		case MODULE_UINT:
			good = skip_lengths(w, 1);
			break;
		case MODULE_FLOAT:
			good = skip(w, 4);
			break;
		case MODULE_DOUBLE:
			good = skip(w, 8);
			break;
		case MODULE_STRING:
			good = skip_string(w);
			break;
		default:
			w->bad = true;
		}
		if (!good)
			return false;
	}
}

static bool skip_value(struct walk *w, unsigned type)
{
	uint64_t count;

	switch (type) {
	case TYPE_STRING:
	case TYPE_HASH_ZIPMAP:
	case TYPE_LIST_ZIPLIST:
	case TYPE_SET_INTSET:
	case TYPE_ZSET_ZIPLIST:
	case TYPE_HASH_ZIPLIST:
	case TYPE_HASH_LISTPACK:
	case TYPE_ZSET_LISTPACK:
	case TYPE_SET_LISTPACK:
		return skip_string(w);
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_LIST_QUICKLIST:
		return plain_length(w, &count) && skip_strings(w, count);
	case TYPE_HASH:
		return plain_length(w, &count) && skip_strings(w, count) && skip_strings(w, count);
	case TYPE_ZSET:
		return plain_length(w, &count) && skip_zset(w, count);
	case TYPE_ZSET_2:
		return plain_length(w, &count) && skip_zset_2(w, count);
	case TYPE_LIST_QUICKLIST_2:
		return plain_length(w, &count) && skip_quicklist(w, count);
	case TYPE_STREAM:
	case TYPE_STREAM_2:
	case TYPE_STREAM_3:
		return skip_stream(w, (enum type)type);
	case TYPE_HASH_EXPIRING:
		return skip_expiring_hash(w);
	case TYPE_HASH_LISTPACK_EXPIRING:
		return skip(w, 8) && skip_string(w);
	case TYPE_MODULE_2:
		return skip_lengths(w, 1) && skip_module(w);
	default:
		w->unknown = (int)type;
		return false;
	}
}

/* One opcode, or a key and its value. False: the bytes ran out, or are not an RDB. */
static bool skip_entry(struct walk *w, unsigned opcode, struct rdb_facts *facts)
{
	switch (opcode) {
	case OPCODE_SLOT_INFO:
		return skip_lengths(w, 3);
	case OPCODE_FUNCTION:
		facts->functions++;
		return skip_string(w);
	case OPCODE_MODULE_AUX: /* which module, then when it was written */
		return skip_lengths(w, 3) && skip_module(w);
	case OPCODE_IDLE:
	case OPCODE_SELECT:
		return skip_lengths(w, 1);
	case OPCODE_FREQ:
		return skip(w, 1);
	case OPCODE_AUX:
		return skip_strings(w, 2);
	case OPCODE_RESIZE:
		return skip_lengths(w, 2);
	case OPCODE_EXPIRE_MS:
		return skip(w, 8);
	case OPCODE_EXPIRE_S:
		return skip(w, 4);
	default:
		facts->keys++;
		if (opcode <= TYPE_HASH_LISTPACK_EXPIRING)
			return skip_string(w) && skip_value(w, opcode);
		w->unknown = (int)opcode;
		return false;
	}
}

size_t rdb_length(const char *at, const char *end, struct rdb_facts *facts, char *error, size_t size)
{
	struct walk w = {.at = (const unsigned char *)at, .end = (const unsigned char *)end, .unknown = -1};
	const unsigned char *entry;
	unsigned opcode;

	*facts = (struct rdb_facts){0};
	if (end - at < MAGIC_BYTES || memcmp(at, "REDIS", 5) != 0) {
		snprintf(error, size, "is not an RDB file");
		return 0;
	}
	for (w.at += 5; w.at < (const unsigned char *)at + MAGIC_BYTES; w.at++) {
		if (*w.at < '0' || *w.at > '9') {
			snprintf(error, size, "has no version number");
			return 0;
		}
		facts->version = facts->version * 10 + (*w.at - '0');
	}
	if (facts->version == 0 || facts->version > VERSION_MAX) {
		snprintf(error, size, "has version %u; supported are 1 to %d", facts->version, VERSION_MAX);
		return 0;
	}
	while (entry = w.at, take_byte(&w, &opcode)) {
		if (opcode == OPCODE_END) {
			if (facts->version >= CHECKSUM_SINCE && !skip(&w, CHECKSUM_BYTES))
				break;
			return (size_t)((const char *)w.at - at);
		}
		if (skip_entry(&w, opcode, facts))
			continue;
		if (w.unknown >= 0)
			snprintf(error, size, "has an entry of unknown kind %d at byte %zu", w.unknown,
				 (size_t)((const char *)entry - at));
		else if (w.bad)
			snprintf(error, size, "is damaged in the entry at byte %zu",
				 (size_t)((const char *)entry - at));
		else
			break;
		return 0;
	}
	snprintf(error, size, "is truncated");
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The scanner of memcached's binary replies. A header that is complete in the buffer is read in place. A
 * split header is gathered in the scanner, 24 bytes, because it can't be interpreted in parts. Bodies are
 * skipped. */
#include "memcached_binary.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

/* Offsets in the header, from memcached's doc/protocol-binary.txt. */
enum {
	MAGIC_AT = 0,
	OPCODE_AT = 1,
	KEY_LENGTH_AT = 2,
	EXTRAS_LENGTH_AT = 4,
	STATUS_AT = 6,
	BODY_LENGTH_AT = 8,
	OPAQUE_AT = 12,
	LENGTHS_END = 12, /* all lengths are known from here on */
};

enum { REPLY_MAGIC = 0x81 };

static inline uint32_t number32(const uint8_t *at)
{
	uint32_t n;

	memcpy(&n, at, sizeof(n));
	return ntohl(n);
}

static inline uint16_t number16(const uint8_t *at)
{
	uint16_t n;

	memcpy(&n, at, sizeof(n));
	return ntohs(n);
}

/* Whether the lengths in a header are valid: key and extras are parts of the body. */
static inline bool lengths_fit(const uint8_t *header)
{
	uint32_t body = number32(header + BODY_LENGTH_AT);

	return body <= MEMCACHED_BINARY_BODY &&
	       (uint32_t)number16(header + KEY_LENGTH_AT) + header[EXTRAS_LENGTH_AT] <= body;
}

static uint8_t kind_of_error(uint16_t status)
{
	switch (status) {
	case 0x01:
		return MEMCACHED_BINARY_MISS;
	case 0x02:
		return MEMCACHED_BINARY_EXISTS;
	case 0x05:
		return MEMCACHED_BINARY_NOT_STORED;
	case 0x81:
		return MEMCACHED_BINARY_UNKNOWN_COMMAND;
	case 0x82:
		return MEMCACHED_BINARY_OUT_OF_MEMORY;
	default:
		return MEMCACHED_BINARY_ERROR;
	}
}

const char *memcached_binary_status_name(uint16_t status)
{
	switch (status) {
	case 0x00:
		return "NO_ERROR";
	case 0x01:
		return "KEY_NOT_FOUND";
	case 0x02:
		return "KEY_EXISTS";
	case 0x03:
		return "VALUE_TOO_LARGE";
	case 0x04:
		return "INVALID_ARGUMENTS";
	case 0x05:
		return "ITEM_NOT_STORED";
	case 0x06:
		return "NON_NUMERIC_VALUE";
	case 0x07:
		return "WRONG_VBUCKET";
	case 0x08:
	case 0x20:
		return "AUTHENTICATION_ERROR";
	case 0x09:
	case 0x21:
		return "AUTHENTICATION_CONTINUE";
	case 0x81:
		return "UNKNOWN_COMMAND";
	case 0x82:
		return "OUT_OF_MEMORY";
	case 0x83:
		return "NOT_SUPPORTED";
	case 0x84:
		return "INTERNAL_ERROR";
	case 0x85:
		return "BUSY";
	case 0x86:
		return "TEMPORARY_FAILURE";
	default:
		return "UNKNOWN_STATUS";
	}
}

static inline void read_header(struct memcached_binary_scanner *s, const uint8_t *header)
{
	s->opcode = header[OPCODE_AT];
	s->status = number16(header + STATUS_AT);
	s->kind = s->status == 0 ? MEMCACHED_BINARY_OK : kind_of_error(s->status);
	memcpy(&s->opaque, header + OPAQUE_AT, sizeof(s->opaque));
	s->left = number32(header + BODY_LENGTH_AT);
}

/* Gathers a header byte by byte. 0: continue, -1: not a reply. */
static int header_byte(struct memcached_binary_scanner *s, uint8_t byte)
{
	if (s->have == MAGIC_AT && byte != REPLY_MAGIC)
		return -1;
	s->header[s->have] = byte;
	if (s->have == LENGTHS_END - 1 && !lengths_fit(s->header))
		return -1;
	if (++s->have == MEMCACHED_BINARY_HEADER)
		read_header(s, s->header);
	return 0;
}

/* Continues with a split reply, or refuses invalid bytes. */
static int scan_cut(struct memcached_binary_scanner *s, const char **at, const char *end)
{
	uint32_t have, skip;

	for (; s->have < MEMCACHED_BINARY_HEADER; ++*at) {
		if (*at == end)
			return 0;
		if (header_byte(s, (uint8_t) * *at) < 0)
			return -1;
	}
	have = end - *at < MEMCACHED_BINARY_BODY ? (uint32_t)(end - *at) : MEMCACHED_BINARY_BODY;
	skip = have < s->left ? have : s->left;
	s->left -= skip;
	*at += skip;
	if (s->left > 0)
		return 0;
	s->have = 0;
	return 1;
}

int memcached_binary_scan(struct memcached_binary_scanner *s, const char **at, const char *end)
{
	const uint8_t *header = (const uint8_t *)*at;

	if (s->have == 0 && end - *at >= MEMCACHED_BINARY_HEADER && header[MAGIC_AT] == REPLY_MAGIC &&
	    lengths_fit(header)) {
		uint32_t body = number32(header + BODY_LENGTH_AT);

		if (end - *at - MEMCACHED_BINARY_HEADER >= (ptrdiff_t)body) {
			read_header(s, header);
			s->left = 0;
			*at += MEMCACHED_BINARY_HEADER + body;
			return 1;
		}
	}
	return scan_cut(s, at, end);
}

/* SPDX-License-Identifier: MIT */
/* The scanner of memcached's binary replies. A header that is complete in the buffer is read in place. A
 * split header is gathered in the scanner, 24 bytes, because it can't be interpreted in parts. Bodies are
 * skipped. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/protocol.h"

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

/* memcached's binary protocol: requests, and the meaning of answers. An answer contains its command. A login
 * uses SASL (memcached's -S) with PLAIN, which every server supports that accepts passwords. */

enum { SASL_AUTH = 0x21, AUTHENTICATION_ERROR = 0x20 };

/* ---- requests ---- */

static bool fits(const struct command *c, char *error, size_t size)
{
	return memcached_fits(PROTOCOL_MEMCACHE_BINARY, c, error, size);
}

static void expect(const struct command *c, struct expected *e)
{
	e->kind = REPLY_OPCODE;
	e->opcode = (uint8_t)c->row->opcodes[0];
}

/* The value of a word of digits. */
static uint64_t number_of(const struct command *c, uint32_t index, const struct drawn *drawn)
{
	const struct command_part *p = &c->parts[c->words[index].first];

	return p->kind == PART_TEXT ? strtoull(p->text, NULL, 10) : drawn[0].number;
}

static bool write_request(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	struct __attribute__((packed)) {
		uint8_t magic, opcode;
		uint16_t key_length;
		uint8_t extras_length, data_type;
		uint16_t vbucket;
		uint32_t body_length, opaque;
		uint64_t cas;
	} header = {.magic = 0x80};
	struct drawn key[WORD_PARTS_MAX], data[WORD_PARTS_MAX], expiry[WORD_PARTS_MAX];
	const uint8_t form = c->row->memcached.form;
	size_t key_length = 0, data_length = 0;
	uint32_t expires = 0, flags = 0;
	char extras[20];
	uint64_t delta;

	header.opcode = (uint8_t)c->row->opcodes[0];
	if (c->word_count > 1)
		key_length = draw_word(c, 1, f, v, random, key);
	if (c->word_count > 2)
		data_length = draw_word(c, 2, f, v, random, data);
	if (c->word_count > 3) {
		draw_word(c, 3, f, v, random, expiry);
		expires = htobe32((uint32_t)number_of(c, 3, expiry));
	}
	if (form == FORM_STORE && header.opcode < 0x0e) {
		memcpy(extras, &flags, 4);
		memcpy(extras + 4, &expires, 4);
		header.extras_length = 8;
	} else if (form == FORM_NUMBER) {
		/* No initial value: a missing counter is a miss, as in the text protocol. */
		delta = htobe64(number_of(c, 2, data));
		memset(extras, 0, sizeof(extras));
		memcpy(extras, &delta, 8);
		memset(extras + 16, 0xff, 4);
		header.extras_length = 20;
		data_length = 0;
	} else if (form == FORM_EXPIRY) {
		expires = htobe32((uint32_t)number_of(c, 2, data));
		memcpy(extras, &expires, 4);
		header.extras_length = 4;
		data_length = 0;
	}
	header.key_length = htobe16((uint16_t)key_length);
	header.body_length = htobe32((uint32_t)(header.extras_length + key_length + data_length));
	if (!bytes_reserve(to, sizeof(header) + header.extras_length))
		return false;
	bytes_add(to, &header, sizeof(header));
	bytes_add(to, extras, header.extras_length);
	return (c->word_count < 2 || write_drawn(c, 1, key, key_length, f, v, to, patches)) &&
	       (data_length == 0 || write_drawn(c, 2, data, data_length, f, v, to, patches));
}

static bool login(const char *user, const char *password, struct bytes *to)
{
	static const char mechanism[] = "PLAIN";
	size_t user_length = strlen(user), password_length = strlen(password);
	size_t key_length = sizeof(mechanism) - 1, value_length = user_length + password_length + 2;
	char header[MEMCACHED_BINARY_HEADER] = {(char)0x80, SASL_AUTH};
	uint16_t key = htobe16((uint16_t)key_length);
	uint32_t body = htobe32((uint32_t)(key_length + value_length));

	memcpy(header + 2, &key, sizeof(key));
	memcpy(header + 8, &body, sizeof(body));
	if (!bytes_reserve(to, sizeof(header) + key_length + value_length))
		return false;
	bytes_add(to, header, sizeof(header));
	bytes_add(to, mechanism, key_length);
	bytes_add(to, "", 1); /* authorization identity: the user */
	bytes_add(to, user, user_length + 1);
	bytes_add(to, password, password_length);
	return true;
}

/* ---- answers ---- */

static int scan(union reply_scanner *s, const char **at, const char *end)
{
	return memcached_binary_scan(&s->binary, at, end);
}

static unsigned status_of(const struct memcached_binary_scanner *s, const char **word)
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

static unsigned status(const union reply_scanner *s, const struct expected *e, const char **word)
{
	/* Requests are numbered 0: another number is of an answer to something else. */
	const bool other = s->binary.opcode != e->opcode || s->binary.opaque != 0;

	return e->kind == REPLY_OPCODE && other ? FT_STATUS_WRONG : status_of(&s->binary, word);
}

/* The body of an error is not kept: its status has a name. */
static void error_text(const union reply_scanner *s, char *out, size_t size)
{
	(void)s, (void)size;
	*out = 0;
}

static bool accepted(const union reply_scanner *s)
{
	return s->binary.opcode == SASL_AUTH && s->binary.status == 0;
}

static bool wants_login(const union reply_scanner *s)
{
	return s->binary.status == AUTHENTICATION_ERROR;
}

/* After the header, extras and key. */
static bool find_value(const char *reply, size_t length, size_t *at, size_t *bytes)
{
	const uint8_t *header = (const uint8_t *)reply;
	uint32_t body, before;

	if (length < MEMCACHED_BINARY_HEADER)
		return false;
	body = (uint32_t)header[8] << 24 | (uint32_t)header[9] << 16 | (uint32_t)header[10] << 8 | header[11];
	before = header[4] + ((uint32_t)header[2] << 8 | header[3]);
	*at = MEMCACHED_BINARY_HEADER + before;
	*bytes = body - before;
	return body >= before && *at + *bytes <= length;
}

/* ---- the row ---- */

const struct protocol protocol_memcache_binary = {
    .name = "memcache_binary",
    .product = &memcached_product,
    .ping = "noop",
    .fits = fits,
    .expect = expect,
    .write = write_request,
    .login = login,
    .scan = scan,
    .status = status,
    .error_text = error_text,
    .accepted = accepted,
    .wants_login = wants_login,
    .find_value = find_value,
};

/* SPDX-License-Identifier: MIT */
/* memcached's binary protocol: requests, and the meaning of answers. An answer contains its command. A login
 * uses SASL (memcached's -S) with PLAIN, which every server supports that accepts passwords. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/command/draw.h"
#include "protocol_memcached.h"
#include "protocol_rows.h"
#include "reply.h"

enum { SASL_AUTH = 0x21, AUTHENTICATION_ERROR = 0x20 };

/* ---- requests ---- */

static bool fits(const struct command *c, char *error, size_t size)
{
	return memcached_verb_fits(c, memcached_verb_of(c), error, size);
}

static void expect(const struct command *c, struct expected *e)
{
	e->kind = REPLY_OPCODE;
	e->opcode = memcached_verb_of(c)->opcode;
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
	const struct memcached_verb *verb = memcached_verb_of(c);
	size_t key_length = 0, data_length = 0;
	uint32_t expires = 0, flags = 0;
	char extras[20];
	uint64_t delta;

	header.opcode = verb->opcode;
	if (c->word_count > 1)
		key_length = draw_word(c, 1, f, v, random, key);
	if (c->word_count > 2)
		data_length = draw_word(c, 2, f, v, random, data);
	if (c->word_count > 3) {
		draw_word(c, 3, f, v, random, expiry);
		expires = htobe32((uint32_t)number_of(c, 3, expiry));
	}
	if (verb->form == FORM_STORE && verb->opcode < 0x0e) {
		memcpy(extras, &flags, 4);
		memcpy(extras + 4, &expires, 4);
		header.extras_length = 8;
	} else if (verb->form == FORM_NUMBER) {
		/* No initial value: a missing counter is a miss, as in the text protocol. */
		delta = htobe64(number_of(c, 2, data));
		memset(extras, 0, sizeof(extras));
		memcpy(extras, &delta, 8);
		memset(extras + 16, 0xff, 4);
		header.extras_length = 20;
		data_length = 0;
	} else if (verb->form == FORM_EXPIRY) {
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

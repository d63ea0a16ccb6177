/* SPDX-License-Identifier: MIT */
/* memcached's text protocol: requests, and the meaning of answers. An answer doesn't name its command, but
 * few commands share one: an answer that does not fit its command is a wrong reply. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/command/draw.h"
#include "protocol_memcached.h"
#include "protocol_rows.h"
#include "reply.h"

/* ---- requests ---- */

static bool fits(const struct command *c, char *error, size_t size)
{
	const struct memcached_verb *v = memcached_verb_of(c);

	return memcached_verb_fits(c, v && v->binary_only ? NULL : v, error, size);
}

static void expect(const struct command *c, struct expected *e)
{
	static const uint8_t of_form[] = {[FORM_KEY] = REPLY_VALUE,
					  [FORM_STORE] = REPLY_STORED,
					  [FORM_NUMBER] = REPLY_INTEGER,
					  [FORM_EXPIRY] = REPLY_TOUCHED,
					  [FORM_BARE] = REPLY_OTHER};
	const struct memcached_verb *v = memcached_verb_of(c);

	e->kind = strcmp(v->name, "DELETE") == 0 ? REPLY_DELETED : of_form[v->form];
}

static bool write_request(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	const struct memcached_verb *verb = memcached_verb_of(c);
	struct drawn data[WORD_PARTS_MAX];
	char head[24];
	size_t length;

	/* The server accepts lower case only. */
	for (length = 0; verb->name[length]; length++)
		head[length] = (char)tolower(verb->name[length]);
	head[length] = 0;
	if (!bytes_add_text(to, head))
		return false;
	for (uint32_t i = 1; i < c->word_count && (verb->form != FORM_STORE || i == 1); i++)
		if (!bytes_add_text(to, " ") || !write_word(c, i, f, v, random, to, patches))
			return false;
	if (verb->form != FORM_STORE)
		return bytes_add_text(to, "\r\n");
	if (!bytes_add_text(to, " 0 ") ||
	    !(c->word_count > 3 ? write_word(c, 3, f, v, random, to, patches) : bytes_add_text(to, "0")))
		return false;
	length = draw_word(c, 2, f, v, random, data);
	snprintf(head, sizeof(head), " %zu\r\n", length);
	return bytes_add_text(to, head) && write_drawn(c, 2, data, length, f, v, to, patches) &&
	       bytes_add_text(to, "\r\n");
}

/* ---- answers ---- */

static int scan(union reply_scanner *s, const char **at, const char *end)
{
	return memcached_text_scan(&s->text, at, end);
}

static const struct memcached_meaning meanings[] = {
    [MEMCACHED_TEXT_NONE] = {FT_STATUS_WRONG, {REPLY_ANY}},
    [MEMCACHED_TEXT_HIT] = {FT_STATUS_OK, {REPLY_VALUE}},
    [MEMCACHED_TEXT_MISS] = {FT_STATUS_MISS, {REPLY_VALUE}},
    [MEMCACHED_TEXT_STORED] = {FT_STATUS_OK, {REPLY_STORED}},
    [MEMCACHED_TEXT_NOT_STORED] = {FT_STATUS_MISS, {REPLY_STORED}},
    [MEMCACHED_TEXT_EXISTS] = {FT_STATUS_MISS, {REPLY_STORED}},
    [MEMCACHED_TEXT_NOT_FOUND] = {FT_STATUS_MISS,
				  {REPLY_STORED, REPLY_DELETED, REPLY_TOUCHED, REPLY_INTEGER}},
    [MEMCACHED_TEXT_DELETED] = {FT_STATUS_OK, {REPLY_DELETED}},
    [MEMCACHED_TEXT_TOUCHED] = {FT_STATUS_OK, {REPLY_TOUCHED}},
    [MEMCACHED_TEXT_OK] = {FT_STATUS_OK, {REPLY_OTHER}},
    [MEMCACHED_TEXT_NUMBER] = {FT_STATUS_OK, {REPLY_INTEGER}},
    [MEMCACHED_TEXT_VERSION] = {FT_STATUS_OK, {REPLY_OTHER}},
    [MEMCACHED_TEXT_STATS] = {FT_STATUS_OK, {REPLY_OTHER}},
    [MEMCACHED_TEXT_ERROR] = {FT_STATUS_ERROR_REPLY, {REPLY_ANY}},
};

static unsigned status(const union reply_scanner *s, const struct expected *e, const char **word)
{
	return memcached_line_status(&meanings[s->text.kind], &s->text.line, e, word);
}

static void error_text(const union reply_scanner *s, char *out, size_t size)
{
	memcached_line_error(&s->text.line, out, size);
}

static bool accepted(const union reply_scanner *s)
{
	return s->text.kind == MEMCACHED_TEXT_STORED;
}

static bool wants_login(const union reply_scanner *s)
{
	return s->text.kind == MEMCACHED_TEXT_ERROR && memcached_line_unauthenticated(&s->text.line);
}

/* VALUE key flags bytes [unique] */
static bool find_value(const char *reply, size_t length, size_t *at, size_t *bytes)
{
	return memcached_find_value(reply, length, 3, at, bytes);
}

/* ---- the row ---- */

const struct protocol protocol_memcache_text = {
    .name = "memcache_text",
    .product = &memcached_product,
    .ping = "version",
    .fits = fits,
    .expect = expect,
    .write = write_request,
    .login = memcached_line_login,
    .scan = scan,
    .status = status,
    .error_text = error_text,
    .accepted = accepted,
    .wants_login = wants_login,
    .find_value = find_value,
};

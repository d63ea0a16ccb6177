/* SPDX-License-Identifier: MIT */
/* memcached's meta commands. Classic commands are sent as the equivalent meta command (get as "mg KEY v"), so
 * that one workload can use both. Meta commands are sent as written, except that DATA in second place is
 * replaced by the length: "ms KEY DATA T30". Each request gets an opaque number, which the server repeats in
 * its answer. So a misplaced answer is detected at once (meta_answer.c) instead of being counted for another
 * request. An answer that does not fit its command is a wrong reply, as in the text protocol. */
#include <stdio.h>
#include <string.h>

#include "loadgen/command/draw.h"
#include "protocol_memcached.h"
#include "protocol_rows.h"
#include "reply.h"

/* ---- requests ---- */

enum meta_form { META_PLAIN, META_STORE, META_BARE };

/* The form of a command on the wire. */
static const struct meta_verb {
	const char *name, *verb;
	const char *before; /* the text before the third word, if that isn't data */
	const char *flags;  /* appended last */
	enum meta_form form;
	uint8_t words_min, words_max;
	uint8_t kind; /* enum reply_kind of its answer */
	bool native;  /* words from the third on are flags (from the fourth, for a store) */
	bool silent;  /* its misses may get no answer */
} verbs[] = {
    {"GET", "mg", "", " v", META_PLAIN, 2, 2, REPLY_VALUE, false, true},
    {"GETS", "mg", "", " c v", META_PLAIN, 2, 2, REPLY_VALUE, false, true},
    {"SET", "ms", " T", "", META_STORE, 3, 4, REPLY_STORED, false, false},
    {"ADD", "ms", " T", " ME", META_STORE, 3, 4, REPLY_STORED, false, false},
    {"REPLACE", "ms", " T", " MR", META_STORE, 3, 4, REPLY_STORED, false, false},
    {"APPEND", "ms", "", " MA", META_STORE, 3, 3, REPLY_STORED, false, false},
    {"PREPEND", "ms", "", " MP", META_STORE, 3, 3, REPLY_STORED, false, false},
    {"DELETE", "md", "", "", META_PLAIN, 2, 2, REPLY_DELETED, false, false},
    {"INCR", "ma", " D", " v", META_PLAIN, 3, 3, REPLY_INTEGER, false, false},
    {"DECR", "ma", " D", " MD v", META_PLAIN, 3, 3, REPLY_INTEGER, false, false},
    {"TOUCH", "mg", " T", "", META_PLAIN, 3, 3, REPLY_TOUCHED, false, false},
    {"VERSION", "version", "", "", META_BARE, 1, 1, REPLY_VERSION, false, false},
    {"NOOP", "mn", "", "", META_BARE, 1, 1, REPLY_NOOP, false, false},
    {"MG", "mg", " ", "", META_PLAIN, 2, 16, REPLY_ITEM, true, true},
    {"MS", "ms", " ", "", META_STORE, 3, 16, REPLY_STORED, true, false},
    {"MD", "md", " ", "", META_PLAIN, 2, 16, REPLY_DELETED, true, false},
    {"MA", "ma", " ", "", META_PLAIN, 2, 16, REPLY_INTEGER, true, false},
    {"MN", "mn", "", "", META_BARE, 1, 1, REPLY_NOOP, false, false},
    {"ME", "me", "", "", META_PLAIN, 2, 2, REPLY_DEBUG, false, false},
};

static const struct meta_verb *verb_of(const struct command *c)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

/* Whether one of a meta command's own flags has this letter. */
static bool has_flag(const struct command *c, const struct meta_verb *v, char letter)
{
	for (uint32_t i = v->form == META_STORE ? 3 : 2; v->native && i < c->word_count; i++) {
		const struct command_part *p = &c->parts[c->words[i].first];

		if (p->kind == PART_TEXT && p->text[0] == letter)
			return true;
	}
	return false;
}

/* Whether a command gets an opaque number, which identifies its answer. */
static bool is_numbered(const struct command *c, const struct meta_verb *v)
{
	return v->form != META_BARE && v->kind != REPLY_DEBUG && !has_flag(c, v, 'O');
}

static void expect(const struct command *c, struct expected *e)
{
	e->kind = verb_of(c)->kind;
}

static bool settle(struct command *c, bool quiet, const char *text, char *error, size_t size)
{
	const struct meta_verb *v = verb_of(c);

	c->numbered = is_numbered(c, v);
	c->quiet = quiet && v->silent && c->numbered;
	if (!quiet || c->numbered || v->form == META_BARE || v->kind == REPLY_DEBUG)
		return true;
	snprintf(
	    error, size,
	    "--meta-quiet sets the opaque flag O itself, to find omitted answers. Remove O from \"%.60s\"",
	    text);
	return false;
}

static bool fits(const struct command *c, char *error, size_t size)
{
	const struct meta_verb *v = verb_of(c);
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	if (!v)
		snprintf(
		    error, size,
		    "%s is not a memcached command that forktail can send: get, gets, set, add, replace, "
		    "append, prepend, delete, incr, decr, touch, version, mg, ms, md, ma, mn, me",
		    name);
	else if (c->word_count < v->words_min || c->word_count > v->words_max)
		snprintf(error, size, "memcached's %s has the form %s%s%s%s", name, name,
			 v->form == META_BARE ? "" : " KEY", v->form == META_STORE ? " DATA" : "",
			 v->native					 ? " [FLAG ...]"
			 : v->words_max == 4				 ? " [EXPIRY]"
			 : v->words_max == 3 && v->kind == REPLY_TOUCHED ? " EXPIRY"
			 : v->words_max == 3 && v->form == META_PLAIN	 ? " NUMBER"
									 : "");
	else if (has_flag(c, v, 'q'))
		snprintf(error, size,
			 "the flag q suppresses answers that forktail-load waits for. Remove q, or use "
			 "--meta-quiet, which handles it");
	else
		return true;
	return false;
}

/* " O" and the request's number: of fixed width, so that it can be patched. Directly after the key, because
 * the number of patches is limited and this one is required. */
static bool add_opaque(struct bytes *to, const struct request_values *v, struct patches *patches)
{
	if (!bytes_reserve(to, 2 + KEY_DIGITS))
		return false;
	bytes_add(to, " O", 2);
	digits_write_key(to->at + to->length, v->opaque);
	note_patch(patches, PART_OPAQUE, to->length, KEY_DIGITS);
	to->length += KEY_DIGITS;
	return true;
}

static bool write_request(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	const struct meta_verb *verb = verb_of(c);
	bool store = verb->form == META_STORE;
	struct drawn data[WORD_PARTS_MAX];
	size_t length = 0;
	char head[24];

	if (!bytes_add_text(to, verb->verb))
		return false;
	if (c->word_count > 1 && (!bytes_add_text(to, " ") || !write_word(c, 1, f, v, random, to, patches)))
		return false;
	if (store) {
		length = draw_word(c, 2, f, v, random, data);
		snprintf(head, sizeof(head), " %zu", length);
		if (!bytes_add_text(to, head))
			return false;
	}
	if (c->numbered && !add_opaque(to, v, patches))
		return false;
	for (uint32_t i = store ? 3 : 2; i < c->word_count; i++)
		if (!bytes_add_text(to, verb->before) || !write_word(c, i, f, v, random, to, patches))
			return false;
	if (!bytes_add_text(to, verb->flags) || !bytes_add_text(to, c->quiet ? " q\r\n" : "\r\n"))
		return false;
	return !store || (write_drawn(c, 2, data, length, f, v, to, patches) && bytes_add_text(to, "\r\n"));
}

/* ---- answers ---- */

static int scan(union reply_scanner *s, const char **at, const char *end)
{
	return memcached_meta_scan(&s->meta, at, end);
}

static const struct memcached_meaning meanings[] = {
    [MEMCACHED_META_NONE] = {FT_STATUS_WRONG, {REPLY_ANY}},
    [MEMCACHED_META_VALUE] = {FT_STATUS_OK, {REPLY_VALUE, REPLY_ITEM, REPLY_INTEGER}},
    [MEMCACHED_META_DONE] = {FT_STATUS_OK,
			     {REPLY_ITEM, REPLY_STORED, REPLY_DELETED, REPLY_TOUCHED, REPLY_INTEGER}},
    [MEMCACHED_META_MISS] = {FT_STATUS_MISS, {REPLY_VALUE, REPLY_ITEM, REPLY_TOUCHED, REPLY_DEBUG}},
    [MEMCACHED_META_NOT_FOUND] = {FT_STATUS_MISS, {REPLY_STORED, REPLY_DELETED, REPLY_INTEGER}},
    [MEMCACHED_META_NOT_STORED] = {FT_STATUS_MISS, {REPLY_STORED, REPLY_INTEGER}},
    [MEMCACHED_META_EXISTS] = {FT_STATUS_MISS, {REPLY_STORED, REPLY_DELETED, REPLY_INTEGER}},
    [MEMCACHED_META_NOOP] = {FT_STATUS_OK, {REPLY_NOOP}},
    [MEMCACHED_META_DEBUG] = {FT_STATUS_OK, {REPLY_DEBUG}},
    [MEMCACHED_META_VERSION] = {FT_STATUS_OK, {REPLY_VERSION}},
    [MEMCACHED_META_STORED] = {FT_STATUS_WRONG, {REPLY_ANY}}, /* except for the login */
    [MEMCACHED_META_ERROR] = {FT_STATUS_ERROR_REPLY, {REPLY_ANY}},
};

static unsigned status(const union reply_scanner *s, const struct expected *e, const char **word)
{
	return memcached_line_status(&meanings[s->meta.kind], &s->meta.line, e, word);
}

static void error_text(const union reply_scanner *s, char *out, size_t size)
{
	memcached_line_error(&s->meta.line, out, size);
}

static bool accepted(const union reply_scanner *s)
{
	return s->meta.kind == MEMCACHED_META_STORED;
}

static bool wants_login(const union reply_scanner *s)
{
	return s->meta.kind == MEMCACHED_META_ERROR && memcached_line_unauthenticated(&s->meta.line);
}

/* VA bytes [flags] */
static bool find_value(const char *reply, size_t length, size_t *at, size_t *bytes)
{
	return memcached_find_value(reply, length, 1, at, bytes);
}

/* ---- the row ---- */

const struct protocol protocol_memcache_meta = {
    .name = "memcache_meta",
    .product = &memcached_product,
    .ping = "mn",
    .quiet = true,
    .numbers = true,
    .fits = fits,
    .expect = expect,
    .settle = settle,
    .write = write_request,
    .login = memcached_line_login,
    .scan = scan,
    .status = status,
    .error_text = error_text,
    .accepted = accepted,
    .wants_login = wants_login,
    .find_value = find_value,
};

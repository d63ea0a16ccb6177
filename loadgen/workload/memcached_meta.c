/* SPDX-License-Identifier: MIT */
/* The scanner of replies to memcached's meta commands, in two layers like resp.c. Nearly all replies are
 * complete in the buffer and skipped at once; split, long or unusual replies are processed byte by byte in
 * states. The first layer accepts nothing that the second would refuse, and refuses nothing itself. So a
 * split never decides whether a reply is valid. */
#include <stdio.h>
#include <string.h>

#include "loadgen/protocol.h"

enum state {
	AT_REPLY, /* zero: a scanner at rest */
	IN_WORD,
	IN_TEXT, /* the rest of a line, which is not parsed */
	IN_SIZE,
	AT_FLAG, /* after the space before a flag */
	IN_FLAG,
	IN_OPAQUE,
	AT_LF,
	IN_DATA, /* number: bytes to skip before the closing CRLF */
	AT_DATA_CR,
	AT_DATA_LF,
};

enum { SIZE_DIGITS = 10 };

enum tail { FLAGS, SIZE, TEXT }; /* what may follow a word: any number of flags, a length and flags, text */

static const struct word {
	const char *word;
	uint8_t kind;
	uint8_t tail;
} words[] = {
    {"VA", MEMCACHED_META_VALUE, SIZE},
    {"HD", MEMCACHED_META_DONE, FLAGS},
    {"EN", MEMCACHED_META_MISS, FLAGS},
    {"NF", MEMCACHED_META_NOT_FOUND, FLAGS},
    {"NS", MEMCACHED_META_NOT_STORED, FLAGS},
    {"EX", MEMCACHED_META_EXISTS, FLAGS},
    {"MN", MEMCACHED_META_NOOP, FLAGS},
    {"ME", MEMCACHED_META_DEBUG, TEXT},
    {"VERSION", MEMCACHED_META_VERSION, TEXT},
    {"STORED", MEMCACHED_META_STORED, FLAGS},
    {"ERROR", MEMCACHED_META_ERROR, TEXT},
    {"CLIENT_ERROR", MEMCACHED_META_ERROR, TEXT},
    {"CLIENT_ERRROR", MEMCACHED_META_ERROR, TEXT}, /* 1.6.18 answers this to a key that is too long */
    {"SERVER_ERROR", MEMCACHED_META_ERROR, TEXT},
};

static inline int reply_done(struct memcached_meta_scanner *s)
{
	s->kind = s->type;
	s->state = AT_REPLY;
	return 1;
}

/* The LF of a line was found. 1: reply complete, 0: continue. */
static int line_done(struct memcached_meta_scanner *s)
{
	if (s->type != MEMCACHED_META_VALUE)
		return reply_done(s);
	s->state = s->number ? IN_DATA : AT_DATA_CR;
	return 0;
}

/* The first word of a line ended at a space or CR. */
static int word_done(struct memcached_meta_scanner *s, char byte)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const struct word *w = &words[i];

		if (strcmp(w->word, s->line.word) != 0)
			continue;
		s->type = w->kind;
		if (byte == '\r' && w->tail == SIZE)
			return -1;
		s->state = byte == '\r'	     ? AT_LF
			   : w->tail == SIZE ? IN_SIZE
			   : w->tail == TEXT ? IN_TEXT
					     : AT_FLAG;
		return 0;
	}
	return -1;
}

static int word_byte(struct memcached_meta_scanner *s, char byte)
{
	if (byte == ' ' || byte == '\r')
		return word_done(s, byte);
	return memcached_line_word(&s->line, byte) ? 0 : -1;
}

static int begin_reply(struct memcached_meta_scanner *s, char byte)
{
	s->digits = 0;
	s->number = 0;
	s->opaque = 0;
	s->has_opaque = false;
	memcached_line_begin(&s->line);
	s->state = IN_WORD;
	/* No line begins with a word's end; word_done would find no word of that name. */
	return word_byte(s, byte);
}

static int size_byte(struct memcached_meta_scanner *s, char byte)
{
	uint32_t value = (uint32_t)(uint8_t)(byte - '0');

	if (s->digits > 0 && (byte == ' ' || byte == '\r')) {
		s->state = byte == ' ' ? AT_FLAG : AT_LF;
		return 0;
	}
	if (value > 9 || s->digits == SIZE_DIGITS || s->number > (MEMCACHED_VALUE_BYTES - value) / 10)
		return -1;
	s->digits++;
	s->number = s->number * 10 + value;
	return 0;
}

static int begin_flag(struct memcached_meta_scanner *s, char byte)
{
	if ((uint8_t)byte <= ' ')
		return -1;
	s->state = IN_FLAG;
	if (byte == 'O') {
		s->state = IN_OPAQUE;
		s->has_opaque = true;
		s->opaque = MEMCACHED_META_NO_NUMBER;
		s->digits = 0;
	}
	return 0;
}

static int flag_byte(struct memcached_meta_scanner *s, char byte)
{
	uint32_t value = (uint32_t)(uint8_t)(byte - '0');

	if (byte == ' ' || byte == '\r') {
		s->state = byte == ' ' ? AT_FLAG : AT_LF;
		return 0;
	}
	if ((uint8_t)byte <= ' ')
		return -1;
	if (s->state != IN_OPAQUE)
		return 0;
	if (value > 9 || s->digits == MEMCACHED_META_OPAQUE_DIGITS) {
		s->opaque = MEMCACHED_META_NO_NUMBER;
		s->state = IN_FLAG;
		return 0;
	}
	s->opaque = s->digits == 0 ? value : s->opaque * 10 + value;
	s->digits++;
	return 0;
}

/* Skips the flags at `p`, up to the CR after them, if they are complete; else NULL. */
static inline const char *whole_flags(struct memcached_meta_scanner *s, const char *p, const char *end)
{
	uint64_t n;
	const char *first;

	s->has_opaque = false;
	s->opaque = 0;
	while (p < end && *p == ' ') {
		first = ++p;
		if (p < end && *p == 'O') {
			for (n = 0, p++; p < end && (uint8_t)(*p - '0') < 10 &&
					 p - first <= MEMCACHED_META_OPAQUE_DIGITS;)
				n = n * 10 + (uint8_t)(*p++ - '0');
			if (p - first == 1 || (p < end && (uint8_t)*p > ' '))
				return NULL;
			s->has_opaque = true;
			s->opaque = n;
		} else {
			while (p < end && (uint8_t)*p > ' ')
				p++;
		}
		if (p == first)
			return NULL;
	}
	return p < end && *p == '\r' ? p : NULL;
}

/* Skips a reply that is complete at *at. False: nothing was changed that matters. */
static inline bool whole_reply(struct memcached_meta_scanner *s, const char **at, const char *end)
{
	const char *p = *at, *line = p, *first;
	uint32_t size = 0;

	if (end - p < 4)
		return false;
	switch (p[0]) {
	case 'V':
		if (p[1] != 'A' || p[2] != ' ')
			return false;
		for (first = p += 3; p < end && (uint8_t)(*p - '0') < 10 && p - first < 9; p++)
			size = size * 10 + (uint8_t)(*p - '0');
		if (p == first)
			return false;
		s->type = MEMCACHED_META_VALUE;
		break;
	case 'H':
		if (p[1] != 'D')
			return false;
		s->type = MEMCACHED_META_DONE;
		p += 2;
		break;
	case 'E':
		if (p[1] != 'N')
			return false;
		s->type = MEMCACHED_META_MISS;
		p += 2;
		break;
	case 'N':
		if (p[1] != 'F' && p[1] != 'S')
			return false;
		s->type = p[1] == 'F' ? MEMCACHED_META_NOT_FOUND : MEMCACHED_META_NOT_STORED;
		p += 2;
		break;
	default:
		return false;
	}
	p = whole_flags(s, p, end);
	if (!p || end - p < 2 || p[1] != '\n' || p - line > MEMCACHED_LINE)
		return false;
	p += 2;
	if (s->type == MEMCACHED_META_VALUE) {
		if ((size_t)(end - p) < (size_t)size + 2 || p[size] != '\r' || p[size + 1] != '\n')
			return false;
		p += size + 2;
	}
	*at = p;
	return true;
}
_Static_assert(MEMCACHED_VALUE_BYTES > 999999999, "a length of 9 digits needs no further check");

/* Processes one byte, or as many as the state can handle at once. 1: reply complete, 0: continue, -1: not a
 * reply. *at is advanced, except for a byte that is refused. */
static int scan_state(struct memcached_meta_scanner *s, const char **at, const char *end)
{
	const char *p = *at;
	int result = 0;

	/* Skips the line up to its CR and counts the bytes of its text. */
	if (s->state != AT_REPLY && s->state != IN_TEXT && s->state < AT_LF && *p != '\r' &&
	    s->line.bytes == MEMCACHED_LINE)
		return -1;
	switch ((enum state)s->state) {
	case AT_REPLY:
		result = begin_reply(s, *p);
		s->line.bytes++;
		break;
	case IN_WORD:
		result = word_byte(s, *p);
		s->line.bytes++;
		break;
	case IN_TEXT:
		if (!memcached_line_text(&s->line, at, end, s->type == MEMCACHED_META_ERROR))
			return -1;
		if (*at == end)
			return 0;
		p = *at;
		s->state = AT_LF;
		break;
	case IN_SIZE:
		result = size_byte(s, *p);
		s->line.bytes++;
		break;
	case AT_FLAG:
		result = begin_flag(s, *p);
		s->line.bytes++;
		break;
	case IN_FLAG:
	case IN_OPAQUE:
		result = flag_byte(s, *p);
		s->line.bytes++;
		break;
	case AT_LF:
		result = *p == '\n' ? line_done(s) : -1;
		break;
	case IN_DATA: {
		uint64_t have = (uint64_t)(end - p);
		uint32_t skip = have < s->number ? (uint32_t)have : s->number;

		s->number -= skip;
		*at = p + skip;
		if (s->number == 0)
			s->state = AT_DATA_CR;
		return 0;
	}
	case AT_DATA_CR:
		result = *p == '\r' ? 0 : -1;
		s->state = AT_DATA_LF;
		break;
	case AT_DATA_LF:
		result = *p == '\n' ? reply_done(s) : -1;
		break;
	}
	if (result >= 0)
		*at = p + 1;
	return result;
}

int memcached_meta_scan(struct memcached_meta_scanner *s, const char **at, const char *end)
{
	int result = 0;

	if (s->state == AT_REPLY && *at < end && whole_reply(s, at, end))
		return reply_done(s);
	while (*at < end && result == 0)
		result = scan_state(s, at, end);
	return result;
}

/* memcached's meta commands. Classic commands are sent as the equivalent meta command (get as "mg KEY v"), so
 * that one workload can use both. Meta commands are sent as written, except that DATA in second place is
 * replaced by the length: "ms KEY DATA T30". Each request gets an opaque number, which the server repeats in
 * its answer. So a misplaced answer is detected at once (answers.c) instead of being counted for another
 * request. An answer that does not fit its command is a wrong reply, as in the text protocol. */

/* ---- requests ---- */

/* Whether one of a meta command's own flags has this letter. */
static bool has_flag(const struct command *c, char letter)
{
	uint32_t first = c->row->memcached.form == FORM_STORE ? 3 : 2;

	for (uint32_t i = first; c->row->flags & COMMAND_META && i < c->word_count; i++) {
		const struct command_part *p = &c->parts[c->words[i].first];

		if (p->kind == PART_TEXT && p->text[0] == letter)
			return true;
	}
	return false;
}

static void expect(const struct command *c, struct expected *e)
{
	e->kind = c->row->memcached.reply;
}

static bool settle(struct command *c, bool quiet, const char *text, char *error, size_t size)
{
	const struct memcached_command *m = &c->row->memcached;
	bool numberable = m->form != FORM_BARE && m->reply != REPLY_DEBUG;

	/* The number identifies its answer. Only a read's misses may get none. */
	c->numbered = numberable && !has_flag(c, 'O');
	c->quiet = quiet && c->row->flags & COMMAND_READS && c->numbered;
	if (!quiet || c->numbered || !numberable)
		return true;
	snprintf(
	    error, size,
	    "--meta-quiet sets the opaque flag O itself, to find omitted answers. Remove O from \"%.60s\"",
	    text);
	return false;
}

static bool fits(const struct command *c, char *error, size_t size)
{
	if (!memcached_fits(PROTOCOL_MEMCACHE_META, c, error, size))
		return false;
	if (!has_flag(c, 'q'))
		return true;
	snprintf(error, size,
		 "the flag q suppresses answers that forktail-load waits for. Remove q, or use "
		 "--meta-quiet, which handles it");
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
	const struct memcached_command *m = &c->row->memcached;
	bool store = m->form == FORM_STORE;
	struct drawn data[WORD_PARTS_MAX];
	size_t length = 0;
	char head[24];

	if (!bytes_add_text(to, m->meta))
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
		if (!bytes_add_text(to, m->before) || !write_word(c, i, f, v, random, to, patches))
			return false;
	if (!bytes_add_text(to, m->after) || !bytes_add_text(to, c->quiet ? " q\r\n" : "\r\n"))
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

/* SPDX-License-Identifier: MIT */
/* Reading commands and formatting them for Redis. memcached's forms are in memcached_write.c
 * and memcached_meta_write.c. */
#include "command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command_internal.h"
#include "stamp.h"
#include "ycsb.h"

const char *const protocol_names[] = {"redis", "memcache_text", "memcache_binary", "memcache_meta"};

enum { SCORE_DIGITS = 6, HEAD_ROOM = 24 };

/* Placeholders by name; the first of a name that fits is taken. */
static const struct {
	const char *name;
	enum part_kind kind;
	bool inserts;
} placeholders[] = {
    {"__key__", PART_KEY, false},
    {"__new_key__", PART_KEY, true},
    {"__other_key__", PART_OTHER_KEY, false},
    {"__data__", PART_DATA, false},
    {"__int__", PART_INT, false},
    {"__rand_int__", PART_INT, false},
    {"__score__", PART_SCORE, false},
    {"__field__", PART_FIELD, false},
    {"__expiry__", PART_EXPIRY, false},
    {"__index_score__", PART_INDEX_SCORE, false},
    {"__scan_length__", PART_SCAN_LENGTH, false},
    {"__captured__", PART_CAPTURED, false},
    {"__key_number__", PART_KEY_NUMBER, false},
    {"__tag__", PART_TAG, false},
};

/* ---- bytes ---- */

bool bytes_reserve(struct bytes *b, size_t more)
{
	size_t room = b->room ? b->room : 256;
	char *grown;

	if (b->length + more <= b->room)
		return true;
	while (room < b->length + more)
		room *= 2;
	grown = realloc(b->at, room);
	if (!grown)
		return false;
	b->at = grown;
	b->room = room;
	return true;
}

void bytes_add(struct bytes *b, const void *from, size_t count)
{
	memcpy(b->at + b->length, from, count);
	b->length += count;
}

/* ---- reading ---- */

static bool add_part(struct command *c, enum part_kind kind, const char *text, size_t length)
{
	struct command_part *p = &c->parts[c->part_count];

	if (c->part_count == COMMAND_PARTS_MAX || c->words[c->word_count - 1].count == WORD_PARTS_MAX)
		return false;
	*p = (struct command_part){.kind = kind, .length = (uint32_t)length};
	if (kind == PART_TEXT) {
		p->text = malloc(length + 1);
		if (!p->text)
			return false;
		memcpy(p->text, text, length);
		p->text[length] = 0;
	}
	c->part_count++;
	c->words[c->word_count - 1].count++;
	return true;
}

/* Splits a word at its placeholders. */
static bool add_word(struct command *c, const char *text, size_t length)
{
	size_t plain = 0, i = 0;

	if (c->word_count == COMMAND_WORDS_MAX)
		return false;
	c->words[c->word_count++] = (struct command_word){.first = c->part_count};
	while (i < length) {
		size_t k = 0, n = 0;

		for (; k < sizeof(placeholders) / sizeof(*placeholders); k++) {
			n = strlen(placeholders[k].name);
			if (length - i >= n && memcmp(text + i, placeholders[k].name, n) == 0)
				break;
		}
		if (k == sizeof(placeholders) / sizeof(*placeholders)) {
			i++;
			continue;
		}
		if (i > plain && !add_part(c, PART_TEXT, text + plain, i - plain))
			return false;
		if (!add_part(c, placeholders[k].kind, NULL, 0))
			return false;
		c->inserts |= placeholders[k].inserts;
		i += n;
		plain = i;
	}
	return (plain == length && length > 0) || add_part(c, PART_TEXT, text + plain, length - plain);
}

static int hex_digit(char x)
{
	return isdigit((unsigned char)x) ? x - '0' : isxdigit((unsigned char)x) ? tolower(x) - 'a' + 10 : -1;
}

/* One character of a quoted word, maybe escaped; moves on. -1: a bad escape. */
static int quoted_char(const char **p)
{
	static const char from[] = "nrt0\"\\", to[] = "\n\r\t\0\"\\";
	const char *known;
	int high, low;

	if (**p != '\\')
		return (unsigned char)*(*p)++;
	(*p)++;
	if (**p == 'x') {
		high = hex_digit((*p)[1]);
		low = high < 0 ? -1 : hex_digit((*p)[2]);
		if (low < 0)
			return -1;
		*p += 3;
		return high * 16 + low;
	}
	known = **p ? strchr(from, **p) : NULL;
	if (!known)
		return -1;
	(*p)++;
	return (unsigned char)to[known - from];
}

/* The next word of `text` into `word` (as long as the text at most). 1: a word, 0: the end, -1: bad. */
static int next_word(const char **text, char *word, size_t *length)
{
	const char *p = *text + strspn(*text, " \t");
	size_t n = 0;

	if (!*p)
		return 0;
	if (*p == '"') {
		for (p++; *p != '"';) {
			int c = *p ? quoted_char(&p) : -1;
			if (c < 0)
				return -1;
			word[n++] = (char)c;
		}
		p++;
		if (*p && *p != ' ' && *p != '\t')
			return -1;
	} else {
		while (*p && *p != ' ' && *p != '\t')
			word[n++] = *p++;
	}
	*length = n;
	*text = p;
	return 1;
}

bool command_parse(struct command *c, const char *text, char *error, size_t size)
{
	const char *at = text;
	char *word = malloc(strlen(text) + 1);
	size_t length = 0;
	int more = -1;

	memset(c, 0, sizeof(*c));
	c->words = calloc(COMMAND_WORDS_MAX, sizeof(*c->words));
	c->parts = calloc(COMMAND_PARTS_MAX, sizeof(*c->parts));
	while (word && c->words && c->parts && (more = next_word(&at, word, &length)) > 0) {
		if (!add_word(c, word, length)) {
			snprintf(error, size,
				 "the command has too many words or placeholders (%d, %d): %.60s...",
				 COMMAND_WORDS_MAX, COMMAND_PARTS_MAX, text);
			free(word);
			command_free(c);
			return false;
		}
	}
	free(word);
	if (more == 0 && c->word_count > 0)
		return true;
	snprintf(error, size,
		 "this is no command: \"%.100s\"; words are apart by blanks, quotes are closed, "
		 "escapes are \\n \\r \\t \\0 \\\" \\\\ \\xHH",
		 text);
	command_free(c);
	return false;
}

void command_free(struct command *c)
{
	for (uint32_t i = 0; c->parts && i < c->part_count; i++)
		free(c->parts[i].text);
	free(c->parts);
	free(c->words);
	memset(c, 0, sizeof(*c));
}

void command_name(const struct command *c, char *out, size_t size)
{
	const struct command_part *p = &c->parts[c->words[0].first];
	size_t n = 0;

	for (; p->kind == PART_TEXT && n + 1 < size && p->text[n]; n++)
		out[n] = (char)toupper((unsigned char)p->text[n]);
	out[n] = 0;
}

/* ---- widths ---- */

bool command_fixed(const struct command *c, const struct fill *f)
{
	uint32_t patches = 0;

	for (uint32_t i = 0; i < c->part_count; i++) {
		switch (c->parts[i].kind) {
		case PART_TEXT:
			continue;
		case PART_KEY:
		case PART_OTHER_KEY:
			if (!key_names_fixed(f->names))
				return false;
			break;
		case PART_DATA:
			if (!f->fixed_value)
				return false;
			continue;
		case PART_EXPIRY:
			if (f->expiry_low != f->expiry_high)
				return false;
			continue;
		case PART_INT:
		case PART_SCORE:
		case PART_FIELD:
		case PART_KEY_NUMBER:
		case PART_TAG:
			break;
		case PART_INDEX_SCORE:
		case PART_SCAN_LENGTH:
		case PART_CAPTURED:
		case PART_STAMP:
		case PART_OPAQUE:
			return false;
		}
		patches++;
	}
	return patches <= COMMAND_PATCHES_MAX;
}

static uint64_t draw_between(struct random_stream *random, uint32_t low, uint32_t high)
{
	return low == high ? low : low + random_below(random, (uint64_t)high - low + 1);
}

struct drawn draw_part(const struct command_part *p, const struct fill *f, const struct request_values *v,
		       struct random_stream *random)
{
	struct drawn d = {0};

	switch (p->kind) {
	case PART_TEXT:
		d.length = p->length;
		break;
	case PART_KEY:
	case PART_OTHER_KEY:
		d.number = p->kind == PART_KEY ? v->key : random_below(random, f->keys);
		d.length = key_name_length(f->names, d.number);
		break;
	case PART_DATA:
		d.number = f->fixed_value      ? 0
			   : f->values_of_keys ? value_seed_of_key(v->key)
					       : random_next(random);
		d.length = value_size(f->values, d.number);
		break;
	case PART_INT:
		d.number = random_below(random, f->keys);
		d.length = KEY_DIGITS;
		break;
	case PART_SCORE:
		d.number = random_below(random, 1000000);
		d.length = 2 + SCORE_DIGITS;
		break;
	case PART_FIELD:
		d.number = random_below(random, f->fields);
		d.length = 5 + digits_count(f->fields - 1);
		break;
	case PART_EXPIRY:
		d.number = draw_between(random, f->expiry_low, f->expiry_high);
		d.length = digits_count(d.number);
		break;
	case PART_INDEX_SCORE: {
		char name[YCSB_NAME_BYTES];
		int32_t hash = ycsb_name_hash(name, ycsb_key_name(v->key, name));
		d.length = (uint32_t)snprintf(d.text, sizeof(d.text), "%d", (int)hash);
		break;
	}
	case PART_SCAN_LENGTH:
		d.length = (uint32_t)snprintf(d.text, sizeof(d.text), "%u", ycsb_draw_scan(random));
		break;
	case PART_STAMP:
		d.length = value_size(f->values, random_next(random));
		d.length = d.length < STAMP_BYTES ? STAMP_BYTES : d.length;
		break;
	case PART_CAPTURED:
		d.length = v->captured_length;
		break;
	case PART_KEY_NUMBER:
		d.number = v->key;
		d.length = KEY_DIGITS;
		break;
	case PART_TAG:
		d.number = v->key % TAGS;
		d.length = TAG_DIGITS;
		break;
	case PART_OPAQUE: /* no part of a command as written */
		break;
	}
	return d;
}

void note_patch(struct patches *patches, enum part_kind kind, size_t at, uint32_t width)
{
	if (patches && patches->count < COMMAND_PATCHES_MAX)
		patches->list[patches->count++] =
		    (struct patch){.at = (uint32_t)at, .kind = (uint16_t)kind, .width = (uint16_t)width};
}

void write_part(const struct command_part *p, const struct drawn *d, const struct fill *f,
		const struct request_values *v, struct bytes *to, struct patches *patches)
{
	char *at = to->at + to->length;
	uint32_t width;

	switch (p->kind) {
	case PART_TEXT:
		memcpy(at, p->text, d->length);
		break;
	case PART_KEY:
	case PART_OTHER_KEY:
		key_name_write(f->names, d->number, at, d->length);
		width = f->names->ycsb ? 0 : d->length - f->names->prefix_length;
		width = width < KEY_DIGITS ? width : KEY_DIGITS;
		note_patch(patches, p->kind, to->length + d->length - width, width);
		break;
	case PART_DATA:
		if (f->fixed_value)
			memcpy(at, f->fixed_value, d->length);
		else
			value_copy(f->values, d->number, 0, at, d->length);
		break;
	case PART_INT:
	case PART_KEY_NUMBER:
		digits_write_key(at, d->number);
		note_patch(patches, p->kind, to->length, KEY_DIGITS);
		break;
	case PART_SCORE:
		memcpy(at, "0.", 2);
		digits_write(at + 2, SCORE_DIGITS, d->number);
		note_patch(patches, p->kind, to->length + 2, SCORE_DIGITS);
		break;
	case PART_FIELD:
		memcpy(at, "field", 5);
		digits_write(at + 5, d->length - 5, d->number);
		note_patch(patches, p->kind, to->length + 5, d->length - 5);
		break;
	case PART_TAG:
		digits_write(at, TAG_DIGITS, d->number);
		note_patch(patches, p->kind, to->length, TAG_DIGITS);
		break;
	case PART_EXPIRY:
		digits_write(at, d->length, d->number);
		break;
	case PART_INDEX_SCORE:
	case PART_SCAN_LENGTH:
		memcpy(at, d->text, d->length);
		break;
	case PART_STAMP:
		stamp_write(f->stamps, v->intended_ns, at, d->length);
		break;
	case PART_CAPTURED:
		memcpy(at, v->captured, d->length);
		break;
	case PART_OPAQUE:
		break;
	}
	to->length += d->length;
}

/* "$16" or "*3" and CRLF; the room is there. */
static void put_head(struct bytes *to, char type, size_t number)
{
	uint32_t digits = digits_count(number);
	char *at = to->at + to->length;

	*at = type;
	digits_write(at + 1, digits, number);
	memcpy(at + 1 + digits, "\r\n", 2);
	to->length += digits + 3;
}

bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches, bool counted)
{
	const struct command_word *w = &c->words[index];
	struct drawn drawn[WORD_PARTS_MAX];
	size_t length = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		drawn[i] = draw_part(&c->parts[w->first + i], f, v, random);
		length += drawn[i].length;
	}
	if (!bytes_reserve(to, length + HEAD_ROOM + 2))
		return false;
	if (counted)
		put_head(to, '$', length);
	for (uint32_t i = 0; i < w->count; i++)
		write_part(&c->parts[w->first + i], &drawn[i], f, v, to, patches);
	if (counted)
		bytes_add(to, "\r\n", 2);
	return true;
}

/* Redis: an array of bulk strings, or the words as they are. */
static bool write_redis(const struct command *c, const struct fill *f, const struct request_values *v,
			struct random_stream *random, struct bytes *to, struct patches *patches)
{
	if (!bytes_reserve(to, HEAD_ROOM))
		return false;
	if (!c->inlined)
		put_head(to, '*', c->word_count);
	for (uint32_t i = 0; i < c->word_count; i++) {
		if (c->inlined && i > 0)
			bytes_add(to, " ", 1);
		if (!write_word(c, i, f, v, random, to, patches, !c->inlined) || !bytes_reserve(to, 4))
			return false;
	}
	if (c->inlined)
		bytes_add(to, "\r\n", 2);
	return true;
}

bool command_write(const struct command *c, enum protocol protocol, const struct fill *f,
		   const struct request_values *v, struct random_stream *random, struct bytes *to,
		   struct patches *patches)
{
	switch (protocol) {
	case PROTOCOL_MEMCACHE_TEXT:
		return write_memcached_text(c, f, v, random, to, patches);
	case PROTOCOL_MEMCACHE_BINARY:
		return write_memcached_binary(c, f, v, random, to, patches);
	case PROTOCOL_MEMCACHE_META:
		return write_memcached_meta(c, f, v, random, to, patches);
	case PROTOCOL_REDIS:
		break;
	}
	return write_redis(c, f, v, random, to, patches);
}

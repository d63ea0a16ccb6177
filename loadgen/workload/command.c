/* SPDX-License-Identifier: MIT */
/* Parses a user's command into words and placeholders: blanks, quotes, escapes and placeholder names. The
 * protocols format the result. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "loadgen/protocol.h"
#include "loadgen/stamp.h"
#include "recording/recording.h"

/* Placeholders by name, without the underscores around it. */
static const struct {
	const char *name;
	enum part_kind kind;
	bool inserts;
} placeholders[] = {
    {"key", PART_KEY, false},
    {"new_key", PART_KEY, true},
    {"other_key", PART_OTHER_KEY, false},
    {"data", PART_DATA, false},
    {"int", PART_INT, false},
    {"rand_int", PART_INT, false},
    {"score", PART_SCORE, false},
    {"field", PART_FIELD, false},
    {"expiry", PART_EXPIRY, false},
    {"index_score", PART_INDEX_SCORE, false},
    {"scan_length", PART_SCAN_LENGTH, false},
    {"captured", PART_CAPTURED, false},
    {"key_number", PART_KEY_NUMBER, false},
    {"tag", PART_TAG, false},
    {"cursor", PART_CURSOR, false},
};

/* The longest placeholder, and the largest numbers in one. */
enum { PLACEHOLDER_MAX = 128, VECTOR_MAX = 1 << 16 };
#define RANGE_MAX 1e15

static struct command_part *add_part(struct command *c, enum part_kind kind, const char *text, size_t length)
{
	struct command_part *p = &c->parts[c->part_count];

	if (c->part_count == COMMAND_PARTS_MAX || c->words[c->word_count - 1].count == WORD_PARTS_MAX)
		return NULL;
	*p = (struct command_part){.kind = kind, .length = (uint32_t)length};
	if (text) {
		p->text = malloc(length + 1);
		if (!p->text)
			return NULL;
		memcpy(p->text, text, length);
		p->text[length] = 0;
	}
	c->part_count++;
	c->words[c->word_count - 1].count++;
	return p;
}

/* "LOW:HIGH" */
static bool read_range(const char *text, struct command_part *p)
{
	char *after;

	p->low = strtod(text, &after);
	if (after == text || *after != ':')
		return false;
	text = after + 1;
	p->high = strtod(text, &after);
	return after != text && !*after && p->low >= -RANGE_MAX && p->high <= RANGE_MAX &&
	       p->low <= p->high &&
	       (p->kind == PART_DECIMAL || (p->low == floor(p->low) && p->high == floor(p->high)));
}

/* Our name of valkey-benchmark's __rand_1st__ to __rand_9th__, or the name itself. */
static const char *our_name(const char *name)
{
	static const char *const names[][2] = {
	    {"rand_1st", "int1"}, {"rand_2nd", "int2"}, {"rand_3rd", "int3"},
	    {"rand_4th", "int4"}, {"rand_5th", "int5"}, {"rand_6th", "int6"},
	    {"rand_7th", "int7"}, {"rand_8th", "int8"}, {"rand_9th", "int9"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i][0]) == 0)
			return names[i][1];
	return name;
}

/* Adds the placeholder `name`, without its underscores. 1: added, 0: there is no space, -1: there is no such
 * placeholder. */
static int add_placeholder(struct command *c, const char *name)
{
	static const struct {
		const char *name;
		enum part_kind kind;
	} with_value[] = {{"int:", PART_RANGE},	   {"float:", PART_DECIMAL}, {"vector:", PART_VECTOR},
			  {"field:", PART_COLUMN}, {"json:", PART_JSON},     {"key", PART_SAME_KEY},
			  {"int", PART_SAME_INT}};
	struct command_part part = {0}, *p;
	const char *value = NULL;
	char *after;

	for (size_t k = 0; k < sizeof(placeholders) / sizeof(*placeholders); k++) {
		if (strcmp(placeholders[k].name, name) != 0)
			continue;
		c->inserts |= placeholders[k].inserts;
		c->cursor |= placeholders[k].kind == PART_CURSOR;
		return add_part(c, placeholders[k].kind, NULL, 0) != NULL;
	}
	for (size_t k = 0; k < sizeof(with_value) / sizeof(*with_value) && !value; k++)
		if (strncmp(name, with_value[k].name, strlen(with_value[k].name)) == 0) {
			part.kind = with_value[k].kind;
			value = name + strlen(with_value[k].name);
		}
	if (!value || !*value)
		return -1;
	switch (part.kind) {
	case PART_RANGE:
	case PART_DECIMAL:
		if (!read_range(value, &part))
			return -1;
		break;
	case PART_VECTOR:
		part.number = (uint32_t)strtoul(value, &after, 10);
		if (!isdigit((unsigned char)*value) || *after || part.number < 1 || part.number > VECTOR_MAX)
			return -1;
		break;
	case PART_SAME_KEY:
	case PART_SAME_INT:
		if (*value < '1' || *value > '9' || value[1])
			return -1;
		part.number = (uint32_t)(*value - '0');
		break;
	default:
		break;
	}
	p = add_part(c, part.kind, part.kind == PART_COLUMN || part.kind == PART_JSON ? value : NULL,
		     strlen(value));
	if (!p)
		return 0;
	c->once |= part.kind != PART_RANGE && part.kind != PART_DECIMAL && part.kind != PART_VECTOR;
	p->low = part.low;
	p->high = part.high;
	p->number = part.number;
	return 1;
}

/* The length of what looks like a placeholder at `text`: two underscores, small letters, digits and single
 * underscores, after a colon anything, two underscores. Its name is copied. 0: it is plain text. */
static size_t placeholder_at(const char *text, size_t length, char name[PLACEHOLDER_MAX])
{
	bool valued = false;
	size_t n = 0;

	if (length < 5 || memcmp(text, "__", 2) != 0 || !islower((unsigned char)text[2]))
		return 0;
	for (size_t i = 2; i + 1 < length && n + 1 < PLACEHOLDER_MAX; i++) {
		if (text[i] == '_' && text[i + 1] == '_') {
			name[n] = 0;
			return i + 2;
		}
		valued |= text[i] == ':';
		if (!valued && !islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
		    text[i] != '_')
			return 0;
		name[n++] = text[i];
	}
	return 0;
}

/* Splits a word at its placeholders. False, and a sentence. */
static bool add_word(struct command *c, const char *text, size_t length, char *error, size_t size)
{
	size_t plain = 0, i = 0, n;
	char name[PLACEHOLDER_MAX];
	bool space = c->word_count < COMMAND_WORDS_MAX;
	int added;

	if (space)
		c->words[c->word_count++] = (struct command_word){.first = c->part_count};
	while (i < length && space) {
		n = placeholder_at(text + i, length - i, name);
		if (!n) {
			i++;
			continue;
		}
		space = i == plain || add_part(c, PART_TEXT, text + plain, i - plain);
		added = space ? add_placeholder(c, our_name(name)) : 0;
		if (added < 0) {
			snprintf(error, size, "there is no placeholder __%s__", name);
			return false;
		}
		space = space && added;
		i += n;
		plain = i;
	}
	if (space && !(plain == length && length > 0))
		space = add_part(c, PART_TEXT, text + plain, length - plain);
	if (!space)
		snprintf(error, size, "the command has too many words or placeholders (%d, %d): %.60s...",
			 COMMAND_WORDS_MAX, COMMAND_PARTS_MAX, text);
	return space;
}

static int hex_digit(char x)
{
	return isdigit((unsigned char)x) ? x - '0' : isxdigit((unsigned char)x) ? tolower(x) - 'a' + 10 : -1;
}

/* Reads one character of a quoted word, possibly escaped, and advances. -1: an invalid escape. */
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

/* Copies the next word of `text` to `word` (at most as long as the text). 1: a word, 0: the end, -1:
 * invalid. */
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
	} else if (*p == '\'') {
		for (p++; *p != '\'';) {
			if (!*p)
				return -1;
			p += *p == '\\' && p[1] == '\'';
			word[n++] = *p++;
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
	char *word = malloc(strlen(text) + 1), name[COMMAND_NAME];
	size_t length = 0;
	int more = -1;

	memset(c, 0, sizeof(*c));
	c->words = calloc(COMMAND_WORDS_MAX, sizeof(*c->words));
	c->parts = calloc(COMMAND_PARTS_MAX, sizeof(*c->parts));
	while (word && c->words && c->parts && (more = next_word(&at, word, &length)) > 0) {
		if (!add_word(c, word, length, error, size)) {
			free(word);
			command_free(c);
			return false;
		}
	}
	free(word);
	if (more == 0 && c->word_count > 0) {
		command_name(c, name, sizeof(name));
		c->row = commands_row(name, strlen(name));
		return true;
	}
	snprintf(error, size,
		 "invalid command: \"%.100s\". Separate words by blanks, close quotes, and use only the "
		 "escapes \\n \\r \\t \\0 \\\" \\\\ \\xHH",
		 text);
	command_free(c);
	return false;
}

bool command_bind(struct command *c, const struct data_set *data, char *error, size_t size)
{
	for (uint32_t i = 0; i < c->part_count; i++) {
		struct command_part *p = &c->parts[i];
		int column;

		if (p->kind != PART_COLUMN && p->kind != PART_JSON)
			continue;
		column = data ? data_set_column(data, p->text, strlen(p->text)) : -1;
		if (column < 0) {
			snprintf(error, size,
				 data ? "the data set has no column \"%s\""
				      : "__field:%s__ needs a data set: a line \"data FILE\" in the file of "
					"--commands",
				 p->text);
			return false;
		}
		p->number = (uint32_t)column;
	}
	return true;
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

/* A part's number is drawn before its text is written: a protocol that sends lengths first has to know them,
 * and both must come from the same draw. */

enum { SCORE_DIGITS = 6 };

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
		case PART_RANGE:
		case PART_DECIMAL:
		case PART_VECTOR:
		case PART_SAME_KEY:
		case PART_SAME_INT:
		case PART_COLUMN:
		case PART_JSON:
		case PART_CURSOR:
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

/* What is drawn once per request: the same for each `which`, below `limit`. */
static uint64_t draw_once(const struct request_values *v, uint32_t which, uint64_t limit)
{
	struct random_stream r = {v->seed + which};

	return random_below(&r, limit);
}

static const struct data_field *field_of(const struct command_part *p, const struct fill *f, uint64_t row)
{
	return data_set_field(f->data, row, p->number);
}

static void draw_range(const struct command_part *p, struct random_stream *random, struct drawn *d)
{
	double value;

	if (p->kind == PART_RANGE)
		value = p->low + (double)random_below(random, (uint64_t)(p->high - p->low) + 1);
	else
		value = p->low + (p->high - p->low) * (random_unit(random) - 0x1p-53);
	d->length =
	    (uint32_t)snprintf(d->text, sizeof(d->text), "%.*f", p->kind == PART_RANGE ? 0 : 6, value);
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
	case PART_CURSOR:
		d.length = v->captured_length ? v->captured_length : 1;
		break;
	case PART_RANGE:
	case PART_DECIMAL:
		draw_range(p, random, &d);
		break;
	case PART_VECTOR:
		d.number = random_next(random);
		d.length = p->number * (uint32_t)sizeof(float);
		break;
	case PART_SAME_KEY:
		d.number = draw_once(v, p->number, f->keys);
		d.length = key_name_length(f->names, d.number);
		break;
	case PART_SAME_INT:
		d.number = draw_once(v, p->number + 16, f->keys);
		d.length = KEY_DIGITS;
		break;
	case PART_COLUMN:
		d.number = draw_once(v, 0, f->data->rows);
		d.length = field_of(p, f, d.number)->length;
		break;
	case PART_JSON:
		d.number = draw_once(v, 0, f->data->rows);
		d.length = data_json_length(field_of(p, f, d.number));
		break;
	case PART_KEY_NUMBER:
		d.number = v->key;
		d.length = KEY_DIGITS;
		break;
	case PART_TAG:
		d.number = v->key % TAGS;
		d.length = TAG_DIGITS;
		break;
	case PART_OPAQUE: /* never part of a command as written */
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

static void write_vector(uint64_t seed, uint32_t count, char *to)
{
	struct random_stream r = {seed};

	for (uint32_t i = 0; i < count; i++) {
		float value = (float)(2 * random_unit(&r) - 1);

		memcpy(to + i * sizeof(value), &value, sizeof(value)); /* both machines are little-endian */
	}
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
	case PART_SAME_KEY:
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
	case PART_SAME_INT:
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
	case PART_RANGE:
	case PART_DECIMAL:
		memcpy(at, d->text, d->length);
		break;
	case PART_STAMP:
		stamp_write(f->stamps, v->intended_ns, at, d->length);
		break;
	case PART_VECTOR:
		write_vector(d->number, p->number, at);
		break;
	case PART_COLUMN:
		memcpy(at, field_of(p, f, d->number)->at, d->length);
		break;
	case PART_JSON:
		data_json_write(field_of(p, f, d->number), at);
		break;
	case PART_CURSOR:
		memcpy(at, v->captured_length ? v->captured : "0", d->length);
		break;
	case PART_CAPTURED:
		memcpy(at, v->captured, d->length);
		break;
	case PART_OPAQUE:
		break;
	}
	to->length += d->length;
}

size_t draw_word(const struct command *c, uint32_t index, const struct fill *f,
		 const struct request_values *v, struct random_stream *random, struct drawn *drawn)
{
	const struct command_word *w = &c->words[index];
	size_t length = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		drawn[i] = draw_part(&c->parts[w->first + i], f, v, random);
		length += drawn[i].length;
	}
	return length;
}

bool write_drawn(const struct command *c, uint32_t index, const struct drawn *drawn, size_t length,
		 const struct fill *f, const struct request_values *v, struct bytes *to,
		 struct patches *patches)
{
	const struct command_word *w = &c->words[index];

	if (!bytes_reserve(to, length))
		return false;
	for (uint32_t i = 0; i < w->count; i++)
		write_part(&c->parts[w->first + i], &drawn[i], f, v, to, patches);
	return true;
}

bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches)
{
	struct drawn drawn[WORD_PARTS_MAX];
	size_t length = draw_word(c, index, f, v, random, drawn);

	return write_drawn(c, index, drawn, length, f, v, to, patches);
}

/* The buffer doubles, so that formatting a request soon needs no more allocations. */

bool bytes_reserve(struct bytes *b, size_t more)
{
	return grow_to(&b->at, &b->room, b->length + more, 1);
}

void bytes_add(struct bytes *b, const void *from, size_t count)
{
	memcpy(b->at + b->length, from, count);
	b->length += count;
}

bool bytes_add_text(struct bytes *b, const char *text)
{
	size_t n = strlen(text);

	if (!bytes_reserve(b, n))
		return false;
	bytes_add(b, text, n);
	return true;
}

int bytes_add_file(struct bytes *b, const char *path, size_t limit)
{
	FILE *f = fopen(path, "r");
	size_t before = b->length, got = 1;
	int rc = f ? 0 : -errno;

	while (rc == 0 && got > 0) {
		if (!bytes_reserve(b, 1)) {
			rc = -ENOMEM;
			break;
		}
		got = fread(b->at + b->length, 1, b->room - b->length, f);
		b->length += got;
		if (ferror(f))
			rc = -errno;
		else if (b->length - before > limit)
			rc = -EFBIG;
	}
	if (f)
		fclose(f);
	return rc;
}

/* A stamp is written as the last step of formatting a message, so its start is the time of sending. It is
 * parsed strictly, because a channel may carry unrelated messages. */

void stamp_write(struct stamps *s, uint64_t intended_ns, char *to, size_t length)
{
	uint64_t now = ft_now_ns(), number = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
	char text[STAMP_BYTES + 64];

	snprintf(text, sizeof(text), "forktail %08" PRIx32 " %012" PRIu64 " %019" PRIu64 " %019" PRIu64 " ",
		 s->run, number % 1000000000000u, intended_ns ? intended_ns : now, now);
	memcpy(to, text, STAMP_BYTES);
	memset(to + STAMP_BYTES, 'x', length - STAMP_BYTES);
}

/* Digits in one base, and the blank after them. */
static bool read_number(const char **at, int digits, unsigned base, uint64_t *number)
{
	*number = 0;
	for (int i = 0; i < digits; i++, (*at)++) {
		char x = **at;
		unsigned digit = x >= '0' && x <= '9'	? (unsigned)(x - '0')
				 : x >= 'a' && x <= 'f' ? (unsigned)(x - 'a' + 10)
							: 99;

		if (digit >= base)
			return false;
		*number = *number * base + digit;
	}
	return *(*at)++ == ' ';
}

bool stamp_read(const char *at, size_t length, uint32_t run, struct stamp *s)
{
	uint64_t id;

	if (length < STAMP_BYTES || memcmp(at, "forktail ", 9) != 0)
		return false;
	at += 9;
	return read_number(&at, 8, 16, &id) && id == run && read_number(&at, 12, 10, &s->number) &&
	       read_number(&at, 19, 10, &s->intended_ns) && read_number(&at, 19, 10, &s->start_ns) &&
	       s->start_ns >= s->intended_ns;
}

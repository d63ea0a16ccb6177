/* SPDX-License-Identifier: MIT */
/* Parses a user's command into words and placeholders: blanks, quotes, escapes and placeholder names. The
 * protocols format the result. */
#include "command.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	char *word = malloc(strlen(text) + 1);
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
	if (more == 0 && c->word_count > 0)
		return true;
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

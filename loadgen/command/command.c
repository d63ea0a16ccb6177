/* SPDX-License-Identifier: MIT */
/* Parses a user's command into words and placeholders: blanks, quotes, escapes and placeholder names. The
 * protocols format the result. */
#include "command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Placeholders by name; the first name that matches is used. */
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
		 "invalid command: \"%.100s\". Separate words by blanks, close quotes, and use only the "
		 "escapes \\n \\r \\t \\0 \\\" \\\\ \\xHH",
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

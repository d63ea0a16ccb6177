/* SPDX-License-Identifier: MIT */
/* Requests with memcached's meta commands. The classic commands are sent as the meta command that does the
 * same (get as "mg KEY v"), so that one workload can be put to both; meta commands are sent as they are
 * written, but for the length, which DATA in second place stands for: "ms KEY DATA T30".
 *
 * Each request gets an opaque number, that the server repeats in its answer: an answer that got out of step
 * is seen at once (meta_answer.c), instead of being counted for another request.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "command_internal.h"

enum form { FORM_PLAIN, FORM_STORE, FORM_BARE };

/* How a command goes onto the wire. */
static const struct meta_verb {
	const char *name, *verb;
	const char *before; /* what stands before the third word, if there is one that isn't data */
	const char *flags;  /* behind everything else */
	enum form form;
	uint8_t words_min, words_max;
	char kind;   /* of its answer, see memcached_reply_kind */
	bool native; /* words from the third on are flags (from the fourth, of a store) */
	bool silent; /* may have its misses left out */
} verbs[] = {
    {"GET", "mg", "", " v", FORM_PLAIN, 2, 2, 'v', false, true},
    {"GETS", "mg", "", " c v", FORM_PLAIN, 2, 2, 'v', false, true},
    {"SET", "ms", " T", "", FORM_STORE, 3, 4, 's', false, false},
    {"ADD", "ms", " T", " ME", FORM_STORE, 3, 4, 's', false, false},
    {"REPLACE", "ms", " T", " MR", FORM_STORE, 3, 4, 's', false, false},
    {"APPEND", "ms", "", " MA", FORM_STORE, 3, 3, 's', false, false},
    {"PREPEND", "ms", "", " MP", FORM_STORE, 3, 3, 's', false, false},
    {"DELETE", "md", "", "", FORM_PLAIN, 2, 2, 'd', false, false},
    {"INCR", "ma", " D", " v", FORM_PLAIN, 3, 3, 'n', false, false},
    {"DECR", "ma", " D", " MD v", FORM_PLAIN, 3, 3, 'n', false, false},
    {"TOUCH", "mg", " T", "", FORM_PLAIN, 3, 3, 't', false, false},
    {"VERSION", "version", "", "", FORM_BARE, 1, 1, 'V', false, false},
    {"NOOP", "mn", "", "", FORM_BARE, 1, 1, 'b', false, false},
    {"MG", "mg", " ", "", FORM_PLAIN, 2, 16, 'g', true, true},
    {"MS", "ms", " ", "", FORM_STORE, 3, 16, 's', true, false},
    {"MD", "md", " ", "", FORM_PLAIN, 2, 16, 'd', true, false},
    {"MA", "ma", " ", "", FORM_PLAIN, 2, 16, 'n', true, false},
    {"MN", "mn", "", "", FORM_BARE, 1, 1, 'b', false, false},
    {"ME", "me", "", "", FORM_PLAIN, 2, 2, 'e', false, false},
};

static const struct meta_verb *verb_of(const struct command *c)
{
	char name[16];

	command_name(c, name, sizeof(name));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

/* Whether one of a meta command's own flags has this letter. */
static bool has_flag(const struct command *c, const struct meta_verb *v, char letter)
{
	for (uint32_t i = v->form == FORM_STORE ? 3 : 2; v->native && i < c->word_count; i++) {
		const struct command_part *p = &c->parts[c->words[i].first];

		if (p->kind == PART_TEXT && p->text[0] == letter)
			return true;
	}
	return false;
}

bool memcached_meta_silent(const struct command *c)
{
	const struct meta_verb *v = verb_of(c);

	return v && v->silent && memcached_meta_numbered(c);
}

bool memcached_meta_numbered(const struct command *c)
{
	const struct meta_verb *v = verb_of(c);

	return v && v->form != FORM_BARE && v->kind != 'e' && !has_flag(c, v, 'O');
}

char memcached_meta_reply_kind(const struct command *c)
{
	const struct meta_verb *v = verb_of(c);

	return v ? v->kind : 0;
}

bool memcached_meta_fits(const struct command *c, char *error, size_t size)
{
	const struct meta_verb *v = verb_of(c);
	char name[16];

	command_name(c, name, sizeof(name));
	if (!v)
		snprintf(error, size,
			 "%s is no command that forktail sends to memcached: get, gets, set, add, replace, "
			 "append, prepend, delete, incr, decr, touch, version, mg, ms, md, ma, mn, me",
			 name);
	else if (c->word_count < v->words_min || c->word_count > v->words_max)
		snprintf(error, size, "memcached's %s is written as %s%s%s%s", name, name,
			 v->form == FORM_BARE ? "" : " KEY", v->form == FORM_STORE ? " DATA" : "",
			 v->native				      ? " [FLAG ...]"
			 : v->words_max == 4			      ? " [EXPIRY]"
			 : v->words_max == 3 && v->kind == 't'	      ? " EXPIRY"
			 : v->words_max == 3 && v->form == FORM_PLAIN ? " NUMBER"
								      : "");
	else if (has_flag(c, v, 'q'))
		snprintf(
		    error, size,
		    "the flag q would leave answers out that are waited for; --meta-quiet reads with it and "
		    "knows what is left out");
	else
		return true;
	return false;
}

/* " O" and the request's number: of fixed width, so that it can be patched. Right behind the key, since only
 * so many patches are kept and this one can't be done without. */
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

bool write_memcached_meta(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	const struct meta_verb *verb = verb_of(c);
	bool store = verb->form == FORM_STORE;
	struct drawn data[WORD_PARTS_MAX];
	size_t length = 0;
	char head[24];

	if (!add_text(to, verb->verb))
		return false;
	if (c->word_count > 1 && (!add_text(to, " ") || !write_word(c, 1, f, v, random, to, patches, false)))
		return false;
	if (store) {
		length = draw_word(c, 2, f, v, random, data);
		snprintf(head, sizeof(head), " %zu", length);
		if (!add_text(to, head))
			return false;
	}
	if (c->numbered && !add_opaque(to, v, patches))
		return false;
	for (uint32_t i = store ? 3 : 2; i < c->word_count; i++)
		if (!add_text(to, verb->before) || !write_word(c, i, f, v, random, to, patches, false))
			return false;
	if (!add_text(to, verb->flags) || !add_text(to, c->quiet ? " q\r\n" : "\r\n"))
		return false;
	return !store || (write_drawn(c, 2, data, length, f, v, to, patches) && add_text(to, "\r\n"));
}

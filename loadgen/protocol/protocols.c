/* SPDX-License-Identifier: MIT */
/* The only place that knows all protocols: their table, and functions over the complete table. */
#include <stdio.h>
#include <string.h>

#include "loadgen/protocol.h"

const struct protocol *const protocols[PROTOCOLS] = {
    [PROTOCOL_REDIS] = &protocol_redis,
    [PROTOCOL_MEMCACHE_TEXT] = &protocol_memcache_text,
    [PROTOCOL_MEMCACHE_BINARY] = &protocol_memcache_binary,
    [PROTOCOL_MEMCACHE_META] = &protocol_memcache_meta,
};

enum protocol_id product_protocol(const struct product *p)
{
	int i = 0;

	while (i < PROTOCOLS - 1 && protocols[i]->product != p)
		i++;
	return (enum protocol_id)i;
}

bool product_one_key(const struct product *p, const struct command *c)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (const struct key_rule *r = p->key_rules; r->name; r++)
		if (strcmp(r->name, name) == 0)
			return r->one_key == c->word_count;
	return c->word_count > 1;
}

bool product_reads(const struct product *p, const struct command *c)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (const char *const *r = p->reads; *r; r++)
		if (strcmp(*r, name) == 0)
			return true;
	return false;
}

/* The classic commands by name: the position of their words, and their binary opcodes, which are those of
 * memcached's protocol_binary.h. */

static const struct memcached_verb verbs[] = {
    {"GET", FORM_KEY, 0x00, 2, 2, false},	{"GETS", FORM_KEY, 0x00, 2, 2, false},
    {"SET", FORM_STORE, 0x01, 3, 4, false},	{"ADD", FORM_STORE, 0x02, 3, 4, false},
    {"REPLACE", FORM_STORE, 0x03, 3, 4, false}, {"DELETE", FORM_KEY, 0x04, 2, 2, false},
    {"INCR", FORM_NUMBER, 0x05, 3, 3, false},	{"DECR", FORM_NUMBER, 0x06, 3, 3, false},
    {"NOOP", FORM_BARE, 0x0a, 1, 1, true},	{"VERSION", FORM_BARE, 0x0b, 1, 1, false},
    {"APPEND", FORM_STORE, 0x0e, 3, 3, false},	{"PREPEND", FORM_STORE, 0x0f, 3, 3, false},
    {"TOUCH", FORM_EXPIRY, 0x1c, 3, 3, false},
};

const struct memcached_verb *memcached_verb_of(const struct command *c)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

bool memcached_verb_fits(const struct command *c, const struct memcached_verb *v, char *error, size_t size)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	if (!v) {
		snprintf(error, size,
			 "%s is not a memcached command that forktail can send: get, gets, set, add, "
			 "replace, append, prepend, delete, incr, decr, touch, version",
			 name);
		return false;
	}
	if (c->word_count < v->words_min || c->word_count > v->words_max) {
		snprintf(error, size, "memcached's %s has the form %s%s%s", name, name,
			 v->form == FORM_BARE ? "" : " KEY",
			 v->form == FORM_STORE	  ? " DATA [EXPIRY]"
			 : v->form == FORM_NUMBER ? " NUMBER"
			 : v->form == FORM_EXPIRY ? " EXPIRY"
						  : "");
		return false;
	}
	return true;
}

bool memcached_line_login(const char *user, const char *password, struct bytes *to)
{
	size_t length = strlen(user) + 1 + strlen(password);
	char head[64];

	snprintf(head, sizeof(head), "set forktail 0 0 %zu\r\n", length);
	if (!bytes_reserve(to, strlen(head) + length + 2))
		return false;
	bytes_add(to, head, strlen(head));
	bytes_add(to, user, strlen(user));
	bytes_add(to, " ", 1);
	bytes_add(to, password, strlen(password));
	bytes_add(to, "\r\n", 2);
	return true;
}

unsigned memcached_line_status(const struct memcached_meaning *m, const struct memcached_line *line,
			       const struct expected *e, const char **word)
{
	if (e->kind != REPLY_ANY && m->answers[0] != REPLY_ANY &&
	    !memchr(m->answers, e->kind, sizeof(m->answers)))
		return FT_STATUS_WRONG;
	if (m->status == FT_STATUS_ERROR_REPLY)
		*word = memcached_line_out_of_memory(line) ? "OOM" : line->word;
	return m->status;
}

bool memcached_line_unauthenticated(const struct memcached_line *line)
{
	return strcmp(line->explanation, "unauthenticated") == 0;
}

bool memcached_find_value(const char *reply, size_t length, int blanks, size_t *at, size_t *bytes)
{
	const char *line = memchr(reply, '\r', length), *p = reply;

	if (!line)
		return false;
	*at = (size_t)(line - reply) + 2;
	for (; blanks > 0 && p < line; p++)
		blanks -= *p == ' ';
	*bytes = reply_number(p, line);
	return *at + *bytes <= length;
}

/* ---- the product ---- */

static const struct key_rule key_rules[] = {
    {"GET", 2}, {"GETS", 2}, {"VERSION", 0}, {"STATS", 0}, {"FLUSH_ALL", 0}, {NULL, 0},
};
static const char *const reads[] = {"GET", "GETS", "GAT", "GATS", "MG", NULL};

const struct product memcached_product = {
    .name = "memcached",
    .program = "memcached",
    .port = 11211,
    .longest_key = 250,
    .expiry = "",
    .key_rules = key_rules,
    .reads = reads,
};

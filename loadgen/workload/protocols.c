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
	const struct command_row *row = c->row;

	if (p == &memcached_product)
		return row && row->flags & COMMAND_MANY_KEYS ? c->word_count == 2 : c->word_count > 1;
	if (row && row->split)
		return c->word_count == 1u + row->split;
	return c->word_count > 1 && (!row || row->key == 1);
}

bool memcached_fits(enum protocol_id protocol, const struct command *c, char *error, size_t size)
{
	bool meta = protocol == PROTOCOL_MEMCACHE_META, binary = protocol == PROTOCOL_MEMCACHE_BINARY;
	const struct command_row *row = c->row;
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	/* Meta commands have no opcode, and a noop has no line of text. */
	if (!row || !row->memcached.words_max ||
	    !(meta || (row->opcodes[0] && (binary || row->flags & COMMAND_MEMCACHED)))) {
		snprintf(error, size,
			 "%s is not a memcached command that forktail can send: get, gets, set, add, "
			 "replace, append, prepend, delete, incr, decr, touch, version%s",
			 name, meta ? ", mg, ms, md, ma, mn, me" : "");
		return false;
	}
	if (c->word_count < row->memcached.words_min || c->word_count > row->memcached.words_max) {
		static const char *const words[] = {[FORM_KEY] = " KEY",
						    [FORM_STORE] = " KEY DATA",
						    [FORM_NUMBER] = " KEY NUMBER",
						    [FORM_EXPIRY] = " KEY EXPIRY",
						    [FORM_BARE] = ""};

		snprintf(error, size, "memcached's %s has the form %s%s%s", name, name,
			 words[row->memcached.form],
			 row->flags & COMMAND_META	 ? " [FLAG ...]"
			 : row->memcached.words_max == 4 ? " [EXPIRY]"
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

const struct product memcached_product = {
    .name = "memcached",
    .program = "memcached",
    .port = 11211,
    .longest_key = 250,
    .expiry = "",
    .reads = true,
};

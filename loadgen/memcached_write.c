/* SPDX-License-Identifier: MIT */
/* memcached's requests, text and binary. A command is written as VERB KEY [DATA or NUMBER] [EXPIRY] whatever
 * the protocol; flags are 0. The binary protocol's numbers are those of memcached's protocol_binary.h. */
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_internal.h"

enum form { FORM_KEY, FORM_STORE, FORM_NUMBER, FORM_EXPIRY, FORM_BARE };

static const struct verb {
	const char *name;
	enum form form;
	uint8_t opcode;
	uint8_t words_min, words_max;
} verbs[] = {
    {"GET", FORM_KEY, 0x00, 2, 2},	 {"GETS", FORM_KEY, 0x00, 2, 2},
    {"SET", FORM_STORE, 0x01, 3, 4},	 {"ADD", FORM_STORE, 0x02, 3, 4},
    {"REPLACE", FORM_STORE, 0x03, 3, 4}, {"DELETE", FORM_KEY, 0x04, 2, 2},
    {"INCR", FORM_NUMBER, 0x05, 3, 3},	 {"DECR", FORM_NUMBER, 0x06, 3, 3},
    {"NOOP", FORM_BARE, 0x0a, 1, 1},	 {"VERSION", FORM_BARE, 0x0b, 1, 1},
    {"APPEND", FORM_STORE, 0x0e, 3, 3},	 {"PREPEND", FORM_STORE, 0x0f, 3, 3},
    {"TOUCH", FORM_EXPIRY, 0x1c, 3, 3},
};

static const struct verb *verb_of(const struct command *c)
{
	char name[16];

	command_name(c, name, sizeof(name));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

char memcached_reply_kind(const struct command *c, enum protocol protocol)
{
	static const char text[] = {[FORM_KEY] = 'v',
				    [FORM_STORE] = 's',
				    [FORM_NUMBER] = 'n',
				    [FORM_EXPIRY] = 't',
				    [FORM_BARE] = 'b'};
	const struct verb *v = verb_of(c);

	if (protocol == PROTOCOL_MEMCACHE_META)
		return memcached_meta_reply_kind(c);
	if (!v)
		return 0;
	if (protocol == PROTOCOL_MEMCACHE_BINARY)
		return (char)(v->opcode + 1);
	return v->opcode == 0x04 ? 'd' : text[v->form];
}

bool command_fits(const struct command *c, enum protocol protocol, char *error, size_t size)
{
	const struct verb *v;
	char name[16];

	if (protocol == PROTOCOL_REDIS)
		return true;
	if (protocol == PROTOCOL_MEMCACHE_META)
		return memcached_meta_fits(c, error, size);
	v = verb_of(c);
	command_name(c, name, sizeof(name));
	if (!v || (v->opcode == 0x0a && protocol == PROTOCOL_MEMCACHE_TEXT)) {
		snprintf(error, size,
			 "%s is no command that forktail sends to memcached: get, gets, set, add, replace, "
			 "append, "
			 "prepend, delete, incr, decr, touch, version",
			 name);
		return false;
	}
	if (c->word_count < v->words_min || c->word_count > v->words_max) {
		snprintf(error, size, "memcached's %s is written as %s%s%s", name, name,
			 v->form == FORM_BARE ? "" : " KEY",
			 v->form == FORM_STORE	  ? " DATA [EXPIRY]"
			 : v->form == FORM_NUMBER ? " NUMBER"
			 : v->form == FORM_EXPIRY ? " EXPIRY"
						  : "");
		return false;
	}
	return true;
}

bool add_text(struct bytes *to, const char *text)
{
	size_t n = strlen(text);

	if (!bytes_reserve(to, n))
		return false;
	bytes_add(to, text, n);
	return true;
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

bool write_memcached_text(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	const struct verb *verb = verb_of(c);
	struct drawn data[WORD_PARTS_MAX];
	char head[24];
	size_t length;

	/* The server reads lower case only. */
	for (length = 0; verb->name[length]; length++)
		head[length] = (char)tolower(verb->name[length]);
	head[length] = 0;
	if (!add_text(to, head))
		return false;
	for (uint32_t i = 1; i < c->word_count && (verb->form != FORM_STORE || i == 1); i++)
		if (!add_text(to, " ") || !write_word(c, i, f, v, random, to, patches, false))
			return false;
	if (verb->form != FORM_STORE)
		return add_text(to, "\r\n");
	if (!add_text(to, " 0 ") ||
	    !(c->word_count > 3 ? write_word(c, 3, f, v, random, to, patches, false) : add_text(to, "0")))
		return false;
	length = draw_word(c, 2, f, v, random, data);
	snprintf(head, sizeof(head), " %zu\r\n", length);
	return add_text(to, head) && write_drawn(c, 2, data, length, f, v, to, patches) &&
	       add_text(to, "\r\n");
}

/* The number that a word of digits stands for. */
static uint64_t number_of(const struct command *c, uint32_t index, const struct drawn *drawn)
{
	const struct command_part *p = &c->parts[c->words[index].first];

	return p->kind == PART_TEXT ? strtoull(p->text, NULL, 10) : drawn[0].number;
}

bool write_memcached_binary(const struct command *c, const struct fill *f, const struct request_values *v,
			    struct random_stream *random, struct bytes *to, struct patches *patches)
{
	struct __attribute__((packed)) {
		uint8_t magic, opcode;
		uint16_t key_length;
		uint8_t extras_length, data_type;
		uint16_t vbucket;
		uint32_t body_length, opaque;
		uint64_t cas;
	} header = {.magic = 0x80};
	struct drawn key[WORD_PARTS_MAX], data[WORD_PARTS_MAX], expiry[WORD_PARTS_MAX];
	const struct verb *verb = verb_of(c);
	size_t key_length = 0, data_length = 0;
	uint32_t expires = 0, flags = 0;
	char extras[20];
	uint64_t delta;

	header.opcode = verb->opcode;
	if (c->word_count > 1)
		key_length = draw_word(c, 1, f, v, random, key);
	if (c->word_count > 2)
		data_length = draw_word(c, 2, f, v, random, data);
	if (c->word_count > 3) {
		draw_word(c, 3, f, v, random, expiry);
		expires = htobe32((uint32_t)number_of(c, 3, expiry));
	}
	if (verb->form == FORM_STORE && verb->opcode < 0x0e) {
		memcpy(extras, &flags, 4);
		memcpy(extras + 4, &expires, 4);
		header.extras_length = 8;
	} else if (verb->form == FORM_NUMBER) {
		/* No initial value: a counter that isn't there is a miss, as in the text protocol. */
		delta = htobe64(number_of(c, 2, data));
		memset(extras, 0, sizeof(extras));
		memcpy(extras, &delta, 8);
		memset(extras + 16, 0xff, 4);
		header.extras_length = 20;
		data_length = 0;
	} else if (verb->form == FORM_EXPIRY) {
		expires = htobe32((uint32_t)number_of(c, 2, data));
		memcpy(extras, &expires, 4);
		header.extras_length = 4;
		data_length = 0;
	}
	header.key_length = htobe16((uint16_t)key_length);
	header.body_length = htobe32((uint32_t)(header.extras_length + key_length + data_length));
	if (!bytes_reserve(to, sizeof(header) + header.extras_length))
		return false;
	bytes_add(to, &header, sizeof(header));
	bytes_add(to, extras, header.extras_length);
	return (c->word_count < 2 || write_drawn(c, 1, key, key_length, f, v, to, patches)) &&
	       (data_length == 0 || write_drawn(c, 2, data, data_length, f, v, to, patches));
}

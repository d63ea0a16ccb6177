/* SPDX-License-Identifier: MIT */
/* A recording has millions of commands of some dozens of names, so answers are kept in a tree by name. The
 * name of a subcommand is "XGROUP|CREATE", as servers since Redis 7 name it. */
#include "command_keys.h"

#include <hiredis/hiredis.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loadgen/net/link.h"
#include "recording/recording.h"

enum { NAME_BYTES = 64 };

/* ---- the answer to COMMAND INFO ---- */

static bool is_array(const redisReply *r, size_t elements)
{
	return r && r->type == REDIS_REPLY_ARRAY && r->elements >= elements;
}

static const char *text_of(const redisReply *r)
{
	return r && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) ? r->str : "";
}

/* The value of a name in a list of names and values. */
static const redisReply *value_of(const redisReply *r, const char *name)
{
	for (size_t i = 0; is_array(r, i + 2); i += 2)
		if (strcmp(text_of(r->element[i]), name) == 0)
			return r->element[i + 1];
	return NULL;
}

static int32_t number_of(const redisReply *r, const char *name)
{
	const redisReply *value = value_of(r, name);

	return value && value->type == REDIS_REPLY_INTEGER ? (int32_t)value->integer : 0;
}

/* False: a kind of specification that says nothing. */
static bool read_spec(const redisReply *r, struct key_spec *s)
{
	const redisReply *begin = value_of(r, "begin_search"), *find = value_of(r, "find_keys");
	const redisReply *begin_spec = value_of(begin, "spec"), *find_spec = value_of(find, "spec");
	const char *begin_type = text_of(value_of(begin, "type")),
		   *find_type = text_of(value_of(find, "type"));

	*s = (struct key_spec){0};
	if (strcmp(begin_type, "index") == 0) {
		s->from = number_of(begin_spec, "index");
	} else if (strcmp(begin_type, "keyword") == 0) {
		snprintf(s->keyword, sizeof(s->keyword), "%s", text_of(value_of(begin_spec, "keyword")));
		s->from = number_of(begin_spec, "startfrom");
	}
	if (strcmp(find_type, "keynum") == 0) {
		s->counted = true;
		s->count_at = number_of(find_spec, "keynumidx");
		s->first = number_of(find_spec, "firstkey");
	}
	return s->from != 0 && (s->counted || strcmp(find_type, "range") == 0);
}

/* What follows a specification that is understood matters only if that finds no key: it is asked for then. */
static void read_specs(struct command_keys *k, const redisReply *specs)
{
	size_t i = 0;

	while (i < specs->elements && k->spec_count < KEY_SPECS_MAX &&
	       read_spec(specs->element[i], &k->specs[k->spec_count])) {
		k->spec_count++;
		i++;
	}
	k->ask = i < specs->elements;
}

void command_keys_read(struct command_keys *k, const struct redisReply *answer)
{
	const redisReply *info = is_array(answer, 1) ? answer->element[0] : NULL;
	const redisReply *flags;

	*k = (struct command_keys){.known = -1, .spec_count = 1, .specs = {{.from = 1}}};
	if (info && info->type == REDIS_REPLY_NIL)
		*k = (struct command_keys){0};
	if (!is_array(info, 6))
		return;
	*k = (struct command_keys){.known = 1};
	flags = info->element[2];
	for (size_t i = 0; is_array(flags, i + 1); i++) {
		k->reads |= strcasecmp(text_of(flags->element[i]), "readonly") == 0;
		k->writes |= strcasecmp(text_of(flags->element[i]), "write") == 0;
		k->ask |= strcasecmp(text_of(flags->element[i]), "movablekeys") == 0;
	}
	k->container = is_array(info, 10) && is_array(info->element[9], 1);
	if (is_array(info, 9) && is_array(info->element[8], 1)) {
		read_specs(k, info->element[8]);
	} else if (info->element[3]->integer > 0) {
		k->ask = false;
		k->specs[k->spec_count++].from = (int32_t)info->element[3]->integer;
	}
}

/* ---- the first key ---- */

struct words {
	uint32_t count;
	const char *const *at;
	const size_t *lengths;
};

static size_t length_of(const struct words *w, uint32_t i)
{
	return w->lengths ? w->lengths[i] : strlen(w->at[i]);
}

/* Where the keys of a specification begin. 0: nowhere. */
static int64_t beginning(const struct key_spec *s, const struct words *w)
{
	int64_t step = s->from > 0 ? 1 : -1, i = s->from > 0 ? s->from : (int64_t)w->count + s->from;
	size_t length = strlen(s->keyword);

	if (!length)
		return i;
	for (; i > 0 && i < w->count; i += step)
		if (length_of(w, (uint32_t)i) == length && strncasecmp(w->at[i], s->keyword, length) == 0)
			return i + 1;
	return 0;
}

/* Whether the word is a number above 0. */
static bool counts_keys(const struct words *w, int64_t i)
{
	size_t length;

	if (i <= 0 || i >= w->count)
		return false;
	length = length_of(w, (uint32_t)i);
	for (size_t k = 0; k < length; k++)
		if (w->at[i][k] >= '1' && w->at[i][k] <= '9')
			return true;
	return false;
}

uint32_t command_keys_first(const struct command_keys *k, uint32_t count, const char *const *words,
			    const size_t *lengths)
{
	const struct words w = {count, words, lengths};

	for (uint32_t i = 0; i < k->spec_count; i++) {
		const struct key_spec *s = &k->specs[i];
		int64_t at = beginning(s, &w);

		if (at > 0 && s->counted)
			at = counts_keys(&w, at + s->count_at) ? at + s->first : 0;
		if (at > 0 && at < count)
			return (uint32_t)at;
	}
	return 0;
}

/* ---- the server's commands ---- */

struct command_entry {
	char name[NAME_BYTES]; /* first, for compare_names */
	struct command_keys keys;
};

struct command_table {
	struct link *link;
	void *root; /* of tsearch() */
};

struct command_table *command_table_new(struct link *l)
{
	struct command_table *t = calloc(1, sizeof(*t));

	if (t)
		t->link = l;
	return t;
}

void command_table_free(struct command_table *t)
{
	if (!t)
		return;
	tdestroy(t->root, free);
	free(t);
}

static int compare_names(const void *a, const void *b)
{
	return strcasecmp(a, b);
}

static const struct command_keys *find_name(struct command_table *t, const char *name)
{
	void *found = tfind(name, &t->root, compare_names);
	const char *const words[] = {"COMMAND", "INFO", name};
	struct command_entry *e;
	redisReply *answer;

	if (found)
		return &(*(struct command_entry **)found)->keys;
	answer = link_ask(t->link, 3, words);
	e = answer ? calloc(1, sizeof(*e)) : NULL;
	if (e) {
		snprintf(e->name, sizeof(e->name), "%s", name);
		command_keys_read(&e->keys, answer);
	}
	if (answer)
		freeReplyObject(answer);
	if (!e || !tsearch(e, &t->root, compare_names)) {
		free(e);
		return NULL;
	}
	return &e->keys;
}

/* Adds a word to a name. A longer one is cut, so the server does not know it. */
static void add_to_name(char name[NAME_BYTES], const struct words *w, uint32_t word)
{
	size_t at = strlen(name), length = length_of(w, word);

	for (size_t i = 0; i < length && at + 1 < NAME_BYTES; i++)
		name[at++] = w->at[word][i] ? w->at[word][i] : '?';
	name[at] = 0;
}

const struct command_keys *command_table_find(struct command_table *t, uint32_t count,
					      const char *const *words, const size_t *lengths)
{
	const struct words w = {count, words, lengths};
	char name[NAME_BYTES] = "";
	const struct command_keys *k, *part;

	add_to_name(name, &w, 0);
	k = find_name(t, name);
	if (!k || !k->container || count < 2 || strlen(name) + 2 > NAME_BYTES)
		return k;
	strcat(name, "|");
	add_to_name(name, &w, 1);
	part = find_name(t, name);
	return !part || part->known == 1 ? part : k;
}

struct redisReply *command_table_ask(struct command_table *t, uint32_t count, const char *const *words,
				     const size_t *lengths, const struct redisReply **key)
{
	const char **all = calloc(count + 2u, sizeof(*all));
	size_t *sizes = calloc(count + 2u, sizeof(*sizes));
	redisReply *answer = NULL;
	char *text = NULL;
	long long length = -1;

	*key = NULL;
	if (all && sizes) {
		const struct words w = {count, words, lengths};

		all[0] = "COMMAND";
		all[1] = "GETKEYS";
		sizes[0] = sizes[1] = 7;
		for (uint32_t i = 0; i < count; i++) {
			all[i + 2] = words[i];
			sizes[i + 2] = length_of(&w, i);
		}
		length = redisFormatCommandArgv(&text, (int)count + 2, all, sizes);
	}
	if (length > 0 && link_send(t->link, text, (size_t)length, ft_now_ns() + LINK_ANSWER_NS) == 0)
		answer = link_answer(t->link, "COMMAND GETKEYS");
	redisFreeCommand(text);
	free(all);
	free(sizes);
	if (is_array(answer, 1) && answer->element[0]->type == REDIS_REPLY_STRING)
		*key = answer->element[0];
	return answer;
}

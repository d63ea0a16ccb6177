/* SPDX-License-Identifier: MIT */
/* The server is asked for the position of a command's keys once before the load, with an example of its words
 * (command_keys.h). So commands of modules and future versions need no list here. For each request the key is
 * formatted an additional time, by the same code as requests, only to hash it. */
#include "route.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_keys.h"
#include "loadgen/command/draw.h"
#include "loadgen/net/link.h"
#include "nodes.h"

/* ---- once, before the load ---- */

/* The command's words as sent for key 0, each with a unique mark in place of its number. Freed with
 * free_words. */
static char **sample_words(const struct command *c)
{
	char **words = calloc(c->word_count, sizeof(*words));

	for (uint32_t i = 0; words && i < c->word_count; i++) {
		size_t size = 0;
		FILE *f = open_memstream(&words[i], &size);

		for (uint32_t k = 0; f && k < c->words[i].count; k++) {
			const struct command_part *p = &c->parts[c->words[i].first + k];

			if (p->kind == PART_TEXT)
				fwrite(p->text, 1, p->length, f);
			else
				fprintf(f, "%u", i + 1);
		}
		if (f)
			fclose(f);
	}
	return words;
}

static void free_words(char **words, uint32_t count)
{
	for (uint32_t i = 0; words && i < count; i++)
		free(words[i]);
	free(words);
}

/* The first key of a command that only the server finds, with an example. 0: none. */
static uint32_t ask_key(struct command_table *t, const struct command *c, char **sample)
{
	const char *const *words = (const char *const *)sample;
	const redisReply *key;
	redisReply *r = command_table_ask(t, c->word_count, words, NULL, &key);
	uint32_t found = 0;

	for (uint32_t i = 1; key && i < c->word_count && !found; i++)
		if (strcmp(sample[i], key->str) == 0)
			found = i;
	if (r)
		freeReplyObject(r);
	return found;
}

/* What the server reports about the command, and the word of its first key, 0 without one. Returns
 * command_keys.known. */
static int ask_server(struct command_table *t, const struct command *c, struct route *route, uint32_t *first)
{
	char **sample = sample_words(c);
	const char *const *words = (const char *const *)sample;
	const struct command_keys *k = sample ? command_table_find(t, c->word_count, words, NULL) : NULL;

	if (k) {
		route->reads = k->reads;
		route->writes = k->writes;
		*first = command_keys_first(k, c->word_count, words, NULL);
		if (!*first && k->ask)
			*first = ask_key(t, c, sample);
	}
	free_words(sample, c->word_count);
	return k ? k->known : -1;
}

bool route_settle_word(struct command *c, uint32_t word)
{
	struct command_part *parts = &c->parts[c->words[word].first];

	for (uint32_t i = 0; i < c->words[word].count; i++) {
		enum part_kind kind = parts[i].kind;

		if (kind != PART_TEXT && kind != PART_KEY && kind != PART_KEY_NUMBER && kind != PART_TAG &&
		    kind != PART_CAPTURED && kind != PART_INT && kind != PART_OTHER_KEY)
			return false;
	}
	for (uint32_t i = 0; i < c->words[word].count; i++) {
		if (parts[i].kind == PART_INT)
			parts[i].kind = PART_KEY_NUMBER;
		else if (parts[i].kind == PART_OTHER_KEY)
			parts[i].kind = PART_KEY;
	}
	return true;
}

static int prepare_step(const struct workload *w, struct step *s, struct command_table *table, bool several,
			char *error, size_t size)
{
	const struct product *product = protocol_of(w->protocol)->product;
	struct command *c = &s->command;
	char name[COMMAND_NAME];
	uint32_t first = c->word_count > 1;
	int known = -1;

	command_name(c, name, sizeof(name));
	s->route = (struct route){.kind = ROUTE_ANY};
	if (product->reads)
		s->route.reads = product_reads(product, c);
	else if (table)
		known = ask_server(table, c, &s->route, &first);
	if (known == 0) {
		snprintf(error, size, "the server has no command %s", name);
		return -EINVAL;
	}
	if (!several || first == 0 || first >= c->word_count)
		return 0;
	if (!route_settle_word(c, first)) {
		snprintf(error, size,
			 "the key of %s is not known before it is sent. With several servers, build the key "
			 "from text, __key__ and __tag__",
			 name);
		return -EINVAL;
	}
	s->route.kind = ROUTE_KEY;
	s->route.word = (uint16_t)first;
	return 0;
}

int route_prepare(struct workload *w, struct link *link, bool several, char *error, size_t size)
{
	struct command_table *table = link ? command_table_new(link) : NULL;
	int rc = 0;

	if (link && !table) {
		snprintf(error, size, "not enough memory for the commands");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->operation_count; i++)
		for (uint32_t k = 0; k < w->operations[i].step_count && rc == 0; k++)
			rc = prepare_step(w, &w->operations[i].steps[k], table, several, error, size);
	command_table_free(table);
	return rc;
}

/* ---- for each request ---- */

bool route_name(const struct workload *w, const struct step *s, uint64_t key, struct bytes *scratch)
{
	const struct command_word *word = &s->command.words[s->route.word];

	scratch->length = 0;
	for (uint32_t i = 0; i < word->count; i++) {
		const struct command_part *p = &s->command.parts[word->first + i];
		const struct request_values v = {.key = key};
		struct drawn d = draw_part(p, &w->fill, &v, NULL);

		if (!bytes_reserve(scratch, d.length))
			return false;
		write_part(p, &d, &w->fill, &v, scratch, NULL);
	}
	return true;
}

uint32_t route_slot(const struct nodes *n, const struct workload *w, const struct step *s, uint64_t key,
		    struct bytes *scratch)
{
	if (n->kind == DEPLOYMENT_PRIMARY)
		return 0;
	if (s->route.kind == ROUTE_ANY || !route_name(w, s, key, scratch))
		return ROUTE_ANYWHERE;
	return n->kind == DEPLOYMENT_CLUSTER ? cluster_slot(scratch->at, scratch->length)
					     : ketama_server(&n->ketama, scratch->at, scratch->length);
}

/* SPDX-License-Identifier: MIT */
/* The server is asked for the position of a command's keys once before the load: by COMMAND INFO, and with an
 * example by COMMAND GETKEYS if the position is not fixed. So commands of modules and future versions need no
 * list here. For each request the key is formatted an additional time, by the same code as requests, only to
 * hash it. */
#include "route.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loadgen/command/draw.h"
#include "loadgen/net/link.h"
#include "nodes.h"

/* ---- once, before the load ---- */

/* What the server reports about a command: -1 no answer, 0 no such command, 1 known. `first`: the word of the
 * first key, 0 if it has no fixed position. */
static int ask_info(struct link *l, const char *name, struct route *route, bool *movable, long long *first)
{
	const char *const words[] = {"COMMAND", "INFO", name};
	redisReply *r = link_ask(l, 3, words);
	const redisReply *info = r && r->type == REDIS_REPLY_ARRAY && r->elements == 1 ? r->element[0] : NULL;
	int result = -1;

	*movable = false;
	if (info && info->type == REDIS_REPLY_NIL) {
		result = 0;
	} else if (info && info->type == REDIS_REPLY_ARRAY && info->elements >= 6) {
		const redisReply *flags = info->element[2];

		for (size_t i = 0; flags->type == REDIS_REPLY_ARRAY && i < flags->elements; i++) {
			route->reads |= strcasecmp(flags->element[i]->str, "readonly") == 0;
			route->writes |= strcasecmp(flags->element[i]->str, "write") == 0;
			*movable |= strcasecmp(flags->element[i]->str, "movablekeys") == 0;
		}
		*first = info->element[3]->integer;
		result = 1;
	}
	if (r)
		freeReplyObject(r);
	return result;
}

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

/* The first key of a command whose keys have no fixed position (EVAL, XREAD), found with an example. 0:
 * none. */
static uint32_t ask_key(struct link *l, const struct command *c)
{
	const char **words = calloc(c->word_count + 2u, sizeof(*words));
	char **sample = sample_words(c);
	redisReply *r = NULL;
	uint32_t found = 0;

	if (words && sample) {
		words[0] = "COMMAND";
		words[1] = "GETKEYS";
		for (uint32_t i = 0; i < c->word_count; i++)
			words[i + 2] = sample[i] ? sample[i] : "";
		r = link_ask(l, (int)c->word_count + 2, words);
	}
	if (r && r->type == REDIS_REPLY_ARRAY && r->elements > 0 && r->element[0]->type == REDIS_REPLY_STRING)
		for (uint32_t i = 1; i < c->word_count && !found; i++)
			if (strcmp(sample[i], r->element[0]->str) == 0)
				found = i;
	if (r)
		freeReplyObject(r);
	free_words(sample, c->word_count);
	free(words);
	return found;
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

static int prepare_step(const struct workload *w, struct step *s, struct link *link, bool several,
			char *error, size_t size)
{
	const struct product *product = protocol_of(w->protocol)->product;
	struct command *c = &s->command;
	char name[COMMAND_NAME];
	bool movable = false;
	long long first = c->word_count > 1;
	int said = -1;

	command_name(c, name, sizeof(name));
	s->route = (struct route){.kind = ROUTE_ANY};
	if (product->reads)
		s->route.reads = product_reads(product, c);
	else if (link)
		said = ask_info(link, name, &s->route, &movable, &first);
	if (said == 0) {
		snprintf(error, size, "the server has no command %s", name);
		return -EINVAL;
	}
	if (said == 1 && movable && first == 0)
		first = ask_key(link, c);
	if (!several || first <= 0 || (uint32_t)first >= c->word_count)
		return 0;
	if (!route_settle_word(c, (uint32_t)first)) {
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
	for (uint32_t i = 0; i < w->operation_count; i++) {
		for (uint32_t k = 0; k < w->operations[i].step_count; k++) {
			int rc = prepare_step(w, &w->operations[i].steps[k], link, several, error, size);
			if (rc)
				return rc;
		}
	}
	return 0;
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

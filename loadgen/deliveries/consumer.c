/* SPDX-License-Identifier: MIT */
/* A consumer's commands and how it handles the answers: SUBSCRIBE, BLPOP, XREAD, XREADGROUP. A stream is read
 * from its last entry at the start, by id instead of $, so that no entry is missed between two reads or
 * during a reconnect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "consumer.h"

#define GROUP "forktail"

static bool queue(struct consumer *c, int count, const char **words, const size_t *lengths)
{
	char *text = NULL;
	long long n = redisFormatCommandArgv(&text, count, words, lengths);
	bool good = n > 0 && bytes_reserve(&c->out, (size_t)n);

	if (good)
		bytes_add(&c->out, text, (size_t)n);
	if (text)
		redisFreeCommand(text);
	return good;
}

/* Words are text. NULL is replaced by the name of this consumer's key. */
static bool say(struct consumer *c, int count, const char *const *words)
{
	const struct key_names *names = &c->deliveries->plan.workload->names;
	uint64_t number = c->number % c->deliveries->plan.channels;
	uint32_t length = key_name_length(names, number);
	char *name = malloc(length);
	const char *said[16];
	size_t lengths[16];
	bool good = name != NULL;

	if (name)
		key_name_write(names, number, name, length);
	for (int i = 0; i < count; i++) {
		said[i] = words[i] ? words[i] : name;
		lengths[i] = words[i] ? strlen(words[i]) : length;
	}
	good = good && queue(c, count, said, lengths);
	free(name);
	return good;
}

/* One SUBSCRIBE per channel, because each channel gets its own answer in any case. */
static bool subscribe(struct consumer *c)
{
	const struct deliveries_plan *plan = &c->deliveries->plan;
	const struct key_names *names = &plan->workload->names;
	bool good = true;

	for (uint32_t i = 0; i < plan->channels && good; i++) {
		uint32_t length = key_name_length(names, i);
		char *name = malloc(length);
		const char *words[2] = {"SUBSCRIBE", name};
		const size_t lengths[2] = {9, length};

		if (name)
			key_name_write(names, i, name, length);
		good = name && queue(c, 2, words, lengths);
		free(name);
	}
	c->awaited = plan->channels;
	return good;
}

bool consumer_ask(struct consumer *c)
{
	char name[16];

	snprintf(name, sizeof(name), "c%u", c->number);
	switch (c->deliveries->plan.kind) {
	case DELIVERY_LIST:
		return say(c, 3, (const char *const[]){"BLPOP", NULL, "0"});
	case DELIVERY_STREAM:
		return say(c, 6, (const char *const[]){"XREAD", "BLOCK", "0", "STREAMS", NULL, c->last_id});
	case DELIVERY_GROUP:
		return say(c, 10,
			   (const char *const[]){"XREADGROUP", "GROUP", GROUP, name, "NOACK", "BLOCK", "0",
						 "STREAMS", NULL, ">"});
	case DELIVERY_PUBSUB:
	case DELIVERY_NONE:
		break;
	}
	return true;
}

bool consumer_prepare(struct consumer *c)
{
	c->awaited = 0;
	switch (c->deliveries->plan.kind) {
	case DELIVERY_PUBSUB:
		return subscribe(c);
	case DELIVERY_STREAM:
		if (c->last_id[0])
			break; /* reconnected */
		c->awaited = 1;
		return say(c, 6, (const char *const[]){"XREVRANGE", NULL, "+", "-", "COUNT", "1"});
	case DELIVERY_GROUP:
		c->awaited = 1;
		return say(c, 6, (const char *const[]){"XGROUP", "CREATE", NULL, GROUP, "$", "MKSTREAM"});
	case DELIVERY_LIST:
	case DELIVERY_NONE:
		break;
	}
	return consumer_ask(c);
}

static bool is_list(const redisReply *r)
{
	return r->type == REDIS_REPLY_ARRAY;
}

static bool is_text(const redisReply *r, const char *text)
{
	return r->type == REDIS_REPLY_STRING && strcasecmp(r->str, text) == 0;
}

/* [id, [field, message]] */
static void take_entry(struct consumer *c, const redisReply *entry, uint64_t end_ns)
{
	if (!is_list(entry) || entry->elements != 2 || entry->element[0]->type != REDIS_REPLY_STRING)
		return;
	snprintf(c->last_id, sizeof(c->last_id), "%s", entry->element[0]->str);
	if (is_list(entry->element[1]) && entry->element[1]->elements >= 2)
		take_message(c, entry->element[1]->element[1], end_ns);
}

/* [[key, [entry, ...]]] */
static bool take_entries(struct consumer *c, const redisReply *r, uint64_t end_ns)
{
	const redisReply *of_key;

	if (r->elements != 1 || !is_list(r->element[0]))
		return false;
	of_key = r->element[0];
	if (of_key->elements != 2 || !is_list(of_key->element[1]))
		return false;
	for (size_t i = 0; i < of_key->element[1]->elements; i++)
		take_entry(c, of_key->element[1]->element[i], end_ns);
	return true;
}

/* An answer to a command that prepares the consumer. */
static const char *take_setup_reply(struct consumer *c, const redisReply *r)
{
	enum delivery_kind kind = c->deliveries->plan.kind;

	if (r->type == REDIS_REPLY_ERROR && !(kind == DELIVERY_GROUP && strncmp(r->str, "BUSYGROUP", 9) == 0))
		return "the server refused a consumer's first command";
	if (kind == DELIVERY_PUBSUB &&
	    !(is_list(r) && r->elements == 3 && is_text(r->element[0], "subscribe")))
		return "unexpected answer to SUBSCRIBE";
	if (kind == DELIVERY_STREAM) {
		bool some = is_list(r) && r->elements == 1 && is_list(r->element[0]) &&
			    r->element[0]->elements == 2 &&
			    r->element[0]->element[0]->type == REDIS_REPLY_STRING;
		snprintf(c->last_id, sizeof(c->last_id), "%s", some ? r->element[0]->element[0]->str : "0-0");
	}
	if (--c->awaited == 0 && !consumer_ask(c))
		return "out of memory";
	return NULL;
}

const char *consumer_take_reply(struct consumer *c, const redisReply *r, uint64_t end_ns)
{
	enum delivery_kind kind = c->deliveries->plan.kind;

	if (c->greetings) {
		bool name = --c->greetings == 0 && c->deliveries->plan.endpoint.named;

		return r->type == REDIS_REPLY_ERROR && !name
			   ? "the server refused the login of a reconnected consumer"
			   : NULL;
	}
	/* A message may arrive between the answers to two SUBSCRIBEs. */
	if (kind == DELIVERY_PUBSUB && is_list(r) && r->elements == 3 && is_text(r->element[0], "message")) {
		take_message(c, r->element[2], end_ns);
		return NULL;
	}
	if (c->awaited)
		return take_setup_reply(c, r);
	if (r->type == REDIS_REPLY_ERROR)
		return "the server refused a consumer's command";
	switch (kind) {
	case DELIVERY_LIST:
		if (is_list(r) && r->elements == 2)
			take_message(c, r->element[1], end_ns);
		else if (r->type != REDIS_REPLY_NIL)
			return "unexpected answer to BLPOP";
		break;
	case DELIVERY_STREAM:
	case DELIVERY_GROUP:
		if (r->type != REDIS_REPLY_NIL && !(is_list(r) && take_entries(c, r, end_ns)))
			return "unexpected answer to a read of a stream";
		break;
	case DELIVERY_PUBSUB:
	case DELIVERY_NONE:
		return "a subscriber received something that is not a message";
	}
	return consumer_ask(c) ? NULL : "out of memory";
}

/* SPDX-License-Identifier: MIT */
/* Sends a command per element, many at a time: a million sets, one answer after the other, would take
 * minutes. */
#include "prepare.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/net/link.h"
#include "loadgen/server/reach.h"
#include "recording/recording.h"

enum { AT_ONCE = 1000, WORD_BYTES = 32 };

struct preparing {
	struct server *one;
	struct nodes *several; /* NULL: one server */
	struct {
		struct link *link; /* created when first needed */
		struct bytes commands;
		uint32_t count;
	} at[NODES_MAX]; /* by node; [0] for a single server */
	uint32_t count;	 /* over all */
	char *error;
	size_t size;
};

static struct server *server_at(const struct preparing *p, uint16_t node)
{
	return p->several ? &nodes_at(p->several, node)->server : p->one;
}

static uint16_t node_of(const struct preparing *p, const char *key)
{
	const struct nodes *n = p->several;

	if (!n)
		return 0;
	return nodes_choose(n,
			    n->kind == DEPLOYMENT_CLUSTER ? cluster_slot(key, strlen(key))
			    : n->kind == DEPLOYMENT_RING  ? ketama_server(&n->ketama, key, strlen(key))
							  : 0,
			    false, 0);
}

static int take_answer(struct preparing *p, uint16_t node)
{
	redisReply *r = link_answer(p->at[node].link, "the preparation of a test");
	int rc = !r || r->type == REDIS_REPLY_ERROR ? -1 : 0;

	if (!r)
		snprintf(p->error, p->size, "%s", link_error(p->at[node].link));
	else if (rc)
		server_say(server_at(p, node), p->error, p->size,
			   "refused a command that prepares a test: %.150s", r->str);
	if (r)
		freeReplyObject(r);
	return rc;
}

/* Sends what was gathered for all servers, then reads the answers of each. */
static int flush(struct preparing *p)
{
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		struct bytes *commands = &p->at[i].commands;

		if (p->at[i].count == 0)
			continue;
		if (link_send(p->at[i].link, commands->at, commands->length, ft_now_ns() + LINK_ANSWER_NS)) {
			server_say(server_at(p, (uint16_t)i), p->error, p->size,
				   "closed the connection while a test was prepared");
			return -1;
		}
		commands->length = 0;
	}
	for (uint32_t i = 0; i < NODES_MAX; i++)
		for (; p->at[i].count > 0; p->at[i].count--)
			if (take_answer(p, (uint16_t)i))
				return -1;
	p->count = 0;
	return 0;
}

/* Adds a member to a list or set. */
static int put(struct preparing *p, const char *command, const char *key, const char *member)
{
	const char *words[] = {command, key, member};
	uint16_t node = node_of(p, key);
	char *text = NULL;
	int length;
	bool room;

	if (node == NODE_NONE) {
		snprintf(p->error, p->size, "no server has the slot of a key that a test needs");
		return -1;
	}
	if (!p->at[node].link)
		p->at[node].link = server_enter(server_at(p, node), 0, p->error, p->size);
	if (!p->at[node].link)
		return -1;
	length = redisFormatCommandArgv(&text, 3, words, NULL);
	room = length > 0 && bytes_reserve(&p->at[node].commands, (size_t)length);
	if (room)
		bytes_add(&p->at[node].commands, text, (size_t)length);
	else
		snprintf(p->error, p->size, "not enough memory to prepare a test");
	redisFreeCommand(text);
	if (!room)
		return -1;
	p->at[node].count++;
	return ++p->count < AT_ONCE ? 0 : flush(p);
}

static int prepare_list(struct preparing *p)
{
	char member[WORD_BYTES];
	int rc = 0;

	for (int i = 0; i < PREPARED_LIST && rc == 0; i++) {
		snprintf(member, sizeof(member), "element:%012d", i);
		rc = put(p, "LPUSH", "mylist", member);
	}
	return rc;
}

static int prepare_sets(struct preparing *p, uint64_t keys)
{
	char key[WORD_BYTES], member[WORD_BYTES];
	int rc = 0;

	for (uint64_t i = 0; i < keys * PREPARED_MEMBERS && rc == 0; i++) {
		snprintf(key, sizeof(key), "set:%012llu", (unsigned long long)(i / PREPARED_MEMBERS));
		snprintf(member, sizeof(member), "member:%02llu", (unsigned long long)(i % PREPARED_MEMBERS));
		rc = put(p, "SADD", key, member);
	}
	return rc;
}

int prepare_servers(struct server *one, struct nodes *several, enum preparation what, uint64_t keys,
		    char *error, size_t size)
{
	struct preparing p = {.one = one, .several = several, .error = error, .size = size};
	int rc = what == PREPARE_LIST ? prepare_list(&p) : what == PREPARE_SETS ? prepare_sets(&p, keys) : 0;

	if (rc == 0)
		rc = flush(&p);
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		link_free(p.at[i].link);
		free(p.at[i].commands.at);
	}
	return rc;
}

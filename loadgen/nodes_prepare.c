/* SPDX-License-Identifier: MIT */
/* What redis-benchmark's tests need to find, put on the servers that the keys belong to: one command per key,
 * each answered before the next is sent. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "nodes.h"

struct preparing {
	struct nodes *nodes;
	struct link *links[NODES_MAX]; /* made when first wanted */
	char *error;
	size_t size;
};

static int send_one(struct preparing *p, int count, const char *const *words)
{
	size_t length = strlen(words[1]);
	uint32_t slot = p->nodes->kind == DEPLOYMENT_CLUSTER ? cluster_slot(words[1], length)
			: p->nodes->kind == DEPLOYMENT_RING
			    ? ketama_server(&p->nodes->ketama, words[1], length)
			    : 0;
	uint16_t node = nodes_choose(p->nodes, slot, false, 0);
	redisReply *r;
	int rc = 0;

	if (node == NODE_NONE) {
		snprintf(p->error, p->size, "no server has the slot of a key that a test needs");
		return -1;
	}
	if (!p->links[node])
		p->links[node] = server_enter(&nodes_at(p->nodes, node)->server, 0, p->error, p->size);
	if (!p->links[node])
		return -1;
	r = link_ask(p->links[node], count, words);
	if (!r || r->type == REDIS_REPLY_ERROR) {
		snprintf(p->error, p->size, "%s refused what a test needs: %.150s",
			 nodes_at(p->nodes, node)->name, r ? r->str : link_error(p->links[node]));
		rc = -1;
	}
	if (r)
		freeReplyObject(r);
	return rc;
}

enum { WORD_BYTES = 32 };

static int prepare_list(struct preparing *p)
{
	static char texts[PREPARED_LIST][WORD_BYTES];
	const char *words[2 + PREPARED_LIST] = {"LPUSH", "mylist"};

	for (int i = 0; i < PREPARED_LIST; i++) {
		snprintf(texts[i], sizeof(texts[i]), "element:%012d", i);
		words[2 + i] = texts[i];
	}
	return send_one(p, 2 + PREPARED_LIST, words);
}

static int prepare_sets(struct preparing *p, uint64_t keys)
{
	char texts[PREPARED_MEMBERS][WORD_BYTES], name[WORD_BYTES];
	const char *words[2 + PREPARED_MEMBERS] = {"SADD", name};
	int rc = 0;

	for (int i = 0; i < PREPARED_MEMBERS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "member:%02d", i);
		words[2 + i] = texts[i];
	}
	for (uint64_t i = 0; i < keys && rc == 0; i++) {
		snprintf(name, sizeof(name), "set:%012llu", (unsigned long long)i);
		rc = send_one(p, 2 + PREPARED_MEMBERS, words);
	}
	return rc;
}

int nodes_prepare(struct nodes *n, enum preparation what, uint64_t keys, char *error, size_t size)
{
	struct preparing p = {.nodes = n, .error = error, .size = size};
	int rc = what == PREPARE_LIST ? prepare_list(&p) : what == PREPARE_SETS ? prepare_sets(&p, keys) : 0;

	for (uint32_t i = 0; i < NODES_MAX; i++)
		link_free(p.links[i]);
	return rc;
}

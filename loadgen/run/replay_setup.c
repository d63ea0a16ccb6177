/* SPDX-License-Identifier: MIT */
/* The server knows where commands have their keys, so this comes after connecting to it, and before the load.
 */
#include "replay_setup.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "loadgen/cluster/command_keys.h"
#include "loadgen/net/link.h"

struct slot_finder {
	struct command_table *table;
	const char **words;
	size_t *lengths;
	uint32_t room;
};

/* The words in the form that command_keys.h takes. */
static bool take_words(struct slot_finder *f, const struct replay_word *words, uint32_t count)
{
	if (count > f->room) {
		const char **grown = realloc(f->words, 2 * count * sizeof(*grown));
		size_t *lengths = grown ? realloc(f->lengths, 2 * count * sizeof(*lengths)) : NULL;

		if (grown)
			f->words = grown;
		if (!lengths)
			return false;
		f->lengths = lengths;
		f->room = 2 * count;
	}
	for (uint32_t i = 0; i < count; i++) {
		f->words[i] = words[i].at;
		f->lengths[i] = words[i].length;
	}
	return true;
}

static int slot_of(void *who, const struct replay_word *words, uint32_t count, uint16_t *slot)
{
	struct slot_finder *f = who;
	const struct command_keys *k;
	const redisReply *key;
	redisReply *answer;
	uint32_t first;

	if (!take_words(f, words, count))
		return -ENOMEM;
	k = command_table_find(f->table, count, f->words, f->lengths);
	if (!k)
		return -ECONNRESET;
	first = command_keys_first(k, count, f->words, f->lengths);
	if (first)
		*slot = cluster_slot(words[first].at, words[first].length);
	if (first || !k->ask)
		return 0;
	answer = command_table_ask(f->table, count, f->words, f->lengths, &key);
	if (!answer)
		return -ECONNRESET;
	if (key)
		*slot = cluster_slot(key->str, key->len);
	freeReplyObject(answer);
	return 0;
}

static int find_slots(struct run *r, char *error, size_t size)
{
	struct link *link = server_enter(&r->server, 0, error, size);
	struct slot_finder f = {.table = link ? command_table_new(link) : NULL};
	int rc = -ECONNREFUSED;

	if (link) {
		rc = f.table ? replay_find_slots(r->o->replay, slot_of, &f) : -ENOMEM;
		if (rc)
			snprintf(error, size, "%s",
				 rc == -ECONNRESET && *link_error(link)
				     ? link_error(link)
				     : "not enough memory for the keys of the recording");
	}
	command_table_free(f.table);
	free(f.words);
	free(f.lengths);
	link_free(link);
	return rc;
}

int replay_setup(struct run *r, char *error, size_t size)
{
	const struct options *o = r->o;
	struct replay *replay = o->replay;
	uint32_t all = replay->count;
	bool by_key = o->replay_order == REPLAY_ORDER_KEY;
	int rc = 0;

	if (by_key || o->replay_share < 1 || o->deployment == DEPLOYMENT_CLUSTER)
		rc = find_slots(r, error, size);
	if (rc)
		return rc;
	/* Transactions of clients that share a connection must not mix. */
	rc = replay_find_transactions(replay, by_key || o->connections < replay->clients);
	if (rc == 0 && o->replay_share < 1)
		replay_sample(replay, o->replay_share, o->replay_seed);
	if (rc == 0 && replay->count == 0) {
		snprintf(error, size, "none of the %u commands of %s are in the sample or complete", all,
			 o->replay_path);
		return -ENODATA;
	}
	if (rc == 0 && o->requests)
		replay_limit(replay, o->requests);
	if (rc == 0 && o->rate > 0)
		replay_pace(replay, o->arrival, o->rate, o->seed);
	if (rc == 0 && by_key)
		replay_order_by_key(replay, o->connections);
	if (rc == 0)
		rc = replay_share(replay, o->connections);
	if (rc)
		snprintf(error, size, "not enough memory to replay %s", o->replay_path);
	if (o->deployment == DEPLOYMENT_CLUSTER)
		r->workload->recorded.slots = replay->slots;
	return rc;
}

/* SPDX-License-Identifier: MIT */
/* Where keys are is known here rather than asked: a proxy has no COMMAND. All that twemproxy passes on has
 * its key in the second word, but for scripts, and what takes several keys may go to several servers. */
#include "behind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "route.h"

void behind_name(const struct options *o, uint32_t i, char *out, size_t size)
{
	if (o->behind_names[i])
		snprintf(out, size, "%s", o->behind_names[i]);
	else
		address_ring_name(&o->behind[i], out, size);
}

/* Whether the second word is the command's only key. */
static bool one_key(const struct workload *w, const struct command *c)
{
	static const struct {
		const char *name;
		uint32_t words; /* of one that has one key; 0: none has, there */
	} redis[] =
	    {
		{"PING", 0},	{"AUTH", 0},   {"SELECT", 0}, {"ECHO", 0},   {"EVAL", 0},
		{"EVALSHA", 0}, {"MGET", 2},   {"DEL", 2},    {"UNLINK", 2}, {"EXISTS", 2},
		{"MSET", 3},	{"MSETNX", 3}, {"TOUCH", 2},
	    },
	  memcached[] = {{"GET", 2}, {"GETS", 2}, {"VERSION", 0}, {"STATS", 0}, {"FLUSH_ALL", 0}};
	bool is_redis = w->protocol == PROTOCOL_REDIS;
	size_t count = is_redis ? sizeof(redis) / sizeof(*redis) : sizeof(memcached) / sizeof(*memcached);
	char name[OPERATION_NAME];

	command_name(c, name, sizeof(name));
	for (size_t i = 0; i < count; i++)
		if (strcmp((is_redis ? redis : memcached)[i].name, name) == 0)
			return (is_redis ? redis : memcached)[i].words == c->word_count;
	return c->word_count > 1;
}

int behind_prepare(struct ketama *ring, const struct options *o, struct workload *w, char *error, size_t size)
{
	char names[BEHIND_MAX][300];
	const char *list[BEHIND_MAX];
	int rc;

	for (uint32_t i = 0; i < w->operation_count; i++) {
		struct step *s = &w->operations[i].steps[0];

		s->route = (struct route){.kind = ROUTE_ANY};
		if (w->operations[i].step_count == 1 && one_key(w, &s->command) &&
		    route_settle_word(&s->command, 1))
			s->route = (struct route){.kind = ROUTE_KEY, .word = 1};
	}
	for (uint32_t i = 0; i < o->behind_count; i++) {
		behind_name(o, i, names[i], sizeof(names[i]));
		list[i] = names[i];
	}
	rc = ketama_init(ring, list, o->behind_count);
	if (rc)
		snprintf(error, size, "the servers of --behind can't be told apart: %s",
			 rc == -ENOMEM ? "not enough memory" : "this host's OpenSSL offers no MD5");
	return rc;
}

uint8_t behind_of(const struct ketama *ring, const struct workload *w, unsigned operation, uint64_t key,
		  struct bytes *scratch)
{
	const struct step *s = &w->operations[operation].steps[0];

	if (s->route.kind != ROUTE_KEY || !route_name(w, s, key, scratch))
		return 0;
	return (uint8_t)(ketama_server(ring, scratch->at, scratch->length) + 1);
}

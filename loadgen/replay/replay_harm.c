/* SPDX-License-Identifier: MIT */
/* The list of omitted commands, each with its reason. A blocking command has the position of its time-out,
 * because only a time-out of 0 never ends. */
#include "replay_harm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum why {
	LOSES_DATA,
	STOPS_SERVER,
	CHANGES_SERVER,
	CHANGES_ROLE,
	CUTS_CLIENTS,
	LOADS_DISK,
	LOSES_EVIDENCE,
	BLOCKS,	  /* only if it would block without limit: a time-out of 0 */
	PROTOCOL, /* can't be allowed */
};

static const char *const reasons[] = {
    [LOSES_DATA] = "loses data",
    [STOPS_SERVER] = "can stop the server",
    [CHANGES_SERVER] = "changes the server",
    [CHANGES_ROLE] = "changes the replication topology",
    [CUTS_CLIENTS] = "affects other clients",
    [LOADS_DISK] = "writes or sends the whole data set",
    [LOSES_EVIDENCE] = "clears the server's logs or statistics",
    [BLOCKS] = "blocks without limit",
    [PROTOCOL] = "changes the replies on its connection",
};

/* The position of the time-out. */
enum where { NOWHERE, LAST, FIRST, AFTER_BLOCK };

static const struct harm {
	const char *name, *sub; /* sub: only with this as second word */
	enum why why;
	enum where where;
} list[] = {
    {"FLUSHALL", 0, LOSES_DATA, NOWHERE},
    {"FLUSHDB", 0, LOSES_DATA, NOWHERE},
    {"SWAPDB", 0, LOSES_DATA, NOWHERE},
    {"MIGRATE", 0, LOSES_DATA, NOWHERE},
    {"FUNCTION", "FLUSH", LOSES_DATA, NOWHERE},
    {"FUNCTION", "DELETE", LOSES_DATA, NOWHERE},
    {"FUNCTION", "RESTORE", LOSES_DATA, NOWHERE},
    {"SCRIPT", "FLUSH", LOSES_DATA, NOWHERE},
    {"SHUTDOWN", 0, STOPS_SERVER, NOWHERE},
    {"DEBUG", 0, STOPS_SERVER, NOWHERE},
    {"SCRIPT", "KILL", CUTS_CLIENTS, NOWHERE},
    {"SCRIPT", "DEBUG", STOPS_SERVER, NOWHERE},
    {"FUNCTION", "KILL", CUTS_CLIENTS, NOWHERE},
    {"CONFIG", 0, CHANGES_SERVER, NOWHERE},
    {"ACL", 0, CHANGES_SERVER, NOWHERE},
    {"MODULE", 0, CHANGES_SERVER, NOWHERE},
    {"REPLICAOF", 0, CHANGES_ROLE, NOWHERE},
    {"SLAVEOF", 0, CHANGES_ROLE, NOWHERE},
    {"FAILOVER", 0, CHANGES_ROLE, NOWHERE},
    {"CLUSTER", 0, CHANGES_ROLE, NOWHERE},
    {"SENTINEL", 0, CHANGES_ROLE, NOWHERE},
    {"CLIENT", "KILL", CUTS_CLIENTS, NOWHERE},
    {"CLIENT", "PAUSE", CUTS_CLIENTS, NOWHERE},
    {"CLIENT", "UNPAUSE", CUTS_CLIENTS, NOWHERE},
    {"CLIENT", "UNBLOCK", CUTS_CLIENTS, NOWHERE},
    {"BGREWRITEAOF", 0, LOADS_DISK, NOWHERE},
    {"BGSAVE", 0, LOADS_DISK, NOWHERE},
    {"SAVE", 0, LOADS_DISK, NOWHERE},
    {"SLOWLOG", "RESET", LOSES_EVIDENCE, NOWHERE},
    {"LATENCY", "RESET", LOSES_EVIDENCE, NOWHERE},
    {"BLPOP", 0, BLOCKS, LAST},
    {"BRPOP", 0, BLOCKS, LAST},
    {"BRPOPLPUSH", 0, BLOCKS, LAST},
    {"BLMOVE", 0, BLOCKS, LAST},
    {"BZPOPMIN", 0, BLOCKS, LAST},
    {"BZPOPMAX", 0, BLOCKS, LAST},
    {"BLMPOP", 0, BLOCKS, FIRST},
    {"BZMPOP", 0, BLOCKS, FIRST},
    {"WAIT", 0, BLOCKS, LAST},
    {"WAITAOF", 0, BLOCKS, LAST},
    {"XREAD", 0, BLOCKS, AFTER_BLOCK},
    {"XREADGROUP", 0, BLOCKS, AFTER_BLOCK},
    {"SYNC", 0, PROTOCOL, NOWHERE},
    {"PSYNC", 0, PROTOCOL, NOWHERE},
    {"REPLCONF", 0, PROTOCOL, NOWHERE},
    {"MONITOR", 0, PROTOCOL, NOWHERE},
    {"SUBSCRIBE", 0, PROTOCOL, NOWHERE},
    {"PSUBSCRIBE", 0, PROTOCOL, NOWHERE},
    {"SSUBSCRIBE", 0, PROTOCOL, NOWHERE},
    {"UNSUBSCRIBE", 0, PROTOCOL, NOWHERE},
    {"PUNSUBSCRIBE", 0, PROTOCOL, NOWHERE},
    {"SUNSUBSCRIBE", 0, PROTOCOL, NOWHERE},
    {"AUTH", 0, PROTOCOL, NOWHERE},
    {"HELLO", 0, PROTOCOL, NOWHERE},
    {"RESET", 0, PROTOCOL, NOWHERE},
    {"QUIT", 0, PROTOCOL, NOWHERE},
    {"CLIENT", "REPLY", PROTOCOL, NOWHERE},
    {"CLIENT", "TRACKING", PROTOCOL, NOWHERE},
};
enum { HARMS = sizeof(list) / sizeof(*list) };
_Static_assert((int)HARMS <= (int)HARM_MAX, "struct harm_allowed has room for the list");

static bool is(const struct replay_word *w, const char *name)
{
	return w->length == strlen(name) && strncasecmp(w->at, name, w->length) == 0;
}

/* "0", "0.0", "00": no time-out, as servers interpret it. */
static bool is_zero(const struct replay_word *w)
{
	for (size_t i = 0; i < w->length; i++)
		if (w->at[i] != '0' && w->at[i] != '.')
			return false;
	return w->length > 0;
}

static bool waits_for_ever(const struct replay_item *item, enum where where)
{
	const struct replay_word *w = item->words;

	switch (where) {
	case NOWHERE:
		return true;
	case LAST:
		return item->word_count > 1 && is_zero(&w[item->word_count - 1]);
	case FIRST:
		return item->word_count > 1 && is_zero(&w[1]);
	case AFTER_BLOCK:
		for (uint32_t i = 1; i + 1 < item->word_count && !is(&w[i], "STREAMS"); i++)
			if (is(&w[i], "BLOCK"))
				return is_zero(&w[i + 1]);
		return false;
	}
	return false;
}

bool harm_begins(const struct replay_word *name)
{
	for (int i = 0; i < HARMS; i++)
		if (is(name, list[i].name))
			return true;
	return false;
}

int harm_find(const struct harm_allowed *allowed, const struct replay_item *item)
{
	for (int i = 0; i < HARMS; i++) {
		const struct harm *h = &list[i];

		if (!is(&item->words[0], h->name) ||
		    (h->sub && (item->word_count < 2 || !is(&item->words[1], h->sub))))
			continue;
		if (!allowed->of[i] && waits_for_ever(item, h->where))
			return i;
	}
	return -1;
}

const char *harm_name(int harm)
{
	static char names[HARMS][HARM_NAME];
	const struct harm *h = &list[harm];

	snprintf(names[harm], HARM_NAME, "%s%s%s", h->name, h->sub ? " " : "", h->sub ? h->sub : "");
	return names[harm];
}

const char *harm_reason(int harm)
{
	return reasons[list[harm].why];
}

/* One name of the list. False: no such name, or it can't be allowed. */
static bool allow(struct harm_allowed *allowed, const char *name, size_t length, char *error, size_t size)
{
	bool all = length == 3 && strncasecmp(name, "all", 3) == 0, known = false;

	for (int i = 0; i < HARMS; i++) {
		const char *whole = harm_name(i);
		/* The name of a command allows it with any arguments. */
		bool named = (strlen(whole) == length && strncasecmp(whole, name, length) == 0) ||
			     (strlen(list[i].name) == length && strncasecmp(list[i].name, name, length) == 0);

		if (list[i].why == PROTOCOL && named && !list[i].sub) {
			snprintf(
			    error, size,
			    "--replay-allow: %s cannot be allowed: it changes the replies on its connection",
			    whole);
			return false;
		}
		if ((all || named) && list[i].why != PROTOCOL)
			known = allowed->of[i] = true;
	}
	if (!known)
		snprintf(error, size,
			 "--replay-allow: expected all or a list of commands that are omitted by default, "
			 "such as flushall,config, got \"%.*s\"",
			 (int)length, name);
	return known;
}

bool harm_allow(struct harm_allowed *allowed, const char *names, char *error, size_t size)
{
	for (;; names++) {
		size_t length = strcspn(names, ",");

		if (!allow(allowed, names, length, error, size))
			return false;
		names += length;
		if (!*names)
			return true;
	}
}

/* SPDX-License-Identifier: MIT */
/* The only place that knows all protocols: their table, and functions over the complete table. */
#include <string.h>

#include "protocol.h"
#include "protocol_rows.h"

const struct protocol *const protocols[PROTOCOLS] = {
    [PROTOCOL_REDIS] = &protocol_redis,
    [PROTOCOL_MEMCACHE_TEXT] = &protocol_memcache_text,
    [PROTOCOL_MEMCACHE_BINARY] = &protocol_memcache_binary,
    [PROTOCOL_MEMCACHE_META] = &protocol_memcache_meta,
};

enum protocol_id product_protocol(const struct product *p)
{
	int i = 0;

	while (i < PROTOCOLS - 1 && protocols[i]->product != p)
		i++;
	return (enum protocol_id)i;
}

bool product_one_key(const struct product *p, const struct command *c)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (const struct key_rule *r = p->key_rules; r->name; r++)
		if (strcmp(r->name, name) == 0)
			return r->one_key == c->word_count;
	return c->word_count > 1;
}

bool product_reads(const struct product *p, const struct command *c)
{
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (const char *const *r = p->reads; *r; r++)
		if (strcmp(*r, name) == 0)
			return true;
	return false;
}

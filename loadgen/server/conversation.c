/* SPDX-License-Identifier: MIT */
/* The only place that knows all conversations: a new protocol gets its row here. */
#include "conversation.h"

const struct conversation *conversation_of(enum protocol_id protocol)
{
	static const struct conversation *const table[PROTOCOLS] = {
	    [PROTOCOL_REDIS] = &converse_redis,
	    [PROTOCOL_MEMCACHE_TEXT] = &converse_memcached_text,
	    [PROTOCOL_MEMCACHE_BINARY] = &converse_memcached_binary,
	    [PROTOCOL_MEMCACHE_META] = &converse_memcached_meta,
	};

	return table[protocol];
}

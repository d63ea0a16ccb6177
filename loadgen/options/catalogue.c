/* SPDX-License-Identifier: MIT */
/* The catalogue of tests. Names, commands and order are redis-benchmark's (its source, version 7.0), with
 * keys from the run's key pattern where it draws one key per request. SMEMBERS and the growing base's INSERT,
 * SELECT and UPDATE are additions. */
#include "loadgen/options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MSET_PAIR " __other_key__ __data__"

const struct catalogue_entry catalogue[CATALOGUE_ENTRIES] = {
    {"PING_INLINE", "PING", "PING", &redis_product, PREPARE_NOTHING, true},
    {"PING_MBULK", "PING", "PING", &redis_product, PREPARE_NOTHING, true},
    {"SET", 0, "SET __key__ __data__", &redis_product, PREPARE_NOTHING, true},
    {"GET", 0, "GET __key__", &redis_product, PREPARE_NOTHING, true},
    {"INCR", 0, "INCR counter:__int__", &redis_product, PREPARE_NOTHING, true},
    {"LPUSH", 0, "LPUSH mylist __data__", &redis_product, PREPARE_NOTHING, true},
    {"RPUSH", 0, "RPUSH mylist __data__", &redis_product, PREPARE_NOTHING, true},
    {"LPOP", 0, "LPOP mylist", &redis_product, PREPARE_NOTHING, true},
    {"RPOP", 0, "RPOP mylist", &redis_product, PREPARE_NOTHING, true},
    {"SADD", 0, "SADD myset element:__int__", &redis_product, PREPARE_NOTHING, true},
    {"HSET", 0, "HSET myhash element:__int__ __data__", &redis_product, PREPARE_NOTHING, true},
    {"SPOP", 0, "SPOP myset", &redis_product, PREPARE_NOTHING, true},
    {"ZADD", 0, "ZADD myzset __int__ element:__int__", &redis_product, PREPARE_NOTHING, true},
    {"ZPOPMIN", 0, "ZPOPMIN myzset", &redis_product, PREPARE_NOTHING, true},
    {"LRANGE_100", "LRANGE", "LRANGE mylist 0 99", &redis_product, PREPARE_LIST, true},
    {"LRANGE_300", "LRANGE", "LRANGE mylist 0 299", &redis_product, PREPARE_LIST, true},
    {"LRANGE_500", "LRANGE", "LRANGE mylist 0 499", &redis_product, PREPARE_LIST, true},
    {"LRANGE_600", "LRANGE", "LRANGE mylist 0 599", &redis_product, PREPARE_LIST, true},
    {"MSET", 0,
     "MSET" MSET_PAIR MSET_PAIR MSET_PAIR MSET_PAIR MSET_PAIR MSET_PAIR MSET_PAIR MSET_PAIR MSET_PAIR
	 MSET_PAIR,
     &redis_product, PREPARE_NOTHING, true},
    {"XADD", 0, "XADD mystream * myfield __data__", &redis_product, PREPARE_NOTHING, true},
    {"SMEMBERS", 0, "SMEMBERS set:__int__", &redis_product, PREPARE_SETS, true},
    {"INSERT", 0, "SET __new_key__ __data__", &redis_product, PREPARE_NOTHING, false},
    {"SELECT", 0, "GET __key__", &redis_product, PREPARE_NOTHING, false},
    {"UPDATE", 0, "SET __key__ __data__", &redis_product, PREPARE_NOTHING, false},
    {"SET", 0, "set __key__ __data__", &memcached_product, PREPARE_NOTHING, true},
    {"GET", 0, "get __key__", &memcached_product, PREPARE_NOTHING, true},
    {"ADD", 0, "add __key__ __data__", &memcached_product, PREPARE_NOTHING, true},
    {"REPLACE", 0, "replace __key__ __data__", &memcached_product, PREPARE_NOTHING, true},
    {"APPEND", 0, "append __key__ __data__", &memcached_product, PREPARE_NOTHING, true},
    {"PREPEND", 0, "prepend __key__ __data__", &memcached_product, PREPARE_NOTHING, true},
    {"INCR", 0, "incr __key__ 1", &memcached_product, PREPARE_NOTHING, true},
    {"DECR", 0, "decr __key__ 1", &memcached_product, PREPARE_NOTHING, true},
    {"TOUCH", 0, "touch __key__ 3600", &memcached_product, PREPARE_NOTHING, true},
    {"DELETE", 0, "delete __key__", &memcached_product, PREPARE_NOTHING, true},
    {"INSERT", 0, "set __new_key__ __data__", &memcached_product, PREPARE_NOTHING, false},
    {"SELECT", 0, "get __key__", &memcached_product, PREPARE_NOTHING, false},
    {"UPDATE", 0, "set __key__ __data__", &memcached_product, PREPARE_NOTHING, false},
};

static bool is(const char *name, const char *text, size_t length)
{
	return name && strlen(name) == length && strncasecmp(name, text, length) == 0;
}

/* Whether an item of a list names the entry. */
static bool names_entry(const struct catalogue_entry *e, const char *text, size_t length)
{
	return is(e->name, text, length) || is(e->group, text, length) ||
	       (is("all", text, length) && e->in_all);
}

bool catalogue_wanted(const char *list, const struct catalogue_entry *e)
{
	for (;; list++) {
		size_t length = strcspn(list, ",");

		if (names_entry(e, list, length))
			return true;
		list += length;
		if (!*list)
			return false;
	}
}

bool catalogue_check(const char *list, enum protocol_id protocol, char *error, size_t size)
{
	const struct product *product = protocol_of(protocol)->product;

	for (;; list++) {
		size_t length = strcspn(list, ",");
		bool known = false;

		for (int i = 0; i < CATALOGUE_ENTRIES; i++)
			known |= catalogue[i].product == product && names_entry(&catalogue[i], list, length);
		if (!known) {
			snprintf(
			    error, size,
			    "unknown test \"%.*s\"%s. -t takes redis-benchmark's names separated by commas "
			    "(set,get, lrange_100, ...), smembers, insert, select, update, or all",
			    (int)length, list, product == &memcached_product ? " for memcached" : "");
			return false;
		}
		list += length;
		if (!*list)
			return true;
	}
}

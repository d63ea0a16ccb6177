/* SPDX-License-Identifier: MIT */
/* The table of commands.
 *
 * The names, sorted, so that a binary search finds them. A name that Redis and memcached share has the
 * properties of both; the scanner uses those of the protocol at hand. */
#include "loader/requests.h"

#include <string.h>

enum {
	BLOCKING = COMMAND_BLOCKING,
	BLOCK_OPTION = COMMAND_BLOCK_OPTION,
	PUSHES = COMMAND_PUSHES,
	MULTI = COMMAND_MULTI,
	EXEC = COMMAND_EXEC,
	CLIENT = COMMAND_CLIENT,
	RESET = COMMAND_RESET,
	MEMCACHED = COMMAND_MEMCACHED,
	DATA = COMMAND_DATA,
	META = COMMAND_META,
	NOREPLY = COMMAND_NOREPLY,
	MANY_KEYS = COMMAND_MANY_KEYS,
	KEY_SECOND = COMMAND_KEY_SECOND,
	NO_KEY = COMMAND_NO_KEY,
	CAS = COMMAND_CAS,
};

struct name {
	const char *text;
	uint8_t bytes;
	uint16_t flags;
};

#define NAME(text, flags)                                                                                    \
	{                                                                                                    \
		text, sizeof(text) - 1, flags                                                                \
	}

/* Index 0 of this table is index 1 of the log. */
static const struct name names[] = {
    NAME("ACL", 0),
    NAME("ADD", MEMCACHED | DATA | NOREPLY),
    NAME("APPEND", MEMCACHED | DATA | NOREPLY),
    NAME("ASKING", 0),
    NAME("AUTH", 0),
    NAME("BF.ADD", 0),
    NAME("BF.EXISTS", 0),
    NAME("BF.MADD", 0),
    NAME("BF.MEXISTS", 0),
    NAME("BGREWRITEAOF", 0),
    NAME("BGSAVE", 0),
    NAME("BITCOUNT", 0),
    NAME("BITFIELD", 0),
    NAME("BITOP", 0),
    NAME("BITPOS", 0),
    NAME("BLMOVE", BLOCKING),
    NAME("BLMPOP", BLOCKING),
    NAME("BLPOP", BLOCKING),
    NAME("BRPOP", BLOCKING),
    NAME("BRPOPLPUSH", BLOCKING),
    NAME("BZMPOP", BLOCKING),
    NAME("BZPOPMAX", BLOCKING),
    NAME("BZPOPMIN", BLOCKING),
    NAME("CAS", MEMCACHED | DATA | NOREPLY | CAS),
    NAME("CLIENT", CLIENT),
    NAME("CLUSTER", 0),
    NAME("COMMAND", 0),
    NAME("CONFIG", 0),
    NAME("COPY", 0),
    NAME("DBSIZE", 0),
    NAME("DEBUG", 0),
    NAME("DECR", MEMCACHED | NOREPLY),
    NAME("DECRBY", 0),
    NAME("DEL", 0),
    NAME("DELETE", MEMCACHED | NOREPLY),
    NAME("DISCARD", EXEC),
    NAME("DUMP", 0),
    NAME("ECHO", 0),
    NAME("EVAL", 0),
    NAME("EVALSHA", 0),
    NAME("EXEC", EXEC),
    NAME("EXISTS", 0),
    NAME("EXPIRE", 0),
    NAME("EXPIREAT", 0),
    NAME("FCALL", 0),
    NAME("FLUSHALL", 0),
    NAME("FLUSHDB", 0),
    NAME("FLUSH_ALL", MEMCACHED | NOREPLY | NO_KEY),
    NAME("FT.AGGREGATE", 0),
    NAME("FT.SEARCH", 0),
    NAME("FUNCTION", 0),
    NAME("GAT", MEMCACHED | MANY_KEYS | KEY_SECOND),
    NAME("GATS", MEMCACHED | MANY_KEYS | KEY_SECOND),
    NAME("GEOADD", 0),
    NAME("GEODIST", 0),
    NAME("GEOHASH", 0),
    NAME("GEOPOS", 0),
    NAME("GEORADIUS", 0),
    NAME("GEORADIUSBYMEMBER", 0),
    NAME("GEOSEARCH", 0),
    NAME("GEOSEARCHSTORE", 0),
    NAME("GET", MEMCACHED | MANY_KEYS),
    NAME("GETBIT", 0),
    NAME("GETDEL", 0),
    NAME("GETEX", 0),
    NAME("GETRANGE", 0),
    NAME("GETS", MEMCACHED | MANY_KEYS),
    NAME("GETSET", 0),
    NAME("HDEL", 0),
    NAME("HELLO", 0),
    NAME("HEXISTS", 0),
    NAME("HEXPIRE", 0),
    NAME("HGET", 0),
    NAME("HGETALL", 0),
    NAME("HGETDEL", 0),
    NAME("HGETEX", 0),
    NAME("HINCRBY", 0),
    NAME("HINCRBYFLOAT", 0),
    NAME("HKEYS", 0),
    NAME("HLEN", 0),
    NAME("HMGET", 0),
    NAME("HMSET", 0),
    NAME("HPEXPIRE", 0),
    NAME("HRANDFIELD", 0),
    NAME("HSCAN", 0),
    NAME("HSET", 0),
    NAME("HSETEX", 0),
    NAME("HSETNX", 0),
    NAME("HTTL", 0),
    NAME("HVALS", 0),
    NAME("INCR", MEMCACHED | NOREPLY),
    NAME("INCRBY", 0),
    NAME("INCRBYFLOAT", 0),
    NAME("INFO", 0),
    NAME("JSON.DEL", 0),
    NAME("JSON.GET", 0),
    NAME("JSON.MGET", 0),
    NAME("JSON.SET", 0),
    NAME("KEYS", 0),
    NAME("LATENCY", 0),
    NAME("LCS", 0),
    NAME("LINDEX", 0),
    NAME("LINSERT", 0),
    NAME("LLEN", 0),
    NAME("LMOVE", 0),
    NAME("LMPOP", 0),
    NAME("LPOP", 0),
    NAME("LPOS", 0),
    NAME("LPUSH", 0),
    NAME("LRANGE", 0),
    NAME("LREM", 0),
    NAME("LSET", 0),
    NAME("LTRIM", 0),
    NAME("MA", MEMCACHED | META),
    NAME("MD", MEMCACHED | META),
    NAME("ME", MEMCACHED),
    NAME("MEMORY", 0),
    NAME("MG", MEMCACHED | META),
    NAME("MGET", 0),
    NAME("MIGRATE", 0),
    NAME("MN", MEMCACHED),
    NAME("MONITOR", PUSHES),
    NAME("MS", MEMCACHED | DATA | META),
    NAME("MSET", 0),
    NAME("MSETNX", 0),
    NAME("MULTI", MULTI),
    NAME("NOOP", 0),
    NAME("OBJECT", 0),
    NAME("PERSIST", 0),
    NAME("PEXPIRE", 0),
    NAME("PEXPIREAT", 0),
    NAME("PFADD", 0),
    NAME("PFCOUNT", 0),
    NAME("PFMERGE", 0),
    NAME("PING", 0),
    NAME("PREPEND", MEMCACHED | DATA | NOREPLY),
    NAME("PSETEX", 0),
    NAME("PSUBSCRIBE", PUSHES),
    NAME("PSYNC", PUSHES),
    NAME("PTTL", 0),
    NAME("PUBLISH", 0),
    NAME("QUIT", MEMCACHED),
    NAME("RANDOMKEY", 0),
    NAME("READONLY", 0),
    NAME("RENAME", 0),
    NAME("REPLACE", MEMCACHED | DATA | NOREPLY),
    NAME("REPLCONF", PUSHES),
    NAME("RESET", RESET),
    NAME("RESTORE", 0),
    NAME("ROLE", 0),
    NAME("RPOP", 0),
    NAME("RPOPLPUSH", 0),
    NAME("RPUSH", 0),
    NAME("SADD", 0),
    NAME("SAVE", 0),
    NAME("SCAN", 0),
    NAME("SCARD", 0),
    NAME("SCRIPT", 0),
    NAME("SDIFF", 0),
    NAME("SDIFFSTORE", 0),
    NAME("SELECT", 0),
    NAME("SENTINEL", 0),
    NAME("SET", MEMCACHED | DATA | NOREPLY),
    NAME("SETBIT", 0),
    NAME("SETEX", 0),
    NAME("SETNX", 0),
    NAME("SETRANGE", 0),
    NAME("SINTER", 0),
    NAME("SINTERCARD", 0),
    NAME("SINTERSTORE", 0),
    NAME("SISMEMBER", 0),
    NAME("SLOWLOG", 0),
    NAME("SMEMBERS", 0),
    NAME("SMISMEMBER", 0),
    NAME("SMOVE", 0),
    NAME("SORT", 0),
    NAME("SORT_RO", 0),
    NAME("SPOP", 0),
    NAME("SPUBLISH", 0),
    NAME("SRANDMEMBER", 0),
    NAME("SREM", 0),
    NAME("SSCAN", 0),
    NAME("SSUBSCRIBE", PUSHES),
    NAME("STATS", MEMCACHED),
    NAME("STRLEN", 0),
    NAME("SUBSCRIBE", PUSHES),
    NAME("SUNION", 0),
    NAME("SUNIONSTORE", 0),
    NAME("SYNC", PUSHES),
    NAME("TIME", 0),
    NAME("TOUCH", MEMCACHED | NOREPLY),
    NAME("TS.ADD", 0),
    NAME("TS.GET", 0),
    NAME("TS.MADD", 0),
    NAME("TS.MRANGE", 0),
    NAME("TS.RANGE", 0),
    NAME("TTL", 0),
    NAME("TYPE", 0),
    NAME("UNLINK", 0),
    NAME("UNSUBSCRIBE", 0),
    NAME("UNWATCH", 0),
    NAME("VADD", 0),
    NAME("VERBOSITY", MEMCACHED | NOREPLY | NO_KEY),
    NAME("VERSION", MEMCACHED),
    NAME("VSIM", 0),
    NAME("WAIT", BLOCKING),
    NAME("WAITAOF", BLOCKING),
    NAME("WATCH", 0),
    NAME("XACK", 0),
    NAME("XADD", 0),
    NAME("XAUTOCLAIM", 0),
    NAME("XCLAIM", 0),
    NAME("XDEL", 0),
    NAME("XGROUP", 0),
    NAME("XINFO", 0),
    NAME("XLEN", 0),
    NAME("XPENDING", 0),
    NAME("XRANGE", 0),
    NAME("XREAD", BLOCK_OPTION),
    NAME("XREADGROUP", BLOCK_OPTION),
    NAME("XREVRANGE", 0),
    NAME("XTRIM", 0),
    NAME("ZADD", 0),
    NAME("ZCARD", 0),
    NAME("ZCOUNT", 0),
    NAME("ZDIFF", 0),
    NAME("ZDIFFSTORE", 0),
    NAME("ZINCRBY", 0),
    NAME("ZINTER", 0),
    NAME("ZINTERCARD", 0),
    NAME("ZINTERSTORE", 0),
    NAME("ZMPOP", 0),
    NAME("ZMSCORE", 0),
    NAME("ZPOPMAX", 0),
    NAME("ZPOPMIN", 0),
    NAME("ZRANDMEMBER", 0),
    NAME("ZRANGE", 0),
    NAME("ZRANGEBYLEX", 0),
    NAME("ZRANGEBYSCORE", 0),
    NAME("ZRANGESTORE", 0),
    NAME("ZRANK", 0),
    NAME("ZREM", 0),
    NAME("ZREMRANGEBYLEX", 0),
    NAME("ZREMRANGEBYRANK", 0),
    NAME("ZREMRANGEBYSCORE", 0),
    NAME("ZREVRANGE", 0),
    NAME("ZREVRANGEBYSCORE", 0),
    NAME("ZREVRANK", 0),
    NAME("ZSCAN", 0),
    NAME("ZSCORE", 0),
    NAME("ZUNION", 0),
    NAME("ZUNIONSTORE", 0),

};

#undef NAME

_Static_assert(sizeof(names) / sizeof(names[0]) == COMMAND_OTHER - 1, "COMMAND_OTHER follows the last name");

const char *commands_name(unsigned command)
{
	if (command == COMMAND_UNKNOWN)
		return "unknown";
	return command < COMMAND_OTHER ? names[command - 1].text : "other";
}

unsigned commands_flags(unsigned command)
{
	return command != COMMAND_UNKNOWN && command < COMMAND_OTHER ? names[command - 1].flags : 0;
}

/* Less than, equal to or greater than zero, as memcmp. */
static inline int compare(const char *upper, size_t bytes, const struct name *name)
{
	int order = memcmp(upper, name->text, bytes < name->bytes ? bytes : name->bytes);

	return order ? order : (int)bytes - (int)name->bytes;
}

unsigned commands_find(const char *upper, size_t bytes)
{
	unsigned low = 0, high = COMMAND_OTHER - 1;

	if (bytes > COMMAND_BYTES)
		return COMMAND_OTHER;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = compare(upper, bytes, &names[middle]);

		if (order == 0)
			return middle + 1;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return COMMAND_OTHER;
}

/* From memcached's doc/protocol-binary.txt. Opcodes without a name here are "other". */
static const struct {
	const char *name;
	bool quiet;
} opcodes[] = {
    [0x00] = {"GET", false},	   [0x01] = {"SET", false},    [0x02] = {"ADD", false},
    [0x03] = {"REPLACE", false},   [0x04] = {"DELETE", false}, [0x05] = {"INCR", false},
    [0x06] = {"DECR", false},	   [0x07] = {"QUIT", false},   [0x08] = {"FLUSH_ALL", false},
    [0x09] = {"GET", true},	   [0x0a] = {"NOOP", false},   [0x0b] = {"VERSION", false},
    [0x0c] = {"GET", false},	   [0x0d] = {"GET", true},     [0x0e] = {"APPEND", false},
    [0x0f] = {"PREPEND", false},   [0x10] = {"STATS", false},  [0x11] = {"SET", true},
    [0x12] = {"ADD", true},	   [0x13] = {"REPLACE", true}, [0x14] = {"DELETE", true},
    [0x15] = {"INCR", true},	   [0x16] = {"DECR", true},    [0x17] = {"QUIT", true},
    [0x18] = {"FLUSH_ALL", true},  [0x19] = {"APPEND", true},  [0x1a] = {"PREPEND", true},
    [0x1b] = {"VERBOSITY", false}, [0x1c] = {"TOUCH", false},  [0x1d] = {"GAT", false},
    [0x1e] = {"GAT", true},	   [0x21] = {"AUTH", false},   [0x22] = {"AUTH", false},
    [0x23] = {"GAT", false},	   [0x24] = {"GAT", true},
};

unsigned commands_of_opcode(uint8_t opcode)
{
	if (opcode >= sizeof(opcodes) / sizeof(opcodes[0]) || !opcodes[opcode].name)
		return COMMAND_OTHER;
	return commands_find(opcodes[opcode].name, strlen(opcodes[opcode].name));
}

bool commands_opcode_quiet(uint8_t opcode)
{
	return opcode < sizeof(opcodes) / sizeof(opcodes[0]) && opcodes[opcode].quiet;
}

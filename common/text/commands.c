/* SPDX-License-Identifier: MIT */
/* The table of commands, and finding rows in it.
 *
 * A binary search finds the names of a log, because the recorder does it for every request; rows behind them
 * are searched one by one. A name that Redis and memcached share has the properties of both; each user takes
 * those of the protocol at hand. Positions of keys are those of COMMAND INFO:
 * tests/system/load/test_command_table.py compares Redis' and Valkey's own commands with servers, but not
 * those of modules. Opcodes are those of memcached's doc/protocol-binary.txt. */
#include "common/commands.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
	BLOCKING = COMMAND_BLOCKING,
	BLOCK_OPTION = COMMAND_BLOCK_OPTION,
	PUSHES = COMMAND_PUSHES,
	MULTI = COMMAND_MULTI,
	EXEC = COMMAND_EXEC,
	CLIENT = COMMAND_CLIENT,
	HELLO = COMMAND_HELLO,
	RESET = COMMAND_RESET,
	MEMCACHED = COMMAND_MEMCACHED,
	DATA = COMMAND_DATA,
	META = COMMAND_META,
	NOREPLY = COMMAND_NOREPLY,
	MANY_KEYS = COMMAND_MANY_KEYS,
	KEY_SECOND = COMMAND_KEY_SECOND,
	NO_KEY = COMMAND_NO_KEY,
	CAS = COMMAND_CAS,
	READS = COMMAND_READS,
	WATCH = COMMAND_WATCH,
	UNWATCH = COMMAND_UNWATCH,
	PARTS = COMMAND_PARTS,
	TIMEOUT_FIRST = COMMAND_TIMEOUT_FIRST,
};

/* An opcode is stored with a bit that 0 has too, and a quiet one with another bit. */
enum { OPCODE_BIT = 1 << 8, QUIET_BIT = 1 << 9 };
#define OPCODE(number) ((number) | OPCODE_BIT)
#define QUIET(number) ((number) | OPCODE_BIT | QUIET_BIT)

/* Name, position of the first key, and what else there is. */
#define ROW(text, ...)                                                                                       \
	{                                                                                                    \
		.name = text, .bytes = sizeof(text) - 1, .key = __VA_ARGS__                                  \
	}

const struct command_row commands_table[COMMAND_ROWS] = {
    [COMMAND_UNKNOWN] = ROW("unknown", 0),
    ROW("ACL", 0, .harm = HARM_CHANGES_SERVER),
    ROW("ADD", 1, .flags = MEMCACHED | DATA | NOREPLY, .opcodes = {OPCODE(0x02), QUIET(0x12)},
	.memcached = {FORM_STORE, 3, 4, REPLY_STORED, "ms", " T", " ME"}),
    ROW("APPEND", 1, .writes = WRITES, .flags = MEMCACHED | DATA | NOREPLY,
	.opcodes = {OPCODE(0x0e), QUIET(0x19)},
	.memcached = {FORM_STORE, 3, 3, REPLY_STORED, "ms", "", " MA"}),
    ROW("ASKING", 0),
    ROW("AUTH", 0, .harm = HARM_PROTOCOL, .opcodes = {OPCODE(0x21), OPCODE(0x22)}),
    ROW("BF.ADD", 1, .writes = WRITES),
    ROW("BF.EXISTS", 1),
    ROW("BF.MADD", 1, .writes = WRITES),
    ROW("BF.MEXISTS", 1),
    ROW("BGREWRITEAOF", 0, .harm = HARM_LOADS_DISK),
    ROW("BGSAVE", 0, .harm = HARM_LOADS_DISK),
    ROW("BITCOUNT", 1),
    ROW("BITFIELD", 1, .writes = WRITES),
    ROW("BITOP", 2, .writes = WRITES),
    ROW("BITPOS", 1),
    ROW("BLMOVE", 1, .writes = WRITES, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("BLMPOP", 0, .writes = WRITES, .flags = BLOCKING | TIMEOUT_FIRST, .harm = HARM_BLOCKS),
    ROW("BLPOP", 1, .writes = WRITES, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("BRPOP", 1, .writes = WRITES, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("BRPOPLPUSH", 1, .writes = WRITES, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("BZMPOP", 0, .writes = WRITES, .flags = BLOCKING | TIMEOUT_FIRST, .harm = HARM_BLOCKS),
    ROW("BZPOPMAX", 1, .writes = WRITES, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("BZPOPMIN", 1, .writes = WRITES, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("CAS", 1, .flags = MEMCACHED | DATA | NOREPLY | CAS),
    ROW("CLIENT", 0, .flags = CLIENT | PARTS),
    ROW("CLUSTER", 0, .harm = HARM_CHANGES_ROLE),
    ROW("COMMAND", 0),
    ROW("CONFIG", 0, .harm = HARM_CHANGES_SERVER),
    ROW("COPY", 1, .writes = WRITES),
    ROW("DBSIZE", 0),
    ROW("DEBUG", 0, .harm = HARM_STOPS_SERVER),
    ROW("DECR", 1, .writes = WRITES, .flags = MEMCACHED | NOREPLY, .opcodes = {OPCODE(0x06), QUIET(0x16)},
	.memcached = {FORM_NUMBER, 3, 3, REPLY_INTEGER, "ma", " D", " MD v"}),
    ROW("DECRBY", 1, .writes = WRITES),
    ROW("DEL", 1, .writes = WRITES, .split = 1),
    ROW("DELETE", 1, .flags = MEMCACHED | NOREPLY, .opcodes = {OPCODE(0x04), QUIET(0x14)},
	.memcached = {FORM_KEY, 2, 2, REPLY_DELETED, "md", "", ""}),
    ROW("DISCARD", 0, .flags = EXEC),
    ROW("DUMP", 1),
    ROW("ECHO", 0),
    ROW("EVAL", 0, .writes = MAY_WRITE),
    ROW("EVALSHA", 0, .writes = MAY_WRITE),
    ROW("EXEC", 0, .flags = EXEC),
    ROW("EXISTS", 1, .split = 1),
    ROW("EXPIRE", 1, .writes = WRITES),
    ROW("EXPIREAT", 1, .writes = WRITES),
    ROW("FCALL", 0, .writes = MAY_WRITE),
    ROW("FLUSHALL", 0, .writes = WRITES, .harm = HARM_LOSES_DATA),
    ROW("FLUSHDB", 0, .writes = WRITES, .harm = HARM_LOSES_DATA),
    ROW("FLUSH_ALL", 0, .flags = MEMCACHED | NOREPLY | NO_KEY, .opcodes = {OPCODE(0x08), QUIET(0x18)}),
    ROW("FT.AGGREGATE", 1),
    ROW("FT.SEARCH", 1),
    ROW("FUNCTION", 0, .flags = PARTS),
    ROW("GAT", 1, .flags = MEMCACHED | MANY_KEYS | KEY_SECOND,
	.opcodes = {OPCODE(0x1d), QUIET(0x1e), OPCODE(0x23), QUIET(0x24)}),
    ROW("GATS", 1, .flags = MEMCACHED | MANY_KEYS | KEY_SECOND),
    ROW("GEOADD", 1, .writes = WRITES),
    ROW("GEODIST", 1),
    ROW("GEOHASH", 1),
    ROW("GEOPOS", 1),
    ROW("GEORADIUS", 1, .writes = WRITES),
    ROW("GEORADIUSBYMEMBER", 1, .writes = WRITES),
    ROW("GEOSEARCH", 1),
    ROW("GEOSEARCHSTORE", 1, .writes = WRITES),
    ROW("GET", 1, .flags = MEMCACHED | MANY_KEYS | READS, .reply = {REPLY_VALUE, REPLY_NIL},
	.opcodes = {OPCODE(0x00), QUIET(0x09), OPCODE(0x0c), QUIET(0x0d)},
	.memcached = {FORM_KEY, 2, 2, REPLY_VALUE, "mg", "", " v"}),
    ROW("GETBIT", 1),
    ROW("GETDEL", 1, .writes = WRITES),
    ROW("GETEX", 1, .writes = WRITES),
    ROW("GETRANGE", 1),
    ROW("GETS", 1, .flags = MEMCACHED | MANY_KEYS | READS, .opcodes = {OPCODE(0x00)},
	.memcached = {FORM_KEY, 2, 2, REPLY_VALUE, "mg", "", " c v"}),
    ROW("GETSET", 1, .writes = WRITES),
    ROW("HDEL", 1, .writes = WRITES),
    ROW("HELLO", 0, .harm = HARM_PROTOCOL, .flags = HELLO),
    ROW("HEXISTS", 1),
    ROW("HEXPIRE", 1, .writes = WRITES),
    ROW("HGET", 1, .reply = {REPLY_VALUE, REPLY_NIL}),
    ROW("HGETALL", 1, .reply = {REPLY_LIST}),
    ROW("HGETDEL", 1, .writes = WRITES),
    ROW("HGETEX", 1, .writes = WRITES),
    ROW("HINCRBY", 1, .writes = WRITES),
    ROW("HINCRBYFLOAT", 1, .writes = WRITES),
    ROW("HKEYS", 1),
    ROW("HLEN", 1),
    ROW("HMGET", 1),
    ROW("HMSET", 1, .writes = WRITES, .reply = {REPLY_LINE}),
    ROW("HPEXPIRE", 1, .writes = WRITES),
    ROW("HRANDFIELD", 1),
    ROW("HSCAN", 1),
    ROW("HSET", 1, .writes = WRITES, .reply = {REPLY_INTEGER}),
    ROW("HSETEX", 1, .writes = WRITES),
    ROW("HSETNX", 1, .writes = WRITES),
    ROW("HTTL", 1),
    ROW("HVALS", 1),
    ROW("INCR", 1, .writes = WRITES, .flags = MEMCACHED | NOREPLY, .reply = {REPLY_INTEGER},
	.opcodes = {OPCODE(0x05), QUIET(0x15)},
	.memcached = {FORM_NUMBER, 3, 3, REPLY_INTEGER, "ma", " D", " v"}),
    ROW("INCRBY", 1, .writes = WRITES),
    ROW("INCRBYFLOAT", 1, .writes = WRITES),
    ROW("INFO", 0),
    ROW("JSON.DEL", 1, .writes = WRITES),
    ROW("JSON.GET", 1),
    ROW("JSON.MGET", 1),
    ROW("JSON.SET", 1, .writes = WRITES),
    ROW("KEYS", 0),
    ROW("LATENCY", 0, .flags = PARTS),
    ROW("LCS", 1),
    ROW("LINDEX", 1),
    ROW("LINSERT", 1, .writes = WRITES),
    ROW("LLEN", 1),
    ROW("LMOVE", 1, .writes = WRITES),
    ROW("LMPOP", 0, .writes = WRITES),
    ROW("LPOP", 1, .writes = WRITES, .reply = {REPLY_VALUE, REPLY_NIL, 2}),
    ROW("LPOS", 1),
    ROW("LPUSH", 1, .writes = WRITES, .reply = {REPLY_INTEGER}),
    ROW("LRANGE", 1, .reply = {REPLY_LIST}),
    ROW("LREM", 1, .writes = WRITES),
    ROW("LSET", 1, .writes = WRITES),
    ROW("LTRIM", 1, .writes = WRITES),
    ROW("MA", 1, .flags = MEMCACHED | META, .memcached = {FORM_KEY, 2, 16, REPLY_INTEGER, "ma", " ", ""}),
    ROW("MD", 1, .flags = MEMCACHED | META, .memcached = {FORM_KEY, 2, 16, REPLY_DELETED, "md", " ", ""}),
    ROW("ME", 1, .flags = MEMCACHED, .memcached = {FORM_KEY, 2, 2, REPLY_DEBUG, "me", "", ""}),
    ROW("MEMORY", 0),
    ROW("MG", 1, .flags = MEMCACHED | META | READS,
	.memcached = {FORM_KEY, 2, 16, REPLY_ITEM, "mg", " ", ""}),
    ROW("MGET", 1, .split = 1),
    ROW("MIGRATE", 3, .writes = WRITES, .harm = HARM_LOSES_DATA),
    ROW("MN", 0, .flags = MEMCACHED, .memcached = {FORM_BARE, 1, 1, REPLY_NOOP, "mn", "", ""}),
    ROW("MONITOR", 0, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("MS", 1, .flags = MEMCACHED | DATA | META,
	.memcached = {FORM_STORE, 3, 16, REPLY_STORED, "ms", " ", ""}),
    ROW("MSET", 1, .writes = WRITES, .split = 2, .reply = {REPLY_LINE}),
    ROW("MSETNX", 1, .writes = WRITES, .split = 2),
    ROW("MULTI", 0, .flags = MULTI),
    ROW("NOOP", 0, .opcodes = {OPCODE(0x0a)}, .memcached = {FORM_BARE, 1, 1, REPLY_NOOP, "mn", "", ""}),
    ROW("OBJECT", 0),
    ROW("PERSIST", 1, .writes = WRITES),
    ROW("PEXPIRE", 1, .writes = WRITES),
    ROW("PEXPIREAT", 1, .writes = WRITES),
    ROW("PFADD", 1, .writes = WRITES),
    ROW("PFCOUNT", 1),
    ROW("PFMERGE", 1, .writes = WRITES),
    ROW("PING", 0, .reply = {REPLY_LINE}),
    ROW("PREPEND", 1, .flags = MEMCACHED | DATA | NOREPLY, .opcodes = {OPCODE(0x0f), QUIET(0x1a)},
	.memcached = {FORM_STORE, 3, 3, REPLY_STORED, "ms", "", " MP"}),
    ROW("PSETEX", 1, .writes = WRITES),
    ROW("PSUBSCRIBE", 0, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("PSYNC", 0, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("PTTL", 1),
    ROW("PUBLISH", 0),
    ROW("QUIT", 0, .flags = MEMCACHED, .harm = HARM_PROTOCOL, .opcodes = {OPCODE(0x07), QUIET(0x17)}),
    ROW("RANDOMKEY", 0),
    ROW("READONLY", 0),
    ROW("RENAME", 1, .writes = WRITES),
    ROW("REPLACE", 1, .flags = MEMCACHED | DATA | NOREPLY, .opcodes = {OPCODE(0x03), QUIET(0x13)},
	.memcached = {FORM_STORE, 3, 4, REPLY_STORED, "ms", " T", " MR"}),
    ROW("REPLCONF", 0, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("RESET", 0, .flags = RESET, .harm = HARM_PROTOCOL),
    ROW("RESTORE", 1, .writes = WRITES),
    ROW("ROLE", 0),
    ROW("RPOP", 1, .writes = WRITES, .reply = {REPLY_VALUE, REPLY_NIL, 2}),
    ROW("RPOPLPUSH", 1, .writes = WRITES),
    ROW("RPUSH", 1, .writes = WRITES, .reply = {REPLY_INTEGER}),
    ROW("SADD", 1, .writes = WRITES, .reply = {REPLY_INTEGER}),
    ROW("SAVE", 0, .harm = HARM_LOADS_DISK),
    ROW("SCAN", 0),
    ROW("SCARD", 1),
    ROW("SCRIPT", 0, .flags = PARTS),
    ROW("SDIFF", 1),
    ROW("SDIFFSTORE", 1, .writes = WRITES),
    ROW("SELECT", 0),
    ROW("SENTINEL", 0, .harm = HARM_CHANGES_ROLE),
    ROW("SET", 1, .writes = WRITES, .flags = MEMCACHED | DATA | NOREPLY, .reply = {REPLY_LINE, REPLY_ANY, 3},
	.opcodes = {OPCODE(0x01), QUIET(0x11)},
	.memcached = {FORM_STORE, 3, 4, REPLY_STORED, "ms", " T", ""}),
    ROW("SETBIT", 1, .writes = WRITES),
    ROW("SETEX", 1, .writes = WRITES),
    ROW("SETNX", 1, .writes = WRITES),
    ROW("SETRANGE", 1, .writes = WRITES),
    ROW("SINTER", 1),
    ROW("SINTERCARD", 0),
    ROW("SINTERSTORE", 1, .writes = WRITES),
    ROW("SISMEMBER", 1),
    ROW("SLOWLOG", 0, .flags = PARTS),
    ROW("SMEMBERS", 1, .reply = {REPLY_LIST}),
    ROW("SMISMEMBER", 1),
    ROW("SMOVE", 1, .writes = WRITES),
    ROW("SORT", 1, .writes = WRITES),
    ROW("SORT_RO", 1),
    ROW("SPOP", 1, .writes = WRITES, .reply = {REPLY_VALUE, REPLY_NIL, 2}),
    ROW("SPUBLISH", 1),
    ROW("SRANDMEMBER", 1),
    ROW("SREM", 1, .writes = WRITES),
    ROW("SSCAN", 1),
    ROW("SSUBSCRIBE", 1, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("STATS", 0, .flags = MEMCACHED, .opcodes = {OPCODE(0x10)}),
    ROW("STRLEN", 1),
    ROW("SUBSCRIBE", 0, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("SUNION", 1),
    ROW("SUNIONSTORE", 1, .writes = WRITES),
    ROW("SYNC", 0, .flags = PUSHES, .harm = HARM_PROTOCOL),
    ROW("TIME", 0),
    ROW("TOUCH", 1, .flags = MEMCACHED | NOREPLY, .split = 1, .opcodes = {OPCODE(0x1c)},
	.memcached = {FORM_EXPIRY, 3, 3, REPLY_TOUCHED, "mg", " T", ""}),
    ROW("TS.ADD", 1, .writes = WRITES),
    ROW("TS.GET", 1),
    ROW("TS.MADD", 1, .writes = WRITES, .split = 3),
    ROW("TS.MRANGE", 0),
    ROW("TS.RANGE", 1),
    ROW("TTL", 1),
    ROW("TYPE", 1),
    ROW("UNLINK", 1, .writes = WRITES, .split = 1),
    ROW("UNSUBSCRIBE", 0, .harm = HARM_PROTOCOL),
    ROW("UNWATCH", 0, .flags = UNWATCH),
    ROW("VADD", 1, .writes = WRITES),
    ROW("VERBOSITY", 0, .flags = MEMCACHED | NOREPLY | NO_KEY, .opcodes = {OPCODE(0x1b)}),
    ROW("VERSION", 0, .flags = MEMCACHED, .opcodes = {OPCODE(0x0b)},
	.memcached = {FORM_BARE, 1, 1, REPLY_VERSION, "version", "", ""}),
    ROW("VSIM", 1),
    ROW("WAIT", 0, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("WAITAOF", 0, .flags = BLOCKING, .harm = HARM_BLOCKS),
    ROW("WATCH", 1, .flags = WATCH),
    ROW("XACK", 1, .writes = WRITES),
    ROW("XADD", 1, .writes = WRITES, .reply = {REPLY_VALUE, REPLY_ANY, 5}),
    ROW("XAUTOCLAIM", 1, .writes = WRITES),
    ROW("XCLAIM", 1, .writes = WRITES),
    ROW("XDEL", 1, .writes = WRITES),
    ROW("XGROUP", 0),
    ROW("XINFO", 0),
    ROW("XLEN", 1),
    ROW("XPENDING", 1),
    ROW("XRANGE", 1),
    ROW("XREAD", 0, .flags = BLOCK_OPTION, .harm = HARM_BLOCKS),
    ROW("XREADGROUP", 0, .writes = WRITES, .flags = BLOCK_OPTION, .harm = HARM_BLOCKS),
    ROW("XREVRANGE", 1),
    ROW("XTRIM", 1, .writes = WRITES),
    ROW("ZADD", 1, .writes = WRITES, .reply = {REPLY_INTEGER, REPLY_ANY, 4}),
    ROW("ZCARD", 1),
    ROW("ZCOUNT", 1),
    ROW("ZDIFF", 0),
    ROW("ZDIFFSTORE", 1, .writes = WRITES),
    ROW("ZINCRBY", 1, .writes = WRITES),
    ROW("ZINTER", 0),
    ROW("ZINTERCARD", 0),
    ROW("ZINTERSTORE", 1, .writes = WRITES),
    ROW("ZMPOP", 0, .writes = WRITES),
    ROW("ZMSCORE", 1),
    ROW("ZPOPMAX", 1, .writes = WRITES),
    ROW("ZPOPMIN", 1, .writes = WRITES, .reply = {REPLY_LIST, REPLY_ANY, 2}),
    ROW("ZRANDMEMBER", 1),
    ROW("ZRANGE", 1),
    ROW("ZRANGEBYLEX", 1),
    ROW("ZRANGEBYSCORE", 1, .reply = {REPLY_LIST}),
    ROW("ZRANGESTORE", 1, .writes = WRITES),
    ROW("ZRANK", 1),
    ROW("ZREM", 1, .writes = WRITES),
    ROW("ZREMRANGEBYLEX", 1, .writes = WRITES),
    ROW("ZREMRANGEBYRANK", 1, .writes = WRITES),
    ROW("ZREMRANGEBYSCORE", 1, .writes = WRITES),
    ROW("ZREVRANGE", 1),
    ROW("ZREVRANGEBYSCORE", 1),
    ROW("ZREVRANK", 1),
    ROW("ZSCAN", 1),
    ROW("ZSCORE", 1),
    ROW("ZUNION", 0),
    ROW("ZUNIONSTORE", 1, .writes = WRITES),
    [COMMAND_OTHER] = ROW("other", 0),
    ROW("SWAPDB", 0, .writes = WRITES, .harm = HARM_LOSES_DATA),
    ROW("FUNCTION FLUSH", 0, .harm = HARM_LOSES_DATA),
    ROW("FUNCTION DELETE", 0, .harm = HARM_LOSES_DATA),
    ROW("FUNCTION RESTORE", 0, .harm = HARM_LOSES_DATA),
    ROW("SCRIPT FLUSH", 0, .harm = HARM_LOSES_DATA),
    ROW("SHUTDOWN", 0, .harm = HARM_STOPS_SERVER),
    ROW("SCRIPT KILL", 0, .harm = HARM_CUTS_CLIENTS),
    ROW("SCRIPT DEBUG", 0, .harm = HARM_STOPS_SERVER),
    ROW("FUNCTION KILL", 0, .harm = HARM_CUTS_CLIENTS),
    ROW("MODULE", 0, .harm = HARM_CHANGES_SERVER),
    ROW("REPLICAOF", 0, .harm = HARM_CHANGES_ROLE),
    ROW("SLAVEOF", 0, .harm = HARM_CHANGES_ROLE),
    ROW("FAILOVER", 0, .harm = HARM_CHANGES_ROLE),
    ROW("CLIENT KILL", 0, .harm = HARM_CUTS_CLIENTS),
    ROW("CLIENT PAUSE", 0, .harm = HARM_CUTS_CLIENTS),
    ROW("CLIENT UNPAUSE", 0, .harm = HARM_CUTS_CLIENTS),
    ROW("CLIENT UNBLOCK", 0, .harm = HARM_CUTS_CLIENTS),
    ROW("SLOWLOG RESET", 0, .harm = HARM_LOSES_EVIDENCE),
    ROW("LATENCY RESET", 0, .harm = HARM_LOSES_EVIDENCE),
    ROW("COMMANDLOG", 0, .flags = PARTS),
    ROW("COMMANDLOG RESET", 0, .harm = HARM_LOSES_EVIDENCE),
    ROW("PUNSUBSCRIBE", 0, .harm = HARM_PROTOCOL),
    ROW("SUNSUBSCRIBE", 1, .harm = HARM_PROTOCOL),
    ROW("CLIENT REPLY", 0, .harm = HARM_PROTOCOL),
    ROW("CLIENT TRACKING", 0, .harm = HARM_PROTOCOL),
};

const char *commands_name(unsigned command)
{
	return commands_table[command < COMMANDS ? command : COMMAND_OTHER].name;
}

unsigned commands_flags(unsigned command)
{
	return commands_table[command < COMMANDS ? command : COMMAND_OTHER].flags;
}

/* Less than, equal to or greater than zero, as memcmp. */
static inline int compare(const char *upper, size_t bytes, const struct command_row *row)
{
	int order = memcmp(upper, row->name, bytes < row->bytes ? bytes : row->bytes);

	return order ? order : (int)bytes - (int)row->bytes;
}

unsigned commands_find(const char *upper, size_t bytes)
{
	unsigned low = COMMAND_UNKNOWN + 1, high = COMMAND_OTHER;

	if (bytes > COMMAND_BYTES)
		return COMMAND_OTHER;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = compare(upper, bytes, &commands_table[middle]);

		if (order == 0)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return COMMAND_OTHER;
}

const struct command_row *commands_row(const char *word, size_t bytes)
{
	char upper[COMMAND_BYTES];
	unsigned command;

	if (bytes > sizeof(upper) || memchr(word, ' ', bytes)) /* a subcommand's row is not one of a word */
		return NULL;
	for (size_t i = 0; i < bytes; i++)
		upper[i] = (char)toupper((unsigned char)word[i]);
	command = commands_find(upper, bytes);
	if (command == COMMAND_OTHER)
		do
			command++;
		while (command < COMMAND_ROWS && compare(upper, bytes, &commands_table[command]) != 0);
	return command < COMMAND_ROWS ? &commands_table[command] : NULL;
}

const struct command_row *commands_part(const struct command_row *row, const char *word, size_t bytes)
{
	for (unsigned i = COMMANDS; row->flags & COMMAND_PARTS && i < COMMAND_ROWS; i++) {
		const struct command_row *part = &commands_table[i];

		if (part->bytes == row->bytes + 1 + bytes && part->name[row->bytes] == ' ' &&
		    memcmp(part->name, row->name, row->bytes) == 0 &&
		    strncasecmp(part->name + row->bytes + 1, word, bytes) == 0)
			return part;
	}
	return NULL;
}

/* What the rows say of an opcode: an operation and QUIET_BIT. The first row of an opcode names it. */
static unsigned opcode_of(uint8_t opcode)
{
	static uint16_t all[256]; /* 0: not yet looked for */

	for (unsigned i = 1; !all[opcode] && i < COMMAND_OTHER; i++)
		for (const uint16_t *o = commands_table[i].opcodes; o < commands_table[i].opcodes + 4; o++)
			if ((*o & ~QUIET_BIT) == OPCODE(opcode) && !all[opcode])
				all[opcode] = (uint16_t)(i | (*o & QUIET_BIT));
	if (!all[opcode])
		all[opcode] = COMMAND_OTHER;
	return all[opcode];
}

unsigned commands_of_opcode(uint8_t opcode)
{
	return opcode_of(opcode) & ~(unsigned)QUIET_BIT;
}

bool commands_opcode_quiet(uint8_t opcode)
{
	return opcode_of(opcode) & QUIET_BIT;
}

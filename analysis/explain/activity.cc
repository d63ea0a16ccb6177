// SPDX-License-Identifier: MIT
// Maps function names to activities. The innermost known function decides: a dictRehash inside a SET is
// rehashing, because the rehashing took the time. One exception: rehashing inside the removal of keys counts
// as the removal (expire, evict), as in Redis' own measurement of it.
//
// Packages strip their servers: static functions have no name, and callers may be lost in code without unwind
// tables. So rules rely on exported functions around the nameless ones (below `call` runs a command, below
// Lua a script), and a library's file name shows what its work is for.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "analysis/evidence.h"
#include "analysis/timeline.h"
#include "recording/owners.h"
#include "scene.h"

namespace forktail::analysis
{

// What the functions of servers and the files of libraries do: the tables of activity.cc.

struct ActivityRule {
	const char *begin; // of the function's name
	bool whole;	   // the function has exactly this name
	const char *activity;
};

static_assert(std::size(kHelperWaits) == 6, "each has a rule below");

// Functions of Redis, Valkey, KeyDB and memcached. The first match counts.
inline const ActivityRule kRules[] = {
    {"dictRehash", false, "rehash"},
    {"_dictRehashStep", false, "rehash"},
    {"incrementallyRehash", false, "rehash"},
    {"kvstoreIncrementallyRehash", false, "rehash"},
    {"_dictExpand", false, "rehash"},
    {"dictExpand", false, "rehash"},
    {"hashtableRehash", false, "rehash"},
    {"rehashStep", false, "rehash"},
    {"assoc_maintenance_thread", true, "rehash"},
    {"assoc_expand", true, "rehash"},

    {"activeExpire", false, "expire"},
    {"expireSlaveKeys", true, "expire"},
    {"expireReplicaKeys", true, "expire"},
    {"deleteExpiredKey", false, "expire"},
    {"item_crawler_thread", true, "expire"},
    {"lru_crawler_", false, "expire"},

    {"performEvictions", true, "evict"},
    {"freeMemoryIfNeeded", false, "evict"},
    {"evictionPoolPopulate", true, "evict"},
    {"evictionTimeProc", true, "evict"},
    {"lru_pull_tail", true, "evict"},
    {"lru_maintainer_", false, "evict"},

    {"activeDefrag", false, "defrag"},
    {"defrag", false, "defrag"},
    {"slab_rebalance_", false, "defrag"},

    {"flushAppendOnlyFile", true, "aof-flush"},
    {"feedAppendOnlyFile", true, "aof-flush"},
    {"aofWrite", true, "aof-flush"},
    {"rewriteAppendOnlyFile", false, "aof-rewrite"},
    {"backgroundRewriteDoneHandler", true, "aof-rewrite"},

    {"rdbLoad", true, "rdb-load"},
    {"rdbLoadRio", false, "rdb-load"},
    {"rdbSave", true, "rdb-save"},
    {"rdbSaveRio", false, "rdb-save"},
    {"rdbSaveDb", true, "rdb-save"},
    {"rdbSaveBackground", true, "rdb-save"},
    {"forklessSave", false, "forkless-save"}, // Valkey: a thread saves, and the main thread hands it keys
    {"bgIterat", false, "forkless-save"},

    {"clusterSlotMigration", false, "slot-migration"}, // Valkey 9
    {"clusterHandleSlot", false, "slot-migration"},
    {"clusterFeedSlotExport", false, "slot-migration"},
    {"clusterUpdateSlotExports", false, "slot-migration"},
    {"clusterUpdateSlotImports", false, "slot-migration"},
    {"proceedWithSlot", false, "slot-migration"},
    {"proceedWithAllSlot", false, "slot-migration"},
    {"asm", false, "slot-migration"}, // Redis 8.4: asmCron, asmActiveTrimCycle, asmFeedMigrationClient
    {"clusterAsm", false, "slot-migration"},

    {"replication", false, "replication"},
    {"feedReplication", false, "replication"},
    {"readSyncBulkPayload", true, "replication"},
    {"sendBulkTo", false, "replication"},
    {"rdbPipe", false, "replication"},
    {"syncWith", false, "replication"},
    {"masterTryPartialResynchronization", true, "replication"},
    {"primaryTryPartialResynchronization", true, "replication"},

    {"clusterCron", true, "cluster"},
    {"clusterBeforeSleep", true, "cluster"},
    {"clusterReadHandler", true, "cluster"},
    {"clusterWriteHandler", true, "cluster"},
    {"clusterAcceptHandler", true, "cluster"},
    {"clusterConnAcceptHandler", true, "cluster"},
    {"clusterLinkConnectHandler", true, "cluster"},
    {"clusterProcess", false, "cluster"},
    {"clusterSend", false, "cluster"},
    {"clusterBroadcast", false, "cluster"},
    {"clusterHandle", false, "cluster"},
    {"clusterSaveConfig", false, "cluster"},
    {"freeClusterLink", true, "cluster"},
    {"sentinelTimer", true, "sentinel"},

    {"trackingInvalidateKey", false, "tracking"},
    {"trackingLimitUsedSlots", true, "tracking"},
    {"trackingHandlePendingKeyInvalidations", true, "tracking"},
    {"trackingBroadcastInvalidationMessages", true, "tracking"},

    {"evictClients", true, "evict-clients"},
    {"closeClientOnOutputBufferLimitReached", true, "evict-clients"},

    {"prefetchCommands", true, "prefetch"}, // Redis 8, Valkey 8
    {"prefetchIOThreadCommands", true, "prefetch"},
    {"processClientsCommandsBatch", true, "prefetch"},
    {"dictPrefetch", true, "prefetch"},

    {"processClientsFrom", false, "hand-over"}, // Redis 8: ...IOThread, ...MainThread
    {"processClientsOfAllIOThreads", true, "hand-over"},
    {"handleClientsFrom", false, "hand-over"},
    {"sendPendingClientsTo", false, "hand-over"},
    {"enqueuePendingCli", false, "hand-over"},
    {"assignClientToIOThread", true, "hand-over"},
    {"processIOThreads", false, "hand-over"}, // Valkey 8
    {"trySendReadToIOThreads", true, "hand-over"},
    {"trySendWriteToIOThreads", true, "hand-over"},
    {"IOThreads", false, "hand-over"}, // ...BeforeSleep, ...AfterSleep

    {"lazyfreeFree", false, "lazy-free"},
    {"lazyFree", false, "lazy-free"},

    {"accept", false, "accept"},
    {"connSocketAccept", false, "accept"},
    {"connCreateAccepted", false, "accept"},
    {"anetTcpAccept", true, "accept"},
    {"anetUnixAccept", true, "accept"},
    {"anetGenericAccept", true, "accept"},
    {"clientAcceptHandler", true, "accept"},
    {"createClient", true, "accept"},
    {"conn_new", true, "accept"},
    {"dispatch_conn_new", true, "accept"},
    {"proxy_accept", true, "accept"},

    {"freeClient", false, "free-client"},
    {"unlinkClient", true, "free-client"},
    {"conn_close", true, "free-client"},
    {"conn_cleanup", true, "free-client"},
    {"client_close", true, "free-client"},

    {"readQueryFromClient", true, "read"},
    {"ioThreadReadQueryFromClient", true, "read"},
    {"readToQueryBuf", true, "read"},
    {"try_read_network", true, "read"},
    {"try_read_udp", true, "read"},
    {"msg_recv", false, "read"},

    {"processInputBuffer", true, "parse"},
    {"processInlineBuffer", true, "parse"},
    {"processMultibulkBuffer", true, "parse"},
    {"parseInputBuffer", true, "parse"},
    {"parseCommand", true, "parse"},
    {"try_read_command", false, "parse"},
    {"redis_parse_", false, "parse"},
    {"memcache_parse_", false, "parse"},

    {"processCommand", true, "dispatch"},
    {"processCommandAndResetClient", true, "dispatch"},
    {"resetClient", true, "dispatch"},

    {"writeToClient", true, "answer"},
    {"_writeToClient", true, "answer"},
    {"_writevToClient", true, "answer"},
    {"sendReplyToClient", true, "answer"},
    {"ioThreadWriteToClient", true, "answer"},
    {kHelperWaits[0], true, "wait/io-threads"},
    {kHelperWaits[1], true, "wait/io-threads"},
    {kHelperWaits[2], true, "wait/io-threads"},
    {kHelperWaits[3], true, "wait/io-threads"},
    {kHelperWaits[4], true, "wait/io-threads"},
    {kHelperWaits[5], true, "wait/io-threads"},
    {"handleClientsWithPending", false, "answer"},
    {"transmit", true, "answer"},
    {"msg_send", false, "answer"},

    {"clientsCron", false, "cron"},
    {"databasesCron", true, "cron"},
    {"serverCron", true, "cron"},
    {"modulesCron", true, "cron"},
    {"whileBlockedCron", true, "cron"},
    {"clock_handler", true, "cron"},
};

// Outside of commands. emptyData() inside of one is FLUSHALL or DEBUG RELOAD; before its data set is
// replaced, a replica calls it.
inline const ActivityRule kOutsideCommands[] = {
    {"emptyData", true, "replica-flush"},
    {"emptyDb", true, "replica-flush"}, // Redis 6
    {"handleClientsBlockedOnKey", false, "blocked-clients"},
};

// Fallback for stacks that match no rule above, for example stacks without callers.
inline const ActivityRule kLastRules[] = {
    {"rdbLoad", false, "rdb-load"},
    {"rdbSave", false, "rdb-save"},
};

// Functions that many activities call. They count only in stacks without callers.
inline const ActivityRule kLeafRules[] = {
    {"lookupCommand", false, "dispatch"}, {"addReply", false, "answer"},  {"_addReply", false, "answer"},
    {"sdssplit", false, "parse"},	  {"zmalloc", false, "allocate"}, {"zcalloc", false, "allocate"},
    {"zrealloc", false, "allocate"},	  {"zfree", false, "allocate"},
};

// Loading an AOF runs commands. The time belongs to the loading.
inline const std::set<std::string> kAofLoad = {"loadAppendOnlyFile", "loadAppendOnlyFiles",
					       "loadSingleAppendOnlyFile"};

// libc's names. A thread sampled there was about to wait, or had just waited.
inline const std::set<std::string> kWaits = {"epoll_wait", "epoll_pwait", "epoll_pwait2"};

// libc's functions that only make a system call. A user-mode sample there is before or after the call.
inline const std::set<std::string> kCalls = {
    "read",	  "write",   "readv",	 "writev",  "send",	   "sendto",	  "sendmsg",  "recv",
    "recvfrom",	  "recvmsg", "accept",	 "accept4", "close",	   "epoll_ctl",	  "open",     "open64",
    "openat",	  "pread64", "pwrite64", "mmap",    "mmap64",	   "munmap",	  "madvise",  "mprotect",
    "setsockopt", "fcntl",   "fcntl64",	 "ioctl",   "getpeername", "getsockname", "shutdown", "syscall"};

// Memory allocation by any caller: functions of libc. Allocator libraries are matched by file name.
inline const std::set<std::string> kAllocators = {
    "malloc",	"free",		 "calloc",    "realloc",
    "cfree",	"_int_malloc",	 "_int_free", "malloc_usable_size",
    "memalign", "posix_memalign"};

// OpenSSL's functions that only a handshake needs: its own, where they have names, and asymmetric
// cryptography.
inline const ActivityRule kHandshakes[] = {
    {"SSL_accept", true, "tls-handshake"},
    {"SSL_connect", true, "tls-handshake"},
    {"SSL_do_handshake", true, "tls-handshake"},
    {"ossl_statem_", false, "tls-handshake"},
    {"state_machine", true, "tls-handshake"},
    {"EVP_DigestSign", false, "tls-handshake"},
    {"EVP_DigestVerify", false, "tls-handshake"},
    {"EVP_PKEY_", false, "tls-handshake"},
    {"RSA_", false, "tls-handshake"},
    {"BN_", false, "tls-handshake"},
    {"EC_", false, "tls-handshake"},
    {"X509_", false, "tls-handshake"},
};

// Outer frames of every stack. They do not identify an activity.
inline const std::set<std::string> kFrames = {"_start",
					      "main",
					      "aeMain",
					      "aeProcessEvents",
					      "processTimeEvents",
					      "aeApiPoll",
					      "IOThreadMain",
					      "bioProcessBackgroundJobs",
					      "start_thread",
					      "call",
					      "worker_libevent",
					      "event_handler",
					      "drive_machine",
					      "event_base_loop",
					      "core_loop",
					      "core_core",
					      "event_wait",
					      "connSocketEventHandler",
					      "beforeSleep",
					      "afterSleep"};

inline constexpr const char *kCall = "call";		   // runs one command
inline constexpr const char *kTransaction = "execCommand"; // runs the commands that a transaction has queued
// Runs a command of a module, whose function is in the module's file.
inline constexpr const char *kModuleCommand = "RedisModuleCommandDispatcher";

// What a library's work is for, by the beginning of its file name.
inline const ActivityRule kLibraries[] = {
    {"libjemalloc", false, "allocate"}, {"libtcmalloc", false, "allocate"},
    {"libmimalloc", false, "allocate"}, {"liblua", false, "script"},
    {"libvalkeylua", false, "script"},	{"liblzf", false, "compress"},
    {"libz.", false, "compress"},	{"libzstd", false, "compress"},
    {"liblz4", false, "compress"},
};

// Named like a command's function, but they handle every command.
inline const std::set<std::string> kNoCommands = {"process_command",
						  "process_command_ascii",
						  "processCommand",
						  "lookupCommand",
						  "rejectCommand",
						  "afterCommand",
						  "__redisAppendCommand",
						  "redisCommand",
						  "luaRedisGenericCommand",
						  "slowlogPushCurrentCommand",
						  "commandlogPushCurrentCommand",
						  "catAppendOnlyGenericCommand"};

bool IsScript(const std::string &command)
{
	return command.starts_with("EVAL") || command.starts_with("FCALL");
}

namespace
{

constexpr size_t kWhereFrames = 3; // functions in Activity::where
constexpr size_t kNone = SIZE_MAX;

bool Begins(const std::string &text, const char *begin)
{
	return text.rfind(begin, 0) == 0;
}

bool Ends(const std::string &text, const std::string &end)
{
	return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// A function's name without additions of compilers and linkers: C++ mangling (KeyDB), gcc's ".isra.0",
// "@@GLIBC_2.17".
std::string PlainName(const std::string &symbol)
{
	std::string name = symbol.substr(0, symbol.find_first_of(".@"));
	if (!Begins(name, "_Z"))
		return name;
	size_t at = 2, length = 0;
	while (at < name.size() && isdigit(static_cast<unsigned char>(name[at])) && length < name.size())
		length = length * 10 + static_cast<size_t>(name[at++] - '0');
	return length && at + length <= name.size() ? name.substr(at, length) : name;
}

// The activity of a function by the first matching rule; nullptr without a match.
template <size_t N> const char *RuleFor(const std::string &function, const ActivityRule (&rules)[N])
{
	for (const ActivityRule &rule : rules)
		if (rule.whole ? function == rule.begin : Begins(function, rule.begin))
			return rule.activity;
	return nullptr;
}

// Functions that are not named after their command, or that several commands share, without "Command". Two
// commands may have one function in Redis' table of commands, and a function that two others call is the only
// one left of a stack whose callers made tail calls.
struct CommandFunction {
	const char *function, *commands;
};

inline const CommandFunction kCommandFunctions[] = {
    {"sinter", "SINTER or SMEMBERS"},
    {"sinterGeneric", "SINTER, SINTERCARD, SINTERSTORE or SMEMBERS"},
    {"sunionDiffGeneric", "SUNION, SUNIONSTORE, SDIFF or SDIFFSTORE"},
    {"zunionInterDiffGeneric", "ZUNION, ZUNIONSTORE, ZINTER, ZINTERSTORE, ZINTERCARD, ZDIFF or ZDIFFSTORE"},
    {"genericHgetall", "HGETALL, HKEYS or HVALS"},
    {"delGeneric", "DEL or UNLINK"},
    {"hset", "HSET or HMSET"},
    {"hexpireGeneric", "HEXPIRE, HPEXPIRE, HEXPIREAT or HPEXPIREAT"},
    {"httlGeneric", "HTTL, HPTTL, HEXPIRETIME or HPEXPIRETIME"},
    {"getrange", "GETRANGE or SUBSTR"},
    {"setGeneric", "SET, SETEX, PSETEX or SETNX"},
    {"expireGeneric", "EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT"},
    {"ttlGeneric", "TTL, PTTL, EXPIRETIME or PEXPIRETIME"},
    {"renameGeneric", "RENAME or RENAMENX"},
    {"incrDecr", "INCR, DECR, INCRBY or DECRBY"},
    {"popGeneric", "LPOP or RPOP"},
    {"pushGeneric", "LPUSH, RPUSH, LPUSHX or RPUSHX"},
    {"lmoveGeneric", "LMOVE or RPOPLPUSH"},
    {"blmoveGeneric", "BLMOVE or BRPOPLPUSH"},
    {"lmpopGeneric", "LMPOP or BLMPOP"},
    {"blockingPopGeneric", "BLPOP or BRPOP"},
    {"zaddGeneric", "ZADD or ZINCRBY"},
    {"zrankGeneric", "ZRANK or ZREVRANK"},
    {"zmpopGeneric", "ZMPOP or BZMPOP"},
    {"genericZpop", "ZPOPMIN or ZPOPMAX"},
    {"blockingGenericZpop", "BZPOPMIN or BZPOPMAX"},
    {"zrangeGeneric",
     "ZRANGE, ZRANGESTORE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX or ZREVRANGEBYLEX"},
    {"genericZrangebyrank", "ZRANGE, ZRANGESTORE or ZREVRANGE"},
    {"genericZrangebyscore", "ZRANGE, ZRANGESTORE, ZRANGEBYSCORE or ZREVRANGEBYSCORE"},
    {"genericZrangebylex", "ZRANGE, ZRANGESTORE, ZRANGEBYLEX or ZREVRANGEBYLEX"},
    {"zremrangeGeneric", "ZREMRANGEBYRANK, ZREMRANGEBYSCORE or ZREMRANGEBYLEX"},
    {"xrangeGeneric", "XRANGE or XREVRANGE"},
    {"xread", "XREAD or XREADGROUP"},
    {"georadiusGeneric", "GEORADIUS, GEORADIUSBYMEMBER, GEOSEARCH or GEOSEARCHSTORE"},
    {"scanGeneric", "SCAN, SSCAN, HSCAN or ZSCAN"},
    {"replicaof", "REPLICAOF or SLAVEOF"},
    {"sync", "SYNC or PSYNC"},
    {"srandmemberWithCount", "SRANDMEMBER"},
    {"zrandmemberWithCount", "ZRANDMEMBER"},
    {"hrandfieldWithCount", "HRANDFIELD"},
    {"spopWithCount", "SPOP"},
    {"evalSha", "EVALSHA"},
    {"evalRo", "EVAL_RO"},
    {"evalShaRo", "EVALSHA_RO"},
    {"fcallro", "FCALL_RO"},
    {"sortro", "SORT_RO"},
    {"bitfieldro", "BITFIELD_RO"},
    {"georadiusro", "GEORADIUS_RO"},
    {"georadiusbymemberro", "GEORADIUSBYMEMBER_RO"},
};

// memcached's, in process_..._command.
inline const CommandFunction kMemcachedFunctions[] = {
    {"get", "GET, GETS, GAT or GATS"},
    {"update", "SET, ADD, REPLACE, APPEND, PREPEND or CAS"},
    {"arithmetic", "INCR or DECR"},
    {"mget", "MG"},
    {"mset", "MS"},
    {"mdelete", "MD"},
    {"marithmetic", "MA"},
};

// Commands of two words, each subcommand with its own function.
inline const std::set<std::string> kContainers = {
    "acl",    "client", "cluster", "command", "config",	 "function", "latency", "memory",
    "module", "object", "pubsub",  "script",  "slowlog", "xgroup",   "xinfo",	"commandlog"};

template <size_t N> const char *CommandsOf(const std::string &function, const CommandFunction (&table)[N])
{
	for (const CommandFunction &row : table)
		if (function == row.function)
			return row.commands;
	return nullptr;
}

// A command's name from its function without "Command", in upper case: "configResetStat" is "CONFIG
// RESETSTAT". A function that several commands share has their names. "" for what no user can send: a
// helper's name.
std::string CommandWords(const std::string &function)
{
	if (const char *known = CommandsOf(function, kCommandFunctions))
		return known;
	std::string text = function;
	if (size_t at = text.find("Generic"); at != std::string::npos)
		text.erase(at, 7);
	const auto hump =
	    std::find_if(text.begin(), text.end(), [](unsigned char c) { return isupper(c) != 0; });
	const std::string first(text.begin(), hump);
	if (first.empty() || (hump != text.end() && !kContainers.count(first)))
		return "";
	std::string words = first + (hump == text.end() ? "" : " ") + std::string(hump, text.end());
	for (char &c : words)
		c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
	return words;
}

// The command a function implements, as users know it: "KEYS" of keysCommand, "GET" of memcached's
// process_get_command; "" if it implements none.
std::string CommandOf(const std::string &function)
{
	if (kNoCommands.count(function))
		return "";
	if (Begins(function, "process_") && Ends(function, "_command")) {
		const std::string name = function.substr(8, function.size() - 16);
		const char *known = CommandsOf(name, kMemcachedFunctions);
		return known ? known : CommandWords(name);
	}
	if (Ends(function, "Command"))
		return CommandWords(function.substr(0, function.size() - 7));
	return function == "sortCommandGeneric" ? "SORT" : "";
}

struct Function {
	std::string name;
	std::string module;
	bool own; // of the program, not of a library
};

// Whether it is of the Lua interpreter, in the program or in its own library, or calls into it.
bool IsLua(const Function &f)
{
	return f.name == "luaCallFunction" || Begins(f.name, "lua_") ||
	       (f.name.size() > 5 && Begins(f.name, "lua") &&
		isupper(static_cast<unsigned char>(f.name[3])) && f.name[4] == '_') ||
	       (!f.own && (Begins(f.module, "liblua") || Begins(f.module, "libvalkeylua")));
}

struct Command {
	size_t at; // its function's index in the stack
	std::string name;
};

// The running commands, innermost first. `call` runs a command's function itself, so that is the one right
// below it: helpers further in may be named like commands too, as may functions of processCommand before
// `call`. memcached has no `call`, and a truncated stack may lack it: then the outermost such function
// counts.
std::vector<Command> CommandsIn(const std::vector<Function> &functions)
{
	std::vector<Command> commands;
	Command outermost = {kNone, ""};
	bool calls = false;
	for (size_t i = 0; i < functions.size(); i++) {
		const Function &f = functions[i];
		if (f.name == kCall) {
			calls = true;
			if (outermost.at != kNone && outermost.at + 1 == i)
				commands.push_back(outermost);
		}
		if (f.name == kCall || f.name == "processCommand")
			outermost.at = kNone;
		else if (std::string name = f.own ? CommandOf(f.name) : ""; !name.empty())
			outermost = {i, name};
	}
	if (outermost.at != kNone && !calls)
		commands.push_back(outermost);
	return commands;
}

// Index of the innermost function of the program that satisfies `wanted`, or kNone.
template <typename Wanted> size_t Innermost(const std::vector<Function> &functions, Wanted wanted)
{
	for (size_t i = 0; i < functions.size(); i++)
		if (functions[i].own && !functions[i].name.empty() && wanted(functions[i].name))
			return i;
	return kNone;
}

// Function names from `at` outwards, without unknown ones.
std::string Where(const std::vector<Function> &functions, size_t at)
{
	std::string text;
	size_t shown = 0;
	for (size_t i = at; i < functions.size() && shown < kWhereFrames; i++) {
		const std::string &name = functions[i].name;
		if (name.empty() || name == "main" || name == "aeMain" || name == "_start" ||
		    Begins(name, "__libc_start"))
			continue;
		text += (shown++ ? " < " : "") + name;
	}
	return text;
}

bool IsOpenSsl(const std::string &module)
{
	return Begins(module, "libssl") || Begins(module, "libcrypto");
}

// What a library's work is for; "" for libraries that serve many purposes, such as libc.
std::string PurposeOf(const std::string &module)
{
	if (const char *purpose = RuleFor(module, kLibraries))
		return purpose;
	return IsOpenSsl(module) || Ends(module, ".so") ? "module/" + module
							: ""; // a server's module has no version
}

// The purpose of the library that the program called, with its function's index: of the library functions
// inside the innermost function of the program, the outermost with a purpose.
std::pair<size_t, std::string> LibraryWork(const std::vector<Function> &functions)
{
	std::pair<size_t, std::string> work = {kNone, ""};
	for (size_t i = 0; i < functions.size() && !functions[i].own; i++)
		if (std::string purpose = PurposeOf(functions[i].module); !purpose.empty())
			work = {i, purpose};
	return work;
}

// The activity of a stack whose innermost frame is in a library and that matches no rule.
std::string LibraryActivity(const Function &f)
{
	if (kWaits.count(f.name))
		return "event-loop";
	if (kCalls.count(f.name))
		return "system-call";
	if (kAllocators.count(f.name))
		return "allocate";
	return "module/" + f.module;
}

// The function that removes keys around the rehashing at `rehash` and before `end`, or kNone.
size_t RemovalAround(const std::vector<Function> &functions, size_t rehash, size_t end)
{
	if (std::string(RuleFor(functions[rehash].name, kRules)) != "rehash")
		return kNone;
	for (size_t i = rehash; i < std::min(end, functions.size()); i++) {
		const char *activity = functions[i].own ? RuleFor(functions[i].name, kRules) : nullptr;
		if (activity && (std::string(activity) == "expire" || std::string(activity) == "evict"))
			return i;
	}
	return kNone;
}

// The activity of a stack without a known function of the server: of a library, an unknown function, or the
// event loop.
Activity OtherActivity(const Stack &stack, const std::vector<Function> &functions)
{
	const auto [library, work] = LibraryWork(functions);
	if (library != kNone && work != "allocate")
		return {work, Where(functions, 0)};
	for (size_t i = functions.size(); i-- > 0;)
		if (functions[i].own && !functions[i].name.empty() && !kFrames.count(functions[i].name))
			return {"function/" + functions[i].name, Where(functions, 0)};
	if (library != kNone)
		return {work, Where(functions, 0)};
	if (Innermost(functions, [](const std::string &) { return true; }) != kNone)
		return {"event-loop", Where(functions, 0)};
	std::string where = functions.empty() ? "" : functions[0].name;
	if (where.empty() && !stack.kernel.empty())
		where = stack.kernel[0];
	if (stack.frames.empty() || stack.frames[0].module.empty())
		return {"unknown", where};
	return {LibraryActivity(functions[0]), where};
}

// The activity of a stack in a script; without a name if it is in none. Commands that a script calls count as
// the script. Lua code that a named command of another kind runs itself (FUNCTION LOAD) is that command.
Activity ScriptActivity(const std::vector<Function> &functions, const std::vector<Command> &commands)
{
	auto next = [&](size_t from, auto wanted) {
		const auto found =
		    std::find_if(functions.begin() + static_cast<ptrdiff_t>(from), functions.end(), wanted);
		return found == functions.end() ? kNone : static_cast<size_t>(found - functions.begin());
	};
	const size_t lua = next(0, IsLua), call = next(0, [](const Function &f) { return f.name == kCall; });
	const auto script =
	    std::find_if(commands.begin(), commands.end(), [](const Command &c) { return IsScript(c.name); });
	std::string name = script == commands.end() ? "" : "command/" + script->name;
	if (name.empty() && lua != kNone) {
		const size_t outermost =
		    static_cast<size_t>(std::find_if(functions.rbegin(), functions.rend(), IsLua).base() -
					functions.begin()) -
		    1;
		const size_t caller = next(outermost, [](const Function &f) { return f.name == kCall; });
		const bool runs_itself = std::any_of(commands.begin(), commands.end(), [&](const Command &c) {
			return c.at > outermost && c.at < caller;
		});
		name = runs_itself ? "" : "script";
	}
	if (name.empty())
		return {};
	const size_t command = commands.empty() ? kNone : commands[0].at;
	const bool in_lua = lua < call || (lua == kNone && command == script->at);
	const size_t innermost = std::min(lua, command);
	return {name, Where(functions, innermost < call ? innermost : 0), in_lua};
}

// The activity of a stack below `call`, where a command runs; without a name if `call` itself runs.
Activity CommandActivity(const std::vector<Function> &functions, const std::vector<Command> &commands)
{
	if (!commands.empty())
		return {"command/" + commands[0].name, Where(functions, commands[0].at)};
	size_t outermost = kNone; // of the program's functions below `call`
	for (size_t i = 0; i < functions.size() && functions[i].name != kCall; i++)
		if (functions[i].own)
			outermost = i;
	if (outermost == kNone ||
	    Innermost(functions, [](const std::string &f) { return f == kCall; }) == kNone)
		return {};
	if (const auto [at, work] = LibraryWork(functions);
	    at != kNone && functions[outermost].name == kModuleCommand)
		return {work, Where(functions, at)};
	return {"command", Where(functions, 0)};
}

// The activity by the user-mode part of a stack.
Activity UserActivityOf(const Stack &stack)
{
	std::vector<Function> functions;
	for (const StackFrame &frame : stack.frames)
		functions.push_back({PlainName(frame.function), frame.module, frame.module == stack.program});
	auto at_rule = [&](const auto &rules) {
		return Innermost(functions, [&](const std::string &f) { return RuleFor(f, rules); });
	};

	if (size_t at = Innermost(functions, [](const std::string &f) { return kAofLoad.count(f) > 0; });
	    at != kNone)
		return {"aof-load", Where(functions, at)};
	for (size_t i = 0; i < functions.size(); i++)
		if (IsOpenSsl(functions[i].module) && RuleFor(functions[i].name, kHandshakes))
			return {"tls-handshake", Where(functions, i)};
	const std::vector<Command> commands = CommandsIn(functions);
	Activity command = ScriptActivity(functions, commands);
	if (command.name.empty())
		command = CommandActivity(functions, commands);
	// Functions around the command are not what it does.
	size_t limit = kNone;
	for (size_t i = 0; i < functions.size() && limit == kNone && !command.name.empty(); i++)
		if (functions[i].name == kCall || IsLua(functions[i]) ||
		    (!commands.empty() && commands[0].at == i))
			limit = i;
	if (size_t at = at_rule(kOutsideCommands); command.name.empty() && at != kNone)
		return {RuleFor(functions[at].name, kOutsideCommands), Where(functions, at)};
	if (size_t rule = at_rule(kRules); rule < limit) {
		if (size_t at = RemovalAround(functions, rule, limit); at != kNone)
			rule = at;
		return {RuleFor(functions[rule].name, kRules), Where(functions, rule)};
	}
	if (!command.name.empty())
		return command;
	if (size_t at = at_rule(kLastRules); at != kNone)
		return {RuleFor(functions[at].name, kLastRules), Where(functions, at)};
	if (functions.size() == 1 && at_rule(kLeafRules) == 0)
		return {RuleFor(functions[0].name, kLeafRules), functions[0].name};
	return OtherActivity(stack, functions);
}

// Whether the kernel part of a sample names the activity better than the user-mode part. Kernel time of a
// command or of expiry belongs to them; for sending a reply, the kernel's activity is more precise.
bool KernelSaysMore(const std::string &activity, const std::string &kernel)
{
	static const std::set<std::string> loop = {"answer",	 "read",	"parse",    "dispatch",
						   "event-loop", "system-call", "allocate", "unknown"};
	if (activity == "accept" || activity == "free-client")
		return kernel == "kernel/accept" || kernel == "kernel/close";
	return loop.count(activity) || Begins(activity, "function/") || Begins(activity, "module/");
}

} // namespace

Activity ActivityOf(const Stack &stack, const KernelSide &side)
{
	Activity activity = UserActivityOf(stack);
	activity.in_kernel = side.in_kernel;
	activity.in_transaction =
	    std::any_of(stack.frames.begin(), stack.frames.end(), [&](const StackFrame &f) {
		    return f.module == stack.program && PlainName(f.function) == kTransaction;
	    });
	KernelWork work = KernelWorkOf(side, stack.kernel);
	if (work.activity.empty() || !KernelSaysMore(activity.name, work.activity))
		return activity;
	activity.name = work.activity;
	std::string callers = activity.where;
	activity.where = work.where;
	for (size_t shown = 1; shown < kWhereFrames && !callers.empty() && callers + "()" != work.where;
	     shown++) {
		size_t end = callers.find(" < ");
		activity.where += " < " + callers.substr(0, end);
		callers.erase(0, end == std::string::npos ? end : end + 3);
	}
	return activity;
}

bool Activities::AreOf(const Run &run) const
{
	return loaded_from_ns == run.loaded_from_ns && loaded_to_ns == run.loaded_to_ns &&
	       of_sample.size() == run.cpu_samples.size();
}

const Activity &Activities::Of(size_t sample) const
{
	return kinds[of_sample[sample]];
}

namespace
{

// A sample without callers gets the activity of a whole stack of its thread at most this far away. Each
// stretch is loaded with a margin of this length (RunSource::Cover), so the result does not depend on
// stretches.
constexpr uint64_t kCallersNs = 500'000'000;
// In a stripped program, any of its functions without a name may be meant: only a near stack shows the same
// work.
constexpr uint64_t kUnnamedCallersNs = 30'000'000;

// A short iteration's samples have the innermost function only, except for 50 per second, and so have those
// of a long one when the recorder has no time to unwind. The nearest stack of the same thread with that
// function shows what it was called for.
class Callers
{
public:
	explicit Callers(const Run &run) : run_(run)
	{
		std::map<std::pair<std::string, std::string>, uint32_t> known;
		for (const Stack &stack : run.stacks) {
			const StackFrame leaf = stack.frames.empty() ? StackFrame() : stack.frames[0];
			const bool is_known = !leaf.function.empty() || leaf.module != stack.program;
			reach_of_.push_back(is_known ? kCallersNs : kUnnamedCallersNs);
			leaf_of_.push_back(leaf.module.empty()
					       ? kNoLeaf
					       : known
						     .try_emplace({leaf.function, leaf.module},
								  static_cast<uint32_t>(known.size()))
						     .first->second);
		}
	}

	// Changes the kinds of a thread's samples.
	void Apply(const Thread &thread, std::vector<uint32_t> *kinds) const
	{
		const size_t first = thread.first_cpu_sample, count = thread.cpu_sample_count;
		std::vector<Seen> nearest(count);
		std::map<Key, Seen> seen;
		for (size_t i = 0; i < count; i++)
			Look(first + i, *kinds, &seen, &nearest[i]);
		seen.clear();
		for (size_t i = count; i-- > 0;)
			Look(first + i, *kinds, &seen, &nearest[i]);
		for (size_t i = 0; i < count; i++)
			if (nearest[i].away_ns <= reach_of_[run_.cpu_samples[first + i].stack])
				(*kinds)[first + i] = nearest[i].kind;
	}

private:
	static constexpr uint32_t kNoLeaf = UINT32_MAX;
	using Key =
	    std::tuple<uint32_t, uint16_t, uint8_t, bool>; // function, system call, its file, in the kernel
	struct Seen {
		uint32_t kind = 0;
		uint64_t t_ns = 0, away_ns = UINT64_MAX;
	};

	// Takes the last stack seen, if it is nearer than what is known.
	void Look(size_t i, const std::vector<uint32_t> &kinds, std::map<Key, Seen> *seen,
		  Seen *nearest) const
	{
		const ft_cpu_sample &s = run_.cpu_samples[i];
		const uint32_t leaf = leaf_of_[s.stack];
		if (leaf == kNoLeaf)
			return;
		const Key key = {leaf, s.syscall, s.file, s.flags & FT_CPU_SAMPLE_KERNEL};
		if (run_.stacks[s.stack].frames.size() > 1) {
			(*seen)[key] = {kinds[i], s.t_ns};
			return;
		}
		const auto found = seen->find(key);
		if (found == seen->end())
			return;
		const uint64_t t_ns = found->second.t_ns,
			       away_ns = std::max(t_ns, s.t_ns) - std::min(t_ns, s.t_ns);
		if (away_ns < nearest->away_ns)
			*nearest = {found->second.kind, t_ns, away_ns};
	}

	const Run &run_;
	std::vector<uint32_t> leaf_of_;	 // by stack
	std::vector<uint64_t> reach_of_; // how far away its callers may be
};

} // namespace

Activities ActivitiesOf(const Run &run)
{
	// Samples with the same stack, mode, system call and file share one entry.
	std::map<std::tuple<uint32_t, bool, uint16_t, uint8_t>, uint32_t> known;
	Activities activities = {run.loaded_from_ns, run.loaded_to_ns, {}, {}};
	for (const ft_cpu_sample &s : run.cpu_samples) {
		bool in_kernel = s.flags & FT_CPU_SAMPLE_KERNEL;
		auto [found, is_new] = known.try_emplace({s.stack, in_kernel, s.syscall, s.file},
							 static_cast<uint32_t>(activities.kinds.size()));
		if (is_new)
			activities.kinds.push_back(ActivityOf(
			    run.stacks[s.stack],
			    {in_kernel, s.syscall ? SyscallName(run, s.syscall - 1) : "", s.file}));
		activities.of_sample.push_back(found->second);
	}
	const Callers callers(run);
	for (const Thread &thread : run.threads)
		callers.Apply(thread, &activities.of_sample);
	return activities;
}

// Maps system calls and kernel functions to activities. Function names are those of Linux 5.10 and later. A
// call without a rule becomes "kernel/CALL".

namespace
{

struct CallRule {
	const char *call;
	const char *on_socket; // also for calls that take no other kind
	const char *on_disk;
	const char *on_other;
};

constexpr const char *kSend = "kernel/send", *kReceive = "kernel/receive", *kPoll = "kernel/poll",
		     *kAccept = "kernel/accept", *kClose = "kernel/close", *kConnection = "kernel/connection",
		     *kMemory = "kernel/memory", *kFutex = "kernel/futex", *kFileRead = "kernel/file-read",
		     *kFileWrite = "kernel/file-write", *kFileMeta = "kernel/file-meta",
		     *kPipe = "kernel/pipe";

const CallRule kCallRules[] = {
    {"write", kSend, kFileWrite, kPipe},
    {"writev", kSend, kFileWrite, kPipe},
    {"sendto", kSend, kSend, kSend},
    {"sendmsg", kSend, kSend, kSend},
    {"sendmmsg", kSend, kSend, kSend},
    {"sendfile", kSend, kFileWrite, kPipe},
    {"pwrite64", kFileWrite, kFileWrite, kFileWrite},
    {"pwritev", kFileWrite, kFileWrite, kFileWrite},
    {"ftruncate", kFileWrite, kFileWrite, kFileWrite},
    {"fallocate", kFileWrite, kFileWrite, kFileWrite},

    {"read", kReceive, kFileRead, kPipe},
    {"readv", kReceive, kFileRead, kPipe},
    {"recvfrom", kReceive, kReceive, kReceive},
    {"recvmsg", kReceive, kReceive, kReceive},
    {"recvmmsg", kReceive, kReceive, kReceive},
    {"pread64", kFileRead, kFileRead, kFileRead},
    {"preadv", kFileRead, kFileRead, kFileRead},

    {"epoll_wait", kPoll, kPoll, kPoll},
    {"epoll_pwait", kPoll, kPoll, kPoll},
    {"epoll_pwait2", kPoll, kPoll, kPoll},
    {"poll", kPoll, kPoll, kPoll},
    {"ppoll", kPoll, kPoll, kPoll},
    {"select", kPoll, kPoll, kPoll},
    {"pselect6", kPoll, kPoll, kPoll},

    {"accept", kAccept, kAccept, kAccept},
    {"accept4", kAccept, kAccept, kAccept},
    {"close", kClose, kClose, kClose},
    {"shutdown", kClose, kClose, kClose},
    {"epoll_ctl", kConnection, kConnection, kConnection},
    {"socket", kConnection, kConnection, kConnection},
    {"connect", kConnection, kConnection, kConnection},
    {"getpeername", kConnection, kConnection, kConnection},
    {"getsockname", kConnection, kConnection, kConnection},
    {"getsockopt", kConnection, kConnection, kConnection},
    {"setsockopt", kConnection, kConnection, kConnection},

    {"mmap", kMemory, kMemory, kMemory},
    {"munmap", kMemory, kMemory, kMemory},
    {"mremap", kMemory, kMemory, kMemory},
    {"mprotect", kMemory, kMemory, kMemory},
    {"madvise", kMemory, kMemory, kMemory},
    {"brk", kMemory, kMemory, kMemory},

    {"futex", kFutex, kFutex, kFutex},

    {"open", kFileMeta, kFileMeta, kFileMeta},
    {"openat", kFileMeta, kFileMeta, kFileMeta},
    {"stat", kFileMeta, kFileMeta, kFileMeta},
    {"fstat", kFileMeta, kFileMeta, kFileMeta},
    {"lstat", kFileMeta, kFileMeta, kFileMeta},
    {"newfstatat", kFileMeta, kFileMeta, kFileMeta},
    {"statx", kFileMeta, kFileMeta, kFileMeta},
    {"rename", kFileMeta, kFileMeta, kFileMeta},
    {"renameat", kFileMeta, kFileMeta, kFileMeta},
    {"renameat2", kFileMeta, kFileMeta, kFileMeta},
    {"unlink", kFileMeta, kFileMeta, kFileMeta},
    {"unlinkat", kFileMeta, kFileMeta, kFileMeta},
    {"getdents64", kFileMeta, kFileMeta, kFileMeta},
};

struct FunctionRule {
	const char *function;
	const char *activity;
};

// For kernel stacks. The first rule with a function in the stack counts, so a protocol comes before its
// callers, and inner functions before outer ones.
const FunctionRule kFunctions[] = {
    {"tcp_sendmsg", kSend},
    {"unix_stream_sendmsg", kSend},
    {"sock_sendmsg", kSend},
    {"sock_write_iter", kSend},
    {"tcp_recvmsg", kReceive},
    {"unix_stream_recvmsg", kReceive},
    {"unix_stream_read_generic", kReceive},
    {"sock_recvmsg", kReceive},
    {"sock_read_iter", kReceive},
    {"inet_csk_accept", kAccept},
    {"unix_accept", kAccept},
    {"do_accept", kAccept},
    {"tcp_close", kClose},
    {"unix_release", kClose},
    {"sock_close", kClose},
    {"pipe_write", kPipe},
    {"pipe_read", kPipe},
    {"eventfd_write", kPipe},
    {"eventfd_read", kPipe},
};

// The activity of a call on a file of this kind.
const char *ActivityOn(const CallRule &rule, uint8_t file)
{
	switch (file) {
	case FT_SAMPLE_FILE_SOCKET:
		return rule.on_socket;
	case FT_SAMPLE_FILE_DISK:
		return rule.on_disk;
	case FT_SAMPLE_FILE_OTHER:
		return rule.on_other;
	default: // unknown kind: only if sockets and disks have the same activity
		return rule.on_socket == rule.on_disk ? rule.on_socket : nullptr;
	}
}

} // namespace

KernelWork KernelWorkOf(const KernelSide &side, const std::vector<std::string> &stack)
{
	for (const FunctionRule &rule : kFunctions)
		if (std::find(stack.begin(), stack.end(), rule.function) != stack.end())
			return {rule.activity, rule.function};
	if (!side.in_kernel || side.call.empty())
		return {};
	for (const CallRule &rule : kCallRules)
		if (side.call == rule.call)
			if (const char *activity = ActivityOn(rule, side.file))
				return {activity, side.call + "()"};
	return {"kernel/" + side.call, side.call + "()"};
}

} // namespace forktail::analysis

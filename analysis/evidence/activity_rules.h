// SPDX-License-Identifier: MIT
// What the functions of servers and the files of libraries do: the tables of activity.cc.
#pragma once

#include <iterator>
#include <set>
#include <string>

#include "analysis/timeline/spins.h"

namespace forktail::analysis
{

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
inline const std::set<std::string> kNoCommands = {
    "process_command", "process_command_ascii", "processCommand", "lookupCommand",	   "rejectCommand",
    "afterCommand",    "__redisAppendCommand",	"redisCommand",	  "luaRedisGenericCommand"};

} // namespace forktail::analysis

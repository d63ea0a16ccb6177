// SPDX-License-Identifier: MIT
// From sampled stacks to what the server was doing, and for how long.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/evidence.h"
#include "recording/owners.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A stack of the program's functions, innermost first. "name@module" is in another module, "@" has no name.
Stack StackOf(const std::vector<std::string> &functions)
{
	Stack stack;
	stack.program = "redis-server";
	for (const std::string &f : functions) {
		size_t at = f.find('@');
		stack.frames.push_back({f.substr(0, at), at == std::string::npos || at + 1 == f.size()
							     ? stack.program
							     : f.substr(at + 1)});
	}
	return stack;
}

std::string NameOf(std::vector<std::string> functions)
{
	return ActivityOf(StackOf(functions)).name;
}

// The same below the functions through which Redis runs every command.
std::string InCommand(std::vector<std::string> functions)
{
	for (const char *outer :
	     {"call", "processCommand", "processInputBuffer", "readQueryFromClient", "@", "aeProcessEvents",
	      "aeMain", "main", "__libc_start_call_main@libc.so.6", "_start"})
		functions.push_back(outer);
	return NameOf(functions);
}

} // namespace

TEST_CASE("what servers of 2025 and 2026 do besides commands is named by their functions")
{
	const auto in_main = [](std::vector<std::string> functions) {
		functions.insert(functions.end(), {"beforeSleep", "aeProcessEvents", "aeMain", "main"});
		return NameOf(functions);
	};
	// Valkey's save without fork: the thread that writes, and the main thread that waits for keys or
	// copies them.
	CHECK(NameOf({"rdbSaveKeyValuePair", "forklessSaveProcessor", "start_thread@libc.so.6"}) ==
	      "forkless-save");
	CHECK(in_main({"hashtableNext", "bgIteration_feedIterators"}) == "forkless-save");
	CHECK(InCommand({"bgIteration_blockClientIfRequired", "setCommand"}) == "forkless-save");
	CHECK(in_main({"proceedWithSlotMigration", "clusterSlotMigrationCron", "clusterCron"}) ==
	      "slot-migration");
	CHECK(in_main({"dbGenericDelete", "asmActiveTrimCycle", "asmCron", "clusterCron"}) ==
	      "slot-migration");
	CHECK(in_main({"trackingInvalidateKey"}) == "tracking");
	CHECK(in_main({"listNext", "evictClients"}) == "evict-clients");
	CHECK(in_main({"dictPrefetch", "prefetchCommands", "prefetchIOThreadCommands",
		       "processClientsFromIOThread"}) == "prefetch");
	CHECK(in_main({"pthread_mutex_lock@libc.so.6", "processClientsFromIOThread",
		       "processClientsOfAllIOThreads"}) == "hand-over");
	CHECK(in_main({"processIOThreadsReadDone"}) == "hand-over");
	CHECK(NameOf({"decrRefCount", "lazyfreeFreeObject", "bioProcessBackgroundJobs",
		      "start_thread@libc.so.6"}) == "lazy-free");
	// A command is what it is, whichever thread handed its client over.
	CHECK(NameOf({"keysCommand", "call", "processCommand", "processPendingCommandAndInputBuffer",
		      "processClientsFromIOThread", "beforeSleep", "aeProcessEvents"}) == "command/KEYS");
}

TEST_CASE("a command is named by its function")
{
	CHECK(InCommand({"stringmatchlen", "keysCommand"}) == "command/KEYS");
	CHECK(InCommand({"addReplyBulkCBuffer", "addListRangeReply", "lrangeCommand"}) == "command/LRANGE");
	// After a tail call only the function that several commands share is left.
	CHECK(InCommand({"decrRefCount", "dbDelete", "delGenericCommand"}) == "command/DEL or UNLINK");
	CHECK(InCommand({"genericHgetallCommand"}) == "command/HGETALL, HKEYS or HVALS");
	CHECK(InCommand({"genericHgetallCommand", "hkeysCommand"}) == "command/HKEYS");
	// Helpers with such names are inside the command, not the reverse.
	CHECK(InCommand({"setGenericCommand", "setCommand"}) == "command/SET");
	CHECK(InCommand({"lookupCommandLogic", "lookupCommand", "getKeysSubcommand",
			 "commandGetKeysCommand"}) == "command/COMMAND GETKEYS");
	CHECK(InCommand({"configSetCommand"}) == "command/CONFIG SET");
	CHECK(InCommand({"bitfieldroCommand"}) == "command/BITFIELD_RO");
	CHECK(InCommand({"rdbLoadObject", "restoreCommand"}) == "command/RESTORE");
	CHECK(ActivityOf(StackOf({"dictNext", "keysCommand", "call", "processCommand", "main"})).where ==
	      "keysCommand < call < processCommand");
}

TEST_CASE("a name is of commands that users send, and of the function that call ran")
{
	const struct {
		std::vector<std::string> functions;
		const char *activity;
	} rows[] = {
	    {{"sinterGenericCommand", "sinterCommand"}, "command/SINTER or SMEMBERS"},
	    {{"sinterGenericCommand"}, "command/SINTER, SINTERCARD, SINTERSTORE or SMEMBERS"},
	    {{"expireGenericCommand", "expireCommand"}, "command/EXPIRE"},
	    {{"expireGenericCommand"}, "command/EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT"},
	    {{"zrangeGenericCommand"},
	     "command/ZRANGE, ZRANGESTORE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX or "
	     "ZREVRANGEBYLEX"},
	    {{"configResetStatCommand"}, "command/CONFIG RESETSTAT"},
	    {{"vaddCommand"}, "command/VADD"}, // a command that this program does not know
	    // Helpers of a command, and of `call` itself.
	    {{"catAppendOnlyGenericCommand", "feedAppendOnlyFile", "@"}, "aof-flush"},
	    {{"catAppendOnlyGenericCommand", "@", "@"}, "command"},
	    {{"slowlogPushCurrentCommand"}, "command"},
	    {{"setGenericCommand", "someHelper"}, "command"},
	    {{"emptyData", "flushallCommand"}, "command/FLUSHALL"},
	};
	for (const auto &row : rows) {
		INFO(row.functions[0] << " " << row.activity);
		CHECK(InCommand(row.functions) == row.activity);
	}
	CHECK(NameOf({"catAppendOnlyGenericCommand", "@"}) == "function/catAppendOnlyGenericCommand");
	CHECK(NameOf({"dictEmpty", "emptyData", "readSyncBulkPayload", "aeMain"}) == "replica-flush");
	CHECK(NameOf({"dictEmpty", "emptyData", "@", "aeMain"}) == "replica-flush");
	CHECK(NameOf({"listNext", "handleClientsBlockedOnKeys", "beforeSleep"}) == "blocked-clients");
}

TEST_CASE("a command is named even if the stack is incomplete")
{
	CHECK(NameOf({"keysCommand"}) == "command/KEYS");		 // callers were not recorded
	CHECK(NameOf({"sdslen", "keysCommand", "@"}) == "command/KEYS"); // callers were cut off
	CHECK(NameOf({"rdbLoadObject"}) == "rdb-load");
	CHECK(NameOf({"dictFind"}) == "function/dictFind");
	CHECK(NameOf({"lookupCommand", "processCommand", "main"}) == "dispatch"); // before any command
	CHECK(InCommand({"malloc@libjemalloc.so.2", "@", "sunionDiffGenericCommand"}) ==
	      "command/SUNION, SUNIONSTORE, SDIFF or SDIFFSTORE");
}

TEST_CASE("the innermost known function decides")
{
	CHECK(InCommand({"dictRehash", "dictFind", "lookupKey", "setCommand"}) == "rehash");
	CHECK(InCommand({"dictDelete", "deleteExpiredKeyAndPropagate", "expireIfNeeded", "getCommand"}) ==
	      "expire");
	CHECK(NameOf({"dbGenericDelete", "performEvictions", "processCommand", "main"}) == "evict");
	CHECK(NameOf({"freeMemoryIfNeeded", "freeMemoryIfNeededAndSafe", "processCommand"}) == "evict");
	CHECK(NameOf({"activeExpireCycleTryExpire", "activeExpireCycle", "databasesCron", "serverCron",
		      "aeMain", "main"}) == "expire");
	CHECK(NameOf({"dictRehashMilliseconds", "incrementallyRehash", "databasesCron", "serverCron"}) ==
	      "rehash");
	// Removing many keys makes a table shrink, which is part of the same activity.
	CHECK(NameOf({"dictRehash", "_dictRehashStep", "dictGenericDelete", "deleteExpiredKeyAndPropagate",
		      "activeExpireCycleTryExpire", "activeExpireCycle", "databasesCron"}) == "expire");
	CHECK(NameOf({"dictRehash", "dictGenericDelete", "dbGenericDelete", "performEvictions",
		      "processCommand", "main"}) == "evict");
	CHECK(InCommand({"dictRehash", "dictGenericDelete", "delCommand"}) == "rehash");
	CHECK(NameOf({"write@libc.so.6", "aofWrite", "flushAppendOnlyFile", "beforeSleep", "aeMain"}) ==
	      "aof-flush");
	CHECK(NameOf({"je_malloc@libjemalloc.so.2", "activeDefragAlloc", "activeDefragCycle", "databasesCron",
		      "serverCron"}) == "defrag");
	CHECK(InCommand({"rdbSaveRio", "rdbSave", "saveCommand"}) == "rdb-save");
	CHECK(NameOf({"rdbLoadObject", "rdbLoadRioWithLoadingCtx", "rdbLoad", "loadDataFromDisk", "main"}) ==
	      "rdb-load");
	// Commands of an AOF are part of loading it.
	CHECK(NameOf({"setCommand", "loadSingleAppendOnlyFile", "loadAppendOnlyFiles", "main"}) ==
	      "aof-load");
	CHECK(InCommand({"feedReplicationBuffer", "replicationFeedSlaves", "setCommand"}) == "replication");
	CHECK(NameOf({"write@libc.so.6", "@", "writeToClient", "handleClientsWithPendingWrites",
		      "beforeSleep", "aeMain", "main"}) == "answer");
}

TEST_CASE("a script is EVAL, in Lua or in the commands that it calls")
{
	Activity loop = ActivityOf(StackOf(
	    {"@", "lua_pcall", "luaCallFunction", "evalGenericCommand", "call", "processCommand", "main"}));
	CHECK(loop.name == "command/EVAL");
	CHECK(loop.in_lua);
	CHECK(loop.where == "lua_pcall < luaCallFunction < evalGenericCommand");
	std::vector<std::string> set = {
	    "setCommand",      "call",		 "scriptCall", "luaRedisGenericCommand", "@", "lua_pcall",
	    "luaCallFunction", "evalShaCommand", "call",       "processCommand"};
	Activity called = ActivityOf(StackOf(set));
	CHECK(called.name == "command/EVALSHA");
	CHECK(!called.in_lua);
	CHECK(called.where == "setCommand < call < scriptCall");
	set.insert(set.begin(), "dictRehash");
	CHECK(NameOf(set) == "rehash");
	// EXEC itself takes almost no time: its commands do the work.
	CHECK(InCommand({"setCommand", "call", "execCommand"}) == "command/SET");
}

TEST_CASE("below call runs a command, also where static functions have no names")
{
	// Debian's Redis 7.0.15, stripped: FCALL, and a command whose function is static.
	const std::vector<std::string> outer = {
	    "call", "processCommand", "processInputBuffer", "readQueryFromClient", "@", "aeMain", "main"};
	auto below = [&](std::vector<std::string> functions) {
		functions.insert(functions.end(), outer.begin(), outer.end());
		return ActivityOf(StackOf(functions));
	};
	Activity script =
	    below({"luaV_execute@liblua5.1.so.0", "lua_pcall@liblua5.1.so.0", "luaCallFunction", "@", "@"});
	CHECK(script.name == "script");
	CHECK(script.in_lua);
	CHECK(script.where == "luaV_execute < lua_pcall < luaCallFunction");
	script = below({"dictFind", "setCommand", "call", "scriptCall", "@", "lua_pcall@liblua5.1.so.0",
			"luaCallFunction", "@", "@"});
	CHECK(script.name == "script"); // a command that the function calls
	CHECK(!script.in_lua);
	CHECK(script.where == "setCommand < call < scriptCall");
	CHECK(below({"@", "@", "call", "scriptCall", "@", "lua_pcall@liblua5.1.so.0", "luaCallFunction", "@",
		     "call", "execCommand"})
		  .name == "script");
	CHECK(below({"@liblua5.1.so.0"}).name == "script");
	CHECK(NameOf({"@liblua5.1.so.0"}) == "script"); // without callers
	CHECK(NameOf({"luaV_execute", "@", "lua_pcall", "luaCallFunction"}) == "script");
	CHECK(NameOf({"lua_pcall", "luaCallFunction", "@", "processCommand", "processInputBuffer"}) ==
	      "script");
	// Lua code that a command of another name runs.
	CHECK(
	    below({"luaV_execute@liblua5.1.so.0", "lua_pcall@liblua5.1.so.0", "functionLoadCommand"}).name ==
	    "command/FUNCTION LOAD");

	Activity command = below({"dictNext", "@", "@"});
	CHECK(command.name == "command");
	CHECK(command.where == "dictNext < call < processCommand");
	CHECK(below({"malloc@libjemalloc.so.2", "@"}).name == "command");
	CHECK(below({"dictRehash", "@"}).name == "rehash");
	CHECK(below({"@", "call", "execCommand"}).name == "command/EXEC");
	// The functions of `call` itself, and what processCommand does before it.
	CHECK(below({"clock_gettime@[vdso]"}).name == "dispatch");
	CHECK(NameOf({"@", "processCommand", "processInputBuffer", "main"}) == "dispatch");
}

TEST_CASE("a stack in a transaction is known by EXEC")
{
	auto in = [](const std::vector<std::string> &functions) {
		return ActivityOf(StackOf(functions)).in_transaction;
	};
	CHECK(in({"setCommand", "call", "execCommand", "call", "processCommand"}));
	CHECK(in({"dictRehash", "setCommand", "call", "execCommand", "call", "processCommand"}));
	CHECK(!in({"setCommand", "call", "processCommand"}));
	CHECK(!in({"execCommand@other"}));
}

TEST_CASE("the purpose of a library is the name of its work")
{
	// OpenSSL's assembly has names but no unwind tables; the event loop around it says nothing.
	CHECK(NameOf({"sha256_block_data_order@libcrypto.so.3", "@libssl.so.3", "@", "aeProcessEvents",
		      "aeMain", "main"}) == "module/libssl.so.3");
	// Debian's libssl has no name around the signature of a handshake.
	CHECK(NameOf({"BN_mod_exp_mont_consttime@libcrypto.so.3", "EVP_DigestSignFinal@libcrypto.so.3",
		      "@libssl.so.3", "@", "aeProcessEvents", "aeMain", "main"}) == "tls-handshake");
	CHECK(NameOf({"BN_mod_exp_mont_consttime@libcrypto.so.3"}) == "tls-handshake");
	CHECK(NameOf({"BN_rand", "main"}) == "function/BN_rand"); // not OpenSSL's
	CHECK(NameOf({"malloc@libc.so.6", "CRYPTO_malloc@libcrypto.so.3", "SSL_new@libssl.so.3", "@",
		      "aeProcessEvents", "aeMain"}) == "module/libssl.so.3");
	CHECK(NameOf({"@libcrypto.so.3", "SSL_accept@libssl.so.3", "tlsHandleEvent", "aeMain"}) ==
	      "tls-handshake");
	CHECK(NameOf({"@libcrypto.so.3", "SSL_write@libssl.so.3", "@", "_writeToClient", "writeToClient"}) ==
	      "answer");
	CHECK(NameOf({"LZ4_compress_fast@liblz4.so.1"}) == "compress");
	CHECK(InCommand({"lzf_compress", "rpushCommand"}) == "command/RPUSH");
	CHECK(NameOf({"malloc@libjemalloc.so.2", "@", "aeProcessEvents", "main"}) == "allocate");
	CHECK(NameOf({"malloc@libjemalloc.so.2", "initServer", "main"}) == "function/initServer");
	CHECK(NameOf({"search@redisearch.so", "RedisModuleCommandDispatcher", "call", "processCommand"}) ==
	      "module/redisearch.so");
	CHECK(NameOf({"gc@redisearch.so", "moduleTimerHandler", "aeProcessEvents", "aeMain"}) ==
	      "module/redisearch.so");
}

TEST_CASE("suffixes that compilers add to names are removed")
{
	CHECK(InCommand({"_Z11keysCommandP6client"}) == "command/KEYS");
	CHECK(NameOf({"_Z17activeExpireCyclei.part.0", "main"}) == "expire");
	CHECK(NameOf({"_ZN3fooC2Ev", "main"}) == "function/_ZN3fooC2Ev");
	CHECK(NameOf({"dictRehash.isra.0"}) == "rehash");
	CHECK(NameOf({"_Z99999999999999999999999999999999x"}).find("function/") == 0);
}

TEST_CASE("memcached's functions")
{
	CHECK(NameOf({"assoc_find", "process_get_command", "process_command_ascii", "drive_machine",
		      "event_handler"}) == "command/GET, GETS, GAT or GATS");
	CHECK(NameOf({"process_mget_command"}) == "command/MG");
	CHECK(NameOf({"do_item_unlink", "lru_pull_tail", "do_item_alloc"}) == "evict");
	CHECK(NameOf({"slab_rebalance_move", "slab_rebalance_thread"}) == "defrag");
	CHECK(NameOf({"assoc_maintenance_thread"}) == "rehash");
	CHECK(NameOf({"complete_nread_ascii", "drive_machine", "worker_libevent"}) ==
	      "function/complete_nread_ascii");
}

TEST_CASE("the parts of an event loop have separate names")
{
	CHECK(NameOf({"_sdsMakeRoomFor", "readQueryFromClient", "@", "@", "aeMain", "main"}) == "read");
	CHECK(NameOf({"processInlineBuffer", "processInputBuffer", "readQueryFromClient", "aeMain"}) ==
	      "parse");
	CHECK(NameOf({"ACLCheckAllUserCommandPerm", "processCommand", "processInputBuffer", "aeMain"}) ==
	      "dispatch");
	CHECK(NameOf({"raxGenericInsert", "linkClient", "createClient", "@", "acceptUnixHandler", "@",
		      "aeMain"}) == "accept");
	CHECK(NameOf({"unwatchAllKeys", "freeClient", "@", "aeMain", "main"}) == "free-client");
	CHECK(NameOf({"listDelNode", "freeClientsInAsyncFreeQueue", "beforeSleep", "aeMain"}) ==
	      "free-client");
	CHECK(InCommand({"freeClient", "clientKillCommand"}) == "free-client");
	CHECK(NameOf({"clientsCronResizeQueryBuffer"}) == "cron"); // also without the callers
	CHECK(NameOf({"dictNext", "clusterCron", "serverCron", "aeMain"}) == "cluster");
	CHECK(NameOf({"clusterProcessPacket", "clusterReadHandler", "aeMain"}) == "cluster");
	CHECK(NameOf({"replicationFeedSlaves", "propagateNow", "aeMain"}) == "replication");
	CHECK(InCommand({"memmove@libc.so.6", "_addReplyToBufferOrList", "addReplyPubsubMessage",
			 "pubsubPublishMessageInternal", "publishCommand"}) == "command/PUBLISH");
	CHECK(NameOf({"_addReplyToBufferOrList"}) == "answer");
	CHECK(NameOf({"conn_close", "drive_machine", "event_handler"}) == "free-client");
	CHECK(NameOf({"__libc_start_call_main@libc.so.6", "__libc_start_main_alias_2@libc.so.6"}) ==
	      "module/libc.so.6");
}

namespace
{

// The stack of a sample of Debian's Redis 7.0.15 on Linux 6.18 while it answers.
Stack Answering(std::vector<std::string> kernel)
{
	Stack stack =
	    StackOf({"write@libc.so.6", "@", "_writeToClient", "writeToClient",
		     "handleClientsWithPendingWrites", "beforeSleep", "@", "aeMain", "main",
		     "__libc_start_call_main@libc.so.6", "__libc_start_main_alias_2@libc.so.6", "_start"});
	stack.kernel = std::move(kernel);
	return stack;
}

std::string InCall(const char *call, ft_sample_file file, std::vector<std::string> functions = {})
{
	return ActivityOf(StackOf(functions), {true, call, static_cast<uint8_t>(file)}).name;
}

} // namespace

TEST_CASE("the kernel's side of a sample is named by what it does for the server")
{
	Activity send = ActivityOf(
	    Answering({"skb_set_owner_w", "sock_alloc_send_pskb", "unix_stream_sendmsg", "sock_write_iter",
		       "vfs_write", "ksys_write", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"}),
	    {true, "write", FT_SAMPLE_FILE_SOCKET});
	CHECK(send.name == "kernel/send");
	CHECK(send.in_kernel);
	CHECK(send.where == "unix_stream_sendmsg < _writeToClient < writeToClient");
	// Above the sockets, or in an older recording, only the available frames can be used.
	CHECK(
	    ActivityOf(Answering({"fdget_pos", "ksys_write"}), {true, "write", FT_SAMPLE_FILE_SOCKET}).name ==
	    "kernel/send");
	CHECK(ActivityOf(Answering({"tcp_sendmsg_locked", "tcp_sendmsg", "sock_write_iter"}), {true, "", 0})
		  .name == "kernel/send");
	CHECK(ActivityOf(Answering({}), {true, "", 0}).name == "answer");
	CHECK(ActivityOf(Answering({})).name == "answer");
	CHECK(!ActivityOf(Answering({})).in_kernel);

	// A sample of a short iteration has libc's function and the call.
	Activity leaf = ActivityOf(StackOf({"write@libc.so.6"}), {true, "write", FT_SAMPLE_FILE_SOCKET});
	CHECK(leaf.name == "kernel/send");
	CHECK(leaf.where == "write()");
	CHECK(ActivityOf(StackOf({"send@libc.so.6"}), {true, "sendto", FT_SAMPLE_FILE_SOCKET}).where ==
	      "sendto() < send");
}

TEST_CASE("a system call is named by the kind of its file")
{
	CHECK(InCall("write", FT_SAMPLE_FILE_SOCKET) == "kernel/send");
	CHECK(InCall("write", FT_SAMPLE_FILE_DISK) == "kernel/file-write");
	CHECK(InCall("write", FT_SAMPLE_FILE_OTHER) == "kernel/pipe");
	CHECK(InCall("write", FT_SAMPLE_FILE_UNKNOWN) == "kernel/write");
	CHECK(InCall("sendmsg", FT_SAMPLE_FILE_UNKNOWN) == "kernel/send");
	CHECK(InCall("read", FT_SAMPLE_FILE_SOCKET) == "kernel/receive");
	CHECK(InCall("read", FT_SAMPLE_FILE_DISK) == "kernel/file-read");
	CHECK(InCall("epoll_wait", FT_SAMPLE_FILE_OTHER) == "kernel/poll");
	CHECK(InCall("accept4", FT_SAMPLE_FILE_SOCKET) == "kernel/accept");
	CHECK(InCall("close", FT_SAMPLE_FILE_UNKNOWN) == "kernel/close");
	CHECK(InCall("munmap", FT_SAMPLE_FILE_UNKNOWN) == "kernel/memory");
	CHECK(InCall("openat", FT_SAMPLE_FILE_UNKNOWN) == "kernel/file-meta");
	CHECK(InCall("futex", FT_SAMPLE_FILE_UNKNOWN) == "kernel/futex");
	CHECK(InCall("sched_yield", FT_SAMPLE_FILE_UNKNOWN) == "kernel/sched_yield");
	CHECK(InCall("", FT_SAMPLE_FILE_UNKNOWN) == "unknown");
	CHECK(InCall("", FT_SAMPLE_FILE_UNKNOWN, {"dictFind"}) == "function/dictFind");
	CHECK(InCall("sendmsg", FT_SAMPLE_FILE_SOCKET, {"sendmsg@libc.so.6", "@memcached"}) == "kernel/send");
}

TEST_CASE("kernel work that the server requests for one purpose has that purpose's name")
{
	CHECK(InCall("write", FT_SAMPLE_FILE_DISK, {"write@libc.so.6", "aofWrite", "flushAppendOnlyFile"}) ==
	      "aof-flush");
	CHECK(InCall("madvise", FT_SAMPLE_FILE_UNKNOWN,
		     {"madvise@libc.so.6", "@libjemalloc.so.2", "quicklistRelease", "delCommand", "call"}) ==
	      "command/DEL");
	CHECK(InCall("madvise", FT_SAMPLE_FILE_UNKNOWN,
		     {"madvise@libc.so.6", "@libjemalloc.so.2", "freeClient", "@", "aeMain"}) ==
	      "free-client");
	CHECK(InCall("epoll_ctl", FT_SAMPLE_FILE_OTHER,
		     {"epoll_ctl@libc.so.6", "aeCreateFileEvent", "createClient", "acceptUnixHandler"}) ==
	      "accept");
	CHECK(InCall("accept4", FT_SAMPLE_FILE_SOCKET,
		     {"accept4@libc.so.6", "anetUnixAccept", "acceptUnixHandler"}) == "kernel/accept");
	CHECK(InCall("close", FT_SAMPLE_FILE_UNKNOWN, {"close@libc.so.6", "unlinkClient", "freeClient"}) ==
	      "kernel/close");
	CHECK(InCall("write", FT_SAMPLE_FILE_SOCKET, {"write@libc.so.6", "clusterWriteHandler", "aeMain"}) ==
	      "cluster");
}

TEST_CASE("unknown code is named by its module")
{
	CHECK(NameOf({"clientsCron", "serverCron", "aeProcessEvents", "aeMain", "main"}) == "cron");
	CHECK(NameOf({"aeProcessEvents", "aeMain", "main"}) == "event-loop");
	CHECK(NameOf({"epoll_wait@libc.so.6"}) == "event-loop");
	CHECK(NameOf({"memcpy@libc.so.6"}) == "module/libc.so.6");
	CHECK(NameOf({"write@libc.so.6"}) ==
	      "system-call"); // in user mode, and in the kernel for an unknown caller
	CHECK(NameOf({"malloc@libjemalloc.so.2"}) == "allocate");
	CHECK(NameOf({"@libjemalloc.so.2"}) == "allocate");
	CHECK(NameOf({"@", "@", "__libc_start_call_main@libc.so.6"}) == "module/redis-server");
	CHECK(ActivityOf(Stack()).name == "unknown");
	Stack kernel;
	kernel.program = "memcached";
	kernel.frames = {{"", "memcached"}};
	kernel.kernel = {"copy_page", "handle_mm_fault"};
	CHECK(ActivityOf(kernel).where == "copy_page");
}

namespace
{

// 100 ms of own code except for a fork of 20 ms. Samples every millisecond: KEYS, 10 of expiry, 20 in the
// fork.
void Sampled(RunBuilder *b)
{
	uint32_t keys = b->Stack(StackOf({"dictNext", "keysCommand", "call", "processCommand"}));
	uint32_t other = b->Stack(StackOf({"keysCommand", "call", "processCommand"}));
	uint32_t expire = b->Stack(StackOf({"activeExpireCycle", "databasesCron", "serverCron"}));
	b->Thread(kServer, 0, 100 * ms);
	b->Frame(FT_FORK, 80 * ms, 100 * ms);
	b->Tally(FT_OWN_CODE, 0, 100 * ms, 80 * ms);
	b->Frame(FT_ITERATION, 0, 100 * ms).arg[0] = 1;
	for (uint64_t i = 100; i-- > 0;)
		b->CpuSample(i * ms, i < 10 ? expire : i % 3 ? keys : other, i < 80 ? FT_OWN_CODE : FT_FORK);
	b->CpuSample(50 * ms, keys, FT_OWN_CODE, 999); // of an unknown thread
	b->Request(0, 0, 100 * ms);
	b->Finish();
}

} // namespace

TEST_CASE("samples divide the time of own code and have a known error")
{
	RunBuilder b;
	Sampled(&b);
	CHECK(b.run.cpu_samples.size() == 100);
	Activities activities = ActivitiesOf(b.run);
	OwnCodeCount all(b.run, activities), part(b.run, activities), none(b.run, activities);
	all.Add(b.run.threads[0], 0, UINT64_MAX);
	OwnCode own = all.Result(80 * ms);
	CHECK(own.samples == 80); // those in the fork are the fork's
	REQUIRE(own.activities.size() == 2);
	CHECK(own.activities[0].name == "command/KEYS");
	CHECK(own.activities[0].samples == 70);
	CHECK(own.activities[0].share == Approx(0.875));
	CHECK(own.activities[0].time_ns == 70 * ms);
	CHECK(own.activities[0].error() == Approx(1 / std::sqrt(70.0)));
	CHECK(own.activities[0].stack == "keysCommand < call < processCommand");
	CHECK(own.activities[1].name == "expire");

	part.Add(b.run.threads[0], kBase + 5 * ms, kBase + 15 * ms); // from the first, before the last
	own = part.Result(10 * ms);
	CHECK(own.samples == 10);
	CHECK(own.activities[0].samples == 5);
	CHECK(none.Result(80 * ms).activities.empty());
}

TEST_CASE("a sample without callers is named by the nearest stack with its function")
{
	RunBuilder b;
	b.Thread(kServer, 0, 5000 * ms);
	b.Thread(999, 0, 5000 * ms);
	const uint32_t leaf = b.StackIn("dictGetSomeKeys"), nameless = b.StackIn(""),
		       evict =
			   b.Stack(StackOf({"dictGetSomeKeys", "evictionPoolPopulate", "performEvictions"})),
		       random = b.Stack(StackOf({"dictGetSomeKeys", "randomkeyCommand", "call"})),
		       other = b.Stack(StackOf({"", "keysCommand", "call"}));
	b.CpuSample(100 * ms, leaf);
	b.CpuSample(200 * ms, evict);
	b.CpuSample(300 * ms, leaf);
	b.CpuSample(450 * ms, leaf);
	b.CpuSample(500 * ms, random);
	b.CpuSample(600 * ms, leaf, FT_OWN_CODE, 999); // of another thread
	b.CpuSample(600 * ms, nameless);
	b.CpuSample(610 * ms, other);
	b.CpuSample(700 * ms, nameless); // too far away for a function without a name
	b.CpuSample(2000 * ms, leaf);	 // too far away
	b.Finish();
	const Activities activities = ActivitiesOf(b.run);
	std::string names;
	for (size_t i = 0; i < b.run.cpu_samples.size(); i++)
		names += activities.Of(i).name + " ";
	CHECK(activities.AreOf(b.run));
	CHECK(names == "evict evict evict command/RANDOMKEY command/RANDOMKEY command/KEYS command/KEYS "
		       "module/redis-server "
		       "function/dictGetSomeKeys function/dictGetSomeKeys ");
}

TEST_CASE("activities are those of the samples that were loaded then")
{
	RunBuilder b;
	Sampled(&b);
	const Activities activities = ActivitiesOf(b.run);
	CHECK(activities.AreOf(b.run));
	b.run.loaded_from_ns++; // a stretch that begins later
	CHECK_FALSE(activities.AreOf(b.run));
	b.run.loaded_from_ns--;
	b.run.loaded_to_ns--;
	CHECK_FALSE(activities.AreOf(b.run));
	b.run.loaded_to_ns++;
	b.run.cpu_samples.Truncate(99);
	CHECK_FALSE(activities.AreOf(b.run));
}

TEST_CASE("an episode reports what the server ran")
{
	RunBuilder b;
	Sampled(&b);
	std::vector<Timeline> timelines;
	timelines.push_back(b.Timeline());
	Blame blame = BlameRun(b.run, timelines, {1, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);
	REQUIRE(episodes.size() == 1);
	FindEvidence(b.run, timelines, blame, ActivitiesOf(b.run), 4, 1, &episodes);
	REQUIRE(!episodes[0].evidence.empty());
	CHECK(episodes[0].evidence[0] ==
	      "the server ran its own code for 80.0 ms in one event-loop iteration of 100 ms with 1 ready "
	      "connection; the server ran KEYS for 70.0 ms of that time (70 of 80 samples: keysCommand < "
	      "call < "
	      "processCommand)");
	CHECK(episodes[0].own_code.samples == 80);
}

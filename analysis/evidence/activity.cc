// SPDX-License-Identifier: MIT
// Maps function names to activities. The innermost known function decides: a dictRehash inside a SET is
// rehashing, because the rehashing took the time. One exception: rehashing inside the removal of keys counts
// as the removal (expire, evict), as in Redis' own measurement of it.
#include "activity.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "analysis/timeline/spins.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kWhereFrames = 3; // functions in Activity::where
constexpr size_t kNone = SIZE_MAX;

struct Rule {
	const char *begin; // of the function's name
	bool whole;	   // the function has exactly this name
	const char *activity;
};

static_assert(std::size(kHelperWaits) == 6, "each has a rule below");

// Functions of Redis, Valkey, KeyDB and memcached. The first match counts.
const Rule kRules[] = {
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
const Rule kLastRules[] = {
    {"rdbLoad", false, "rdb-load"},
    {"rdbSave", false, "rdb-save"},
};

// Functions that many activities call. They count only in stacks without callers.
const Rule kLeafRules[] = {
    {"lookupCommand", false, "dispatch"}, {"addReply", false, "answer"},  {"_addReply", false, "answer"},
    {"sdssplit", false, "parse"},	  {"zmalloc", false, "allocate"}, {"zcalloc", false, "allocate"},
    {"zrealloc", false, "allocate"},	  {"zfree", false, "allocate"},
};

// Loading an AOF runs commands. The time belongs to the loading.
const std::set<std::string> kAofLoad = {"loadAppendOnlyFile", "loadAppendOnlyFiles",
					"loadSingleAppendOnlyFile"};

// libc's names. A thread sampled there was about to wait, or had just waited.
const std::set<std::string> kWaits = {"epoll_wait", "epoll_pwait", "epoll_pwait2"};

// libc's functions that only make a system call. A user-mode sample there is before or after the call.
const std::set<std::string> kCalls = {
    "read",	  "write",   "readv",	 "writev",  "send",	   "sendto",	  "sendmsg",  "recv",
    "recvfrom",	  "recvmsg", "accept",	 "accept4", "close",	   "epoll_ctl",	  "open",     "open64",
    "openat",	  "pread64", "pwrite64", "mmap",    "mmap64",	   "munmap",	  "madvise",  "mprotect",
    "setsockopt", "fcntl",   "fcntl64",	 "ioctl",   "getpeername", "getsockname", "shutdown", "syscall"};

// Memory allocation by any caller: functions of libc. Allocator libraries are matched by file name.
const std::set<std::string> kAllocators = {"malloc",   "free",		"calloc",    "realloc",
					   "cfree",    "_int_malloc",	"_int_free", "malloc_usable_size",
					   "memalign", "posix_memalign"};

// OpenSSL's handshake functions, at any place in a stack.
const std::set<std::string> kHandshakes = {"SSL_accept", "SSL_do_handshake", "ossl_statem_accept",
					   "state_machine"};

// Outer frames of every stack. They do not identify an activity.
const std::set<std::string> kFrames = {"_start",
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

// Named like a command's function, but they handle every command.
const std::set<std::string> kNoCommands = {
    "process_command", "process_command_ascii", "processCommand", "lookupCommand",	   "rejectCommand",
    "afterCommand",    "__redisAppendCommand",	"redisCommand",	  "luaRedisGenericCommand"};

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
template <size_t N> const char *RuleFor(const std::string &function, const Rule (&rules)[N])
{
	for (const Rule &rule : rules)
		if (rule.whole ? function == rule.begin : Begins(function, rule.begin))
			return rule.activity;
	return nullptr;
}

// A command's name from its function, upper case: "configSet" is "CONFIG SET", "delGeneric" "DEL".
std::string CommandWords(std::string text)
{
	static const std::map<std::string, std::string> special = {
	    {"evalSha", "EVALSHA"},	     {"evalRo", "EVAL_RO"},
	    {"evalShaRo", "EVALSHA_RO"},     {"fcallro", "FCALL_RO"},
	    {"sortro", "SORT_RO"},	     {"bitfieldro", "BITFIELD_RO"},
	    {"georadiusro", "GEORADIUS_RO"}, {"georadiusbymemberro", "GEORADIUSBYMEMBER_RO"},
	};
	for (const char *generic : {"Generic", "generic"})
		if (size_t at = text.find(generic); at != std::string::npos)
			text.erase(at, 7);
	if (auto found = special.find(text); found != special.end())
		return found->second;
	std::string words;
	for (char c : text) {
		if (isupper(static_cast<unsigned char>(c)) && !words.empty())
			words += ' ';
		words += static_cast<char>(toupper(static_cast<unsigned char>(c)));
	}
	return words;
}

// The command a function implements, as users know it: "KEYS" of keysCommand, "GET" of memcached's
// process_get_command; "" if it implements none.
std::string CommandOf(const std::string &function)
{
	if (kNoCommands.count(function))
		return "";
	if (Begins(function, "process_") && Ends(function, "_command"))
		return CommandWords(function.substr(8, function.size() - 16));
	if (Ends(function, "Command"))
		return CommandWords(function.substr(0, function.size() - 7));
	return function == "sortCommandGeneric" ? "SORT" : "";
}

bool IsScript(const std::string &command)
{
	return Begins(command, "EVAL") || Begins(command, "FCALL");
}

bool IsLua(const std::string &function)
{
	return Begins(function, "lua_") ||
	       (function.size() > 5 && Begins(function, "lua") &&
		isupper(static_cast<unsigned char>(function[3])) && function[4] == '_');
}

struct Function {
	std::string name;
	bool own; // of the program, not of a library
};

struct Command {
	size_t at; // its function's index in the stack
	std::string name;
};

// The running commands, innermost first. Inside each `call`, the outermost function of a command counts,
// because its helpers may be named like commands too. Functions of processCommand before `call` are no
// command. memcached has no `call`, and a truncated stack may lack it.
std::vector<Command> CommandsIn(const std::vector<Function> &functions)
{
	std::vector<Command> commands;
	Command candidate = {kNone, ""};
	for (size_t i = 0; i < functions.size(); i++) {
		const Function &f = functions[i];
		if (f.name == "call" && candidate.at != kNone)
			commands.push_back(candidate);
		if (f.name == "call" || f.name == "processCommand")
			candidate.at = kNone;
		else if (std::string name = f.own ? CommandOf(f.name) : ""; !name.empty())
			candidate = {i, name};
	}
	if (candidate.at != kNone && commands.empty())
		commands.push_back(candidate);
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

// The activity of a stack whose innermost frame is in a library and that matches no rule.
std::string LibraryActivity(const StackFrame &frame, const std::string &function)
{
	if (kWaits.count(function))
		return "event-loop";
	if (kCalls.count(function))
		return "system-call";
	if (kAllocators.count(function) || Begins(frame.module, "libjemalloc") ||
	    Begins(frame.module, "libtcmalloc") || Begins(frame.module, "libmimalloc"))
		return "allocate";
	return "module/" + frame.module;
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

// The activity by the user-mode part of a stack.
Activity UserActivityOf(const Stack &stack)
{
	std::vector<Function> functions;
	for (const StackFrame &frame : stack.frames)
		functions.push_back({PlainName(frame.function), frame.module == stack.program});
	auto at_rule = [&](const auto &rules) {
		return Innermost(functions, [&](const std::string &f) { return RuleFor(f, rules); });
	};

	if (size_t at = Innermost(functions, [](const std::string &f) { return kAofLoad.count(f) > 0; });
	    at != kNone)
		return {"aof-load", Where(functions, at)};
	for (size_t i = 0; i < functions.size(); i++)
		if (!functions[i].own && kHandshakes.count(functions[i].name))
			return {"tls-handshake", Where(functions, i)};
	std::vector<Command> commands = CommandsIn(functions);
	size_t command = commands.empty() ? kNone : commands[0].at, rule = at_rule(kRules);
	if (rule < command) {
		if (size_t at = RemovalAround(functions, rule, command); at != kNone)
			rule = at;
		return {RuleFor(functions[rule].name, kRules), Where(functions, rule)};
	}
	if (command != kNone) {
		auto script = std::find_if(commands.begin(), commands.end(),
					   [](const Command &c) { return IsScript(c.name); });
		if (script == commands.end())
			return {"command/" + commands[0].name, Where(functions, command)};
		// Commands that a script calls count as the script.
		size_t lua = Innermost(functions, IsLua);
		bool in_lua = lua < command || command == script->at;
		return {"command/" + script->name, Where(functions, std::min(lua, command)), in_lua};
	}
	if (size_t at = at_rule(kLastRules); at != kNone)
		return {RuleFor(functions[at].name, kLastRules), Where(functions, at)};
	if (functions.size() == 1 && at_rule(kLeafRules) == 0)
		return {RuleFor(functions[0].name, kLeafRules), functions[0].name};

	for (size_t i = functions.size(); i-- > 0;)
		if (functions[i].own && !functions[i].name.empty() && !kFrames.count(functions[i].name))
			return {"function/" + functions[i].name, Where(functions, 0)};
	if (Innermost(functions, [](const std::string &) { return true; }) != kNone)
		return {"event-loop", Where(functions, 0)};
	std::string where = functions.empty() ? "" : functions[0].name;
	if (where.empty() && !stack.kernel.empty())
		where = stack.kernel[0];
	if (stack.frames.empty() || stack.frames[0].module.empty())
		return {"unknown", where};
	return {LibraryActivity(stack.frames[0], functions[0].name), where};
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

const Activity &Activities::Of(size_t sample) const
{
	return kinds[of_sample[sample]];
}

Activities ActivitiesOf(const Run &run)
{
	// Samples with the same stack, mode, system call and file share one entry.
	std::map<std::tuple<uint32_t, bool, uint16_t, uint8_t>, uint32_t> known;
	Activities activities;
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
	return activities;
}

} // namespace forktail::analysis

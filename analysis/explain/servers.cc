// SPDX-License-Identifier: MIT
// What the explanation says of servers: their commands, their threads, which thread served, and how processes
// ended.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>

#include "analysis/explain.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "common/json.h"
#include "common/statistics.h"

namespace forktail::analysis
{

// Counters only grow while a process runs, so a smaller one was reset meanwhile (CONFIG RESETSTAT), and its
// command is left out.

namespace
{

constexpr uint64_t kUs = 1000;

using ByName = std::map<std::string, common::Json>;

// The last reading of this kind, and the first one of the same process.
struct Readings {
	const ServerReport *first = nullptr, *last = nullptr;

	bool Two() const { return first && first->t_ns < last->t_ns; }
};

std::string RunId(const ServerReport &report)
{
	return common::Text(common::ParseJson(report.text), "run_id");
}

Readings FindReadings(const Run &run, const char *kind)
{
	Readings found;
	for (const ServerReport &r : run.reports)
		if (r.kind == kind && (!found.last || r.t_ns > found.last->t_ns))
			found.last = &r;
	if (!found.last)
		return found;
	const std::string process = RunId(*found.last);
	for (const ServerReport &r : run.reports)
		if (r.kind == kind && (!found.first || r.t_ns < found.first->t_ns) && RunId(r) == process)
			found.first = &r;
	return found;
}

ByName CommandsOf(const ServerReport &report)
{
	ByName all;
	const common::Json j = common::ParseJson(report.text);
	if (const common::Json *commands = common::Member(j, "commands"); commands && commands->is_array())
		for (const common::Json &command : *commands)
			all[common::Text(command, "name")] = command;
	return all;
}

// The entry of a reading; one without members for a command that was not called before it.
const common::Json &At(const ByName &commands, const std::string &name)
{
	static const common::Json none = common::Json::object();
	const auto found = commands.find(name);
	return found == commands.end() ? none : found->second;
}

// Upper bounds in microseconds, with the number of calls up to each.
std::map<uint64_t, uint64_t> SlotsOf(const common::Json &command)
{
	std::map<uint64_t, uint64_t> slots;
	const common::Json *list = common::Member(command, "slots");
	if (!list || !list->is_array())
		return slots;
	for (const common::Json &slot : *list)
		if (slot.is_array() && slot.size() == 2 && slot[0].is_number_unsigned() &&
		    slot[1].is_number_unsigned())
			slots[slot[0].get<uint64_t>()] = slot[1].get<uint64_t>();
	return slots;
}

// The bound of the slot that has the percentile of the calls between two readings; 0: none.
uint64_t PercentileNs(const common::Json &before, const common::Json &after, double percentile)
{
	const uint64_t first = common::Whole(before, "calls"), last = common::Whole(after, "calls");
	if (last <= first)
		return 0;
	const uint64_t rank = common::Rank(last - first, percentile);
	const std::map<uint64_t, uint64_t> earlier = SlotsOf(before);
	for (const auto &[us, calls] : SlotsOf(after)) {
		// Slots without calls are left out: the one below has the same number.
		const auto above = earlier.upper_bound(us);
		const uint64_t then = above == earlier.begin() ? 0 : std::prev(above)->second;
		if (calls >= then + rank)
			return us * kUs;
	}
	return 0;
}

// The requests of all operations with this command.
std::optional<OperationCount> LoggedOf(const Run &run, const OperationCounts &by_op, const std::string &name)
{
	std::optional<OperationCount> sum;
	for (size_t op = 0; op < run.op_commands.size() && op < by_op.size(); op++) {
		const bool same =
		    std::ranges::equal(run.op_commands[op], name, [](unsigned char a, unsigned char b) {
			    return std::tolower(a) == std::tolower(b);
		    });
		if (!same)
			continue;
		sum = sum.value_or(OperationCount());
		sum->Add(by_op[op]);
	}
	return sum;
}

} // namespace

TimeSpan CommandCountsSpan(const Run &run)
{
	const Readings readings = FindReadings(run, "command-stats");
	return readings.Two() ? TimeSpan{readings.first->t_ns, readings.last->t_ns} : TimeSpan{0, 0};
}

std::optional<ServerCommands> ServerCommandsOf(const Run &run, const OperationCounts &by_op)
{
	const Readings readings = FindReadings(run, "command-stats");
	if (!readings.Two())
		return {};
	const Readings histograms = FindReadings(run, "command-latency");
	const bool partial = std::ranges::any_of(run.loads, &Load::only_slow);
	const ByName before = CommandsOf(*readings.first), after = CommandsOf(*readings.last);
	ByName latency_before, latency_after;
	if (histograms.Two()) {
		latency_before = CommandsOf(*histograms.first);
		latency_after = CommandsOf(*histograms.last);
	}
	ServerCommands all = {readings.last->t_ns - readings.first->t_ns, {}};
	for (const auto &[name, now] : after) {
		const common::Json &then = At(before, name);
		bool reset = false;
		auto growth = [&, &now = now](const char *counter) { // clang 14 captures no part of a pair
			const uint64_t from = common::Whole(then, counter), to = common::Whole(now, counter);
			reset |= to < from;
			return to - from;
		};
		ServerCommand c = {name,
				   growth("calls"),
				   growth("rejected_calls"),
				   growth("failed_calls"),
				   growth("usec") * kUs,
				   0,
				   0,
				   {}};
		if (reset || c.calls + c.rejected == 0)
			continue;
		c.p50_ns = PercentileNs(At(latency_before, name), At(latency_after, name), 50);
		c.p99_ns = PercentileNs(At(latency_before, name), At(latency_after, name), 99);
		if (!partial)
			c.logged = LoggedOf(run, by_op, name);
		all.commands.push_back(std::move(c));
	}
	std::ranges::stable_sort(all.commands, std::greater(), &ServerCommand::time_ns);
	return all;
}

// The period is that in which the loop's time grew.

std::optional<ServerCount> ServerCountOf(const Run &run)
{
	constexpr uint64_t us = 1000;
	const Series *loop = InfoSeries(run, "eventloop_duration_sum");
	if (!loop || loop->samples.size() < 2)
		return {};
	const TimeSpan period = {loop->samples.front().t_ns, loop->samples.back().t_ns};
	const auto cycles = InfoGrowth(run, "eventloop_cycles", period),
		   loop_us = InfoGrowth(run, "eventloop_duration_sum", period),
		   command_us = InfoGrowth(run, "eventloop_duration_cmd_sum", period);
	if (!cycles || !loop_us || !command_us || period.since_ns == period.until_ns)
		return {};
	return ServerCount{period.until_ns - period.since_ns, *cycles, *loop_us * us, *command_us * us};
}

// Threads are numbered: the server has as many as it reports, one after the other.

namespace
{

constexpr int kMostThreads = 256; // more than any server allows

std::optional<uint64_t> Most(const Run &run, const std::string &name)
{
	const Series *s = InfoSeries(run, name);
	if (!s)
		return {};
	return WholeInfo(std::ranges::max(s->samples, {}, &Sample::value).value);
}

// The longest-lived thread of the process with this name; "": its main thread.
int ThreadNamed(const Run &run, uint32_t process, const std::string &comm)
{
	int found = -1;
	for (size_t i = 0; process && i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		auto length = [](const Thread &of) { return of.end_ns - of.start_ns; };
		if (t.tgid == process && (comm.empty() ? t.tid == process : t.comm == comm) &&
		    (found < 0 || length(t) > length(run.threads[static_cast<size_t>(found)])))
			found = static_cast<int>(i);
	}
	return found;
}

// From the first to the last answer to INFO while the main thread was recorded (-1: at any time). The main
// thread's CPU time changes with every answer, because it answers.
TimeSpan PeriodOf(const Run &run, int main_thread)
{
	TimeSpan period = {UINT64_MAX, 0};
	const Thread *t = main_thread < 0 ? nullptr : &run.threads[static_cast<size_t>(main_thread)];
	for (const char *name : {"used_cpu_sys_main_thread", "used_cpu_user_main_thread"})
		if (const Series *s = InfoSeries(run, name))
			for (const Sample &sample : s->samples) {
				if (t && (sample.t_ns < t->start_ns || sample.t_ns > t->end_ns))
					continue;
				period.since_ns = std::min(period.since_ns, sample.t_ns);
				period.until_ns = std::max(period.until_ns, sample.t_ns);
			}
	return period;
}

void AddConnections(const Run &run, int number, const TimeSpan &period, ServerThread *to)
{
	const std::string prefix = "io_thread_" + std::to_string(number) + ".";
	to->connections = Most(run, prefix + "clients");
	to->reads = InfoGrowth(run, prefix + "reads", period);
	to->writes = InfoGrowth(run, prefix + "writes", period);
}

} // namespace

ServerThreads ServerThreadsOf(const Run &run, uint32_t process)
{
	constexpr double second = 1e9;
	ServerThread main = {"main", {}, {}, {}, {}, {}, ThreadNamed(run, process, ""), 0};
	ServerThreads all = {PeriodOf(run, main.thread), {}};
	const TimeSpan &period = all.period;
	if (period.since_ns >= period.until_ns)
		return all;
	const auto sys = InfoGrowth(run, "used_cpu_sys_main_thread", period, second),
		   user = InfoGrowth(run, "used_cpu_user_main_thread", period, second);
	if (!sys || !user)
		return all;
	main.cpu_ns = *sys + *user;
	main.active_ns = InfoGrowth(run, "used_active_time_main_thread", period, second);
	AddConnections(run, 0, period, &main);
	all.threads.push_back(std::move(main));
	for (int n = 1; n < kMostThreads; n++) {
		const std::string name = "io_thd_" + std::to_string(n);
		ServerThread one = {name, {}, {}, {}, {}, {}, ThreadNamed(run, process, name), 0};
		one.active_ns =
		    InfoGrowth(run, "used_active_time_io_thread_" + std::to_string(n), period, second);
		AddConnections(run, n, period, &one);
		if (!one.active_ns && !one.connections)
			break;
		all.threads.push_back(std::move(one));
	}
	return all;
}

void AddCpuTimes(const CpuTimes &cpu, ServerThreads *all)
{
	for (ServerThread &t : all->threads)
		if (t.thread >= 0)
			t.kernel_cpu_ns = cpu.Of(static_cast<size_t>(t.thread));
}

// Maps the servers of a request log to processes, and connections to serving threads. A server with one
// thread needs no map of connections. With several threads, the connection of a request decides.

namespace
{

// MakeTimelines makes its timeline.
void AddServing(int thread, Reading *r, Explanation *e)
{
	e->serving.push_back(thread);
	r->timelines.emplace_back();
	if (thread >= 0)
		r->timelines.back().thread = static_cast<uint32_t>(thread);
}

// The hop of a thread. Adds one if it has none.
uint16_t HopOfThread(uint32_t thread, Reading *r, Explanation *e)
{
	for (size_t i = 0; i < r->timelines.size(); i++)
		if (r->timelines[i].thread == thread)
			return static_cast<uint16_t>(i);
	AddServing(static_cast<int>(thread), r, e);
	return static_cast<uint16_t>(r->timelines.size() - 1);
}

// The servers that received requests.
std::vector<bool> UsedServers(const Run &run, const LogFacts &facts)
{
	std::vector<bool> used(std::max<size_t>(run.servers.size(), 1), run.servers.size() <= 1);
	for (size_t c = 0; c < facts.first_due_of.size(); c++)
		if (run.connections[c].server < used.size() && facts.first_due_of[c] != UINT64_MAX)
			used[run.connections[c].server] = true;
	return used;
}

// The servers behind proxies. Time at servers that were not recorded counts as network.
void FindServersBehind(const LogFacts &facts, const Accounts &accounts, Reading *r, Explanation *e)
{
	bool proxy =
	    std::any_of(e->serving.begin(), e->serving.end(), [](int thread) { return thread >= 0; });
	std::string missing;
	size_t count = 0;
	for (const Behind &instance : e->run.behind) {
		std::string why;
		AddServing(InstanceThread(e->run, accounts, instance, &why), r, e);
		if (e->serving.back() >= 0)
			continue;
		missing += (count++ ? "; " : "") + why;
	}
	if (!proxy)
		return; // a note already says that nothing can be explained
	if (count)
		e->notes.push_back(
		    "time at " +
		    common::Plural(count, "server behind the proxy", "servers behind the proxy") +
		    (SeenInKernel(e->run) ? " is unattributed: " : " counts as network: ") + missing);
	if (uint64_t unknown = facts.behind ? facts.behind_unknown : 0)
		e->notes.push_back("the server behind the proxy is unknown for " +
				   common::Plural(unknown, "request", "requests") +
				   (ClientsOfServers(e->run).empty() ? ": time there counts as network"
								     : ": time there is unattributed"));
}

// The number of connections that each thread served, even for a short time.
using Shares = std::map<uint32_t, size_t>;
std::vector<Shares> SharesOf(const Run &run, const ServedConnections &served)
{
	std::vector<Shares> shares(std::max<size_t>(run.servers.size(), 1));
	for (size_t c = 0; c < served.size(); c++)
		if (size_t server = run.connections[c].server; server < shares.size())
			for (const Served &s : served[c])
				shares[server][s.thread]++;
	return shares;
}

uint32_t MostShared(const Shares &shares)
{
	return std::max_element(shares.begin(), shares.end(),
				[](const auto &a, const auto &b) { return a.second < b.second; })
	    ->first;
}

// The main thread behind an I/O thread that reads connections and passes requests on (Redis 8's io-threads),
// or -1.
int MainThreadOf(const Run &run, uint32_t helper)
{
	const Thread &t = run.threads[helper];
	if (t.tid == t.tgid || t.comm.rfind("io_thd_", 0) != 0)
		return -1;
	for (size_t i = 0; i < run.threads.size(); i++)
		if (run.threads[i].tid == t.tgid && run.threads[i].start_ns <= t.end_ns &&
		    t.start_ns <= run.threads[i].end_ns)
			return static_cast<int>(i);
	return -1;
}

// Further threads of servers, and the serving threads of each connection.
Serving FindThreads(const ServedConnections &served, const std::vector<Shares> &shares, Reading *r,
		    Explanation *e)
{
	Serving by;
	std::vector<bool> several(shares.size());
	bool any = false;
	for (size_t s = 0; s < shares.size(); s++) {
		several[s] = shares[s].size() > 1;
		for (const auto &[thread, count] : shares[s])
			several[s] = several[s] || MainThreadOf(e->run, thread) >= 0;
		any |= several[s];
	}
	if (!any)
		return by;
	size_t first = shares.size();
	for (size_t s = 0; s < shares.size(); s++) {
		for (const auto &[thread, count] : shares[s]) {
			uint16_t hop = HopOfThread(thread, r, e);
			if (several[s] && hop >= first &&
			    std::find(by.more.begin(), by.more.end(), hop) == by.more.end())
				by.more.push_back(hop);
			int main = MainThreadOf(e->run, thread);
			if (main < 0)
				continue;
			uint16_t to = HopOfThread(static_cast<uint32_t>(main), r, e);
			by.hands_to.resize(r->timelines.size(), kNoHop);
			by.hands_to[hop] = to;
		}
	}
	by.connections.resize(served.size());
	for (size_t c = 0; c < served.size(); c++) {
		size_t server = e->run.connections[c].server;
		if (server >= several.size() || !several[server]) {
			uint16_t hop = static_cast<uint16_t>(server < first ? server : 0);
			by.connections[c].push_back({0, UINT64_MAX, hop});
			continue;
		}
		for (const Served &s : served[c])
			by.connections[c].push_back({s.from_ns, s.to_ns, HopOfThread(s.thread, r, e)});
	}
	return by;
}

// Makes a hop for each thread that a serving thread waited for, in the order of the serving threads.
void FindAwaitedThreads(const Accounts &accounts, Reading *r)
{
	auto is_helper = [](const Thread &t) { return t.comm.rfind("io_thd_", 0) == 0; };
	if (!accounts.WaitsForLocks() && std::ranges::none_of(r->run.threads, is_helper))
		return;
	std::vector<std::vector<uint32_t>> waited_for(r->timelines.size());
	r->stretches.each([&](uint64_t, uint64_t) {
		for (size_t i = 0; i < waited_for.size(); i++)
			for (const Foreign &f : r->timelines[i].foreign)
				if (std::find(waited_for[i].begin(), waited_for[i].end(), f.thread) ==
				    waited_for[i].end())
					waited_for[i].push_back(f.thread);
	});
	for (const std::vector<uint32_t> &threads : waited_for)
		for (uint32_t thread : threads)
			if (std::ranges::find(r->timelines, thread, &Timeline::thread) == r->timelines.end())
				r->timelines.push_back(BuildTimeline(r->run, thread));
}

} // namespace

void MakeTimelines(Reading *r)
{
	ThreadTimelines threads(r->run);
	for (size_t i = 0; i < r->timelines.size(); i++) {
		Timeline &t = r->timelines[i];
		if (t.thread >= r->run.threads.size())
			continue;
		t = BuildTimeline(r->run, t.thread);
		if (i < r->resolved && !t.empty())
			ResolveOthers(&threads, &t);
	}
	for (Timeline &t : r->clients.timelines)
		t = BuildTimeline(r->run, t.thread);
}

Serving FindServers(const LogFacts &facts, const Accounts &accounts, Reading *r, Explanation *e)
{
	const ServedConnections served = FindServed(e->run);
	const std::vector<Shares> shares = SharesOf(e->run, served);
	std::vector<bool> used = UsedServers(e->run, facts);
	for (size_t s = 0; s < used.size(); s++) {
		std::string why;
		if (!used[s]) {
			AddServing(-1, r, e);
			continue;
		}
		AddServing(!shares[s].empty()
			       ? static_cast<int>(MostShared(shares[s]))
			       : ServingThread(e->run, accounts,
					       e->run.servers.empty() ? -1 : static_cast<int>(s), &why),
			   r, e);
		if (e->serving.back() < 0)
			e->notes.push_back("the time of requests" +
					   (e->run.servers.empty() ? "" : " to " + e->run.servers[s]) +
					   " cannot be explained: " + why);
	}
	FindServersBehind(facts, accounts, r, e);
	Serving by = FindThreads(served, shares, r, e);
	r->resolved = r->timelines.size();
	MakeTimelines(r);
	FindAwaitedThreads(accounts, r);
	return by;
}

// The recorder knows when a process ended and how. The log knows which requests had no answer then.

namespace
{

// The kernel closes a process' sockets about when its last thread ends: a client may see the end first.
constexpr uint64_t kClosedNs = 10'000'000;

// The server of the log that the process is, or -1.
int ServerOf(const Run &run, const ProcessEnd &end)
{
	if (end.child)
		return -1;
	for (size_t s = 0; s < std::max<size_t>(run.servers.size(), 1); s++) {
		std::string why;
		const uint32_t reported = s < run.server_pids.size() ? run.server_pids[s] : 0;
		const uint32_t pid =
		    reported ? reported
			     : ProcessOfServer(run, run.servers.empty() ? -1 : static_cast<int>(s), &why);
		if (pid == end.pid)
			return static_cast<int>(s);
	}
	return -1;
}

// A request that was never sent may have no connection: it counts for each server.
bool IsOf(const Run &run, const ServerEnd &end, size_t i)
{
	const Requests &q = run.requests;
	return q.status[i] == FT_STATUS_UNSENT ||
	       static_cast<int>(run.connections[q.connection[i]].server) == end.server;
}

// A process that took an ended one's place, as far as it was recorded.
void FindSuccessor(const Run &run, const ProcessEnd &of, ServerEnd *end)
{
	for (const Thread &t : run.threads) // by start
		if (t.flags == FT_THREAD_MAIN && t.start_ns > of.t_ns && t.comm == of.comm &&
		    !end->successor) {
			end->successor = t.tgid;
			end->began_ns = t.start_ns;
		}
}

uint64_t Unanswered(const ServerEnd &end)
{
	return end.failed + end.unsent;
}

} // namespace

std::string NameOf(const ProcessEnd &end)
{
	return end.comm + " (" + std::to_string(end.pid) + ")";
}

std::string FullCgroup(const Run &run, uint64_t t_ns)
{
	constexpr uint64_t before_ns = 10'000'000'000, after_ns = 1'000'000'000;
	std::set<std::string> full;
	for (const Series &s : run.series) {
		const auto label = s.labels.find("cgroup");
		if ((s.name != "cgroup.memory.limit_hits" && s.name != "cgroup.memory.oom_kills") ||
		    label == s.labels.end())
			continue;
		auto value = [&](uint64_t at_ns) {
			double v = 0;
			for (const Sample &sample : s.samples)
				if (sample.t_ns <= at_ns)
					v = sample.value;
			return v;
		};
		if (value(t_ns + after_ns) > value(t_ns - before_ns))
			full.insert(label->second);
	}
	return full.size() == 1 ? *full.begin() : "";
}

std::string SignalName(int signal)
{
	const char *name = sigabbrev_np(signal);
	return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::vector<ServerEnd> FindServerEnds(const Run &run, Log *log)
{
	std::vector<ServerEnd> ends(run.ended.size());
	bool any = false;
	for (size_t k = 0; k < ends.size(); k++) {
		ends[k].server = ServerOf(run, run.ended[k]);
		if (!run.ended[k].child)
			FindSuccessor(run, run.ended[k], &ends[k]);
		any |= ends[k].server >= 0;
	}
	if (!any)
		return ends;
	const Requests &q = run.requests;
	auto each = [&](auto see) {
		ForWindows(log, [&] {
			for (size_t i = q.lead; i < q.size(); i++)
				for (size_t k = 0; k < ends.size(); k++)
					if (ends[k].server >= 0 && IsOf(run, ends[k], i))
						see(i, run.ended[k].t_ns, &ends[k]);
		});
	};
	each([&](size_t i, uint64_t t_ns, ServerEnd *end) {
		if (q.sent_ns[i] > t_ns && !IsError(q.status[i]) &&
		    (!end->next_answer_ns || q.end_ns[i] < end->next_answer_ns))
			end->next_answer_ns = q.end_ns[i];
	});
	each([&](size_t i, uint64_t t_ns, ServerEnd *end) {
		if (!IsError(q.status[i]) || q.end_ns[i] + kClosedNs < t_ns ||
		    (end->next_answer_ns && q.due_ns[i] >= end->next_answer_ns))
			return;
		(q.status[i] == FT_STATUS_UNSENT ? end->unsent : end->failed)++;
	});
	return ends;
}

std::vector<Outage> OutagesOf(const Run &run, const std::vector<ServerEnd> &ends)
{
	std::vector<Outage> outages;
	for (size_t k = 0; k < ends.size(); k++)
		if (ends[k].server >= 0)
			outages.push_back({run.ended[k].t_ns,
					   ends[k].next_answer_ns ? ends[k].next_answer_ns : UINT64_MAX,
					   ends[k].server});
	return outages;
}

int OutageOf(const Explanation &e)
{
	int worst = -1;
	uint64_t most = 0;
	for (size_t k = 0; k < e.server_ends.size(); k++)
		if (const ServerEnd &end = e.server_ends[k]; end.server >= 0 && Unanswered(end) > most) {
			worst = static_cast<int>(k);
			most = Unanswered(end);
		}
	return most * 2 >= e.blame.errors ? worst : -1;
}

std::string HowText(const Run &run, const ProcessEnd &end)
{
	if (end.oom_killer) {
		const std::string cgroup = FullCgroup(run, end.t_ns);
		return ", killed by the kernel's OOM killer" + (cgroup.empty() ? "" : " in cgroup " + cgroup);
	}
	if (end.signal >= 0)
		return ", killed by " + SignalName(end.signal) + (end.core_dumped ? " (core dumped)" : "");
	return end.status >= 0 ? ", with status " + std::to_string(end.status) : "";
}

std::string OutageText(const Explanation &e)
{
	const int which = OutageOf(e);
	if (which < 0)
		return "";
	const ProcessEnd &process = e.run.ended[static_cast<size_t>(which)];
	const ServerEnd &end = e.server_ends[static_cast<size_t>(which)];
	std::string text = NameOf(process) + " exited ";
	text += process.t_ns > e.zero_ns
		    ? common::FormatDuration(process.t_ns - e.zero_ns) + " after the first request"
		    : common::FormatDuration(e.zero_ns - process.t_ns) + " before the first request";
	text += HowText(e.run, process) + ": ";
	if (end.unsent)
		text += common::Plural(end.unsent, "request was", "requests were") + " due and never sent" +
			(end.failed ? ", and " : "");
	if (end.failed)
		text += common::Plural(end.failed, "sent request", "sent requests") + " got no answer";
	text += end.next_answer_ns
		    ? ". The next answer came " + common::FormatDuration(end.next_answer_ns - process.t_ns) +
			  " after the exit"
		    : ". No request was answered after the exit";
	return text + " (no-server).";
}

std::vector<std::string> EndNotes(const Explanation &e)
{
	std::vector<std::string> notes;
	const int outage = OutageOf(e);
	for (size_t k = 0; k < e.run.ended.size(); k++) {
		const ProcessEnd &process = e.run.ended[k];
		const ServerEnd end = k < e.server_ends.size() ? e.server_ends[k] : ServerEnd();
		const bool after = !e.blame.from_iterations && process.t_ns >= e.first_ns + e.measured_ns;
		if (static_cast<int>(k) == outage || (after && process.status == 0))
			continue;
		std::string note = NameOf(process) +
				   (process.child ? ", a child of a recorded process," : "") + " exited at " +
				   common::FormatOffset(process.t_ns, e.zero_ns) + HowText(e.run, process);
		if (end.next_answer_ns)
			note += ": the next answer came " +
				common::FormatDuration(end.next_answer_ns - process.t_ns) + " later";
		if (end.successor)
			note += std::string(end.next_answer_ns ? ", " : ": ") + process.comm + " (" +
				std::to_string(end.successor) + ") was recorded from " +
				common::FormatOffset(end.began_ns, e.zero_ns) + " on";
		else if (!process.child && e.run.targets.size() > 1 && !after)
			note += std::string(end.next_answer_ns ? ", " : ": ") +
				"its replacement, if any, was not recorded";
		notes.push_back(note);
	}
	return notes;
}

} // namespace forktail::analysis

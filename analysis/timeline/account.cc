// SPDX-License-Identifier: MIT
// A thread's account: its spans and tallies by cause, compared with its lifetime. Accounts also show which
// thread serves a server's connections: it waits for requests and runs code for them. If several threads do,
// none is chosen, because the thread of each request is not recorded.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/format.h"

namespace forktail::analysis
{

namespace
{

// Whether an iteration shows that the thread has an event loop. One whose begin and end were both not seen
// does not: its ready connections were not counted, and its calls only by samples.
bool ShowsLoop(const ft_span &iteration)
{
	return !(iteration.flags & FT_SPAN_UNFINISHED) || iteration.arg[0] ||
	       (iteration.arg[1] && !(iteration.flags & FT_SPAN_SAMPLED));
}

constexpr size_t kIterationLengths = 200'000; // iteration lengths stored per thread

// A thread that runs this many times more own code than any other with an event loop is the serving thread.
constexpr uint64_t kAloneRatio = 4;

// True if `text` contains `word` without a digit or letter right after it: "*:6379" but not "*:63790".
bool HoldsWord(const std::string &text, const std::string &word)
{
	for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
		size_t end = at + word.size();
		if (end == text.size() || !isalnum(static_cast<unsigned char>(text[end])))
			return true;
	}
	return false;
}

// Does a target serve `server` ("unix:/path" or "host:port")? By its listening sockets; in a recording
// without those, by its command line.
bool Serves(const Target &target, const std::string &server)
{
	bool local = server.rfind("unix:", 0) == 0;
	const std::string port = std::to_string(PortOf(server));
	if (!target.listens.empty())
		return std::find(target.listens.begin(), target.listens.end(),
				 local ? server : "tcp:" + port) != target.listens.end();
	if (local || port == "0")
		return HoldsWord(target.cmdline, local ? server.substr(5) : server);
	for (const char *before : {":", "--port ", "--port=", "-p ", "-p"})
		if (HoldsWord(target.cmdline, before + port))
			return true;
	return false;
}

bool AnswersByItself(const Target &target)
{
	const char *const servers[] = {"redis-server", "valkey-server", "keydb-server", "memcached",
				       "dragonfly"};
	return std::ranges::any_of(
	    servers, [&](const char *name) { return target.comm.find(name) != std::string::npos; });
}

// Whether it may wait for an answer of another server.
bool IsClientOfServers(const Target &target)
{
	return !target.peers.empty() && !AnswersByItself(target);
}

// "10.0.0.1" of "10.0.0.1:6379", "fd00::1" of "[fd00::1]:6379".
std::string AddressOf(const std::string &place)
{
	std::string address = place.substr(0, place.rfind(':'));
	if (address.size() > 1 && address.front() == '[' && address.back() == ']')
		return address.substr(1, address.size() - 2);
	return address;
}

// With several hosts: whether the target may be at that address. Without the addresses of its network
// namespace (old recordings), and for a host name, that is unknown, so it may be.
bool MayBeAt(const Target &target, const std::string &place, const std::string &host)
{
	if (!host.empty())
		return target.host == host;
	if (IsLocalAddress(place))
		return true;
	std::string address = AddressOf(place);
	bool number = address.find_first_not_of("0123456789.") == std::string::npos ||
		      address.find(':') != std::string::npos;
	if (!number || target.addresses.empty())
		return true;
	return std::find(target.addresses.begin(), target.addresses.end(), address) != target.addresses.end();
}

// The same as below, for a run with several hosts: a process id or port alone does not identify a process.
uint32_t ProcessAmongHosts(const Run &run, const std::set<uint32_t> &processes, const std::string &place,
			   const std::string &host, uint32_t reported_pid, std::string *why)
{
	std::set<uint32_t> serve, reported;
	for (const Target &target : run.targets) {
		if (!processes.count(target.pid) || !Serves(target, place) || !MayBeAt(target, place, host))
			continue;
		serve.insert(target.pid);
		if (reported_pid && OwnId(run, target.pid) == reported_pid)
			reported.insert(target.pid);
	}
	if (reported.size() == 1)
		return *reported.begin();
	if (serve.size() == 1)
		return *serve.begin();
	*why = common::Plural(processes.size(), "process was", "processes were") + " recorded on " +
	       common::Plural(run.hosts.size(), "host", "hosts") + " and " +
	       (serve.empty() ? "none serves " : "more than one serves ") + place + OnHost(host);
	return 0;
}

// The id of the process that serves `place` (a server's name in the log; "": none); 0 and *why if unknown.
// `reported_pid` is the id that the server reported, or 0. `only`: all requests went to that server.
uint32_t ServingProcess(const Run &run, const std::string &place, const std::string &host,
			uint32_t reported_pid, bool only, std::string *why)
{
	std::set<uint32_t> processes;
	for (const Thread &t : run.threads)
		if ((t.flags & FT_THREAD_MAIN) && !(t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT)))
			processes.insert(t.tgid);
	if (processes.empty()) {
		*why = "the server was not recorded";
		return 0;
	}
	if (processes.size() == 1 && only)
		return *processes.begin();
	if (SeveralHosts(run) && !place.empty())
		return ProcessAmongHosts(run, processes, place, host, reported_pid, why);
	std::string recorded =
	    common::Plural(processes.size(), "process was", "processes were") + " recorded and ";
	if (place.empty()) {
		*why = recorded + "the request log does not name its server";
		return 0;
	}
	// The process id that the server reported decides, if there is one.
	if (reported_pid && processes.count(reported_pid))
		return reported_pid;
	std::vector<uint32_t> matches;
	for (const Target &target : run.targets)
		if (processes.count(target.pid) && Serves(target, place))
			matches.push_back(target.pid);
	if (matches.size() == 1)
		return matches[0];
	*why = recorded + (matches.empty() ? "none serves " : "more than one serves ") + place;
	return 0;
}

// The serving thread of a process: an index into run.threads, or -1 and *why.
int ServingThreadOf(const Run &run, const Accounts &accounts, uint32_t process, std::string *why)
{
	// The serving thread waits for requests and runs code for them. If a thread has several accounts, the
	// longest counts.
	struct Candidate {
		size_t thread;
		uint64_t own_ns, wall_ns;
		bool waits;
	};
	const std::vector<Account> all = accounts.Result(run);
	std::map<uint32_t, Candidate> by_tid;
	for (size_t i = 0; i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		if (t.tgid != process || (t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT)))
			continue;
		const Account &a = all[i];
		Candidate c = {i, a.by_cause[Index(Cause::ServerBusy)], a.wall_ns,
			       a.by_cause[Index(Cause::Idle)] > 0 || accounts.HasEventLoop(i)};
		auto [known, is_new] = by_tid.try_emplace(t.tid, c);
		if (!is_new && c.wall_ns > known->second.wall_ns)
			known->second = c;
	}
	std::vector<Candidate> loops;
	for (const auto &[tid, c] : by_tid)
		if (c.waits)
			loops.push_back(c);
	if (loops.empty()) { // no thread waited: one was always busy
		auto main = by_tid.find(process);
		return static_cast<int>((main != by_tid.end() ? main : by_tid.begin())->second.thread);
	}
	std::sort(loops.begin(), loops.end(),
		  [](const Candidate &a, const Candidate &b) { return a.own_ns > b.own_ns; });
	if (loops.size() > 1 && loops[1].own_ns > loops[0].own_ns / kAloneRatio) {
		size_t several = 0;
		for (const Candidate &c : loops)
			several += c.own_ns > loops[0].own_ns / kAloneRatio;
		*why = std::to_string(several) + " threads of " + run.threads[loops[0].thread].comm +
		       " serve connections, and the thread of each connection is not recorded. Run the "
		       "server with one thread";
		return -1;
	}
	return static_cast<int>(loops[0].thread);
}

} // namespace

void Accounts::AddIteration(const ft_span &iteration, OfThread *to)
{
	to->loop |= ShowsLoop(iteration);
	if (to->iterations++ % to->stride)
		return;
	to->iteration_ns.push_back(iteration.duration_ns);
	if (to->iteration_ns.size() < kIterationLengths)
		return;
	for (size_t i = 0; 2 * i < to->iteration_ns.size(); i++)
		to->iteration_ns[i] = to->iteration_ns[2 * i];
	to->iteration_ns.resize(to->iteration_ns.size() / 2);
	to->stride *= 2;
}

void Accounts::Add(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	const Waits waits(run);
	threads_.resize(run.threads.size());
	auto began = [&](const auto &r) { return r.start_ns >= from_ns && r.start_ns < to_ns; };
	for (size_t t = 0; t < run.threads.size(); t++) {
		const Thread &thread = run.threads[t];
		CauseTimes &by_cause = threads_[t].by_cause;
		for (size_t i = thread.first_span; i < thread.first_span + thread.span_count; i++) {
			const ft_span &s = run.spans[i];
			if (!began(s))
				continue;
			if (s.off_cpu) {
				by_cause[Index(waits.CauseOf(s, thread))] += s.blocked_ns;
				by_cause[Index(WaitCauseOf(run, s))] += s.runnable_ns;
				waits_for_locks_ |= IsLockWait(s);
			} else {
				by_cause[Index(CauseOfOwner(s.owner))] +=
				    s.on_cpu_ns + s.runnable_ns + s.blocked_ns;
			}
		}
		for (size_t i = thread.first_tally; i < thread.first_tally + thread.tally_count; i++)
			if (const ft_tally &tally = run.tallies[i]; began(tally))
				by_cause[Index(CauseOfOwner(tally.owner))] += tally.total_ns;
		for (size_t i = thread.first_iteration; i < thread.first_iteration + thread.iteration_count;
		     i++)
			if (began(run.iterations[i]))
				AddIteration(run.iterations[i], &threads_[t]);
		for (size_t i = thread.first_counters; i < thread.first_counters + thread.counters_count; i++)
			if (const ft_counters &c = run.counters[i]; c.t_ns >= from_ns && c.t_ns < to_ns)
				threads_[t].counted.Add(c);
	}
}

std::vector<Account> Accounts::Result(const Run &run) const
{
	std::vector<Account> all;
	for (uint32_t t = 0; t < run.threads.size(); t++) {
		Account a;
		a.thread = t;
		a.wall_ns = run.threads[t].end_ns - run.threads[t].start_ns;
		if (t < threads_.size())
			a.by_cause = threads_[t].by_cause;
		for (uint64_t ns : a.by_cause)
			a.accounted_ns += ns;
		all.push_back(a);
	}
	return all;
}

uint64_t Accounts::UsualTurnNs(size_t thread) const
{
	std::vector<uint64_t> lengths = threads_[thread].iteration_ns;
	if (lengths.empty())
		return 0;
	auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
	std::nth_element(lengths.begin(), middle, lengths.end());
	return *middle;
}

Account AccountOf(const Run &run, uint32_t thread)
{
	Accounts accounts;
	accounts.Add(run, 0, UINT64_MAX);
	return accounts.Result(run)[thread];
}

uint32_t ProcessOfServer(const Run &run, int server, std::string *why)
{
	size_t s = static_cast<size_t>(server);
	bool named = server >= 0 && s < run.servers.size();
	bool listens = std::any_of(run.targets.begin(), run.targets.end(),
				   [](const Target &t) { return !t.listens.empty(); });
	bool only = run.behind.empty() && (run.servers.size() <= 1 || !listens);
	return ServingProcess(run, named ? run.servers[s] : "",
			      named && s < run.server_hosts.size() ? run.server_hosts[s] : "",
			      named && s < run.server_pids.size() ? run.server_pids[s] : 0, only, why);
}

int ServingThread(const Run &run, const Accounts &accounts, int server, std::string *why)
{
	uint32_t process = ProcessOfServer(run, server, why);
	return process ? ServingThreadOf(run, accounts, process, why) : -1;
}

int ServingThread(const Run &run, int server, std::string *why)
{
	Accounts accounts;
	accounts.Add(run, 0, UINT64_MAX);
	return ServingThread(run, accounts, server, why);
}

int InstanceThread(const Run &run, const Accounts &accounts, const Behind &instance, std::string *why)
{
	uint32_t process = ServingProcess(run, instance.address, instance.host, 0, false, why);
	return process ? ServingThreadOf(run, accounts, process, why) : -1;
}

bool AnswersByItself(const Run &run, uint32_t process)
{
	const auto target =
	    std::ranges::find_if(run.targets, [&](const Target &t) { return t.pid == process; });
	return target != run.targets.end() && AnswersByItself(*target);
}

std::set<uint32_t> ClientsOfServers(const Run &run)
{
	std::set<uint32_t> processes;
	for (const Target &target : run.targets)
		if (IsClientOfServers(target))
			processes.insert(target.pid);
	return processes;
}

std::map<uint32_t, std::vector<std::string>> UnrecordedPeers(const Run &run)
{
	std::map<uint32_t, std::vector<std::string>> by_process;
	for (const Target &target : run.targets) {
		if (!IsClientOfServers(target))
			continue;
		for (const std::string &peer : target.peers) {
			const std::string host = IsLocalAddress(peer) ? target.host : "";
			const bool recorded = std::ranges::any_of(run.targets, [&](const Target &t) {
				return Serves(t, peer) && MayBeAt(t, peer, host);
			});
			if (!recorded)
				by_process[target.pid].push_back(peer);
		}
	}
	return by_process;
}

} // namespace forktail::analysis

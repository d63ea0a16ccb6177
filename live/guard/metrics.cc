// SPDX-License-Identifier: MIT
// Counts the events of a follower and writes them as metrics.
#include "metrics.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace forktail::live::metrics
{

namespace
{

constexpr uint64_t kEpisodeNs = 10'000'000;	 // an iteration of at least this duration is an episode
constexpr uint64_t kSameEpisodeNs = 100'000'000; // or part of an episode that ended at most this long before
constexpr size_t kTakers = 10;
constexpr uint64_t kTakerNs = 10'000'000; // a thread with less has no label of its own
constexpr size_t kWaitingNames = 1000;
constexpr char kOther[] = "other";
constexpr size_t kForksKept = 64;
// The role of a child whose purpose is unknown (loader/targets/threads.c); the others write the data set.
constexpr char kUnknownChild[] = "child";

// False for causes that only requests have.
bool IsOfThreads(analysis::Cause cause)
{
	return cause != analysis::Cause::ClientLate && cause != analysis::Cause::NoServer &&
	       cause != analysis::Cause::IoThread;
}

// Merges the names of kernel threads per CPU and of kworkers, which change with their work.
std::string TakerName(const std::string &comm)
{
	size_t slash = comm.find('/');
	if (comm.rfind("kworker", 0) == 0)
		return "kworker";
	if (slash != std::string::npos && slash + 1 < comm.size() &&
	    std::all_of(comm.begin() + static_cast<ptrdiff_t>(slash) + 1, comm.end(),
			[](unsigned char c) { return isdigit(c); }))
		return comm.substr(0, slash);
	return comm;
}

uint64_t OwnCpuNs()
{
	struct rusage usage = {};
	getrusage(RUSAGE_SELF, &usage);
	auto ns = [](const timeval &t) {
		return static_cast<uint64_t>(t.tv_sec) * live::kSecondNs +
		       static_cast<uint64_t>(t.tv_usec) * 1000;
	};
	return ns(usage.ru_utime) + ns(usage.ru_stime);
}

uint64_t OwnRssBytes()
{
	unsigned long size = 0, resident = 0;
	if (FILE *file = fopen("/proc/self/statm", "re")) {
		if (fscanf(file, "%lu %lu", &size, &resident) != 2)
			resident = 0;
		fclose(file);
	}
	return uint64_t{resident} * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double InSeconds(uint64_t ns)
{
	return static_cast<double>(ns) / 1e9;
}

void SayThreads(const live::Follower &follower, MetricsWriter *w)
{
	w->Counter(
	    "forktail_thread_seconds", "seconds",
	    "Time of a server's threads by cause. Includes idle, own-code and unknown, so the rates "
	    "of a running thread sum to 1. Of a server's threads beyond 32, causes without time have no "
	    "series; those beyond 256 are \"other\".");
	// A series that begins above 0 lacks its first increase in rates, so the first threads have all.
	constexpr size_t with_all = 32;
	std::map<uint32_t, size_t> of_server;
	for (const live::ThreadTotals &t : follower.threads()) {
		const bool all = of_server[t.server]++ < with_all;
		for (int c = 0; c < analysis::kTimelineCauses; c++)
			if (IsOfThreads(static_cast<analysis::Cause>(c)) &&
			    (all || t.by_cause[static_cast<size_t>(c)]))
				w->Seconds(
				    {{"server", follower.servers()[t.server].name},
				     {"thread", t.name},
				     {"cause", analysis::AccountName(static_cast<analysis::Cause>(c))}},
				    t.by_cause[static_cast<size_t>(c)]);
	}
}

void SayRequests(const live::Follower &follower, MetricsWriter *w)
{
	w->Histogram("forktail_request_seconds", "seconds",
		     "Service times of requests by command and outcome: from arrival at the server's socket "
		     "until the answer left. Only with record --requests; multiplied by the sample.");
	static constexpr const char *outcomes[live::kOutcomes] = {"ok", "miss", "error"};
	for (const live::RequestTotals &t : follower.requests())
		w->Buckets({{"server", t.server == live::kNone ? "other" : follower.servers()[t.server].name},
			    {"command", t.command},
			    {"outcome", outcomes[static_cast<size_t>(t.outcome)]}},
			   t.times);
	w->Counter(
	    "forktail_client_requests", "",
	    "Requests by client: its name for the connection, its process on this host, or its address. "
	    "Only with record --requests; multiplied by the sample. Clients beyond 100 are \"other\".");
	auto server = [&](const live::ClientTotals &t) {
		return t.server == live::kNone ? "other" : follower.servers()[t.server].name;
	};
	for (const live::ClientTotals &t : follower.request_clients())
		w->Count({{"server", server(t)}, {"client", t.client}}, t.count);
	w->Counter("forktail_client_request_time_seconds", "seconds", "Service time of these requests.");
	for (const live::ClientTotals &t : follower.request_clients())
		w->Seconds({{"server", server(t)}, {"client", t.client}}, t.sum_ns);
	w->Gauge("forktail_request_sample", "",
		 "Share of connections whose requests are recorded; 0 without record --requests.");
	const uint32_t sample = follower.request_sample();
	w->Sample({}, sample ? 1.0 / sample : 0);
	w->Counter("forktail_requests_recorded_seconds", "seconds",
		   "Time in which requests were recorded: a rate of requests is their count by this time.");
	w->Seconds({}, follower.requests_recorded_ns());
}

void SayRecorder(const live::Follower &follower, MetricsWriter *w)
{
	w->Gauge("forktail_recording", "", "1 if the recorder wrote data in the last three seconds.");
	w->Count({}, follower.recording());
	w->Counter("forktail_dropped_events", "", "Events that the recorder lost.");
	w->Count({}, follower.dropped());
	w->Counter("forktail_damaged_blocks", "", "Blocks of the recording that were damaged or missing.");
	w->Count({}, follower.damaged());
	live::RecorderCost cost = follower.cost();
	w->Counter("forktail_recorder_cpu_seconds", "seconds", "CPU time of the recorder's process.");
	w->Seconds({}, cost.cpu_ns);
	w->Counter("forktail_recorder_bpf_seconds", "seconds",
		   "CPU time of the recorder's BPF programs in the kernel.");
	if (cost.bpf_known)
		w->Seconds({}, cost.bpf_ns);
	w->Gauge("forktail_recorder_resident_memory_bytes", "bytes", "Memory of the recorder's process.");
	w->Count({}, cost.rss_bytes);
	w->Counter("forktail_helper_deaths", "",
		   "Helper processes of the recorder that ended or hung, and were started again.");
	for (const auto &[helper, count] : cost.helper_deaths)
		w->Count({{"helper", helper}}, count);
	w->Counter("forktail_main_loop_stalls", "",
		   "Rounds of the recorder's main loop that took over a second.");
	w->Count({}, cost.main_loop_stalls);
	w->Counter("forktail_guard_cpu_seconds", "seconds",
		   "CPU time of the process that serves these metrics.");
	w->Seconds({}, OwnCpuNs());
	w->Gauge("forktail_guard_resident_memory_bytes", "bytes",
		 "Memory of the process that serves these metrics.");
	w->Count({}, OwnRssBytes());
	live::Follower::Buffer buffer = follower.buffer();
	w->Gauge("forktail_buffer_span_seconds", "seconds", "Time span of the recording on disk.");
	w->Sample({}, buffer.oldest_ns && buffer.newest_ns > buffer.oldest_ns
			  ? InSeconds(buffer.newest_ns - buffer.oldest_ns)
			  : 0);
	w->Gauge("forktail_buffer_bytes", "bytes", "Size of the recording on disk.");
	w->Count({}, buffer.bytes);
	w->Info("forktail_build", "Version of forktail.");
	w->Count({{"version", FORKTAIL_VERSION}}, 1);
}

} // namespace

Metrics::OfServer &Metrics::Of(uint32_t server)
{
	if (server >= servers_.size())
		servers_.resize(server + 1);
	return servers_[server];
}

void Metrics::TakeIteration(const live::Iteration &iteration)
{
	OfServer &s = Of(iteration.server);
	uint64_t end_ns = iteration.start_ns + iteration.duration_ns;
	s.iterations.Add(iteration.duration_ns);
	if (iteration.duration_ns < kEpisodeNs)
		return;
	if (!s.episode_end_ns || iteration.start_ns > s.episode_end_ns + kSameEpisodeNs)
		s.episodes[static_cast<size_t>(analysis::Index(
		    iteration.parts.empty() ? analysis::Cause::Unknown : iteration.parts[0].cause))]++;
	s.episode_end_ns = std::max(s.episode_end_ns, end_ns);
}

// Time of a name before it got its own label stays in "other", so that counters never decrease.
void Metrics::TakeTaken(const live::Taken &taken)
{
	OfServer &s = Of(taken.server);
	std::string name = TakerName(taken.comm);
	auto own = s.taken_ns.find(name);
	if (own != s.taken_ns.end()) {
		own->second += taken.ns;
		return;
	}
	s.taken_ns[kOther] += taken.ns;
	if (s.taken_ns.size() > kTakers || name == kOther)
		return;
	if (s.waiting_ns.size() >= kWaitingNames)
		s.waiting_ns.clear();
	if ((s.waiting_ns[name] += taken.ns) < kTakerNs)
		return;
	s.waiting_ns.erase(name);
	s.taken_ns[name] = 0;
}

// The pages that a server's own threads copied, as far as they are accounted.
uint64_t Metrics::Copies(const live::Follower &follower, uint32_t server)
{
	uint64_t copies = 0;
	for (const live::ThreadTotals &thread : follower.threads())
		if (thread.server == server && !thread.child)
			copies +=
			    thread.counts[static_cast<size_t>(analysis::Index(analysis::Cause::CowCopy))];
	return copies;
}

void Metrics::TakeChild(const live::Follower &follower, const live::Child &child)
{
	OfServer &s = Of(child.server);
	auto [known, is_new] = s.children.try_emplace(child.pid);
	RunningChild &one = known->second;
	if (is_new) {
		one.start_ns = child.start_ns;
		one.copies = Copies(follower, child.server); // accounts are two seconds behind
	}
	one.role = child.role;
	if (!child.end_ns)
		return;
	one.end_ns = child.end_ns;
	if (const auto fork = s.fork_ns.find(child.pid); fork != s.fork_ns.end())
		one.fork_ns = fork->second;
	if (one.role != kUnknownChild && s.ended.size() < kForksKept)
		s.ended.push_back(one);
	s.children.erase(known);
}

// A child's copies are known when its last second is accounted.
void Metrics::FinishChildren(const live::Follower &follower)
{
	for (uint32_t server = 0; server < servers_.size(); server++) {
		OfServer &s = servers_[server];
		std::erase_if(s.ended, [&](RunningChild &one) {
			if (follower.accounted_to_ns() < one.end_ns)
				return false;
			one.copies = Copies(follower, server) - one.copies;
			s.last[one.role] = one;
			return true;
		});
	}
}

void Metrics::SayChildren(const live::Follower &follower, MetricsWriter *w) const
{
	auto each = [&](auto value) {
		Each(follower, [&](const std::string &name, const OfServer &s) {
			for (const auto &[role, one] : s.last)
				if (const std::optional<double> known = value(one))
					w->Sample({{"server", name}, {"role", role}}, *known);
		});
	};
	w->Gauge("forktail_last_child_seconds", "seconds",
		 "How long the server's last child ran, by role: snapshot child, AOF rewrite child, replica "
		 "sync child.");
	using Known = std::optional<double>;
	each([](const RunningChild &one) { return Known(InSeconds(one.end_ns - one.start_ns)); });
	w->Gauge("forktail_last_child_fork_seconds", "seconds",
		 "Duration of the fork() that began it, if it was recorded.");
	each([](const RunningChild &one) { return one.fork_ns ? Known(InSeconds(one.fork_ns)) : Known(); });
	w->Gauge("forktail_last_child_copied_bytes", "bytes",
		 "Memory that the server's writes copied while it ran.");
	each([](const RunningChild &one) {
		return Known(static_cast<double>(one.copies * analysis::kPageBytes));
	});
}

void Metrics::Take(const live::Follower &follower, const live::Batch &batch)
{
	servers_.resize(std::max(servers_.size(), follower.servers().size()));
	for (const live::Iteration &iteration : batch.iterations)
		TakeIteration(iteration);
	for (const live::Stall &stall : batch.stalls) {
		if (stall.open || !stall.serves)
			continue;
		OfServer &s = Of(stall.server);
		size_t cause = static_cast<size_t>(analysis::Index(stall.cause));
		s.stalls[cause]++;
		s.stall_ns[cause].Add(stall.duration_ns);
	}
	for (const live::Fork &fork : batch.forks) {
		OfServer &s = Of(fork.server);
		s.forks.Add(fork.duration_ns);
		if (s.fork_ns.size() >= kForksKept)
			s.fork_ns.clear();
		if (fork.result > 0)
			s.fork_ns[static_cast<uint32_t>(fork.result)] = fork.duration_ns;
	}
	for (const live::Fsync &fsync : batch.fsyncs)
		Of(fsync.server).fsyncs.Add(fsync.duration_ns);
	for (const live::Taken &taken : batch.taken)
		TakeTaken(taken);
	for (const live::Child &child : batch.children)
		if (child.server < servers_.size())
			TakeChild(follower, child);
	FinishChildren(follower);
}

void Metrics::Snapshot(const std::string &trigger, bool made)
{
	auto &[all_made, failed] = snapshots_[trigger];
	(made ? all_made : failed)++;
}

void Metrics::SayStalls(const live::Follower &follower, MetricsWriter *w) const
{
	auto name_of = [](size_t cause) {
		return analysis::AccountName(static_cast<analysis::Cause>(cause));
	};
	w->Counter("forktail_stalls", "",
		   "Stalls of serving threads that lasted at least the recorder's --min-span.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		for (size_t c = 0; c < s.stalls.size(); c++)
			if (IsOfThreads(static_cast<analysis::Cause>(c)))
				w->Count({{"server", name}, {"cause", name_of(c)}}, s.stalls[c]);
	});
	w->Histogram("forktail_stall_duration_seconds", "seconds", "Total duration of these stalls.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		for (size_t c = 0; c < s.stall_ns.size(); c++)
			if (s.stall_ns[c].count)
				w->Buckets({{"server", name}, {"cause", name_of(c)}}, s.stall_ns[c]);
	});
	w->Counter("forktail_episodes", "",
		   "Episodes: event-loop iterations of at least 10 ms and at most 100 ms apart, by the main "
		   "cause of the first.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		for (size_t c = 0; c < s.episodes.size(); c++)
			if (IsOfThreads(static_cast<analysis::Cause>(c)))
				w->Count({{"server", name}, {"cause", name_of(c)}}, s.episodes[c]);
	});
}

void Metrics::SayServers(const live::Follower &follower, MetricsWriter *w) const
{
	w->Histogram("forktail_event_loop_turn_seconds", "seconds",
		     "Event-loop iterations that lasted at least the recorder's --min-span.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		w->Buckets({{"server", name}}, s.iterations);
	});
	w->Histogram("forktail_fork_duration_seconds", "seconds", "Duration of fork() calls of the server.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		w->Buckets({{"server", name}}, s.forks);
	});
	w->Histogram("forktail_fsync_duration_seconds", "seconds",
		     "Duration of fsync and similar calls of the server's threads and children.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		w->Buckets({{"server", name}}, s.fsyncs);
	});
	w->Counter(
	    "forktail_cpu_taken_seconds", "seconds",
	    "Time for which other threads held a CPU while the server's threads were ready to run, for "
	    "ten names and other.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		for (const auto &[by, ns] : s.taken_ns)
			w->Seconds({{"server", name}, {"by", by}}, ns);
	});
	w->Gauge("forktail_children", "", "Running child processes of the server.");
	Each(follower, [&](const std::string &name, const OfServer &s) {
		w->Count({{"server", name}}, s.children.size());
	});
	SayChildren(follower, w);
	w->Gauge("forktail_server_up", "", "1 if the server's process is running.");
	for (const live::Server &server : follower.servers())
		w->Count({{"server", server.name}}, server.alive);
}

std::string Metrics::Text(const live::Follower &follower, MetricsFormat format) const
{
	MetricsWriter w(format);
	SayThreads(follower, &w);
	SayStalls(follower, &w);
	SayServers(follower, &w);
	SayRequests(follower, &w);
	w.Counter("forktail_snapshots", "", "Snapshots taken by triggers.");
	for (const auto &[trigger, counts] : snapshots_)
		w.Count({{"trigger", trigger}}, counts.first);
	w.Counter("forktail_snapshots_failed", "", "Snapshots that failed.");
	for (const auto &[trigger, counts] : snapshots_)
		w.Count({{"trigger", trigger}}, counts.second);
	SayRecorder(follower, &w);
	return w.Finish();
}

// Metrics for node_exporter's textfile collector: written to a temporary file and renamed, so that it is
// always complete.

namespace
{

bool WriteAll(int fd, const std::string &text)
{
	for (size_t done = 0; done < text.size();) {
		ssize_t n = write(fd, text.data() + done, text.size() - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += static_cast<size_t>(n);
	}
	return true;
}

} // namespace

bool WriteMetricsTextfile(const std::string &dir, const std::string &text, std::string *error)
{
	std::string path = dir + "/forktail.prom", temporary = path + "." + std::to_string(getpid());
	// node_exporter runs as another user.
	int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	bool good = fd >= 0 && fchmod(fd, 0644) == 0 && WriteAll(fd, text);
	int why = errno;
	if (fd >= 0 && close(fd) && good) {
		why = errno;
		good = false;
	}
	if (good && rename(temporary.c_str(), path.c_str())) {
		why = errno;
		good = false;
	}
	if (good)
		return true;
	if (fd >= 0)
		unlink(temporary.c_str());
	*error = "cannot write " + path + ": " + strerror(why);
	return false;
}

} // namespace forktail::live::metrics

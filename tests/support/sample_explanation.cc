// SPDX-License-Identifier: MIT
// Builds a run, and the blame that analysis/explain/passes.cc would find in it, from one list of stalls.
#include "tests/support/sample_explanation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kStart = 5'000'000'000'000; // a host that has been up for a while
constexpr uint64_t kMs = 1'000'000, kUs = 1000;
constexpr uint64_t kSlow = 1 * kMs;
constexpr uint32_t kConnections = 50;

// A stall of the serving thread.
struct Stall {
	uint64_t start_ns, duration_ns;
	uint8_t owner;
	uint64_t end_ns() const { return start_ns + duration_ns; }
};

ft_span MakeSpan(uint32_t tid, uint64_t start_ns, uint64_t duration_ns, uint8_t owner, bool off_cpu)
{
	ft_span s = {};
	s.start_ns = start_ns;
	s.duration_ns = duration_ns;
	s.owner = owner;
	s.off_cpu = off_cpu;
	s.syscall = -1;
	s.tid = tid;
	(owner == FT_RUN_QUEUE ? s.runnable_ns : off_cpu ? s.blocked_ns : s.on_cpu_ns) = duration_ns;
	return s;
}

bool IsOffCpu(uint8_t owner)
{
	return owner >= FT_RUN_QUEUE && owner <= FT_SYSCALL;
}

std::vector<Stall> MakeStalls(const SampleSize &size, std::mt19937_64 *random)
{
	uint64_t length = static_cast<uint64_t>(size.seconds * 1e9);
	auto at = [&](double share) {
		return kStart + static_cast<uint64_t>(share * static_cast<double>(length));
	};
	std::vector<Stall> stalls = {{at(0.2), 58'900 * kUs, FT_FORK},
				     {at(0.53), 29 * kMs, FT_FILE_WRITE},
				     {at(0.7), 12 * kMs, FT_RUN_QUEUE},
				     {at(0.83), 41 * kMs, FT_FORK},
				     {at(0.9), 7 * kMs, FT_PAGE_IN}};
	const uint8_t owners[] = {FT_SOFTIRQ + 3, FT_SOFTIRQ + 1, FT_RUN_QUEUE, FT_FILE_WRITE,
				  FT_HARDIRQ,	  FT_PAGE_ZERO,	  FT_COW_COPY,	FT_SOFTIRQ + 9};
	std::lognormal_distribution<double> duration(std::log(45e3), 0.7);
	uint64_t step = length / (size.spans + 1);
	for (size_t i = 0; i < size.spans; i++) {
		uint64_t start = kStart + i * step + (*random)() % (step / 2 + 1);
		uint64_t lasts = std::clamp<uint64_t>(static_cast<uint64_t>(duration(*random)), 20 * kUs,
						      std::max<uint64_t>(21 * kUs, step / 2));
		stalls.push_back({start, lasts, owners[(*random)() % std::size(owners)]});
	}
	std::sort(stalls.begin(), stalls.end(),
		  [](const Stall &a, const Stall &b) { return a.start_ns < b.start_ns; });
	// A stall that would overlap an earlier one is dropped: one owner per instant.
	std::vector<Stall> kept;
	for (const Stall &s : stalls)
		if (kept.empty() || s.start_ns >= kept.back().end_ns())
			kept.push_back(s);
	return kept;
}

uint32_t AddDetail(analysis::Run *run, const std::string &name, std::vector<std::string> stack = {})
{
	run->details.push_back({name, std::move(stack)});
	return static_cast<uint32_t>(run->details.size() - 1);
}

void AddThread(analysis::Run *run, uint32_t tid, uint32_t flags, uint64_t start_ns, uint64_t end_ns,
	       const char *comm, const char *role)
{
	analysis::Thread t;
	t.tid = tid;
	t.tgid = flags & FT_THREAD_CHILD ? tid : 1200;
	t.parent_tgid = flags & FT_THREAD_CHILD ? 1200 : 0;
	t.flags = flags;
	t.start_ns = start_ns;
	t.end_ns = end_ns;
	t.comm = comm;
	t.role = role;
	run->threads.push_back(t);
}

void AddTally(analysis::Run *run, uint64_t window_ns, uint32_t owner, uint64_t total_ns, uint32_t count)
{
	if (total_ns)
		run->tallies.push_back({window_ns, window_ns + kMs, total_ns, 0, count, 1200, owner, 0});
}

// The serving thread: its stalls as spans, and the time between them as tallies.
void AddServer(analysis::Run *run, const std::vector<Stall> &stalls, uint64_t end_ns, std::mt19937_64 *random)
{
	AddThread(run, 1200, FT_THREAD_MAIN, kStart, end_ns, "redis-server", "redis-server");
	uint32_t holder = AddDetail(run, "kworker/u4:2-events_unbound (tid 311)");
	uint32_t file = AddDetail(run, "appendonly.aof.1.incr.aof",
				  {"jbd2_log_wait_commit", "ext4_da_write_begin", "generic_perform_write",
				   "ext4_buffered_write_iter", "vfs_write", "ksys_write"});
	uint32_t hostile = AddDetail(run, "</script><script>alert(1)</script><!-- \xff &amp;");
	for (size_t i = 0; i < stalls.size(); i++) {
		const Stall &s = stalls[i];
		ft_span span = MakeSpan(1200, s.start_ns, s.duration_ns, s.owner, IsOffCpu(s.owner));
		span.cpu = i % 2;
		span.detail = s.owner == FT_RUN_QUEUE ? holder : s.owner == FT_FILE_WRITE ? file : 0;
		if (i == 0)
			span.detail = hostile;
		run->spans.push_back(span);
	}
	size_t next = 0, fork = 0;
	uint64_t forked_ns = 0;
	for (uint64_t window = kStart; window + kMs <= end_ns; window += kMs) {
		uint64_t covered = 0;
		while (next < stalls.size() && stalls[next].end_ns() <= window)
			next++;
		for (size_t i = next; i < stalls.size() && stalls[i].start_ns < window + kMs; i++)
			covered +=
			    std::min(stalls[i].end_ns(), window + kMs) - std::max(stalls[i].start_ns, window);
		uint64_t left = kMs - covered;
		for (; fork < stalls.size() && stalls[fork].end_ns() <= window; fork++)
			if (stalls[fork].owner == FT_FORK)
				forked_ns = stalls[fork].end_ns();
		double since_fork = forked_ns ? static_cast<double>(window - forked_ns) : 1e12;
		uint64_t cow =
		    static_cast<uint64_t>(0.35 * std::exp(-since_fork / 8e8) * static_cast<double>(left));
		uint64_t own =
		    static_cast<uint64_t>((0.4 + 1e-6 * static_cast<double>((*random)() % 100'000)) *
					  static_cast<double>(left - cow));
		uint64_t irq = left / 50;
		AddTally(run, window, FT_OWN_CODE, own, 1);
		AddTally(run, window, FT_COW_COPY, cow, static_cast<uint32_t>(cow / 4000));
		AddTally(run, window, FT_SOFTIRQ + 3, irq, 12);
		AddTally(run, window, FT_IDLE, left - own - cow - irq, 30);
	}
}

// Samples of the serving thread's own code, one each millisecond: mostly GET, and KEYS at the start of each
// tenth second.
void AddCpuSamples(analysis::Run *run, uint64_t end_ns)
{
	auto frames = [](std::initializer_list<const char *> functions) {
		analysis::Stack stack;
		stack.program = "redis-server";
		for (const char *f : functions)
			stack.frames.push_back({f, "redis-server"});
		return stack;
	};
	run->stacks = {
	    {},
	    frames({"dictFind", "getCommand", "call", "processCommand", "aeMain", "main"}),
	    frames({"stringmatchlen", "keysCommand", "call", "processCommand", "aeMain", "main"}),
	    frames({"</script><b>", "setCommand", "call", "processCommand", "aeMain", "main"}),
	};
	run->stacks[1].kernel = {"clear_page_erms", "do_anonymous_page"};
	for (uint64_t t = kStart + kMs; t < end_ns; t += kMs) {
		uint64_t ms = (t - kStart) / kMs;
		ft_cpu_sample sample = {};
		sample.t_ns = t;
		sample.tid = 1200;
		sample.stack = ms % 100 < 5 ? 2 : ms % 7 == 0 ? 3 : 1;
		sample.owner = FT_OWN_CODE;
		sample.period = 16;
		run->cpu_samples.push_back(sample);
	}
}

// Background threads, children and the disk, with which a reader compares a stall.
void AddOthers(analysis::Run *run, const std::vector<Stall> &stalls, uint64_t end_ns)
{
	const char *names[] = {"bio_close_file", "bio_aof_fsync", "bio_lazy_free"};
	for (uint32_t i = 0; i < 3; i++) {
		AddThread(run, 1201 + i, 0, kStart, end_ns, names[i], names[i]);
		uint64_t at = kStart;
		for (const Stall &s : stalls) {
			if (s.owner != FT_FILE_WRITE || i != 1 || s.start_ns < at + 6 * kMs)
				continue;
			uint64_t from = s.start_ns - 2 * kMs, to = s.end_ns() + kMs;
			run->spans.push_back(MakeSpan(1201 + i, at, from - at, FT_LOCK_WAIT, true));
			run->spans.push_back(MakeSpan(1201 + i, from, to - from, FT_FSYNC, false));
			run->spans.back().blocked_ns = to - from;
			run->spans.back().on_cpu_ns = 0;
			at = to;
		}
		run->spans.push_back(MakeSpan(1201 + i, at, end_ns - at, FT_LOCK_WAIT, true));
	}
	uint32_t pid = 4312;
	for (const Stall &s : stalls) {
		if (s.owner != FT_FORK)
			continue;
		uint64_t until = s.end_ns() + std::min<uint64_t>(1'800 * kMs, (end_ns - s.end_ns()) / 100 /
										  kMs * 100 * kMs);
		AddThread(run, pid, FT_THREAD_MAIN | FT_THREAD_CHILD | FT_THREAD_ENDED, s.end_ns(), until,
			  "redis-rdb-bgsave", "snapshot child");
		for (uint64_t at = s.end_ns(); at + 90 * kMs < until; at += 100 * kMs) {
			run->spans.push_back(MakeSpan(pid, at, 11 * kMs, FT_FILE_WRITE, true));
			run->spans.push_back(MakeSpan(pid, at + 40 * kMs, 5 * kMs, FT_RUN_QUEUE, true));
			run->tallies.push_back({at, at + 100 * kMs, 80 * kMs, 0, 1, pid, FT_OWN_CODE, 0});
			for (uint64_t k = 0; k < 8; k++) {
				ft_io io = {};
				io.start_ns = at + k * 2 * kMs;
				io.duration_ns = 3 * kMs;
				io.bytes = 1 << 20;
				io.dev = 253u << 20;
				io.write = k == 7 ? 3 : 1;
				strcpy(io.comm.raw, "kworker/u4:1");
				run->ios.push_back(io);
			}
		}
		pid += 65;
	}
}

void AddSeries(analysis::Run *run, uint64_t end_ns, std::mt19937_64 *random)
{
	struct Wanted {
		const char *name, *unit, *label, *value;
		double base, swing;
	};
	const Wanted all[] = {{"host.cpu.user", "percent", "", "", 55, 10},
			      {"host.cpu.system", "percent", "", "", 22, 8},
			      {"host.cpu.iowait", "percent", "", "", 4, 4},
			      {"target.cpu", "percent", "pid", "1200", 63, 12},
			      {"target.rss", "bytes", "pid", "1200", 1.1e9, 4e6},
			      {"target.minor_faults", "1/s", "pid", "1200", 400, 350},
			      {"host.disk.write", "bytes/s", "device", "vda", 9e6, 9e6},
			      {"host.disk.write", "bytes/s", "device", "vda1", 9e6, 9e6},
			      {"host.softirq", "1/s", "cpu", "0", 900, 400},
			      {"host.softirq", "1/s", "cpu", "1", 1500, 900},
			      {"host.swap_in", "1/s", "", "", 0, 0}};
	for (const Wanted &w : all) {
		analysis::Series s;
		s.name = w.name;
		s.unit = w.unit;
		if (*w.label)
			s.labels[w.label] = w.value;
		for (uint64_t t = kStart; t < end_ns; t += 100 * kMs)
			s.samples.push_back(
			    {t, w.base + w.swing * (static_cast<double>((*random)() % 2000) / 1000 - 1)});
		run->series.push_back(std::move(s));
	}
}

// Open loop: a request due during a stall waits for its end, and so do those behind it.
void AddRequests(analysis::Explained *e, const std::vector<Stall> &stalls, const SampleSize &size,
		 std::mt19937_64 *random)
{
	analysis::Blame &blame = e->blame;
	std::lognormal_distribution<double> service(std::log(90e3), 0.35);
	uint64_t count = static_cast<uint64_t>(size.seconds * size.rate);
	uint64_t gap = 1'000'000'000 / size.rate;
	size_t next = 0;
	std::vector<uint64_t> all;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t due = kStart + i * gap;
		uint64_t took = static_cast<uint64_t>(service(*random));
		while (next < stalls.size() && stalls[next].end_ns() <= due)
			next++;
		uint64_t waits = 0;
		analysis::Cause cause = analysis::Cause::ServerBusy;
		if (next < stalls.size() && stalls[next].start_ns <= due) {
			waits = stalls[next].end_ns() - due;
			cause = analysis::CauseOfOwner(stalls[next].owner);
		} else if ((*random)() % size.slow_one_in == 0) {
			took += kMs + (*random)() % (2 * kMs);
		}
		uint64_t latency = waits + took;
		all.push_back(latency);
		if (size.requests) {
			e->run.requests.due_ns.push_back(due);
			e->run.requests.sent_ns.push_back(due);
			e->run.requests.end_ns.push_back(due + latency);
			e->run.requests.connection.push_back(static_cast<uint32_t>(i % kConnections));
			e->run.requests.op.push_back(static_cast<uint8_t>(i % 2));
			e->run.requests.status.push_back(FT_STATUS_OK);
		}
		if (latency < kSlow)
			continue;
		analysis::SlowRequest s = {};
		s.due_ns = s.since_ns = due;
		s.latency_ns = latency;
		s.index = static_cast<uint32_t>(i);
		s.first_part = static_cast<uint32_t>(blame.parts.size());
		s.op = static_cast<uint8_t>(i % 2);
		s.sent_ns = due + 2 * kUs;
		s.connection = static_cast<uint32_t>(i % kConnections);
		s.hop = size.recorder ? 0 : analysis::kNoHop;
		blame.parts.push_back({waits > took ? cause : analysis::Cause::ServerBusy, analysis::kNoHop,
				       std::max(waits, took), 0});
		if (std::min(waits, took))
			blame.parts.push_back(
			    {waits > took ? analysis::Cause::ServerBusy : cause, 0, std::min(waits, took)});
		s.part_count = static_cast<uint16_t>(blame.parts.size() - s.first_part);
		blame.slow.push_back(s);
		blame.slow_ns += latency;
	}
	std::sort(all.begin(), all.end());
	auto percentile = [&](double p) {
		return all[std::min(all.size() - 1,
				    static_cast<size_t>(p / 100 * static_cast<double>(all.size())))];
	};
	blame.count = count;
	blame.latencies = {percentile(50),
			   percentile(90),
			   percentile(99),
			   percentile(99.9),
			   percentile(99.99),
			   all.back(),
			   0};
	blame.threshold_ns = kSlow;
}

void AddCauses(analysis::Blame *blame)
{
	std::vector<analysis::CauseRow> rows(analysis::kCauses);
	for (const analysis::SlowRequest &s : blame->slow)
		for (uint32_t k = 0; k < s.part_count; k++) {
			const analysis::Part &part = blame->parts[s.first_part + k];
			analysis::CauseRow &row = rows[static_cast<size_t>(analysis::Index(part.cause))];
			row.cause = part.cause;
			row.requests++;
			row.direct_ns += part.direct_ns;
			row.queued_ns += part.queued_ns;
		}
	for (analysis::CauseRow &row : rows) {
		if (row.total_ns() == 0)
			continue;
		row.share = static_cast<double>(row.total_ns()) / static_cast<double>(blame->slow_ns);
		row.without = blame->latencies;
		row.without.max -= static_cast<uint64_t>(row.share * static_cast<double>(row.without.max));
		row.without.p99_9 -=
		    static_cast<uint64_t>(row.share * static_cast<double>(row.without.p99_9));
		blame->causes.push_back(row);
	}
	std::sort(blame->causes.begin(), blame->causes.end(),
		  [](const analysis::CauseRow &a, const analysis::CauseRow &b) {
			  return a.total_ns() > b.total_ns();
		  });
}

// One episode per stall that delayed a request by at least 5 ms.
void AddEpisodes(analysis::Explained *e, const std::vector<Stall> &stalls)
{
	for (const Stall &stall : stalls) {
		if (stall.duration_ns < 5 * kMs)
			continue;
		analysis::Episode episode;
		episode.start_ns = episode.since_ns = stall.start_ns;
		episode.end_ns = stall.end_ns() + kMs;
		uint64_t busy_ns = 0;
		for (const analysis::SlowRequest &s : e->blame.slow) {
			if (s.due_ns < episode.start_ns || s.due_ns > episode.end_ns)
				continue;
			episode.requests++;
			episode.worst_ns = std::max(episode.worst_ns, s.latency_ns);
			episode.time_ns += s.latency_ns;
			busy_ns += 90 * kUs;
		}
		episode.causes.push_back(
		    {analysis::CauseOfOwner(stall.owner), analysis::kNoHop, episode.time_ns - busy_ns,
		     1 - static_cast<double>(busy_ns) / static_cast<double>(episode.time_ns)});
		episode.causes.push_back(
		    {analysis::Cause::ServerBusy, analysis::kNoHop, busy_ns,
		     static_cast<double>(busy_ns) / static_cast<double>(episode.time_ns)});
		episode.evidence = {"a sentence about what the kernel did, with its numbers",
				    "a file named </script><script>alert(2)</script>"};
		e->episodes.push_back(std::move(episode));
	}
}

} // namespace

analysis::Explained SampleExplanation(const SampleSize &size)
{
	std::mt19937_64 random(size.seed);
	analysis::Explained e;
	analysis::Run &run = e.run;
	run.path = "sample";
	run.info.host = "sample-host";
	run.info.kernel = "6.18.5";
	run.cpus = 2;
	run.min_span_ns = 20 * kUs;
	run.ops = {"GET", "SET"};
	run.servers = {"unix:/run/redis.sock"};
	run.details.emplace_back();
	uint64_t end_ns = kStart + static_cast<uint64_t>(size.seconds * 1e9);
	std::vector<Stall> stalls = MakeStalls(size, &random);
	if (size.recorder) {
		run.targets = {{1200, "redis-server", "redis-server unixsocket:/run/redis.sock", {}}};
		run.cost.known = true;
		run.cost.bpf_ns = static_cast<uint64_t>(size.seconds * 2.1e7);
		run.cost.bpf_known = true;
		run.cost.recorder_cpu_ns = static_cast<uint64_t>(size.seconds * 6e6);
		run.cost.recorder_rss_bytes = 14'000'000;
		AddServer(&run, stalls, end_ns, &random);
		AddCpuSamples(&run, end_ns);
		AddOthers(&run, stalls, end_ns);
		AddSeries(&run, end_ns, &random);
	}
	analysis::Load load;
	load.arrival = "poisson";
	load.rate = size.rate;
	load.connection_count = kConnections;
	if (size.requests) {
		run.loads.push_back(load);
		for (uint32_t i = 0; i < kConnections; i++) {
			run.connections.emplace_back();
			run.connections.back().opened_ns = kStart;
			run.connections.back().local_port = 40'000 + i;
		}
	}
	AddRequests(&e, stalls, size, &random);
	e.blame.from_iterations = !size.requests;
	AddCauses(&e.blame);
	e.blame.slow_count = e.blame.slow.size();
	e.lead = analysis::FindLead(e.blame, analysis::UsualFigure());
	AddEpisodes(&e, stalls);
	if (size.recorder)
		for (analysis::Episode &episode : e.episodes)
			episode.own_code = {
			    10,
			    {{"command/GET", 8, 0, 8, 0.8, 8 * kMs, "dictFind < getCommand < call"},
			     {"command/KEYS", 2, 0, 0, 0.2, 2 * kMs, "stringmatchlen < keysCommand < call"}}};
	e.own_code = size.recorder && !e.episodes.empty() ? e.episodes[0].own_code : analysis::OwnCode{};
	analysis::IndexRun(&run);
	run.start_ns = kStart;
	run.end_ns = end_ns;
	e.zero_ns = kStart;
	for (uint32_t i = 0; i < run.threads.size(); i++)
		if (run.threads[i].tid == 1200) {
			e.serving = {static_cast<int>(i)};
			e.reading->timelines = {analysis::BuildTimeline(run, i)};
		}
	if (e.serving.empty()) {
		e.serving = {-1};
		e.reading->timelines.resize(1);
	}
	e.hop_threads = analysis::HopThreads(e.reading->timelines);
	e.notes = {"12 events of the recorder's ring were dropped between +20.1 s and +20.2 s"};
	return e;
}

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Finds what belongs to each snapshot: its fork by the child that it returned, copies by the threads of the
// server while the child ran, requests by when they were due, memory by the recorder's series.
#include "analysis/snapshots.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/passes.h"
#include "common/commands.h"
#include "common/format.h"
#include "common/statistics.h"
#include "scene.h"

namespace forktail::analysis
{

namespace
{

// Whether requests of an operation change data; nothing: not known, as of a script or of several commands.
std::optional<bool> Writes(const Run &run, size_t op)
{
	const std::string &command = op < run.op_commands.size() ? run.op_commands[op] : run.ops[op];
	const command_row *row = commands_row(command.data(), command.size());
	if (!row || row->writes == MAY_WRITE)
		return {};
	return row->writes == WRITES;
}

// Of the curve.
constexpr uint64_t kCurveStepNs = 20'000'000;

// A fork begins at most this long before its child's first instant.
constexpr uint64_t kLongestForkNs = 60'000'000'000;

// The beginning of the recording of a thread, or of what its ring kept; 0: unknown.
uint64_t StartOfFile(const Run &run, const Thread &t)
{
	return t.announced && t.file < run.files.size() ? run.files[t.file].start_ns : 0;
}

// Whether the log has every request, so that counting them says how many there were.
bool LogIsComplete(const Run &run)
{
	return !run.loads.empty() && std::ranges::none_of(run.loads, [](const Load &load) {
		return load.only_slow || load.slices || load.sample > 1;
	});
}

// The value of a series at an instant: that of the last sample, which holds until the next one.
std::optional<double> ValueAt(const Series &series, uint64_t t_ns)
{
	auto after = std::ranges::upper_bound(series.samples, t_ns, {}, &Sample::t_ns);
	if (after == series.samples.begin())
		return {};
	return (after - 1)->value;
}

// Calls see(value) for each value that a series had in [from_ns, to_ns].
template <typename See> void EachValue(const Series &series, uint64_t from_ns, uint64_t to_ns, See see)
{
	if (const auto first = ValueAt(series, from_ns))
		see(*first);
	for (auto at = std::ranges::upper_bound(series.samples, from_ns, {}, &Sample::t_ns);
	     at != series.samples.end() && at->t_ns <= to_ns; ++at)
		see(at->value);
}

void Lower(double value, std::optional<uint64_t> *least)
{
	const auto bytes = static_cast<uint64_t>(std::max(value, 0.0));
	*least = least->has_value() ? std::min(**least, bytes) : bytes;
}

// The least that a cgroup with a limit had left, without file pages that the kernel can drop. Series of one
// cgroup are read at the instants of its usage.
void FindCgroupLeft(const Run &run, const Thread &child, Snapshot *one)
{
	auto of = [&](const char *name, const std::string &cgroup) -> const Series * {
		for (const Series &series : run.series) {
			const auto label = series.labels.find("cgroup");
			if (series.name == name && label != series.labels.end() && label->second == cgroup &&
			    IsOfHost(run, series, child))
				return &series;
		}
		return nullptr;
	};
	// The path of a target may be that of another hierarchy: it only distinguishes several targets.
	auto is_of_server = [&](const std::string &cgroup) {
		return run.targets.size() == 1 || std::ranges::any_of(run.targets, [&](const Target &target) {
			       return target.pid == one->server &&
				      (target.cgroup + "/").starts_with(cgroup + "/");
		       });
	};
	for (const Series &usage : run.series) {
		const auto label = usage.labels.find("cgroup");
		if (usage.name != "cgroup.memory.usage" || label == usage.labels.end() ||
		    !IsOfHost(run, usage, child) || !is_of_server(label->second))
			continue;
		const Series *limit = of("cgroup.memory.limit", label->second),
			     *inactive = of("cgroup.memory.inactive_file", label->second);
		const auto most = limit ? ValueAt(*limit, one->end_ns) : std::nullopt;
		if (!most)
			continue;
		auto left = [&](uint64_t t_ns, double used) {
			const double file = inactive ? ValueAt(*inactive, t_ns).value_or(0) : 0;
			Lower(*most - used + file, &one->cgroup_left_bytes);
		};
		if (const auto first = ValueAt(usage, one->start_ns))
			left(one->start_ns, *first);
		for (const Sample &s : usage.samples)
			if (s.t_ns > one->start_ns && s.t_ns <= one->end_ns)
				left(s.t_ns, s.value);
	}
}

void FindMemory(const Run &run, Snapshot *one)
{
	const Thread &child = run.threads[one->thread];
	Thread server = child; // of the same host
	server.tgid = one->server;
	for (const Series &series : run.series) {
		if (series.name == "target.rss" && IsOfProcess(run, series, server)) {
			if (const auto before = ValueAt(series, one->start_ns))
				one->rss_bytes = static_cast<uint64_t>(*before);
			EachValue(series, one->start_ns, one->end_ns, [&](double value) {
				// One that begins with the recording has no sample before it.
				one->rss_bytes = one->rss_bytes.value_or(static_cast<uint64_t>(value));
				one->most_rss_bytes =
				    std::max(one->most_rss_bytes.value_or(0), static_cast<uint64_t>(value));
			});
		}
		if (series.name == "host.memory.available" && IsOfHost(run, series, child))
			EachValue(series, one->start_ns, one->end_ns,
				  [&](double value) { Lower(value, &one->available_bytes); });
	}
	FindCgroupLeft(run, child, one);
}

Latencies TopOf(const common::Histogram &of)
{
	Latencies l;
	l.p99 = of.Percentile(99);
	l.p99_9 = of.Percentile(99.9);
	l.max = of.max();
	return l;
}

} // namespace

SnapshotFinder::SnapshotFinder(const Run &run)
{
	for (size_t i = 0; i < run.threads.size() && all_.size() < kMostSnapshots; i++) {
		const Thread &t = run.threads[i];
		const std::string command = ForkCommandOf(t);
		if (!(t.flags & FT_THREAD_CHILD) || !(t.flags & FT_THREAD_MAIN) || command.empty())
			continue;
		const uint64_t from_ns = std::max(run.start_ns, StartOfFile(run, t)),
			       explained_from_ns = std::max(t.start_ns, from_ns),
			       explained_to_ns = std::min(t.end_ns, run.end_ns);
		if (explained_to_ns < explained_from_ns)
			continue;
		Snapshot one;
		one.command = command;
		one.thread = static_cast<uint32_t>(i);
		one.server = t.parent_tgid;
		one.start_ns = t.start_ns;
		one.end_ns = t.end_ns;
		one.ended = t.flags & FT_THREAD_ENDED;
		one.explained_ns = explained_to_ns - explained_from_ns;
		const bool earlier = std::ranges::any_of(run.threads, [&](const Thread &other) {
			return other.file == t.file && other.start_ns < from_ns;
		});
		one.fork_explained = t.start_ns >= from_ns + (earlier ? kLongestForkNs : 0);
		all_.push_back(std::move(one));
	}
	std::ranges::stable_sort(all_, {}, &Snapshot::start_ns);
	copied_.resize(all_.size());
}

void SnapshotFinder::Add(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	auto in_stretch = [&](uint64_t t_ns) { return t_ns >= from_ns && t_ns < to_ns; };
	for (size_t n = 0; n < all_.size(); n++) {
		Snapshot &one = all_[n];
		const Thread &child = run.threads[one.thread];
		if (child.end_ns < from_ns ||
		    (to_ns < UINT64_MAX - kLongestForkNs && child.start_ns > to_ns + kLongestForkNs))
			continue;
		for (const ft_writes &w : run.writes)
			if (w.tgid == child.tgid && in_stretch(w.start_ns) && w.start_ns <= child.end_ns)
				one.written_bytes += w.bytes;
		for (const Thread &t : run.threads) {
			const bool own = t.tgid == child.tgid && (t.flags & FT_THREAD_CHILD);
			if (!own && (t.tgid != one.server || (t.flags & FT_THREAD_CLIENT)))
				continue;
			auto count = [&](uint64_t t_ns, uint64_t pages, uint64_t ns) {
				if (own) {
					one.child_copies += pages;
					return;
				}
				one.copies += pages;
				one.copy_ns += ns;
				CurveStep &step =
				    copied_[n].try_emplace(t_ns / kCurveStepNs, t_ns, 0).first->second;
				step.first_ns = std::min(step.first_ns, t_ns);
				step.pages += pages;
			};
			for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
				const ft_span &s = run.spans[i];
				if (!in_stretch(s.start_ns) || s.off_cpu)
					continue;
				if (!own && s.owner == FT_FORK && s.arg[0] == child.tid &&
				    s.start_ns <= child.start_ns &&
				    SpanEnd(s) + 1'000'000 >= child.start_ns) {
					one.explained_ns += one.start_ns - s.start_ns;
					one.start_ns = s.start_ns;
					one.fork_ns = s.duration_ns;
				}
				if (s.owner == FT_COW_COPY && s.start_ns >= child.start_ns &&
				    s.start_ns < child.end_ns)
					count(s.start_ns, 1, s.duration_ns);
			}
			for (size_t i = t.first_tally; i < t.first_tally + t.tally_count; i++) {
				const ft_tally &s = run.tallies[i];
				if (s.owner != FT_COW_COPY || !in_stretch(s.start_ns) ||
				    s.end_ns <= child.start_ns || s.start_ns >= child.end_ns)
					continue;
				count(s.end_ns, s.count, s.total_ns);
			}
		}
	}
}

int SnapshotFinder::Find(uint64_t from_ns, uint64_t to_ns, uint32_t process) const
{
	// Few overlap: those of several servers.
	constexpr size_t most = 64;
	auto after =
	    std::ranges::partition_point(all_, [&](const Snapshot &one) { return one.start_ns <= to_ns; });
	for (size_t n = static_cast<size_t>(after - all_.begin()), seen = 0; n-- > 0 && seen < most; seen++)
		if (from_ns <= all_[n].end_ns && (!process || process == all_[n].server))
			return static_cast<int>(n);
	return -1;
}

void SnapshotFinder::Count(const Run &run, Log *log, const std::vector<uint32_t> &processes)
{
	std::vector<common::Histogram> during(all_.size());
	common::Histogram outside; // of those answered
	uint64_t outside_count = 0;
	std::vector<std::optional<bool>> writes;
	for (size_t op = 0; op < run.ops.size(); op++)
		writes.push_back(Writes(run, op));
	if (LogIsComplete(run))
		for (Snapshot &one : all_)
			one.writes = 0;
	const Requests &q = run.requests;
	ForWindows(log, [&] {
		for (size_t i = q.lead, next; i < q.size(); i = next) {
			next = q.EndOfEqual(i, q.size());
			const uint64_t times = next - i;
			const uint32_t server = run.connections[q.connection[i]].server;
			const int n =
			    Find(q.due_ns[i], q.due_ns[i], server < processes.size() ? processes[server] : 0);
			const bool answered = !IsError(q.status[i]);
			if (n < 0) {
				outside_count += times;
				if (answered)
					outside.Add(q.Latency(i), times);
				continue;
			}
			Snapshot &one = all_[static_cast<size_t>(n)];
			one.requests += times;
			if (!answered)
				continue;
			during[static_cast<size_t>(n)].Add(q.Latency(i), times);
			const std::optional<bool> is_write = writes.at(q.op[i]);
			if (!is_write)
				one.writes.reset();
			else if (one.writes)
				*one.writes += *is_write ? times : 0;
		}
	});
	for (size_t n = 0; n < all_.size(); n++)
		all_[n].during = TopOf(during[n]);
	outside_ = TopOf(outside);
	outside_count_ = outside.count() ? outside_count : 0;
}

void SnapshotFinder::AddSlow(const Run &run, const SlowRequest &r, const Part *parts,
			     const std::vector<uint32_t> &processes)
{
	const bool met = std::any_of(parts, parts + r.part_count, [](const Part &part) {
		return (part.cause == Cause::Fork || part.cause == Cause::CowCopy) && part.total_ns();
	});
	if (!met)
		return;
	uint32_t process = 0;
	if (r.sent_ns && r.connection < run.connections.size()) {
		const uint32_t server = run.connections[r.connection].server;
		process = server < processes.size() ? processes[server] : 0;
	}
	if (const int n = Find(r.since_ns, r.end_ns(), process); n >= 0)
		all_[static_cast<size_t>(n)].slowed++;
}

Snapshots SnapshotFinder::Result(const Run &run)
{
	Snapshots result;
	result.outside = outside_;
	result.outside_count = outside_count_;
	for (size_t n = 0; n < all_.size(); n++) {
		Snapshot &one = all_[n];
		FindMemory(run, &one);
		uint64_t pages = 0;
		for (const auto &[number, step] : copied_[n])
			one.curve.emplace_back(step.first_ns, (pages += step.pages) * kPageBytes);
		result.all.push_back(one);
	}
	std::ranges::stable_sort(result.all, {}, &Snapshot::start_ns);
	return result;
}

void AddCopiedSeries(const Snapshots &snapshots, Run *run)
{
	for (const Snapshot &one : snapshots.all) {
		const Thread &child = run->threads[one.thread];
		const std::string pid = std::to_string(OwnId(*run, one.server));
		auto found = std::ranges::find_if(run->series, [&](const Series &series) {
			const auto label = series.labels.find("pid");
			return series.name == "target.snapshot_copied" && label != series.labels.end() &&
			       label->second == pid && IsOfHost(*run, series, child);
		});
		if (found == run->series.end()) {
			Series made = {"target.snapshot_copied", "bytes", {{"pid", pid}}, {}};
			if (const std::string host = HostOf(*run, child); !host.empty())
				made.labels["host"] = host;
			run->series.push_back(std::move(made));
			found = run->series.end() - 1;
		}
		found->samples.push_back({one.start_ns, 0});
		for (const auto &[t_ns, bytes] : one.curve)
			found->samples.push_back({t_ns, static_cast<double>(bytes)});
		found->samples.push_back({one.end_ns, 0});
		std::ranges::stable_sort(found->samples, {}, &Sample::t_ns);
	}
}

std::string SnapshotText(const Run &run, const Snapshots &snapshots, const Snapshot &one, uint64_t zero_ns)
{
	using common::FormatBytes;
	using common::FormatDuration;
	std::string text = one.command;
	if (run.targets.size() > 1)
		text += " of process " + ShownId(run, one.server);
	text += " at " + common::FormatOffset(one.start_ns, zero_ns) + ": ";
	text += one.fork_ns	     ? "fork " + FormatDuration(one.fork_ns)
		: one.fork_explained ? "fork too short to be recorded"
				     : "fork not in the part explained, or short";
	text += "; copied " + FormatBytes(one.copied_bytes());
	if (one.rss_bytes.value_or(0))
		text += " (" +
			common::FormatShare(static_cast<double>(one.copied_bytes()) /
					    static_cast<double>(*one.rss_bytes)) +
			" of resident memory)";
	const std::string took = FormatDuration(one.end_ns - one.start_ns);
	if (!one.whole())
		text += " in the " + FormatDuration(one.explained_ns) + " explained of " + took;
	else
		text += (one.ended ? " in " : " until the recording's end, in ") + took;
	char number[32];
	if (const auto pages = one.pages_per_write()) {
		snprintf(number, sizeof number, "%.2f", *pages);
		text += ", " + std::string(number) + " pages per write";
	}
	if (one.requests) {
		text += "; slowed " + common::Plural(one.slowed, "request", "requests") +
			", p99.9 during it " + FormatDuration(one.during.p99_9);
		if (snapshots.outside_count)
			text += " and " + FormatDuration(snapshots.outside.p99_9) + " outside";
	} else if (one.slowed) {
		text += "; slowed " + common::Plural(one.slowed, "iteration", "iterations");
	}
	if (const auto peak = one.peak_bytes())
		text += "; parent and child together at most " + FormatBytes(*peak);
	if (one.available_bytes)
		text += "; " + FormatBytes(*one.available_bytes) + " of memory" +
			(one.cgroup_left_bytes ? ", " + FormatBytes(*one.cgroup_left_bytes) + " of the cgroup"
					       : "") +
			" were left";
	if (one.written_bytes)
		text += "; wrote " + FormatBytes(one.written_bytes);
	return text;
}

} // namespace forktail::analysis

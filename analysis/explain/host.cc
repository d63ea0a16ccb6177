// SPDX-License-Identifier: MIT
// What the host and the server report beside the threads: counters of the host, disks, suspensions of tasks,
// and what servers say themselves.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "common/format.h"
#include "common/json.h"
#include "scene.h"

namespace forktail::analysis
{

// A thread does not see that the hypervisor gave its CPU to another guest: stolen time looks like own code.
// Only the host's counter of stolen time shows it. An interval is extended to the readings around it.

namespace
{

// How much a counter grew between the readings around an interval. *longest_ns becomes at least the time
// between the two readings of each growth.
uint64_t GrownBy(const Run &run, const Series &series, uint64_t from_ns, uint64_t to_ns, uint64_t *longest_ns)
{
	double grown = 0;
	for (size_t i = 1; i < series.samples.size(); i++) {
		const Sample &s = series.samples[i];
		const uint64_t begin_ns = ReadingBegin(run, series, i);
		if (s.t_ns <= from_ns || begin_ns >= to_ns || s.value <= series.samples[i - 1].value)
			continue;
		grown += s.value - series.samples[i - 1].value;
		*longest_ns = std::max(*longest_ns, s.t_ns - begin_ns);
	}
	return static_cast<uint64_t>(grown);
}

// The same of the host's counter with this name.
uint64_t GrownBy(const Run &run, const std::string &name, uint64_t from_ns, uint64_t to_ns,
		 uint64_t *longest_ns)
{
	uint64_t grown = 0;
	for (const Series &series : run.series)
		grown += series.name == name ? GrownBy(run, series, from_ns, to_ns, longest_ns) : 0;
	return grown;
}

// A cgroup and how much its counter grew.
using Grown = std::pair<std::string, uint64_t>;

// Each cgroup whose counter grew, the largest first. In version 2 a cgroup's counter contains those below it,
// so one is left out if one below it is there.
std::vector<Grown> GrownCgroups(const Run &run, const std::string &name, uint64_t from_ns, uint64_t to_ns,
				uint64_t *longest_ns)
{
	std::map<std::string, uint64_t> grown;
	for (const Series &series : run.series) {
		const auto label = series.labels.find("cgroup");
		if (series.name != name || label == series.labels.end())
			continue;
		if (const uint64_t by = GrownBy(run, series, from_ns, to_ns, longest_ns))
			grown[label->second] += by;
	}
	std::vector<Grown> innermost;
	for (const auto &cgroup : grown) {
		const std::string below = cgroup.first + "/";
		const auto next = grown.lower_bound(below);
		if (next == grown.end() || next->first.compare(0, below.size(), below) != 0)
			innermost.emplace_back(cgroup);
	}
	std::stable_sort(innermost.begin(), innermost.end(),
			 [](const Grown &a, const Grown &b) { return a.second > b.second; });
	return innermost;
}

// "the cgroup /a (3 times), the cgroup /b (1 time)", the first ones; "" without any.
std::string CgroupsText(const std::vector<Grown> &cgroups, const char *one, const char *many)
{
	constexpr size_t most = 3;
	std::string text;
	for (size_t i = 0; i < std::min(cgroups.size(), most); i++)
		text += (i ? ", the cgroup " : "the cgroup ") + cgroups[i].first + " (" +
			common::Plural(cgroups[i].second, one, many) + ")";
	if (cgroups.size() > most)
		text += ", " + common::Plural(cgroups.size() - most, "other", "others");
	return text;
}

} // namespace

std::vector<std::string> MemoryEventSentences(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	static constexpr struct {
		const char *counter, *limit;
	} limits[] = {{"cgroup.memory.limit_hits", "the memory limit"},
		      {"cgroup.memory.high_hits", "memory.high"}};
	auto when = [](uint64_t longest_ns) {
		return ", at a time known to within " + common::FormatDuration(longest_ns);
	};
	std::vector<std::string> sentences;
	uint64_t longest_ns = 0;
	if (uint64_t kills = GrownBy(run, "host.oom_kills", from_ns, to_ns, &longest_ns)) {
		uint64_t unused = 0;
		const std::string where =
		    CgroupsText(GrownCgroups(run, "cgroup.memory.oom_kills", from_ns, to_ns, &unused),
				"process", "processes");
		sentences.push_back("the kernel's OOM killer killed " +
				    common::Plural(kills, "process", "processes") + " on this host" +
				    (where.empty() ? "" : ", of these in " + where) + when(longest_ns));
	}
	for (const auto &[counter, limit] : limits) {
		longest_ns = 0;
		if (const std::string where =
			CgroupsText(GrownCgroups(run, counter, from_ns, to_ns, &longest_ns), "time", "times");
		    !where.empty())
			// Many cgroups are read less often.
			sentences.push_back(
			    std::string(limit) + " was reached by " + where +
			    "; a thread that reaches it has to reclaim memory (counted between "
			    "two readings, usually " +
			    common::FormatDuration(longest_ns) + " apart)");
	}
	longest_ns = 0;
	if (GrownBy(run, "host.page_cache_drops", from_ns, to_ns, &longest_ns))
		sentences.push_back("the page cache was dropped (/proc/sys/vm/drop_caches)" +
				    when(longest_ns));
	longest_ns = 0;
	if (GrownBy(run, "host.slab_drops", from_ns, to_ns, &longest_ns))
		sentences.push_back("the kernel's caches of files and directories were dropped "
				    "(/proc/sys/vm/drop_caches)" +
				    when(longest_ns));
	return sentences;
}

std::string StealSentence(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns)
{
	const uint64_t reading_ns = LongestReading(run);
	for (const Series &series : run.series) {
		if (series.name != "host.cpu.steal")
			continue;
		// Of equal readings not all are recorded: a value is valid until one reading before the next
		// sample.
		double stolen_ns = 0;
		uint64_t first_ns = 0, last_ns = 0;
		for (size_t i = 0; i < series.samples.size(); i++) {
			const Sample &s = series.samples[i];
			uint64_t begin = ReadingBegin(run, series, i), end = run.end_ns;
			if (i + 1 < series.samples.size())
				end = ReadingBegin(run, series, i + 1);
			if (end <= from_ns || begin >= to_ns || end <= begin)
				continue;
			begin = std::max(begin, from_ns - std::min(from_ns, reading_ns));
			end = std::min(end, to_ns + reading_ns);
			stolen_ns +=
			    s.value / 100 * std::max(run.cpus, 1u) * static_cast<double>(end - begin);
			first_ns = first_ns ? first_ns : begin;
			last_ns = end;
		}
		if (stolen_ns * 4 >= static_cast<double>(worst_ns) && stolen_ns >= 1)
			return "the hypervisor took " +
			       common::FormatDuration(static_cast<uint64_t>(stolen_ns)) +
			       " of CPU time from this host (steal) within " +
			       common::FormatDuration(last_ns - first_ns);
	}
	return "";
}

// Block requests show how much a disk read and wrote, how busy it was and which thread issued them. Writeback
// is issued by a kernel thread, or by the first thread that calls fsync. The processes that dirtied the pages
// are therefore listed too.

namespace
{

constexpr uint64_t kLongestIo =
    2'000'000'000;		 // a request in flight began at most this long before an interval
constexpr double kMinBusy = 0.1; // a disk that was less busy delayed no thread
constexpr uint64_t kWriteback = 5'000'000'000; // pages written back were dirtied at most this long before

// A device's requests in an interval.
struct Use {
	uint64_t read = 0, written = 0;
	uint64_t waited_ns = 0, busy_ns = 0; // sum over requests; time with at least one in flight
	uint64_t busy_until_ns = 0;
	std::map<std::string, uint64_t> by; // bytes by issuer
	uint64_t bytes() const { return read + written; }
};

std::map<uint32_t, Use> UseOfDevices(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	std::map<uint32_t, Use> devices;
	uint64_t look_from = from_ns > kLongestIo ? from_ns - kLongestIo : 0;
	auto io = std::lower_bound(run.ios.begin(), run.ios.end(), look_from,
				   [](const ft_io &a, uint64_t t_ns) { return a.start_ns < t_ns; });
	for (; io != run.ios.end() && io->start_ns < to_ns; ++io) {
		uint64_t start = std::max(io->start_ns, from_ns),
			 end = std::min(io->start_ns + io->duration_ns, to_ns);
		if (end <= start)
			continue;
		Use &use = devices[io->dev];
		use.waited_ns += end - start;
		if (end > use.busy_until_ns)
			use.busy_ns += end - std::max(start, use.busy_until_ns);
		use.busy_until_ns = std::max(use.busy_until_ns, end);
		if (io->write > 1)
			continue;
		(io->write ? use.written : use.read) += io->bytes;
		use.by[common::VisibleName(io->comm) + " (" + std::to_string(OwnId(run, io->tid)) + ")"] +=
		    io->bytes;
	}
	return devices;
}

struct Writer {
	std::string name;
	std::set<uint32_t> processes; // of that name
	uint64_t bytes = 0;
	uint64_t first_ns = UINT64_MAX;
};

// The processes that wrote most to files on a device: at most two, the second only if it wrote at least a
// tenth of the first. Files whose device has no block requests may be on this device.
std::vector<Writer> Writers(const Scene &scene, const std::map<uint32_t, Use> &devices, uint32_t dev,
			    uint64_t from_ns, uint64_t to_ns)
{
	const Run &run = scene.run;
	std::map<std::string, Writer> by_name;
	std::map<uint32_t, std::string> roles; // of traced processes
	for (const Thread &t : run.threads)
		if ((t.flags & FT_THREAD_MAIN) && !t.role.empty())
			roles[t.tgid] = t.role;
	uint64_t look_from = from_ns > kWriteback ? from_ns - kWriteback : 0;
	auto w = std::lower_bound(run.writes.begin(), run.writes.end(), look_from,
				  [](const ft_writes &a, uint64_t t_ns) { return a.start_ns < t_ns; });
	for (; w != run.writes.end() && w->start_ns < to_ns; ++w) {
		if ((w->dev != dev && devices.count(w->dev)) ||
		    SpaceOfId(run, w->tgid) != SpaceOfId(run, scene.thread.tid))
			continue;
		auto role = roles.find(w->tgid);
		std::string name = role == roles.end() ? common::VisibleName(w->comm) : role->second;
		Writer &writer = by_name[name];
		writer.name = name;
		writer.processes.insert(w->tgid);
		writer.bytes += w->bytes;
		writer.first_ns = std::min(writer.first_ns, w->start_ns);
	}
	std::vector<Writer> writers;
	for (auto &[name, writer] : by_name)
		writers.push_back(std::move(writer));
	std::stable_sort(writers.begin(), writers.end(),
			 [](const Writer &a, const Writer &b) { return a.bytes > b.bytes; });
	size_t shown = 0;
	while (shown < writers.size() && shown < 2 && writers[shown].bytes * 10 >= writers[0].bytes)
		shown++;
	writers.resize(shown);
	return writers;
}

std::string WriterText(const Writer &w)
{
	return w.name + " (" +
	       (w.processes.size() > 1 ? common::Plural(w.processes.size(), "process", "processes")
				       : std::to_string(*w.processes.begin())) +
	       "), " + common::FormatBytes(w.bytes);
}

} // namespace

std::string DiskText(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	std::map<uint32_t, Use> devices = UseOfDevices(scene.run, from_ns, to_ns);
	std::erase_if(devices, [&](const auto &d) { // of another host
		return SpaceOfDevice(scene.run, d.first) != SpaceOfId(scene.run, scene.thread.tid);
	});
	auto busiest = std::max_element(devices.begin(), devices.end(), [](const auto &a, const auto &b) {
		return a.second.busy_ns < b.second.busy_ns;
	});
	if (busiest == devices.end())
		return "";
	const Use &use = busiest->second;
	const double busy = static_cast<double>(use.busy_ns) / static_cast<double>(to_ns - from_ns);
	if (busy < kMinBusy)
		return "";
	std::string text = "; meanwhile block device " + DeviceName(scene.run, busiest->first) + " ";
	if (!use.bytes())
		text += "was busy with flushes or discards";
	if (use.written)
		text += "wrote " + common::FormatBytes(use.written);
	if (use.read)
		text += std::string(use.written ? " and " : "") + "read " + common::FormatBytes(use.read);
	std::vector<std::pair<uint64_t, std::string>> issuers;
	for (const auto &[name, bytes] : use.by)
		issuers.push_back({bytes, name});
	std::sort(issuers.rbegin(), issuers.rend());
	if (use.bytes())
		text += ", most for " + issuers[0].second;
	if (use.bytes() && issuers.size() > 1 && issuers[1].first * 10 >= issuers[0].first)
		text += ", then " + issuers[1].second;

	char in_flight[32];
	std::snprintf(in_flight, sizeof in_flight, "%.1f",
		      static_cast<double>(use.waited_ns) / static_cast<double>(use.busy_ns));
	text += "; the device was busy " + common::FormatPercent(busy) + " of the time, with " + in_flight +
		" requests in flight on average";
	std::vector<Writer> writers = Writers(scene, devices, busiest->first, from_ns, to_ns);
	for (size_t i = 0; i < writers.size(); i++)
		text += (i ? ", " : "; files were written by ") + WriterText(writers[i]) +
			(i ? ""
			   : " in " + common::FormatDuration(to_ns - std::min(writers[i].first_ns, from_ns)));
	return text;
}

// Spans and tallies show that a thread was suspended. The recorder's notes name the frozen cgroup and the
// tracer.

namespace
{

// The recorder reads a process' cgroup when the process runs again, within two polls of its ring.
constexpr uint64_t kNoteDelay = 200'000'000;

// The cgroup that the scene's process was frozen with: the last note by then, else the first; nullptr without
// a note.
const FrozenGroup *FrozenGroupOf(const Scene &scene)
{
	const FrozenGroup *group = nullptr;
	for (const FrozenGroup &g : scene.run.frozen)
		if (g.pid == scene.thread.tgid && (!group || g.t_ns < scene.to_ns + kNoteDelay))
			group = &g;
	return group;
}

// The kernel counts a throttle when it ends. The recorder may read the counter up to 100 ms later than it is
// due.
constexpr uint64_t kReadingLate = 100'000'000;

// The last sample of a cgroup's series before an instant; 0 without one.
double CgroupValue(const Run &run, const std::string &name, const std::string &cgroup, uint64_t t_ns)
{
	for (const Series &series : run.series) {
		auto label = series.labels.find("cgroup");
		if (series.name != name || label == series.labels.end() || label->second != cgroup)
			continue;
		auto after =
		    std::upper_bound(series.samples.begin(), series.samples.end(), t_ns,
				     [](uint64_t ns, const Sample &sample) { return ns < sample.t_ns; });
		return after == series.samples.begin() ? 0 : (after - 1)->value;
	}
	return 0;
}

// The quota that was used up: of those in force on the thread's process, the one whose cgroup the kernel
// throttled longest about then, else the tightest; nullptr if none is known.
const Quota *UsedUp(const Scene &scene)
{
	std::map<std::string, const Quota *> in_force;
	for (const Quota &q : scene.run.quotas) {
		if (q.pid != scene.thread.tgid && q.pid != scene.thread.parent_tgid)
			continue;
		if (q.quota_us && q.period_us && q.t_ns < scene.to_ns)
			in_force[q.cgroup] = &q;
		else if (q.t_ns <= scene.from_ns)
			in_force.erase(q.cgroup);
	}
	const Quota *best = nullptr;
	double best_grown = 0, best_share = 0;
	const uint64_t counted_ns = scene.to_ns + LongestReading(scene.run) + kReadingLate;
	for (const auto &[cgroup, q] : in_force) {
		double grown = CgroupValue(scene.run, "cgroup.throttled", cgroup, counted_ns) -
			       CgroupValue(scene.run, "cgroup.throttled", cgroup, scene.from_ns);
		double share = static_cast<double>(q->quota_us) / static_cast<double>(q->period_us);
		if (!best || grown > best_grown || (grown == best_grown && share < best_share)) {
			best = q;
			best_grown = grown;
			best_share = share;
		}
	}
	return best;
}

} // namespace

std::string FrozenGroupText(const Scene &scene)
{
	const FrozenGroup *group = FrozenGroupOf(scene);
	std::string text = "cgroup";
	if (group && group->cgroup != "/")
		text += " " + group->cgroup;
	if (group && !group->name.empty())
		text += " (" + group->name + ")";
	return text;
}

std::string FrozenSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Frozen);
	if (total.all_ns() == 0)
		return "";
	return "the server's " + FrozenGroupText(scene) + " was frozen for " +
	       common::FormatDuration(total.all_ns()) +
	       (total.times() > 1 ? " (" + common::FormatCount(total.times()) + " times)" : "");
}

std::string TracerText(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Ptrace);
	const ft_span *s = total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
	uint32_t pid = s ? static_cast<uint32_t>(s->arg[0]) : 0;
	auto known = scene.run.tracers.find(pid);
	std::string name = known == scene.run.tracers.end() ? "" : known->second;
	if (!pid)
		return "a tracer";
	return (name.empty() ? "a tracer" : name) + " (pid " + std::to_string(pid) + ")";
}

std::string PtraceSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Ptrace);
	if (total.all_ns() == 0)
		return "";
	return "was stopped " + common::Plural(std::max<uint64_t>(total.times(), 1), "time", "times") +
	       " by " + TracerText(scene) + ", " + common::FormatDuration(total.all_ns()) + " in total";
}

std::string QuotaSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::CpuQuota);
	const Quota *q = UsedUp(scene);
	std::string text = q ? "the cgroup " + q->cgroup + " had used up its CPU quota (" +
				   common::FormatDuration(q->quota_us * 1000) + " of every " +
				   common::FormatDuration(q->period_us * 1000) + ")"
			     : std::string("the server's cgroup had used up its CPU quota");
	return text + ": the thread waited " + common::FormatDuration(total.all_ns()) + ", throttled " +
	       common::Plural(std::max<uint64_t>(total.times(), 1), "time", "times");
}

std::string QuotaClause(const Scene &scene)
{
	const Quota *q = UsedUp(scene);
	if (!q)
		return "The server's cgroup used up its CPU quota \2 and waited \1";
	return "The cgroup " + q->cgroup + " used up its CPU quota \2 (" +
	       common::FormatDuration(q->quota_us * 1000) + " of every " +
	       common::FormatDuration(q->period_us * 1000) + ") and waited \1";
}

std::string StallPhrase(const Scene &scene, Cause cause, const std::string &duration)
{
	switch (cause) {
	case Cause::Stopped:
		return "was stopped by SIGSTOP for " + duration;
	case Cause::Frozen:
		return "was frozen with its cgroup for " + duration;
	case Cause::Ptrace:
		return "was stopped by " + TracerText(scene) + " for " + duration;
	case Cause::CpuQuota:
		return "was throttled by its CPU quota for " + duration;
	default:
		return "spent " + duration + " in " + CauseName(cause);
	}
}

// Redis dates slow commands and latency events by the second. The observer adds the error of each time. An
// entry belongs to an episode if it may overlap it. A slow command is dated better where event-loop
// iterations were recorded (SlowLog).

namespace
{

constexpr size_t kCommandBytes = 60;
// The error of a fork's time, because Redis is polled every second.
constexpr uint64_t kPollNs = 1'100'000'000;

struct ReportSentence {
	uint64_t duration_ns;
	std::string text;
};

bool IsLarge(const ServerReport &r)
{
	return r.kind == "large-request" || r.kind == "large-reply";
}

std::string CommandText(const common::Json &j)
{
	std::string text;
	auto words = j.find("command");
	if (words == j.end() || !words->is_array())
		return "a command";
	for (const common::Json &word : *words) {
		if (!word.is_string())
			continue;
		if (!text.empty())
			text += ' ';
		text += word.get<std::string>();
	}
	if (text.size() > kCommandBytes)
		text.replace(kCommandBytes, std::string::npos, "...");
	return text;
}

// The error of a time, as a clause.
std::string ErrorText(uint64_t error_ns)
{
	return error_ns ? ", at a time known to within " + common::FormatDuration(error_ns) : "";
}

// ", in the event-loop iteration that began at 20:15:03.123456 UTC"; "" if the time of day is unknown.
std::string BegunText(const Run &run, uint64_t t_ns)
{
	constexpr uint64_t us = 1'000, s_ns = 1'000'000'000;
	const uint64_t realtime_ns = RealtimeNs(run, t_ns), second = realtime_ns / s_ns % 86'400;
	char text[32];
	if (!realtime_ns)
		return "";
	std::snprintf(text, sizeof text, "%02d:%02d:%02d.%06d", static_cast<int>(second / 3600),
		      static_cast<int>(second / 60 % 60), static_cast<int>(second % 60),
		      static_cast<int>(realtime_ns % s_ns / us));
	return std::string(", in the event-loop iteration that began at ") + text + " UTC";
}

bool MayOverlap(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	return start_ns <= to_ns && end_ns >= from_ns;
}

// An outage as the load generator saw it: keys without a server. Both ends are exact. An outage without an
// end lasted to the end of the load. Empty if it does not overlap the interval.
ReportSentence OutageSentence(const common::Json &j, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t last = common::Whole(j, "last_ok_ns"), first = common::Whole(j, "first_ok_ns");
	uint64_t begin = last ? last : common::Whole(j, "noticed_ns"),
		 end = first ? first : std::max(begin, to_ns);
	if (!j.contains("server") || !j["server"].is_string() || !MayOverlap(begin, end, from_ns, to_ns))
		return {};
	std::string text = "the keys of " + j["server"].get<std::string>() + " had no server for " +
			   common::FormatDuration(end - begin);
	if (first && j.contains("after") && j["after"].is_string())
		text += ", until " +
			(j["after"] == j["server"] ? std::string("the same server")
						   : j["after"].get<std::string>()) +
			" served them";
	return {end - begin, std::move(text)};
}

} // namespace

std::vector<std::string> ServerReportSentences(const Run &run, const Commands &commands, uint64_t from_ns,
					       uint64_t to_ns, uint64_t worst_ns, size_t limit)
{
	std::vector<ReportSentence> reports;
	for (size_t i = 0; i < run.reports.size(); i++) {
		const ServerReport &r = run.reports[i];
		if (r.kind != "slowlog" && r.kind != "latency-event" && r.kind != "fork" &&
		    r.kind != "outage" && !IsLarge(r))
			continue;
		if (r.kind == "slowlog" && !MayBeOf(commands, i, commands.entries[i], from_ns, to_ns))
			continue;
		common::Json j = common::ParseJson(r.text);
		if (r.kind == "outage") {
			ReportSentence outage = OutageSentence(j, from_ns, to_ns);
			if (!outage.text.empty() && outage.duration_ns >= worst_ns / 4)
				reports.push_back(std::move(outage));
			continue;
		}
		uint64_t error = common::Whole(j, "t_error_ns"), duration = 0;
		std::string text;
		if (r.kind == "slowlog") {
			const SlowEntry &entry = commands.entries[i];
			duration = entry.duration_ns;
			text =
			    "Redis' slow log lists " + CommandText(j) + " with " +
			    common::FormatDuration(duration) +
			    (entry.client.empty() ? "" : " from " + entry.client) +
			    (IsDated(commands, i, duration) ? BegunText(run, commands.ran_in[i][0].since_ns)
							    : ErrorText(error));
		} else if (r.kind == "latency-event" && j.contains("event") && j["event"].is_string()) {
			duration = common::Whole(j, "latest_ms") * 1'000'000;
			text = "Redis' latency monitor lists \"" + j["event"].get<std::string>() +
			       "\" with " + common::FormatDuration(duration) + ErrorText(error);
		} else if (IsLarge(r)) {
			text = "Valkey's command log lists " + CommandText(j) + " with a " +
			       r.kind.substr(r.kind.find('-') + 1) + " of " +
			       common::FormatBytes(common::Whole(j, "bytes")) + ErrorText(error);
		} else if (r.kind == "fork" && run.spans.empty()) { // otherwise ForkSentence reports it
			duration = r.latest_fork_usec * 1000;
			error = kPollNs;
			text =
			    "Redis forked within one second of this episode and reports that fork() took " +
			    common::FormatDuration(duration);
		}
		if (text.empty() || (duration < worst_ns / 4 && !IsLarge(r)))
			continue;
		uint64_t early = r.t_ns - std::min(r.t_ns, error + duration);
		if (r.kind == "slowlog" || MayOverlap(early, r.t_ns + error, from_ns, to_ns))
			reports.push_back({duration, std::move(text)});
	}
	std::stable_sort(
	    reports.begin(), reports.end(),
	    [](const ReportSentence &a, const ReportSentence &b) { return a.duration_ns > b.duration_ns; });
	std::vector<std::string> sentences;
	for (size_t i = 0; i < reports.size() && i < limit; i++)
		sentences.push_back(std::move(reports[i].text));
	return sentences;
}

std::string SlowCommand(const Scene &scene, uint64_t at_least_ns)
{
	std::string name;
	uint64_t longest_ns = at_least_ns;
	for (size_t i = 0; scene.commands && i < scene.run.reports.size(); i++) {
		if (scene.run.reports[i].kind != "slowlog")
			continue;
		const SlowEntry &entry = scene.commands->entries[i];
		if (entry.duration_ns < longest_ns || entry.command.empty() ||
		    !MayBeOf(*scene.commands, i, entry, scene.from_ns, scene.to_ns))
			continue;
		longest_ns = entry.duration_ns;
		name = entry.command;
	}
	return name;
}

std::string OutageClause(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t *ns)
{
	ReportSentence longest = {0, ""};
	for (const ServerReport &r : run.reports)
		if (r.kind == "outage")
			if (ReportSentence one = OutageSentence(common::ParseJson(r.text), from_ns, to_ns);
			    one.duration_ns > longest.duration_ns)
				longest = std::move(one);
	*ns = longest.duration_ns;
	if (!longest.text.empty())
		longest.text[0] = 'T'; // "The keys of ..."
	return longest.text;
}

} // namespace forktail::analysis

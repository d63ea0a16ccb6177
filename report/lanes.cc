// SPDX-License-Identifier: MIT
// Turns a run into lanes: threads from their timelines, soft interrupts by CPU from the spans they left on
// traced threads, disks from block requests.
#include "lanes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "analysis/outside.h"
#include "analysis/timeline/waits.h"
#include "analysis/units.h"

namespace forktail
{

namespace
{

constexpr size_t kQuietCpus = 16; // with more, only those that interrupted a traced thread have a lane

// In the order of enum LaneCause, colours as in causes.def.
struct DiskCause {
	const char *name;
	const char *light, *dark;
	const char *meaning;
};
constexpr DiskCause kDiskCauses[] = {
    {"disk-read", "#3aa0c9", "#64c4ea", "the device was reading"},
    {"disk-write", "#2f6fb5", "#5b9be0", "the device was writing"},
    {"disk-flush", "#6a4fb0", "#9a82de", "the device was emptying its cache"},
    {"disk-discard", "#8fa3b8", "#a9bbcd", "the device was told of free blocks"},
};

uint64_t EndOf(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// Who held the CPU: a traced thread by its part, another by the name the recorder kept with the wait. A wait
// in a file system call keeps the file's name instead.
std::string HolderName(const Run &run, const ft_span &wait, uint32_t tid)
{
	std::string id = "(" + std::to_string(tid) + ")";
	for (const Thread &t : run.threads)
		if (t.tid == tid && t.start_ns <= wait.start_ns + wait.duration_ns &&
		    wait.start_ns <= t.end_ns)
			return (t.role.empty() ? t.comm : t.role) + " " + id;
	bool has_file = wait.owner == FT_FSYNC || wait.owner == FT_FILE_WRITE || wait.owner == FT_FILE_READ ||
			wait.owner == FT_FILE_META;
	if (has_file || wait.detail >= run.details.size() || run.details[wait.detail].name.empty())
		return "thread " + std::to_string(tid);
	return run.details[wait.detail].name + " " + id;
}

// A few lines about a thread's piece: what it is part of, what it touched, who held the CPU, where the kernel
// was.
std::string DescribePiece(const Run &run, const LaneSpan &piece)
{
	if (piece.key >= run.spans.size())
		return "";
	const ft_span &s = run.spans[piece.key];
	const Detail &detail = run.details[s.detail < run.details.size() ? s.detail : 0];
	std::string text;
	auto line = [&](const std::string &more) {
		if (!more.empty())
			text += (text.empty() ? "" : "\n") + more;
	};
	Cause owner = CauseOfOwner(s.owner);
	if (s.off_cpu && s.depth && piece.cause != Index(owner))
		line(std::string("inside ") + CauseName(owner));
	else if (s.duration_ns > 100'000 && piece.end_ns - piece.start_ns < s.duration_ns / 50 * 49)
		line(std::string("part of a ") + CauseName(owner) + " of " + FormatDuration(s.duration_ns));
	uint32_t holder = s.off_cpu ? static_cast<uint32_t>(s.arg[1]) : 0;
	if (piece.cause == Index(Cause::RunQueue) && holder)
		line("CPU " + std::to_string(s.cpu) + " held by " + HolderName(run, s, holder) + " for " +
		     FormatDuration(std::min(s.arg[1] >> 32, s.runnable_ns)));
	else
		line(detail.name);
	line(StackText(detail, 8));
	return text;
}

// Appends a timeline's pieces. Idleness is the lane's empty ground; what lies between spans is shares.
void AppendTimeline(const Timeline &t, const ReportClock &clock, Lane *lane)
{
	for (size_t i = 0; i + 1 < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		uint64_t from = clock.Clamp(p.start_ns), to = clock.Clamp(t.pieces[i + 1].start_ns);
		if (from >= to)
			continue;
		if (p.mix != kNoMix) {
			const Mix &mix = t.mixes[p.mix];
			for (uint32_t k = 0; k < mix.part_count; k++) {
				const MixPart &part = t.mix_parts[mix.first_part + k];
				if (part.cause == Cause::Idle)
					continue;
				double ns = static_cast<double>(to - from) * static_cast<double>(part.ns) /
					    static_cast<double>(std::max<uint64_t>(mix.total_ns, 1));
				lane->shares.push_back({from, to, static_cast<uint64_t>(ns),
							static_cast<uint8_t>(Index(part.cause))});
			}
		} else if (p.cause == Cause::Idle) {
			continue;
		} else if (p.span == kNoSpan) {
			lane->shares.push_back({from, to, to - from, static_cast<uint8_t>(Index(p.cause))});
		} else {
			lane->spans.push_back({from, to, p.span, static_cast<uint8_t>(Index(p.cause))});
		}
	}
}

const std::string &NameOf(const Thread &t)
{
	return t.role.empty() ? t.comm : t.role;
}

bool IsChild(const Thread &t)
{
	return t.flags & FT_THREAD_CHILD;
}

bool IsClient(const Thread &t)
{
	return t.flags & FT_THREAD_CLIENT;
}

// The page's order: threads that serve requests, then main threads, then the others by name; then the load
// generator's, then children.
std::vector<uint32_t> ThreadOrder(const Explanation &explanation)
{
	const Run &run = explanation.run;
	std::vector<uint32_t> order(run.threads.size());
	for (uint32_t i = 0; i < order.size(); i++)
		order[i] = i;
	auto rank = [&](uint32_t i) {
		const Thread &t = run.threads[i];
		if (std::find(explanation.serving.begin(), explanation.serving.end(), static_cast<int>(i)) !=
		    explanation.serving.end())
			return 0;
		return IsClient(t) ? 3 : t.flags & FT_THREAD_MAIN ? 1 : 2;
	};
	std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
		const Thread &x = run.threads[a], &y = run.threads[b];
		if (IsChild(x) != IsChild(y))
			return !IsChild(x);
		if (IsChild(x))
			return x.start_ns < y.start_ns;
		if (x.tgid != y.tgid && rank(a) == rank(b))
			return x.tgid < y.tgid;
		return rank(a) != rank(b) ? rank(a) < rank(b) : x.tid < y.tid;
	});
	return order;
}

void AddThread(const Explanation &explanation, uint32_t index, const ReportClock &clock, Lane *lane)
{
	const Run &run = explanation.run;
	const Thread &t = run.threads[index];
	lane->life.push_back({clock.Clamp(t.start_ns), clock.Clamp(t.end_ns)});
	lane->describe = [&run](const LaneSpan &piece) { return DescribePiece(run, piece); };
	for (const Timeline &known : explanation.timelines)
		if (known.thread == index) {
			AppendTimeline(known, clock, lane);
			return;
		}
	AppendTimeline(BuildTimeline(run, index), clock, lane);
}

void AddThreads(const Explanation &explanation, const ReportClock &clock, const LaneLimits &limits,
		std::vector<Lane> *lanes, size_t *left_out)
{
	const Run &run = explanation.run;
	std::set<uint32_t> servers;
	for (const Thread &t : run.threads)
		if (!IsChild(t) && !IsClient(t))
			servers.insert(t.tgid);
	bool several = servers.size() > 1;
	*left_out = 0;
	size_t first = lanes->size();
	for (uint32_t index : ThreadOrder(explanation)) {
		const Thread &t = run.threads[index];
		bool serving = std::find(explanation.serving.begin(), explanation.serving.end(),
					 static_cast<int>(index)) != explanation.serving.end();
		std::string id = std::to_string(t.tid);
		// Children with the same part, one after the other, share a lane.
		auto same = lanes->end();
		if (IsChild(t))
			same = std::find_if(lanes->begin() + static_cast<ptrdiff_t>(first), lanes->end(),
					    [&](const Lane &lane) {
						    return lane.kind == "child" && lane.name == NameOf(t) &&
							   lane.life.back().second <= clock.Clamp(t.start_ns);
					    });
		if (same != lanes->end()) {
			same->note += ", " + id;
			AddThread(explanation, index, clock, &*same);
			continue;
		}
		if (lanes->size() - first >= limits.threads) {
			++*left_out;
			continue;
		}
		Lane lane;
		lane.name = NameOf(t);
		lane.kind = IsChild(t) ? "child" : serving ? "serving" : "thread";
		lane.group = IsChild(t) ? "Children" : "Server threads";
		if (several && !IsChild(t))
			lane.group = "Threads of process " + std::to_string(t.tgid);
		if (IsClient(t)) {
			lane.name = t.comm;
			lane.group = "Load generator";
		}
		lane.note = id;
		AddThread(explanation, index, clock, &lane);
		lanes->push_back(std::move(lane));
	}
}

// How often a CPU ran soft interrupts of any kind, from the host's metrics; added to what `rate` holds.
void AddSoftirqRate(const Series &series, const ReportClock &clock, Lane *lane)
{
	lane->rate_step_ns = std::max<uint64_t>(100'000'000, (clock.end_ns - clock.begin_ns) / 4000);
	lane->rate_name = "soft interrupts of all kinds";
	lane->rate_unit = "1/s";
	lane->rate.resize((clock.end_ns - clock.begin_ns) / lane->rate_step_ns + 1);
	size_t last = SIZE_MAX; // several samples in one step: their last counts
	float given = 0;
	for (const Sample &sample : series.samples) {
		if (sample.t_ns < clock.begin_ns || sample.t_ns > clock.end_ns)
			continue;
		size_t step = (sample.t_ns - clock.begin_ns) / lane->rate_step_ns;
		if (step == last)
			lane->rate[step] -= given;
		lane->rate[step] += given = static_cast<float>(sample.value);
		last = step;
	}
}

// What traced threads were interrupted by, on the CPU they ran on, over how often that CPU was interrupted at
// all.
void AddInterrupts(const Run &run, const ReportClock &clock, std::vector<Lane> *lanes)
{
	std::map<uint64_t, Lane> by_cpu;
	for (uint32_t i = 0; i < run.spans.size(); i++) {
		const ft_span &s = run.spans[i];
		bool soft = s.owner >= FT_SOFTIRQ && s.owner - int{FT_SOFTIRQ} < int{FT_SOFTIRQ_VECTORS};
		if (!soft && s.owner != FT_HARDIRQ)
			continue;
		uint64_t from = clock.Clamp(s.start_ns), to = clock.Clamp(EndOf(s));
		if (from < to)
			by_cpu[s.cpu].spans.push_back(
			    {from, to, i, static_cast<uint8_t>(Index(CauseOfOwner(s.owner)))});
	}
	for (const Series &series : run.series) {
		auto cpu = series.labels.find("cpu");
		if (series.name != "host.softirq" || cpu == series.labels.end() || cpu->second.empty() ||
		    cpu->second.find_first_not_of("0123456789") != std::string::npos ||
		    cpu->second.size() > 6)
			continue;
		uint64_t number = std::stoul(cpu->second);
		if (by_cpu.count(number) || by_cpu.size() < kQuietCpus)
			AddSoftirqRate(series, clock, &by_cpu[number]);
	}
	for (auto &[cpu, lane] : by_cpu) {
		lane.name = "CPU " + std::to_string(cpu);
		lane.kind = "softirq";
		lane.group = "Interrupts of traced threads, by CPU";
		lane.life.push_back({clock.begin_ns, clock.end_ns});
		lane.describe = [&run](const LaneSpan &s) {
			return "hit thread " + std::to_string(run.spans[s.key].tid);
		};
		std::sort(lane.spans.begin(), lane.spans.end(), [](const LaneSpan &a, const LaneSpan &b) {
			return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
		});
		// A hard interrupt may lie inside a soft one, or the other way round: the outer one stays
		// whole.
		std::vector<LaneSpan> outer;
		for (const LaneSpan &s : lane.spans)
			if (outer.empty() || s.start_ns >= outer.back().end_ns)
				outer.push_back(s);
		lane.spans = std::move(outer);
		lane.note = Plural(lane.spans.size(), "span", "spans");
		lanes->push_back(std::move(lane));
	}
}

// A time during which a disk had requests of one kind under way.
struct Busy {
	uint64_t requests = 0;
	uint64_t bytes = 0;
	uint64_t longest_ns = 0;
	std::map<std::string, uint64_t> issuers; // comm -> bytes
};

std::string DescribeBusy(const Busy &busy)
{
	std::string text = Plural(busy.requests, "request", "requests") + ", " + FormatBytes(busy.bytes) +
			   ", the longest " + FormatDuration(busy.longest_ns) + "\nissued by";
	std::vector<std::pair<uint64_t, std::string>> most;
	for (const auto &[comm, bytes] : busy.issuers)
		most.push_back({bytes, comm});
	std::sort(most.rbegin(), most.rend());
	for (size_t i = 0; i < most.size() && i < 3; i++)
		text += (i ? ", " : " ") + most[i].second;
	return text;
}

// 0 read, 1 write, 2 flush, 3 discard and others, as kDiskRead ...
int KindOf(const ft_io &io)
{
	switch (io.write) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 3:
		return 2;
	default:
		return 3;
	}
}

// Spreads a request's bytes over the time it took.
void AddRate(const ft_io &io, const ReportClock &clock, uint64_t step_ns, std::vector<float> *rate)
{
	uint64_t from = clock.Clamp(io.start_ns), to = clock.Clamp(io.start_ns + io.duration_ns);
	if (io.start_ns < clock.begin_ns || io.start_ns >= clock.end_ns)
		return;
	to = std::max(to, from + 1);
	double per_ns = io.bytes / static_cast<double>(to - from);
	for (uint64_t at = from; at < to;) {
		uint64_t step = (at - clock.begin_ns) / step_ns;
		uint64_t until = std::min(to, clock.begin_ns + (step + 1) * step_ns);
		if (step >= rate->size())
			break;
		(*rate)[step] += static_cast<float>(per_ns * static_cast<double>(until - at) * 1e9 /
						    static_cast<double>(step_ns));
		at = until;
	}
}

void AddDisks(const Run &run, const ReportClock &clock, std::vector<Lane> *lanes)
{
	// About as many steps as a wide screen has pixels, none below 10 ms.
	uint64_t step_ns = std::max<uint64_t>(10'000'000, (clock.end_ns - clock.begin_ns) / 4000);
	struct Disk {
		Lane lane;
		std::shared_ptr<std::vector<Busy>> busy = std::make_shared<std::vector<Busy>>();
	};
	std::map<std::pair<uint32_t, int>, Disk> disks;
	for (const ft_io &io : run.ios) { // by start
		int kind = KindOf(io);
		Disk &disk = disks[{io.dev, kind}];
		if (disk.lane.rate.empty())
			disk.lane.rate.resize((clock.end_ns - clock.begin_ns) / step_ns + 1);
		AddRate(io, clock, step_ns, &disk.lane.rate);
		uint64_t from = clock.Clamp(io.start_ns), to = clock.Clamp(io.start_ns + io.duration_ns);
		if (from >= to)
			continue;
		std::vector<LaneSpan> &spans = disk.lane.spans;
		if (spans.empty() || spans.back().end_ns < from) {
			spans.push_back({from, to, static_cast<uint32_t>(disk.busy->size()),
					 static_cast<uint8_t>(kDiskRead + kind)});
			disk.busy->emplace_back();
		}
		spans.back().end_ns = std::max(spans.back().end_ns, to);
		Busy &busy = disk.busy->back();
		busy.requests++;
		busy.bytes += io.bytes;
		busy.longest_ns = std::max(busy.longest_ns, io.duration_ns);
		busy.issuers[VisibleName(io.comm)] += io.bytes;
	}
	for (auto &[key, disk] : disks) {
		disk.lane.name = DeviceName(run, key.first);
		disk.lane.note = LaneCauseName(kDiskRead + key.second) + sizeof "disk";
		disk.lane.kind = "disk";
		disk.lane.group = "Disk requests";
		disk.lane.rate_name = "in all";
		disk.lane.rate_unit = "bytes/s";
		disk.lane.rate_step_ns = step_ns;
		disk.lane.life.push_back({clock.begin_ns, clock.end_ns});
		disk.lane.describe = [busy = disk.busy](const LaneSpan &s) {
			return DescribeBusy((*busy)[s.key]);
		};
		lanes->push_back(std::move(disk.lane));
	}
}

} // namespace

const char *LaneCauseName(int cause)
{
	return cause < kTimelineCauses ? CauseName(static_cast<Cause>(cause))
				       : kDiskCauses[cause - kDiskRead].name;
}

LaneCauseLook LaneCauseLookOf(int cause)
{
	if (cause >= kTimelineCauses) {
		const DiskCause &disk = kDiskCauses[cause - kDiskRead];
		return {FamilyName(Family::Files), disk.light, disk.dark, disk.meaning};
	}
	const CauseInfo &info = InfoOf(static_cast<Cause>(cause));
	return {FamilyName(info.family), info.light, info.dark, info.meaning};
}

std::vector<Lane> MakeLanes(const Explanation &explanation, const ReportClock &clock,
			    const LaneLimits &limits, size_t *threads_left_out)
{
	std::vector<Lane> lanes;
	AddThreads(explanation, clock, limits, &lanes, threads_left_out);
	AddInterrupts(explanation.run, clock, &lanes);
	AddDisks(explanation.run, clock, &lanes);
	return lanes;
}

} // namespace forktail

// SPDX-License-Identifier: MIT
// Builds the lanes of a run, stretch by stretch: threads from their timelines, CPUs and disks.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "common/json.h"
#include "page_data.h"

namespace forktail::analysis::report
{

namespace
{

// The CPU holder: a recorded thread by its role, another one by the name that the recorder stored with the
// wait. A wait in a file system call has the file's name instead.
std::string HolderName(const Run &run, const ft_span &wait, uint32_t tid)
{
	std::string id = "(" + ShownId(run, tid) + ")";
	for (const Thread &t : run.threads)
		if (t.tid == tid && t.start_ns <= wait.start_ns + wait.duration_ns &&
		    wait.start_ns <= t.end_ns)
			return (t.role.empty() ? t.comm : t.role) + " " + id;
	bool has_file = wait.owner == FT_FSYNC || wait.owner == FT_FILE_WRITE || wait.owner == FT_FILE_READ ||
			wait.owner == FT_FILE_META;
	const std::string name = has_file ? "" : NameOf(run, wait);
	return name.empty() ? "thread " + ShownId(run, tid) : name + " " + id;
}

// A few lines about a thread's piece: the span around it, its file, the CPU holder, the kernel stack.
std::string DescribePiece(const Run &run, const ft_span &s, const LaneSpan &piece)
{
	std::string text;
	auto line = [&](const std::string &more) {
		if (!more.empty())
			text += (text.empty() ? "" : "\n") + more;
	};
	Cause owner = CauseOfOwner(s.owner);
	if (s.off_cpu && s.depth && piece.cause != Index(owner))
		line(std::string("inside ") + CauseName(owner));
	else if (s.duration_ns > 100'000 && piece.end_ns - piece.start_ns < s.duration_ns / 50 * 49)
		line(std::string("part of a ") + CauseName(owner) + " of " +
		     common::FormatDuration(s.duration_ns));
	const WaitHolder holder = HolderOf(run, s);
	if (piece.cause == Index(Cause::RunQueue) && holder.tid)
		line("CPU " + ShownCpu(run, s.cpu) + " held by " + HolderName(run, s, holder.tid) + " for " +
		     common::FormatDuration(std::min(holder.ns, s.runnable_ns)));
	else
		line(NameOf(run, s));
	line(StackText(DetailOf(run, s), 8));
	return text;
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

// The page's order: serving threads, main threads, other threads by name, the load generator's threads,
// children.
std::vector<uint32_t> ThreadOrder(const Run &run, const std::vector<int> &serving)
{
	std::vector<uint32_t> order(run.threads.size());
	for (uint32_t i = 0; i < order.size(); i++)
		order[i] = i;
	auto rank = [&](uint32_t i) {
		const Thread &t = run.threads[i];
		if (std::ranges::find(serving, static_cast<int>(i)) != serving.end())
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

class ThreadLanes
{
public:
	ThreadLanes(const std::vector<int> &serving, const Reading &reading, const ReportClock &clock,
		    size_t limit, LaneReducer *reducer);
	// Adds what the threads did in [from_ns, to_ns), which must be loaded.
	void Add(uint64_t from_ns, uint64_t to_ns);
	// Call it after everything was added.
	std::vector<Lane> Finish();
	size_t left_out() const { return left_out_; }

private:
	// A piece that may continue in the next stretch.
	struct Cut {
		LaneSpan span;
		uint64_t start_ns, duration_ns; // of its record
		std::string text;
	};
	struct Member {
		uint32_t thread;
		size_t lane;
		std::optional<Cut> cut = {};
	};
	Lane *LaneOf(uint32_t thread, bool several);
	void AddTimeline(const Timeline &t, uint64_t from_ns, uint64_t to_ns, Member *member);
	void AddShares(const Timeline &t, const Piece &p, const LaneSpan &span, uint64_t piece_ns,
		       size_t lane);
	void AddSpan(const ft_span &record, LaneSpan span, bool goes_on, Member *member);
	void AddCut(Member *member);

	const std::vector<int> &serving_;
	const Reading &reading_;
	const Run &run_;
	const ReportClock &clock_;
	const size_t limit_;
	LaneReducer &reducer_;
	std::vector<Lane> lanes_;
	std::vector<Member> members_; // a lane's threads by time
	size_t left_out_ = 0;
};

ThreadLanes::ThreadLanes(const std::vector<int> &serving, const Reading &reading, const ReportClock &clock,
			 size_t limit, LaneReducer *reducer)
    : serving_(serving), reading_(reading), run_(reading.run), clock_(clock), limit_(limit),
      reducer_(*reducer)
{
	std::set<uint32_t> servers;
	for (const Thread &t : run_.threads)
		if (!IsChild(t) && !IsClient(t))
			servers.insert(t.tgid);
	for (uint32_t index : ThreadOrder(run_, serving_)) {
		Lane *lane = LaneOf(index, servers.size() > 1);
		if (!lane) {
			left_out_++;
			continue;
		}
		const Thread &t = run_.threads[index];
		lane->life.push_back({clock_.Clamp(t.start_ns), clock_.Clamp(t.end_ns)});
		members_.push_back({index, lane->number});
	}
}

// The lane of a thread; null if the maximum is reached.
Lane *ThreadLanes::LaneOf(uint32_t index, bool several)
{
	const Thread &t = run_.threads[index];
	bool serving = std::ranges::find(serving_, static_cast<int>(index)) != serving_.end();
	std::string id = ShownTid(run_, t);
	// Successive children of the same role share a lane.
	if (IsChild(t))
		for (Lane &lane : lanes_)
			if (lane.kind == "child" && lane.name == NameOf(t) &&
			    lane.life.back().second <= clock_.Clamp(t.start_ns)) {
				lane.note += ", " + id;
				lane.threads.push_back(index);
				return &lane;
			}
	if (lanes_.size() >= limit_)
		return nullptr;
	Lane lane = {};
	lane.number = reducer_.NewLane();
	lane.name = NameOf(t);
	lane.kind = IsChild(t) ? "child" : serving ? "serving" : "thread";
	lane.group = IsChild(t) ? "Children" : "Server threads";
	if (several && !IsChild(t))
		lane.group = "Threads of process " + ShownTgid(run_, t);
	if (IsClient(t)) {
		lane.name = t.comm;
		lane.group = "Load generator";
	}
	lane.note = id;
	lane.threads = {index};
	lanes_.push_back(std::move(lane));
	return &lanes_.back();
}

void ThreadLanes::Add(uint64_t from_ns, uint64_t to_ns)
{
	for (Member &member : members_) {
		const Thread &t = run_.threads[member.thread];
		if (t.end_ns < from_ns || t.start_ns >= to_ns)
			continue;
		auto known = std::ranges::find(reading_.timelines, member.thread, &Timeline::thread);
		if (known != reading_.timelines.end())
			AddTimeline(*known, from_ns, to_ns, &member);
		else
			AddTimeline(BuildTimeline(run_, member.thread), from_ns, to_ns, &member);
	}
}

// Idle time is the lane's empty background; time between spans becomes shares.
void ThreadLanes::AddTimeline(const Timeline &t, uint64_t from_ns, uint64_t to_ns, Member *member)
{
	for (size_t i = 0; i + 1 < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		uint64_t start = clock_.Clamp(p.start_ns), end = clock_.Clamp(t.pieces[i + 1].start_ns);
		uint64_t from = std::max(start, from_ns), to = std::min(end, to_ns);
		if (from >= to)
			continue;
		uint8_t cause = static_cast<uint8_t>(Index(p.cause));
		bool is_span = p.mix == kNoMix && p.cause != Cause::Idle && p.span != kNoSpan;
		const ft_span *record = is_span ? &run_.spans[p.span] : nullptr;
		LaneSpan span = {from, to, cause};
		if (member->cut) {
			const Cut &cut = *member->cut;
			if (record && start < from_ns && cut.span.end_ns == from && cut.span.cause == cause &&
			    cut.start_ns == record->start_ns && cut.duration_ns == record->duration_ns) {
				span.start_ns = cut.span.start_ns;
				member->cut.reset();
			} else {
				AddCut(member);
			}
		}
		if (record)
			AddSpan(*record, span, end > to_ns, member);
		else
			AddShares(t, p, span, end - start, member->lane);
	}
}

// `span` is the part of the piece in the stretch; the piece is piece_ns long.
void ThreadLanes::AddShares(const Timeline &t, const Piece &p, const LaneSpan &span, uint64_t piece_ns,
			    size_t lane)
{
	uint64_t span_ns = span.end_ns - span.start_ns;
	if (p.mix == kNoMix) {
		if (p.cause != Cause::Idle)
			reducer_.Add(lane,
				     {span.start_ns, span.end_ns, static_cast<double>(span_ns), span.cause});
		return;
	}
	const Mix &mix = t.mixes[p.mix];
	double here = static_cast<double>(span_ns) / static_cast<double>(piece_ns);
	for (uint32_t k = 0; k < mix.part_count; k++) {
		const MixPart &part = t.mix_parts[mix.first_part + k];
		if (part.cause == Cause::Idle)
			continue;
		double ns = static_cast<double>(piece_ns) * static_cast<double>(part.ns) /
			    static_cast<double>(std::max<uint64_t>(mix.total_ns, 1));
		reducer_.Add(lane, {span.start_ns, span.end_ns, std::floor(ns) * here,
				    static_cast<uint8_t>(Index(part.cause))});
	}
}

// A piece that continues waits for its end, because its length decides whether it is stored and how it is
// described.
void ThreadLanes::AddSpan(const ft_span &record, LaneSpan span, bool goes_on, Member *member)
{
	if (goes_on)
		member->cut = {span, record.start_ns, record.duration_ns, DescribePiece(run_, record, span)};
	else
		reducer_.Add(member->lane, span, [&] { return DescribePiece(run_, record, span); });
}

// It did not continue.
void ThreadLanes::AddCut(Member *member)
{
	reducer_.Add(member->lane, member->cut->span, [&] { return member->cut->text; });
	member->cut.reset();
}

std::vector<Lane> ThreadLanes::Finish()
{
	for (Member &member : members_)
		if (member.cut)
			AddCut(&member);
	return std::move(lanes_);
}

} // namespace

ReportLanes MakeLanes(const Explanation &explanation, Reading *reading, const ReportClock &clock,
		      const LaneLimits &limits)
{
	LaneReducer reducer(clock, limits);
	ThreadLanes threads(explanation.serving, *reading, clock, limits.threads, &reducer);
	InterruptLanes interrupts(reading->run, clock, &reducer);
	DiskLanes disks(reading->run, clock, &reducer);
	SampleCollector samples(explanation, reading->run, clock, limits.samples);
	reading->stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
		threads.Add(from_ns, to_ns);
		interrupts.Add(from_ns, to_ns);
		disks.Add(from_ns, to_ns);
		samples.Add(from_ns, to_ns);
	});
	std::vector<Lane> lanes = threads.Finish();
	interrupts.Finish(&lanes);
	disks.Finish(&lanes);
	ReportLanes made = reducer.Finish(std::move(lanes));
	made.threads_left_out = threads.left_out();
	made.samples = samples.Finish();
	return made;
}

// The causes of lanes: the disks' are here, all others are those of timelines.

namespace
{

// In the order of enum LaneCause, colours as in causes.def.
struct DiskCause {
	const char *name;
	const char *light, *dark;
	const char *meaning;
};
constexpr DiskCause kDiskCauses[] = {
    {"disk-read", "#3aa0c9", "#64c4ea", "the device was reading"},
    {"disk-write", "#2f6fb5", "#5b9be0", "the device was writing"},
    {"disk-flush", "#6a4fb0", "#9a82de", "the device was flushing its cache"},
    {"disk-discard", "#8fa3b8", "#a9bbcd", "the device was discarding free blocks (TRIM)"},
};

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

namespace
{

constexpr size_t kQuietCpus = 16; // with more CPUs, only those that interrupted a recorded thread have a lane

// Adds the rate of all soft interrupts of a CPU, from the host's metrics, to `rate`.
void AddSoftirqRate(const Run &run, const Series &series, const ReportClock &clock, Lane *lane)
{
	lane->rate_step_ns = std::max<uint64_t>(100'000'000, (clock.end_ns - clock.begin_ns) / 4000);
	lane->rate_name = "all soft interrupts";
	lane->rate_unit = "1/s";
	lane->rate.resize((clock.end_ns - clock.begin_ns) / lane->rate_step_ns + 1);
	size_t next = 0; // step; of several samples in one step the last counts
	float given = 0;
	for (size_t i = 0; i < series.samples.size(); i++) {
		const Sample &sample = series.samples[i];
		if (sample.t_ns < clock.begin_ns || sample.t_ns > clock.end_ns)
			continue;
		const size_t step = (sample.t_ns - clock.begin_ns) / lane->rate_step_ns;
		const uint64_t since_ns =
		    std::max(ReadingBegin(run, series, i), clock.begin_ns) - clock.begin_ns;
		if (step < next)
			lane->rate[step] -= given;
		else // it covers several steps if it was the only one for long
			next = std::min(std::max(next, since_ns / lane->rate_step_ns + 1), step);
		given = static_cast<float>(sample.value);
		for (next = std::min(next, step); next <= step; next++)
			lane->rate[next] += given;
	}
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

// Spreads a request's bytes over its time.
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

struct Interrupt {
	LaneSpan span;
	uint32_t tid;
};

} // namespace

InterruptLanes::Cpu &InterruptLanes::CpuOf(uint64_t number)
{
	auto [cpu, is_new] = cpus_.try_emplace(number);
	if (is_new)
		cpu->second.lane.number = reducer_.NewLane();
	return cpu->second;
}

void InterruptLanes::Add(uint64_t from_ns, uint64_t to_ns)
{
	std::map<uint64_t, std::vector<Interrupt>> by_cpu;
	for (const ft_span &s : run_.spans) {
		bool soft = s.owner >= FT_SOFTIRQ && s.owner - int{FT_SOFTIRQ} < int{FT_SOFTIRQ_VECTORS};
		if ((!soft && s.owner != FT_HARDIRQ) || s.start_ns < from_ns || s.start_ns >= to_ns)
			continue;
		uint64_t from = clock_.Clamp(s.start_ns), to = clock_.Clamp(s.start_ns + s.duration_ns);
		if (from < to)
			by_cpu[s.cpu].push_back(
			    {{from, to, static_cast<uint8_t>(Index(CauseOfOwner(s.owner)))}, s.tid});
	}
	for (auto &[number, interrupts] : by_cpu) {
		Cpu &cpu = CpuOf(number);
		std::sort(interrupts.begin(), interrupts.end(), [](const Interrupt &a, const Interrupt &b) {
			return a.span.start_ns != b.span.start_ns ? a.span.start_ns < b.span.start_ns
								  : a.span.end_ns > b.span.end_ns;
		});
		// Hard and soft interrupts may nest either way: the outer one stays whole.
		for (const Interrupt &i : interrupts) {
			if (i.span.start_ns < cpu.last_end_ns)
				continue;
			cpu.last_end_ns = i.span.end_ns;
			cpu.spans++;
			reducer_.Add(cpu.lane.number, i.span,
				     [&] { return "interrupted thread " + ShownId(run_, i.tid); });
		}
	}
}

void InterruptLanes::Finish(std::vector<Lane> *lanes)
{
	for (const Series &series : run_.series) {
		auto cpu = series.labels.find("cpu");
		if (series.name != "host.softirq" || cpu == series.labels.end() || cpu->second.empty() ||
		    cpu->second.find_first_not_of("0123456789") != std::string::npos ||
		    cpu->second.size() > 6)
			continue;
		auto host = series.labels.find("host");
		uint64_t number =
		    CpuOfHost(run_, host == series.labels.end() ? "" : host->second, std::stoul(cpu->second));
		if (cpus_.count(number) || cpus_.size() < kQuietCpus)
			AddSoftirqRate(run_, series, clock_, &CpuOf(number).lane);
	}
	for (auto &[number, cpu] : cpus_) {
		Lane &lane = cpu.lane;
		lane.name = "CPU " + ShownCpu(run_, number);
		lane.kind = "softirq";
		lane.group = "Interrupts of recorded threads, by CPU";
		lane.life.push_back({clock_.begin_ns, clock_.end_ns});
		lane.note = common::Plural(cpu.spans, "span", "spans");
		lanes->push_back(std::move(lane));
	}
}

// About as many steps as a wide screen has pixels, of at least 10 ms.
DiskLanes::DiskLanes(const Run &run, const ReportClock &clock, LaneReducer *reducer)
    : run_(run), clock_(clock), reducer_(*reducer),
      step_ns_(std::max<uint64_t>(10'000'000, (clock.end_ns - clock.begin_ns) / 4000))
{
}

DiskLanes::Disk &DiskLanes::DiskOf(uint32_t dev, int kind)
{
	auto [disk, is_new] = disks_.try_emplace({dev, kind});
	if (is_new) {
		disk->second.lane.number = reducer_.NewLane();
		disk->second.lane.rate.resize((clock_.end_ns - clock_.begin_ns) / step_ns_ + 1);
	}
	return disk->second;
}

void DiskLanes::Add(uint64_t from_ns, uint64_t to_ns)
{
	for (const ft_io &io : run_.ios) // by start
		if (io.start_ns >= from_ns && io.start_ns < to_ns)
			AddRequest(io);
}

void DiskLanes::AddRequest(const ft_io &io)
{
	int kind = KindOf(io);
	Disk &disk = DiskOf(io.dev, kind);
	AddRate(io, clock_, step_ns_, &disk.lane.rate);
	uint64_t from = clock_.Clamp(io.start_ns), to = clock_.Clamp(io.start_ns + io.duration_ns);
	if (from >= to)
		return;
	if (disk.busy && disk.busy->span.end_ns < from)
		AddBusy(&disk);
	if (!disk.busy)
		disk.busy = {{from, to, static_cast<uint8_t>(kDiskRead + kind)}};
	Busy &busy = *disk.busy;
	busy.span.end_ns = std::max(busy.span.end_ns, to);
	busy.requests++;
	busy.bytes += io.bytes;
	busy.longest_ns = std::max(busy.longest_ns, io.duration_ns);
	busy.issuers[common::VisibleName(io.comm)] += io.bytes;
}

void DiskLanes::AddBusy(Disk *disk)
{
	reducer_.Add(disk->lane.number, disk->busy->span, [&] { return Describe(*disk->busy); });
	disk->busy.reset();
}

std::string DiskLanes::Describe(const Busy &busy)
{
	std::string text = common::Plural(busy.requests, "request", "requests") + ", " +
			   common::FormatBytes(busy.bytes) + ", longest " +
			   common::FormatDuration(busy.longest_ns) + "\nissued by";
	std::vector<std::pair<uint64_t, std::string>> most;
	for (const auto &[comm, bytes] : busy.issuers)
		most.push_back({bytes, comm});
	std::sort(most.rbegin(), most.rend());
	for (size_t i = 0; i < most.size() && i < 3; i++)
		text += (i ? ", " : " ") + most[i].second;
	return text;
}

void DiskLanes::Finish(std::vector<Lane> *lanes)
{
	for (auto &[key, disk] : disks_) {
		if (disk.busy)
			AddBusy(&disk);
		Lane &lane = disk.lane;
		lane.name = DeviceName(run_, key.first);
		lane.note = LaneCauseName(kDiskRead + key.second) + sizeof "disk";
		lane.kind = "disk";
		lane.group = "Disk requests";
		lane.rate_name = "total";
		lane.rate_unit = "bytes/s";
		lane.rate_step_ns = step_ns_;
		lane.life.push_back({clock_.begin_ns, clock_.end_ns});
		lanes->push_back(std::move(lane));
	}
}

} // namespace forktail::analysis::report

// SPDX-License-Identifier: MIT
#include "device_lanes.h"

#include <algorithm>

#include "analysis/run/hosts.h"
#include "common/format/sanitize.h"
#include "common/format/units.h"

namespace forktail::analysis::report
{

namespace
{

constexpr size_t kQuietCpus = 16; // with more CPUs, only those that interrupted a recorded thread have a lane

// Adds the rate of all soft interrupts of a CPU, from the host's metrics, to `rate`.
void AddSoftirqRate(const Series &series, const ReportClock &clock, Lane *lane)
{
	lane->rate_step_ns = std::max<uint64_t>(100'000'000, (clock.end_ns - clock.begin_ns) / 4000);
	lane->rate_name = "all soft interrupts";
	lane->rate_unit = "1/s";
	lane->rate.resize((clock.end_ns - clock.begin_ns) / lane->rate_step_ns + 1);
	size_t last = SIZE_MAX; // of several samples in one step the last counts
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
			AddSoftirqRate(series, clock_, &CpuOf(number).lane);
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

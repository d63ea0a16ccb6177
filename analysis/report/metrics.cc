// SPDX-License-Identifier: MIT
// Selects the metrics that relate to latency, the most interesting ones first. Metrics that were always zero
// are omitted: a machine that never swapped needs no chart of it.
#include "metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace forktail::analysis::report
{

namespace
{

constexpr size_t kLines = 5;		    // more lines in one small chart cannot be distinguished
constexpr uint64_t kPeriodNs = 100'000'000; // the recorder's period
constexpr size_t kPerLabel = 3;		    // of disks and network interfaces the busiest

struct Wanted {
	const char *title;
	const char *label; // one chart per value of it; "": one chart
	struct {
		const char *series, *line;
	} lines[kLines];
};

// The recorder's series (docs/reference/recording-format.md lists them).
const Wanted kWanted[] = {
    {"Server CPU", "pid", {{"target.cpu", "of one CPU"}}},
    {"Server memory", "pid", {{"target.rss", "resident"}}},
    {"Server faults", "pid", {{"target.minor_faults", "minor"}, {"target.major_faults", "major"}}},
    {"Host CPU",
     "",
     {{"host.cpu.user", "user"},
      {"host.cpu.system", "system"},
      {"host.cpu.softirq", "softirq"},
      {"host.cpu.iowait", "I/O wait"},
      {"host.cpu.steal", "steal"}}},
    {"Disk", "device", {{"host.disk.write", "written"}, {"host.disk.read", "read"}}},
    {"Host memory", "", {{"host.memory.available", "available"}}},
    {"Dirty pages", "", {{"host.memory.dirty", "dirty"}, {"host.memory.writeback", "writeback"}}},
    {"Swap", "", {{"host.swap_in", "pages in"}, {"host.swap_out", "pages out"}}},
    {"Network", "interface", {{"host.network.receive", "received"}, {"host.network.transmit", "sent"}}},
};

double Sum(const Series &s)
{
	double sum = 0;
	for (const Sample &x : s.samples)
		sum += std::abs(x.value);
	return sum;
}

struct Chosen {
	std::string title;
	std::vector<std::pair<std::string, const Series *>> lines;
	double sum = 0;
};

// A partition's traffic is also counted for its disk.
bool IsPartition(const std::string &name, const std::map<std::string, Chosen> &all)
{
	return std::any_of(all.begin(), all.end(), [&](const auto &other) {
		return other.first.size() < name.size() &&
		       name.compare(0, other.first.size(), other.first) == 0;
	});
}

std::vector<Chosen> Choose(const Run &run, const Wanted &wanted)
{
	std::map<std::string, Chosen> by_label;
	for (const auto &line : wanted.lines) {
		if (!line.series)
			break;
		for (const Series &s : run.series) {
			if (s.name != line.series)
				continue;
			double sum = Sum(s);
			auto label = s.labels.find(wanted.label);
			if (sum == 0)
				continue;
			std::string value = label == s.labels.end() ? "" : label->second;
			Chosen &chosen = by_label[value];
			chosen.title = wanted.title + (value.empty() ? "" : " " + value);
			chosen.lines.push_back({line.line, &s});
			chosen.sum += sum;
		}
	}
	std::vector<Chosen> charts;
	if (by_label.size() == 1 && std::string(wanted.label) == "pid")
		by_label.begin()->second.title = wanted.title; // a single server needs no number
	for (const auto &[value, chosen] : by_label)
		if (std::string(wanted.label) != "device" || !IsPartition(value, by_label))
			charts.push_back(chosen);
	std::stable_sort(charts.begin(), charts.end(),
			 [](const Chosen &a, const Chosen &b) { return a.sum > b.sum; });
	if (charts.size() > kPerLabel)
		charts.resize(kPerLabel);
	return charts;
}

// The series' mean in each step of [from_ns, from_ns + steps * step_ns). A step without a sample has the last
// value, because unchanged values are not written again.
std::vector<float> Resample(const Series &s, uint64_t from_ns, uint64_t step_ns, size_t steps)
{
	std::vector<float> values(steps);
	float last = std::numeric_limits<float>::quiet_NaN();
	auto sample = std::lower_bound(s.samples.begin(), s.samples.end(), from_ns,
				       [](const Sample &x, uint64_t t) { return x.t_ns < t; });
	if (sample != s.samples.begin())
		last = static_cast<float>((sample - 1)->value);
	for (size_t i = 0; i < steps; i++) {
		double sum = 0;
		size_t n = 0;
		for (; sample != s.samples.end() && sample->t_ns < from_ns + (i + 1) * step_ns; ++sample, n++)
			sum += sample->value;
		values[i] = n ? static_cast<float>(sum / static_cast<double>(n)) : last;
		if (n)
			last = static_cast<float>((sample - 1)->value);
	}
	return values;
}

// The time range of the recorder's metrics.
struct Extent {
	uint64_t from_ns = UINT64_MAX;
	uint64_t to_ns = 0;
};

Extent ExtentOf(const Run &run, const ReportClock &clock)
{
	Extent extent;
	for (const Series &s : run.series)
		if (!s.samples.empty()) {
			extent.from_ns = std::min(extent.from_ns, s.samples.front().t_ns);
			extent.to_ns = std::max(extent.to_ns, s.samples.back().t_ns);
		}
	extent.from_ns = std::max(extent.from_ns, clock.begin_ns);
	extent.to_ns = std::min(extent.to_ns, clock.end_ns);
	return extent;
}

} // namespace

std::vector<MetricChart> CollectMetrics(const Run &run, const ReportClock &clock, size_t samples)
{
	std::vector<MetricChart> charts;
	Extent extent = ExtentOf(run, clock);
	if (extent.from_ns >= extent.to_ns)
		return charts;
	uint64_t step_ns = std::max<uint64_t>(kPeriodNs, (extent.to_ns - extent.from_ns) / samples + 1);
	size_t steps = (extent.to_ns - extent.from_ns) / step_ns + 1;
	if (steps < 2)
		return charts;
	for (const Wanted &wanted : kWanted)
		for (const Chosen &chosen : Choose(run, wanted)) {
			MetricChart chart = {chosen.title, chosen.lines[0].second->unit, {}, {}};
			for (size_t i = 0; i < steps; i++)
				chart.times.push_back(clock.Tick(extent.from_ns + i * step_ns));
			for (const auto &[name, series] : chosen.lines)
				chart.lines.push_back(
				    {name, Resample(*series, extent.from_ns, step_ns, steps)});
			charts.push_back(std::move(chart));
		}
	return charts;
}

} // namespace forktail::analysis::report

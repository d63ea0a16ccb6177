// SPDX-License-Identifier: MIT
// Picks the metrics that tell a reader something about latency, in the order of their interest. What was zero
// throughout is left out: a machine that never swapped needs no chart to say so.
#include "analysis/report_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace forktail
{

namespace
{

constexpr size_t kLines = 5;	// more in one small chart can't be told apart
constexpr size_t kPerLabel = 3; // disks, network interfaces: the busiest

struct Wanted {
	const char *title;
	const char *label; // one chart per value of it; "": one chart in all
	struct {
		const char *series, *line;
	} lines[kLines];
};

// Series are the recorder's (docs/recording-format.md lists them).
const Wanted kWanted[] = {
    {"Server CPU", "pid", {{"target.cpu", "of one CPU"}}},
    {"Server memory", "pid", {{"target.rss", "resident"}}},
    {"Server faults", "pid", {{"target.minor_faults", "minor"}, {"target.major_faults", "major"}}},
    {"Host CPU",
     "",
     {{"host.cpu.user", "user"},
      {"host.cpu.system", "system"},
      {"host.cpu.softirq", "softirq"},
      {"host.cpu.iowait", "waiting for disk"},
      {"host.cpu.steal", "stolen"}}},
    {"Disk", "device", {{"host.disk.write", "written"}, {"host.disk.read", "read"}}},
    {"Host memory", "", {{"host.memory.available", "available"}}},
    {"To be written", "", {{"host.memory.dirty", "dirty"}, {"host.memory.writeback", "being written"}}},
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

// A partition's traffic is its disk's too.
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
			if (s.name != line.series || s.samples.size() < 2)
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
	for (const auto &[value, chosen] : by_label)
		if (std::string(wanted.label) != "device" || !IsPartition(value, by_label))
			charts.push_back(chosen);
	std::stable_sort(charts.begin(), charts.end(),
			 [](const Chosen &a, const Chosen &b) { return a.sum > b.sum; });
	if (charts.size() > kPerLabel)
		charts.resize(kPerLabel);
	return charts;
}

// The series' value nearest to t_ns, NaN if that is further away than reach_ns.
float ValueAt(const Series &s, uint64_t t_ns, uint64_t reach_ns)
{
	auto after = std::lower_bound(s.samples.begin(), s.samples.end(), t_ns,
				      [](const Sample &x, uint64_t t) { return x.t_ns < t; });
	float value = std::numeric_limits<float>::quiet_NaN();
	if (after != s.samples.end() && after->t_ns - t_ns <= reach_ns) {
		reach_ns = after->t_ns - t_ns;
		value = static_cast<float>(after->value);
	}
	if (after != s.samples.begin() && t_ns - (after - 1)->t_ns < reach_ns)
		value = static_cast<float>((after - 1)->value);
	return value;
}

// Means of `stride` values each.
void Thin(std::vector<float> *values, size_t stride)
{
	size_t out = 0;
	for (size_t i = 0; i < values->size(); i += stride) {
		double sum = 0;
		size_t n = 0;
		for (size_t k = i; k < std::min(values->size(), i + stride); k++)
			if (!std::isnan((*values)[k])) {
				sum += (*values)[k];
				n++;
			}
		(*values)[out++] = n ? static_cast<float>(sum / static_cast<double>(n))
				     : std::numeric_limits<float>::quiet_NaN();
	}
	values->resize(out);
}

MetricChart MakeChart(const Chosen &chosen, const ReportClock &clock, size_t samples)
{
	MetricChart chart;
	chart.name = chosen.title;
	chart.unit = chosen.lines[0].second->unit;
	std::vector<uint64_t> times;
	for (const Sample &x : chosen.lines[0].second->samples)
		if (x.t_ns >= clock.begin_ns && x.t_ns <= clock.end_ns &&
		    (times.empty() || x.t_ns > times.back()))
			times.push_back(x.t_ns);
	if (times.size() < 2)
		return chart;
	uint64_t reach = (times.back() - times[0]) / (times.size() - 1) / 2;
	size_t stride = (times.size() + samples - 1) / samples;
	for (const auto &[name, series] : chosen.lines) {
		MetricLine line = {name, {}};
		for (uint64_t t : times)
			line.values.push_back(ValueAt(*series, t, reach));
		Thin(&line.values, stride);
		chart.lines.push_back(std::move(line));
	}
	for (size_t i = 0; i < times.size(); i += stride)
		chart.times.push_back(clock.Tick(times[i]));
	return chart;
}

} // namespace

std::vector<MetricChart> CollectMetrics(const Run &run, const ReportClock &clock, size_t samples)
{
	std::vector<MetricChart> charts;
	for (const Wanted &wanted : kWanted)
		for (const Chosen &chosen : Choose(run, wanted)) {
			MetricChart chart = MakeChart(chosen, clock, samples);
			if (chart.times.size() > 1)
				charts.push_back(std::move(chart));
		}
	return charts;
}

} // namespace forktail

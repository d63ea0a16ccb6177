// SPDX-License-Identifier: MIT
// Queries of a run: extent, clocks, names. index_run.cc sorts its records.
#include "run.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "analysis/run/sort_nearly.h"
#include "common/format/units.h"
#include "common/text/parse.h"

namespace forktail::analysis
{

void ExtendRun(uint64_t from_ns, uint64_t to_ns, Run *run)
{
	bool empty = run->start_ns == 0 && run->end_ns == 0;
	run->start_ns = empty ? from_ns : std::min(run->start_ns, from_ns);
	run->end_ns = std::max(run->end_ns, to_ns);
}

// The reading of both clocks that is nearest by one of them; null without readings.
static const ft_clock *Nearest(const Run &run, uint64_t ft_clock::*by, uint64_t ns)
{
	auto away = [&](const ft_clock &c) { return std::max(c.*by, ns) - std::min(c.*by, ns); };
	auto nearest = std::min_element(run.clocks.begin(), run.clocks.end(),
					[&](const auto &a, const auto &b) { return away(a) < away(b); });
	return nearest == run.clocks.end() ? nullptr : &*nearest;
}

uint64_t RealtimeNs(const Run &run, uint64_t t_ns)
{
	const ft_clock *c = Nearest(run, &ft_clock::monotonic_ns, t_ns);
	return c ? c->realtime_ns + t_ns - c->monotonic_ns : 0;
}

uint64_t MonotonicNs(const Run &run, uint64_t realtime_ns)
{
	const ft_clock *c = Nearest(run, &ft_clock::realtime_ns, realtime_ns);
	return c && c->monotonic_ns + realtime_ns > c->realtime_ns
		   ? c->monotonic_ns + realtime_ns - c->realtime_ns
		   : 0;
}

std::string SyscallName(const Run &run, int number)
{
	auto found = run.syscalls.find(number);
	return found != run.syscalls.end() ? found->second : "";
}

uint32_t PortOf(const std::string &server)
{
	const size_t colon = server.rfind(':');
	uint64_t port = 0;
	if (colon != std::string::npos && server.rfind("unix:", 0) != 0)
		parse_count(server.c_str() + colon + 1, 0, UINT16_MAX, &port);
	return static_cast<uint32_t>(port);
}

uint8_t AddBehind(const Behind &server, Run *run)
{
	const auto known = std::find(run->behind.begin(), run->behind.end(), server);
	const auto index = static_cast<size_t>(known - run->behind.begin());
	if (known == run->behind.end() && index < UINT8_MAX)
		run->behind.push_back(server);
	return index < run->behind.size() ? static_cast<uint8_t>(index + 1) : 0;
}

bool SeenInKernel(const Run &run)
{
	return std::any_of(run.loads.begin(), run.loads.end(), [](const Load &l) { return l.kernel; });
}

const RecordingFile &ServerFile(const Run &run)
{
	static const RecordingFile none;
	for (const RecordingFile &f : run.files)
		if (f.program == "forktail-record" && f.overlaid)
			return f;
	return run.files.empty() ? none : run.files.front();
}

std::string PlaceOf(const Run &run, const Thread &thread)
{
	for (uint32_t pid : {thread.tgid, thread.parent_tgid})
		for (const Target &t : run.targets)
			if (pid && t.pid == pid)
				return t.cgroup_of;
	return "";
}

const Detail &DetailOf(const Run &run, const ft_span &span)
{
	static const Detail none;
	return span.detail < run.details.size() ? run.details[span.detail] : none;
}

uint64_t DropCount(const Run &run)
{
	uint64_t count = 0;
	for (const ft_drop &d : run.drops)
		count += d.count;
	return count;
}

std::string DeviceName(const Run &run, uint32_t dev)
{
	auto found = run.devices.find(dev);
	if (found != run.devices.end())
		return found->second;
	return std::to_string(dev >> 20) + ":" + std::to_string(dev & ((1u << 20) - 1));
}

} // namespace forktail::analysis

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
#include "recording/syscalls.h"

namespace forktail::analysis
{

void ExtendRun(uint64_t from_ns, uint64_t to_ns, Run *run)
{
	bool empty = run->start_ns == 0 && run->end_ns == 0;
	run->start_ns = empty ? from_ns : std::min(run->start_ns, from_ns);
	run->end_ns = std::max(run->end_ns, to_ns);
}

uint64_t RealtimeNs(const Run &run, uint64_t t_ns)
{
	const ft_clock *nearest = nullptr;
	uint64_t best_ns = 0;
	for (const ft_clock &c : run.clocks) {
		uint64_t away_ns = c.monotonic_ns > t_ns ? c.monotonic_ns - t_ns : t_ns - c.monotonic_ns;
		if (!nearest || away_ns < best_ns) {
			nearest = &c;
			best_ns = away_ns;
		}
	}
	return nearest ? nearest->realtime_ns + t_ns - nearest->monotonic_ns : 0;
}

uint64_t MonotonicNs(const Run &run, uint64_t realtime_ns)
{
	const ft_clock *nearest = nullptr;
	uint64_t best_ns = 0;
	for (const ft_clock &c : run.clocks) {
		const uint64_t away_ns =
		    c.realtime_ns > realtime_ns ? c.realtime_ns - realtime_ns : realtime_ns - c.realtime_ns;
		if (!nearest || away_ns < best_ns) {
			nearest = &c;
			best_ns = away_ns;
		}
	}
	if (!nearest || nearest->monotonic_ns + realtime_ns <= nearest->realtime_ns)
		return 0;
	return nearest->monotonic_ns + realtime_ns - nearest->realtime_ns;
}

std::string SyscallName(const Run &run, int number)
{
	if (run.syscalls.empty()) {
		const char *name = ft_syscall_name(number);
		return name ? name : "";
	}
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

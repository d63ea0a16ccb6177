// SPDX-License-Identifier: MIT
// Block requests show how much a disk read and wrote, how busy it was and which thread issued them. Writeback
// is issued by a kernel thread, or by the first thread that calls fsync. The processes that dirtied the pages
// are therefore listed too.
#include "disk.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "analysis/run/hosts.h"
#include "common/format/sanitize.h"
#include "common/format/units.h"

namespace forktail::analysis
{

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
// tenth of the first. Files whose device has no block requests of its own may be on this device.
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
		return a.second.bytes() < b.second.bytes();
	});
	if (busiest == devices.end() || busiest->second.bytes() == 0)
		return "";
	const Use &use = busiest->second;
	std::string text = "; meanwhile block device " + DeviceName(scene.run, busiest->first) + " ";
	if (use.written)
		text += "wrote " + common::FormatBytes(use.written);
	if (use.read)
		text += std::string(use.written ? " and " : "") + "read " + common::FormatBytes(use.read);
	std::vector<std::pair<uint64_t, std::string>> issuers;
	for (const auto &[name, bytes] : use.by)
		issuers.push_back({bytes, name});
	std::sort(issuers.rbegin(), issuers.rend());
	text += ", most for " + issuers[0].second;
	if (issuers.size() > 1 && issuers[1].first * 10 >= issuers[0].first)
		text += ", then " + issuers[1].second;

	double busy = static_cast<double>(use.busy_ns) / static_cast<double>(to_ns - from_ns);
	char in_flight[32];
	std::snprintf(in_flight, sizeof in_flight, "%.1f",
		      static_cast<double>(use.waited_ns) / static_cast<double>(use.busy_ns));
	text += "; the device was busy " + common::FormatPercent(busy) + " of the time, with " + in_flight +
		" requests in flight on average";
	if (busy < kMinBusy)
		return text; // other writers did not cause the wait
	std::vector<Writer> writers = Writers(scene, devices, busiest->first, from_ns, to_ns);
	for (size_t i = 0; i < writers.size(); i++)
		text += (i ? ", " : "; files were written by ") + WriterText(writers[i]) +
			(i ? ""
			   : " in " + common::FormatDuration(to_ns - std::min(writers[i].first_ns, from_ns)));
	return text;
}

} // namespace forktail::analysis

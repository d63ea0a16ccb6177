// SPDX-License-Identifier: MIT
// Each space begins at a multiple of the maximum id, so that an id shows its space.
#include "hosts.h"

#include <algorithm>

#include "recording/task_ids.h"

namespace forktail::analysis
{

namespace
{

// No driver has this major number: devices of further spaces are numbered below it.
constexpr uint32_t kForeign = 0xfff00000;

bool IsForeign(const Run &run, uint32_t dev)
{
	return dev >= kForeign && dev - kForeign < run.foreign_devices.size();
}

} // namespace

uint32_t SpaceOfId(const Run &run, uint32_t id)
{
	return run.spaces > 1 ? (id & ~FT_TASK_OUTSIDE) / kIdsOfSpace : 0;
}

uint32_t SpaceOfDevice(const Run &run, uint32_t dev)
{
	return IsForeign(run, dev) ? run.foreign_devices[dev - kForeign].first : 0;
}

uint32_t DeviceOf(const IdSpace &space, uint32_t dev, Run *run)
{
	if (!space.number)
		return dev;
	const std::pair<uint32_t, uint32_t> wanted = {space.number, dev};
	auto &all = run->foreign_devices;
	auto known = std::find(all.begin(), all.end(), wanted);
	uint32_t index = static_cast<uint32_t>(known - all.begin());
	if (known == all.end())
		all.push_back(wanted);
	return kForeign + std::min(index, UINT32_MAX - kForeign);
}

uint32_t OwnId(const Run &run, uint32_t id)
{
	return run.spaces > 1 ? id % kIdsOfSpace : id & ~FT_TASK_OUTSIDE;
}

uint32_t OwnCpu(const Run &run, uint32_t cpu)
{
	return run.spaces > 1 ? cpu % run.cpus_of_space : cpu;
}

uint32_t OwnDevice(const Run &run, uint32_t dev)
{
	return IsForeign(run, dev) ? run.foreign_devices[dev - kForeign].second : dev;
}

std::string HostOf(const Run &run, const Thread &thread)
{
	if (!SeveralHosts(run))
		return "";
	return thread.announced && thread.file < run.files.size() ? run.files[thread.file].host
								  : HostOfId(run, thread.tid);
}

std::string HostOfId(const Run &run, uint32_t id)
{
	if (!SeveralHosts(run) || !id)
		return "";
	for (const Thread &t : run.threads)
		if (t.tid == id && t.announced && t.file < run.files.size())
			return run.files[t.file].host;
	std::string only;
	for (const RecordingFile &f : run.files) {
		if (!f.overlaid || f.space != SpaceOfId(run, id) || f.host == only)
			continue;
		if (!only.empty())
			return "";
		only = f.host;
	}
	return only;
}

uint64_t CpuOfHost(const Run &run, const std::string &host, uint64_t own)
{
	for (const RecordingFile &f : run.files)
		if (run.spaces > 1 && f.overlaid && f.host == host)
			return f.space * uint64_t{run.cpus_of_space} + own % run.cpus_of_space;
	return own;
}

std::string ShownCpu(const Run &run, uint64_t cpu)
{
	if (run.spaces <= 1)
		return std::to_string(cpu);
	const uint64_t space = cpu / run.cpus_of_space;
	std::string host;
	for (const RecordingFile &f : run.files)
		if (f.overlaid && f.space == space && (host.empty() || f.program == "forktail-record"))
			host = f.host;
	return std::to_string(cpu % run.cpus_of_space) + OnHost(host);
}

std::string ShownId(const Run &run, uint32_t id)
{
	return std::to_string(OwnId(run, id)) + OnHost(HostOfId(run, id));
}

std::string ShownTid(const Run &run, const Thread &thread)
{
	return std::to_string(OwnId(run, thread.tid)) + OnHost(HostOf(run, thread));
}

std::string ShownTgid(const Run &run, const Thread &thread)
{
	return std::to_string(OwnId(run, thread.tgid)) + OnHost(HostOf(run, thread));
}

std::string OnHost(const std::string &host)
{
	return host.empty() ? "" : " on " + host;
}

bool IsOfHost(const Run &run, const Series &series, const Thread &thread)
{
	auto host = series.labels.find("host");
	return !SeveralHosts(run) || host == series.labels.end() || host->second == HostOf(run, thread);
}

bool IsOfProcess(const Run &run, const Series &series, const Thread &thread)
{
	auto pid = series.labels.find("pid");
	return pid != series.labels.end() && pid->second == std::to_string(OwnId(run, thread.tgid)) &&
	       IsOfHost(run, series, thread);
}

bool IsLocalAddress(const std::string &address)
{
	for (const char *local : {"unix:", "/", "127.", "localhost", "[::1]", "::1"})
		if (address.starts_with(local))
			return true;
	return false;
}

} // namespace forktail::analysis

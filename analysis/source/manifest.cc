// SPDX-License-Identifier: MIT
// Several recordings' manifests become one run's lists; a ring's segments say the same again.
#include "manifest.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/format/sanitize.h"
#include "common/json/json_read.h"
#include "merge_segments.h"

namespace forktail
{

namespace
{

// Several load generators may talk to the same proxy. A request has a byte for the server behind it.
void UseBehind(OpenFile *f, Run *run)
{
	constexpr size_t most = UINT8_MAX;
	f->behind.push_back(0);
	const Json *list = Member(f->manifest, "behind");
	if (!list || !list->is_array())
		return;
	for (const Json &one : *list) {
		std::string address = Text(one, "address");
		auto known = std::find_if(run->behind.begin(), run->behind.end(),
					  [&](const Behind &b) { return b.address == address; });
		size_t index = static_cast<size_t>(known - run->behind.begin());
		if (known == run->behind.end() && index < most)
			run->behind.push_back({Text(one, "name"), address});
		f->behind.push_back(index < run->behind.size() ? static_cast<uint8_t>(index + 1) : 0);
	}
}

// A ring's later segment has what was found out since about a target.
void AddTarget(const Target &target, bool segment, Run *run)
{
	for (Target &t : run->targets)
		if (segment && t.pid == target.pid && t.cmdline == target.cmdline && t.host == target.host) {
			t = target;
			return;
		}
	run->targets.push_back(target);
}

void AddMissing(const Missing &missing, bool segment, Run *run)
{
	auto same = [&](const Missing &m) { return m.what == missing.what && m.why == missing.why; };
	if (!segment || std::none_of(run->missing.begin(), run->missing.end(), same))
		run->missing.push_back(missing);
}

} // namespace

void ReadManifest(OpenFile *f, const std::string &text)
{
	f->about.manifest = text;
	f->manifest = ParseVisibleObject(text);
	const Json &m = f->manifest;
	f->about.program = Text(m, "program");
	f->about.version = Text(m, "version");
	f->about.host = Text(m, "host");
	f->about.kernel = Text(m, "kernel");
	f->about.boot_id = Text(m, "boot_id");
	f->about.clock_id = Text(m, "clock_id");
	if (f->about.clock_id.empty())
		f->about.clock_id = f->about.boot_id;
	f->about.argv = Texts(m, "argv");
	f->about.start_ns = Whole(m, "start_ns");
}

void UseManifest(OpenFile *f, Run *run)
{
	const Json &m = f->manifest;
	if (uint64_t min_span_ns = Whole(m, "min_span_ns"))
		run->min_span_ns = std::max(run->min_span_ns, min_span_ns);
	if (const Json *cpus = Member(m, "cpus"))
		f->about.cpus = run->cpus =
		    static_cast<uint32_t>(cpus->is_array() ? cpus->size() : Whole(m, "cpus"));
	if (const Json *targets = Member(m, "targets"); targets && targets->is_array())
		for (const Json &t : *targets)
			AddTarget({f->space.Id(static_cast<uint32_t>(Whole(t, "pid"))), Text(t, "comm"),
				   Text(t, "cmdline"), Texts(t, "listens"), Text(t, "cgroup"),
				   Text(t, "cgroup_of"), Flag(t, "io_uring"), Texts(t, "addresses"),
				   f->about.host},
				  f->segment, run);
	if (const Json *missing = Member(m, "missing"); missing && missing->is_array())
		for (const Json &item : *missing)
			AddMissing({Text(item, "what"), Text(item, "why")}, f->segment, run);

	if (const Json *devices = Member(m, "block_devices"); devices && devices->is_object())
		for (const auto &[number, name] : devices->items()) {
			unsigned major = 0, minor = 0;
			if (std::sscanf(number.c_str(), "%u:%u", &major, &minor) == 2 && name.is_string())
				run->devices[DeviceOf(f->space, major << 20 | minor, run)] =
				    name.get<std::string>() +
				    (SeveralHosts(*run) ? OnHost(f->about.host) : "");
		}

	for (const auto &[number, name] : TextMap(m, "syscalls"))
		run->syscalls[std::atoi(number.c_str())] = name;

	if (std::vector<std::string> programs = Texts(m, "programs"); f->said->programs != programs) {
		f->said->first_program = static_cast<uint32_t>(run->programs.size());
		run->programs.insert(run->programs.end(), programs.begin(), programs.end());
		f->said->programs = std::move(programs);
	}
	f->first_program = f->said->first_program;

	f->first_connection = static_cast<uint32_t>(run->connections.size());
	const Json *infos = Member(m, "server_info");
	std::vector<std::string> servers = Texts(m, "servers");
	for (size_t i = 0; i < servers.size(); i++) {
		std::string host = SeveralHosts(*run) && IsLocalAddress(servers[i]) ? f->about.host : "";
		size_t known = 0;
		while (known < run->servers.size() &&
		       (run->servers[known] != servers[i] || run->server_hosts[known] != host))
			known++;
		f->servers.push_back(static_cast<uint32_t>(known));
		if (known != run->servers.size())
			continue;
		run->servers.push_back(servers[i]);
		run->server_hosts.push_back(host);
		run->server_pids.push_back(infos && infos->is_array() && i < infos->size()
					       ? static_cast<uint32_t>(Whole((*infos)[i], "pid"))
					       : 0);
	}
	UseBehind(f, run);
	for (const std::string &op : Texts(m, "ops")) {
		auto known = std::find(run->ops.begin(), run->ops.end(), op);
		f->ops.push_back(static_cast<uint8_t>(known - run->ops.begin()));
		if (known == run->ops.end())
			run->ops.push_back(op);
	}
	if (f->about.program == "forktail-load") {
		Load load;
		load.arrival = Text(m, "arrival");
		load.rate = Number(m, "rate");
		load.pipeline = static_cast<uint32_t>(std::clamp<uint64_t>(Whole(m, "pipeline"), 1, 1 << 20));
		load.first_connection = f->first_connection;
		load.behind = f->behind.size() > 1;
		load.file = static_cast<uint32_t>(run->files.size());
		run->loads.push_back(load);
	}
}

} // namespace forktail

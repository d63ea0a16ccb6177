// SPDX-License-Identifier: MIT
// Merges the manifests of several recordings into the run's lists. A ring's segments repeat theirs.
#include "manifest.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/format/sanitize.h"
#include "common/json/json_read.h"
#include "merge_segments.h"

namespace forktail::analysis
{

namespace
{

// Several load generators may use the same proxy. A request has one byte for the server behind it.
void UseBehind(OpenFile *f, Run *run)
{
	f->behind.push_back(0);
	const common::Json *list = common::Member(f->manifest, "behind");
	if (!list || !list->is_array())
		return;
	const std::string host = IsKernelLog(*f) && SeveralHosts(*run) ? f->about.host : "";
	for (const common::Json &one : *list)
		f->behind.push_back(
		    AddBehind({common::Text(one, "name"), common::Text(one, "address"), host}, run));
}

// A ring's later segments have more facts about a target.
void AddTarget(const Target &target, bool segment, Run *run)
{
	for (Target &t : run->targets)
		if (segment && t.pid == target.pid && t.cmdline == target.cmdline && t.host == target.host) {
			t = target;
			return;
		}
	run->targets.push_back(target);
}

void UseOps(OpenFile *f, Run *run)
{
	const std::vector<std::string> ops = common::Texts(f->manifest, "ops"),
				       commands = common::Texts(f->manifest, "commands");
	for (size_t i = 0; i < ops.size(); i++) {
		auto known = std::find(run->ops.begin(), run->ops.end(), ops[i]);
		f->ops.push_back(static_cast<uint8_t>(known - run->ops.begin()));
		if (known != run->ops.end())
			continue;
		run->ops.push_back(ops[i]);
		run->op_commands.push_back(commands.size() == ops.size() ? commands[i] : ops[i]);
	}
}

// A kernel log is one load per process of the recorder, however many segments it wrote.
void UseKernelLog(OpenFile *f, Run *run)
{
	if (f->session->load < run->loads.size())
		return;
	Load load;
	load.kernel = true;
	load.arrival = "closed";
	load.sample = SampleOf(*common::Member(f->manifest, "requests"));
	load.slices = common::Flag(*common::Member(f->manifest, "requests"), "slices");
	load.first_connection = static_cast<uint32_t>(run->connections.size());
	load.file = static_cast<uint32_t>(std::min(f->merge->file, run->files.size()));
	f->session->load = static_cast<uint32_t>(run->loads.size());
	run->loads.push_back(load);
}

// What describes its requests.
void UseLog(OpenFile *f, Run *run)
{
	const common::Json &m = f->manifest;
	UseServers(m, f, run);
	UseBehind(f, run);
	UseOps(f, run);
	if (IsKernelLog(*f))
		return UseKernelLog(f, run);
	if (f->about.program != "forktail-load")
		return;
	Load load;
	load.arrival = common::Text(m, "arrival");
	load.rate = common::Number(m, "rate");
	load.pipeline = static_cast<uint32_t>(std::clamp<uint64_t>(common::Whole(m, "pipeline"), 1, 1 << 20));
	load.first_connection = static_cast<uint32_t>(run->connections.size());
	load.behind = f->behind.size() > 1;
	load.only_slow = common::Whole(m, "log_slow_ns") != 0;
	load.file = static_cast<uint32_t>(run->files.size());
	f->session->load = static_cast<uint32_t>(run->loads.size());
	run->loads.push_back(load);
}

} // namespace

uint32_t SampleOf(const common::Json &j)
{
	return static_cast<uint32_t>(std::clamp<uint64_t>(common::Whole(j, "sample"), 1, 1 << 20));
}

void AddMissing(const common::Json &j, Run *run)
{
	const Missing missing = {common::Text(j, "what"), common::Text(j, "why")};
	auto same = [&](const Missing &m) { return m.what == missing.what && m.why == missing.why; };
	if (std::none_of(run->missing.begin(), run->missing.end(), same))
		run->missing.push_back(missing);
}

void ReadManifest(OpenFile *f, const common::Raw &text)
{
	f->about.manifest = text;
	f->manifest = common::ParseVisibleObject(text);
	const common::Json &m = f->manifest;
	f->about.program = common::Text(m, "program");
	f->about.version = common::Text(m, "version");
	f->about.host = common::Text(m, "host");
	f->about.kernel = common::Text(m, "kernel");
	f->about.boot_id = common::Text(m, "boot_id");
	f->about.clock_id = common::Text(m, "clock_id");
	if (f->about.clock_id.empty())
		f->about.clock_id = f->about.boot_id;
	f->about.argv = common::Texts(m, "argv");
	f->about.start_ns = common::Whole(m, "start_ns");
}

void UseManifest(OpenFile *f, Run *run)
{
	const common::Json &m = f->manifest;
	if (uint64_t min_span_ns = common::Whole(m, "min_span_ns"))
		run->min_span_ns = std::max(run->min_span_ns, min_span_ns);
	if (const common::Json *cpus = common::Member(m, "cpus"))
		f->about.cpus = run->cpus =
		    static_cast<uint32_t>(cpus->is_array() ? cpus->size() : common::Whole(m, "cpus"));
	if (const common::Json *targets = common::Member(m, "targets"); targets && targets->is_array())
		for (const common::Json &t : *targets)
			AddTarget({f->space.Id(static_cast<uint32_t>(common::Whole(t, "pid"))),
				   common::Text(t, "comm"), common::Text(t, "cmdline"),
				   common::Texts(t, "listens"), common::Text(t, "cgroup"),
				   common::Text(t, "cgroup_of"), common::Flag(t, "io_uring"),
				   common::Texts(t, "addresses"), f->about.host, common::Texts(t, "peers"),
				   common::Texts(t, "local_ends")},
				  f->segment, run);
	if (const common::Json *missing = common::Member(m, "missing"); missing && missing->is_array())
		for (const common::Json &item : *missing)
			AddMissing(item, run);

	if (const common::Json *devices = common::Member(m, "block_devices"); devices && devices->is_object())
		for (const auto &[number, name] : devices->items()) {
			unsigned major = 0, minor = 0;
			if (std::sscanf(number.c_str(), "%u:%u", &major, &minor) == 2 && name.is_string())
				run->devices[DeviceOf(f->space, major << 20 | minor, run)] =
				    name.get<std::string>() +
				    (SeveralHosts(*run) ? OnHost(f->about.host) : "");
		}

	for (const auto &[number, name] : common::TextMap(m, "syscalls"))
		run->syscalls[std::atoi(number.c_str())] = name;

	if (std::vector<std::string> programs = common::Texts(m, "programs");
	    f->merge->programs != programs) {
		f->merge->first_program = static_cast<uint32_t>(run->programs.size());
		run->programs.insert(run->programs.end(), programs.begin(), programs.end());
		f->merge->programs = std::move(programs);
	}
	f->first_program = f->merge->first_program;

	UseLog(f, f->of_log);
}

} // namespace forktail::analysis

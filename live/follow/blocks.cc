// SPDX-License-Identifier: MIT
// Reads blocks with single objects: manifests, details, notes, costs.
#include "analysis/timeline.h"
#include "common/format/sanitize.h"
#include "state.h"

namespace forktail::live
{

namespace
{

constexpr size_t kStackShown = 3;

common::Raw TextOf(const ft_block &block)
{
	return {std::string(static_cast<const char *>(block.payload), block.bytes)};
}

template <typename T, typename Each> void ForRecords(const ft_block &block, Each each)
{
	T record;
	for (uint32_t i = 0; i < block.count; i++) {
		ft_block_record(&block, i, &record, sizeof record);
		each(record);
	}
}

std::vector<std::string> Syscalls(const common::Json &manifest)
{
	std::vector<std::string> names;
	const common::Json *all = common::Member(manifest, "syscalls");
	if (!all || !all->is_object())
		return names;
	for (const auto &[number, name] : all->items()) {
		unsigned long n = strtoul(number.c_str(), nullptr, 10);
		if (n < 4096 && name.is_string()) {
			names.resize(std::max<size_t>(names.size(), n + 1));
			names[n] = name.get<std::string>();
		}
	}
	return names;
}

std::map<uint32_t, std::string> Devices(const common::Json &manifest)
{
	std::map<uint32_t, std::string> names;
	const common::Json *all = common::Member(manifest, "block_devices");
	if (!all || !all->is_object())
		return names;
	for (const auto &[number, name] : all->items()) {
		unsigned major_number, minor_number;
		if (name.is_string() && sscanf(number.c_str(), "%u:%u", &major_number, &minor_number) == 2)
			names[major_number << 20 | minor_number] = name.get<std::string>();
	}
	return names;
}

} // namespace

void Follower::State::AddNote(uint64_t t_ns, const std::string &kind, uint32_t server)
{
	Note note;
	note.t_ns = t_ns;
	note.kind = kind;
	note.server = server;
	batch->notes.push_back(std::move(note));
}

// Ends the state of the previous recorder.
void Follower::State::EndRecorder(uint64_t t_ns)
{
	accounts.CloseTo(newest_ns, &batch->seconds);
	iterations.ForgetAll();
	waits.clear();
	servers.EndAll(newest_ns);
	for (auto &[pid, child] : children) {
		child.end_ns = newest_ns;
		batch->children.push_back(child);
	}
	children.clear();
	accounts.EndAll(t_ns);
	newest_ns = t_ns;
}

void Follower::State::Manifest(const ft_block &block)
{
	common::Json m = common::ParseVisibleObject(TextOf(block));
	uint64_t start_ns = common::Whole(m, "start_ns");
	uint64_t recorder_ns =
	    common::Member(m, "ring_start_ns") ? common::Whole(m, "ring_start_ns") : start_ns;
	std::string id = common::Text(m, "clock_id");
	details.clear();
	syscalls = Syscalls(m);
	devices = Devices(m);
	if (uint64_t span = common::Whole(m, "min_span_ns"))
		min_span_ns = span;
	const uint64_t before_ns = newest_ns;
	bool another = begun && (recorder_ns != recorder_start_ns || id != clock_id);
	if (another)
		EndRecorder(start_ns);
	if (!begun || another) {
		accounts.Begin(start_ns, static_cast<uint32_t>(min_span_ns));
		newest_ns = start_ns;
		AddNote(start_ns, "recorder-began", kNone);
	}
	begun = true;
	ended = false;
	recorder_start_ns = recorder_ns;
	clock_id = id;
	if (const common::Json *targets = common::Member(m, "targets"); targets && targets->is_array())
		for (const common::Json &target : *targets)
			servers.Add(target, start_ns);
	requests.Manifest(m, another, before_ns);
}

void Follower::State::Detail(const ft_block &block)
{
	common::Json j = common::ParseVisibleObject(TextOf(block));
	forktail::analysis::Detail detail = {common::Text(j, "name"), common::Texts(j, "stack")};
	details[static_cast<uint32_t>(common::Whole(j, "id"))] = {
	    detail.name, analysis::StackText(detail, kStackShown), analysis::CauseOfStack(detail.stack)};
}

void Follower::State::CostBlock(const ft_block &block)
{
	common::Json j = common::ParseVisibleObject(TextOf(block));
	cost.known = true;
	cost.t_ns = newest_ns;
	cost.cpu_ns = common::Whole(j, "recorder_cpu_ns");
	cost.bpf_ns = common::Whole(j, "bpf_ns");
	cost.rss_bytes = common::Whole(j, "recorder_rss_bytes");
	const common::Json *deaths = common::Member(j, "helper_deaths");
	for (const char *helper : {"events", "files", "reqs", "stats", "switch", "unwind"})
		cost.helper_deaths[helper] = deaths ? common::Whole(*deaths, helper) : 0;
	cost.main_loop_stalls = common::Whole(j, "main_loop_stalls");
}

void Follower::State::NoteBlock(const ft_block &block)
{
	common::Json j = common::ParseVisibleObject(TextOf(block));
	Note note;
	note.t_ns = common::Whole(j, "t_ns");
	note.kind = common::Text(j, "kind");
	note.name = common::Text(j, "name");
	note.on = common::Flag(j, "on");
	note.text = j.dump(-1, ' ', false, common::Json::error_handler_t::replace);
	uint32_t pid = static_cast<uint32_t>(common::Whole(j, "pid"));
	if (note.kind == "target-began")
		servers.Add(j, note.t_ns);
	if (note.kind == "request-servers")
		requests.UseServers(j);
	if (note.kind == "requests-slice" || note.kind == "requests-ended")
		requests.Slice(note.t_ns, note.on);
	if (note.kind == "requests-sample")
		requests.Sample(note.t_ns, static_cast<uint32_t>(common::Whole(j, "sample")));
	if (pid)
		note.server = servers.Known(pid);
	if (note.kind == "target-ended")
		servers.End(pid, note.t_ns);
	batch->notes.push_back(std::move(note));
}

void Follower::State::RequestBlock(const ft_block &block)
{
	if (!requests.Decode(block))
		return;
	Seen(requests.latest_ns());
	requests.Count(newest_ns, RequestBatch());
}

void Follower::State::Read(const ft_block &block)
{
	switch (block.kind) {
	case FT_BLOCK_MANIFEST:
		return Manifest(block);
	case FT_BLOCK_THREAD:
		return ForRecords<ft_thread>(block, [&](const ft_thread &t) { Thread(t); });
	case FT_BLOCK_SPAN:
		return ForRecords<ft_span>(block, [&](const ft_span &s) { Span(s); });
	case FT_BLOCK_OPEN:
		return ForRecords<ft_span>(block, [&](const ft_span &s) { OpenSpan(s); });
	case FT_BLOCK_TALLY:
		return ForRecords<ft_tally>(block, [&](const ft_tally &t) { Tally(t); });
	case FT_BLOCK_CPU_SLICE:
		return ForRecords<ft_cpu_slice>(block, [&](const ft_cpu_slice &t) { slices.Add(t); });
	case FT_BLOCK_IO:
		return ForRecords<ft_io>(block, [&](const ft_io &io) { Io(io); });
	case FT_BLOCK_CLOCK:
		return ForRecords<ft_clock>(block, [&](const ft_clock &c) { clock = c; });
	case FT_BLOCK_SAMPLE:
		return ForRecords<ft_sample>(block, [&](const ft_sample &s) { Seen(s.t_ns); });
	case FT_BLOCK_DROP:
		return ForRecords<ft_drop>(block, [&](const ft_drop &d) {
			batch->drops.push_back(d);
			dropped += d.count;
		});
	case FT_BLOCK_DETAIL:
		return Detail(block);
	case FT_BLOCK_NOTE:
		return NoteBlock(block);
	case FT_BLOCK_COST:
		return CostBlock(block);
	case FT_BLOCK_CONNECTION:
		ForRecords<ft_connection>(block, [&](const ft_connection &c) { requests.Connection(c); });
		return requests.Settle(newest_ns, RequestBatch());
	case FT_BLOCK_REQUEST:
		return RequestBlock(block);
	default:
		return; // CPU samples and sockets are only needed to explain a snapshot
	}
}

} // namespace forktail::live

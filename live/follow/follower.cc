// SPDX-License-Identifier: MIT
// The public side of a follower: reads new blocks, closes accounts that are due, and reports pending events.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "analysis/timeline.h"
#include "common/format.h"
#include "common/json.h"
#include "live/follow.h"
#include "state.h"

namespace forktail::live
{

namespace
{

constexpr uint64_t kSliceNs = 4 * kSecondNs; // how long CPU slices are retained
constexpr uint64_t kSilentNs = 3 * kSecondNs;

} // namespace

Follower::Follower(const std::string &path, const Options &options)
    : state_(std::make_unique<State>(path, options))
{
}

Follower::~Follower() = default;

// Closes accounts two seconds behind real time; at the end of a recording, up to its last record.
void Follower::State::CloseUp()
{
	uint64_t now_ns = Now(), to_ns = newest_ns > kLagNs ? newest_ns - kLagNs : 0;
	uint64_t due_ns = std::min(now_ns > kLagNs ? now_ns - kLagNs : 0, newest_ns);
	if (tail.ended() && now_ns > read_at_ns + kSecondNs)
		due_ns = newest_ns;
	accounts.CloseTo(std::max(to_ns, due_ns), &batch->seconds);
}

bool Follower::Poll(Batch *batch, std::string *error)
{
	State &s = *state_;
	*batch = {};
	s.batch = batch;
	size_t bytes = 0;
	ft_block block;
	Tail::Got got;
	while ((got = s.tail.Next(&block, error)) == Tail::Got::Block) {
		s.read_at_ns = s.Now();
		s.Read(block);
		bytes += block.bytes;
		if (bytes >= s.options.read_bytes) {
			batch->more = true;
			break;
		}
	}
	if (s.begun) {
		s.requests.Settle(s.newest_ns, s.RequestBatch());
		s.requests.EndPoll();
		s.LookAtWaits();
		s.iterations.Report(s.slices, &batch->iterations);
		if (!batch->more)
			s.CloseUp();
		if (s.newest_ns > kSliceNs)
			s.slices.Forget(s.newest_ns - kSliceNs);
		if (!s.ended && !recording() && !batch->more) {
			s.ended = true;
			s.AddNote(s.newest_ns, "recorder-ended", kNone);
		} else if (s.ended && recording()) {
			s.ended = false;
			s.AddNote(s.newest_ns, "recorder-began", kNone);
		}
	}
	s.batch = nullptr;
	return got != Tail::Got::Failed;
}

void Follower::SetNow(uint64_t now_ns)
{
	state_->options.now_ns = now_ns;
}

const std::vector<Server> &Follower::servers() const
{
	return state_->servers.all();
}

const std::vector<ThreadTotals> &Follower::threads() const
{
	return state_->accounts.all();
}

const std::vector<RequestTotals> &Follower::requests() const
{
	return state_->requests.totals();
}

const std::vector<ClientTotals> &Follower::request_clients() const
{
	return state_->requests.clients();
}

uint64_t Follower::accounted_to_ns() const
{
	return state_->begun ? state_->accounts.closed_to_ns() : 0;
}

uint64_t Follower::newest_ns() const
{
	return state_->newest_ns;
}

bool Follower::recording() const
{
	return state_->begun && state_->Now() < state_->newest_ns + kSilentNs;
}

uint64_t Follower::min_span_ns() const
{
	return state_->min_span_ns;
}

uint32_t Follower::request_sample() const
{
	return state_->requests.sample();
}

uint64_t Follower::requests_recorded_ns() const
{
	return state_->requests.recorded_ns(state_->newest_ns);
}

RecorderCost Follower::cost() const
{
	return state_->cost;
}

uint64_t Follower::dropped() const
{
	return state_->dropped;
}

uint64_t Follower::damaged() const
{
	return state_->tail.damaged();
}

Follower::Buffer Follower::buffer() const
{
	Tail::OnDisk seen = state_->tail.Look();
	return {seen.oldest_ns, state_->newest_ns, seen.bytes, seen.segments};
}

uint64_t Follower::RealtimeNs(uint64_t t_ns) const
{
	const ft_clock &c = state_->clock;
	return c.realtime_ns ? c.realtime_ns + (t_ns - c.monotonic_ns) : 0;
}

uint64_t Follower::MonotonicNs(uint64_t realtime_ns) const
{
	const ft_clock &c = state_->clock;
	return c.realtime_ns ? c.monotonic_ns + (realtime_ns - c.realtime_ns) : 0;
}

std::string Follower::DeviceName(uint32_t dev) const
{
	auto found = state_->devices.find(dev);
	if (found != state_->devices.end())
		return found->second;
	return std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff);
}

// Reads blocks with single objects: manifests, details, notes, costs.

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
	cost.bpf_known = common::Member(j, "bpf_ns");
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

// Names of servers. The lowest port is usually the one that clients use (a Redis Cluster's bus port is 10,000
// higher). Ports take precedence over Unix sockets because they distinguish servers of several hosts.

namespace
{

std::string NameOf(const std::string &comm, const std::vector<std::string> &listens)
{
	unsigned long port = 0;
	std::string path;
	for (const std::string &place : listens) {
		if (place.rfind("tcp:", 0) == 0) {
			unsigned long p = strtoul(place.c_str() + 4, nullptr, 10);
			port = p && (!port || p < port) ? p : port;
		} else if (place.rfind("unix:", 0) == 0 && path.empty()) {
			path = place.substr(5);
		}
	}
	if (port)
		return comm + ":" + std::to_string(port);
	return path.empty() ? comm : comm + ":" + path;
}

// True if `name` is `base`, or `base` with a suffix that distinguishes several servers.
bool IsOneOf(const std::string &name, const std::string &base)
{
	return name == base || name.rfind(base + " (", 0) == 0 || name.rfind(base + "#", 0) == 0;
}

} // namespace

// Assigns the name to the process, unless a running process has it.
bool Servers::Take(const std::string &name, uint32_t pid, const std::string &comm, uint64_t t_ns)
{
	auto [found, is_new] = by_name_.try_emplace(name, static_cast<uint32_t>(all_.size()));
	if (is_new) {
		all_.emplace_back();
		all_.back().name = name;
	}
	Server &server = all_[found->second];
	if (server.alive && server.pid != pid)
		return false;
	server.comm = comm;
	server.pid = pid;
	server.alive = true;
	server.began_ns = t_ns;
	server.ended_ns = 0;
	of_pid_[pid] = found->second;
	return true;
}

void Servers::Name(uint32_t pid, const std::string &base, const std::string &place, const std::string &comm,
		   uint64_t t_ns)
{
	if (Take(base, pid, comm, t_ns))
		return;
	if (!place.empty() && Take(base + " (" + place + ")", pid, comm, t_ns))
		return;
	for (unsigned i = 2; !Take(base + "#" + std::to_string(i), pid, comm, t_ns);)
		i++;
}

void Servers::Add(const common::Json &target, uint64_t t_ns)
{
	uint32_t pid = static_cast<uint32_t>(common::Whole(target, "pid"));
	if (!pid)
		return;
	std::string comm = common::Text(target, "comm");
	std::vector<std::string> listens = common::Texts(target, "listens");
	std::string base = NameOf(comm, listens);
	uint32_t known = Known(pid);
	// A server that was recorded before it listened gets its final name when it listens.
	if (known == kNone || !all_[known].alive || (!listens.empty() && !IsOneOf(all_[known].name, base))) {
		if (known != kNone)
			End(pid, t_ns);
		Name(pid, base, common::Text(target, "cgroup_of"), comm, t_ns);
	}
	if (!listens.empty())
		all_[Known(pid)].listens = std::move(listens);
}

void Servers::End(uint32_t pid, uint64_t t_ns)
{
	auto found = of_pid_.find(pid);
	if (found == of_pid_.end())
		return;
	Server &server = all_[found->second];
	if (server.pid == pid && server.alive) {
		server.alive = false;
		server.ended_ns = t_ns;
	}
}

void Servers::EndAll(uint64_t t_ns)
{
	for (Server &server : all_) {
		if (server.alive)
			server.ended_ns = t_ns;
		server.alive = false;
	}
	of_pid_.clear();
}

uint32_t Servers::Known(uint32_t pid) const
{
	auto found = of_pid_.find(pid);
	return found == of_pid_.end() ? kNone : found->second;
}

uint32_t Servers::Of(uint32_t pid, const std::string &comm, uint64_t t_ns)
{
	uint32_t known = Known(pid);
	if (known != kNone)
		return known;
	for (const Server &server : all_)
		if (!server.alive && server.comm == comm && Take(server.name, pid, comm, t_ns))
			return Known(pid);
	Name(pid, comm, "", comm, t_ns);
	return Known(pid);
}

// Names of clients.

std::string Client::Name() const
{
	ft_comm comm;
	uint8_t address[16];
	memcpy(comm.raw, bytes, sizeof comm.raw);
	memcpy(address, bytes, sizeof address);
	switch (kind) {
	case Kind::Address:
	case Kind::Hashed:
		return common::ClientAddress(address, kind == Kind::Hashed);
	case Kind::Process:
		return *comm.raw ? common::VisibleName(comm) : "unknown process";
	case Kind::Named:
		return common::Visible(std::string(reinterpret_cast<const char *>(bytes)));
	case Kind::Other:
		break;
	}
	return "other";
}

Client ClientOf(const ft_connection &connection)
{
	const auto &address = connection.client_address;
	Client client;
	if (*connection.client_name) {
		client.kind = Client::Kind::Named;
		memcpy(client.bytes, connection.client_name,
		       strnlen(connection.client_name, sizeof client.bytes - 1));
		return client;
	}
	if (*connection.client_comm.raw ||
	    std::all_of(std::begin(address), std::end(address), [](uint8_t byte) { return byte == 0; })) {
		client.kind = Client::Kind::Process;
		memcpy(client.bytes, connection.client_comm.raw,
		       strnlen(connection.client_comm.raw, sizeof connection.client_comm.raw));
		return client;
	}
	client.kind =
	    connection.client_flags & FT_CLIENT_HASHED ? Client::Kind::Hashed : Client::Kind::Address;
	memcpy(client.bytes, address, sizeof address);
	return client;
}

} // namespace forktail::live

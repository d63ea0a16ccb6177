// SPDX-License-Identifier: MIT
// Queries of a run: extent, clocks, names. index_run.cc sorts its records.
#include "analysis/run.h"
#include "analysis/sender.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "common/format.h"
#include "common/json.h"
#include "common/text.h"
#include "recording/owners.h"

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

std::string NameOfSender(const Run &run, const Connection &c)
{
	if (!c.client || c.client > run.request_clients.size())
		return "";
	const RequestClient &client = run.request_clients[c.client - 1];
	if (!c.local_port)
		return client.name;
	const std::string port = std::to_string(c.local_port);
	if (client.name != client.address)
		return client.name + ", port " + port;
	const bool v6 = client.name.find(':') != std::string::npos;
	return (v6 ? "[" + client.name + "]" : client.name) + ":" + port;
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

uint64_t HelperDeaths(const Run &run)
{
	uint64_t count = 0;
	for (const auto &[helper, deaths] : run.cost.helper_deaths)
		count += deaths;
	return count;
}

std::string DeviceName(const Run &run, uint32_t dev)
{
	auto found = run.devices.find(dev);
	if (found != run.devices.end())
		return found->second;
	return std::to_string(dev >> 20) + ":" + std::to_string(dev & ((1u << 20) - 1));
}

// Each space begins at a multiple of the maximum id, so that an id shows its space.

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

uint64_t LongestReading(const Run &run)
{
	return run.metrics_ns ? run.metrics_ns : 100'000'000;
}

uint64_t ReadingBegin(const Run &run, const Series &series, size_t i)
{
	const uint64_t t_ns = series.samples[i].t_ns, begin_ns = t_ns - std::min(t_ns, LongestReading(run));
	// Recorders that do not say how often they read wrote the first of equal readings only.
	return run.metrics_ns && i ? std::max(begin_ns, series.samples[i - 1].t_ns) : begin_ns;
}

bool IsLocalAddress(const std::string &address)
{
	for (const char *local : {"unix:", "/", "127.", "localhost", "[::1]", "::1"})
		if (address.starts_with(local))
			return true;
	return false;
}

// The table has an entry for each small id, whether it is used or not.

uint32_t ConnectionIds::Make(uint32_t id, Run *run)
{
	constexpr uint32_t table_limit = 1 << 20;
	auto [found, is_new] = all_.try_emplace(id, static_cast<uint32_t>(run->connections.size()));
	if (is_new)
		run->connections.emplace_back();
	if (first_ == kNoConnection)
		first_ = found->second;
	if (id < table_limit) {
		if (id >= table_.size())
			table_.resize(id + 1, kNoConnection);
		table_[id] = found->second;
	}
	return found->second;
}

// A client's ports are not part of its name: each connection has another.

namespace
{

constexpr size_t kMostClients = 100'000; // addresses are chosen by clients: memory is bounded

// What a client called itself.
template <size_t N> std::string Given(const char (&text)[N])
{
	return common::Visible(std::string(text, strnlen(text, N)));
}

} // namespace

uint32_t RequestClients::Of(const ft_connection &c, uint32_t pid, uint32_t own_pid,
			    const std::string &on_host, Run *run)
{
	RequestClient client;
	client.address = common::ClientAddress(c.client_address, c.client_flags & FT_CLIENT_HASHED);
	client.hashed = c.client_flags & FT_CLIENT_HASHED;
	if (client.address.empty() && !own_pid)
		return 0;
	client.name = client.address;
	if (own_pid) {
		client.pid = pid;
		client.comm = common::VisibleName(c.client_comm);
		client.name = client.comm + " (" + std::to_string(own_pid) + ")" + on_host;
	}
	client.own_name = Given(c.client_name);
	client.library = Given(c.client_library);
	if (!client.own_name.empty())
		client.name = client.own_name + ", " + client.name;
	if (!client.library.empty())
		client.name += ", " + client.library;
	if (auto known = by_name_.find(client.name); known != by_name_.end())
		return known->second;
	if (run->request_clients.size() == kMostClients)
		return 0;
	run->request_clients.push_back(client);
	return by_name_[client.name] = static_cast<uint32_t>(run->request_clients.size());
}

// Two clients on different hosts may have the same port at the same time. Which of the two a connection in
// the other log is would be a guess, so neither is paired.

namespace
{

// The client's port and the server's, or the inode of the client's Unix socket and 0.
using SocketKey = std::pair<uint64_t, uint64_t>;

// One socket's life. `owner`: the program at its end, as far as the log says.
struct SocketLife {
	uint64_t opened_ns, closed_ns;
	uint32_t connection, owner;
	bool unclear = false;
};

struct SocketLives {
	std::vector<SocketLife> load, kernel;
};

// {0, 0}: unknown.
SocketKey KeyOf(const Run &run, const Connection &c)
{
	if (!c.local_port)
		return {c.inode, 0};
	const uint32_t port = c.server < run.servers.size() ? PortOf(run.servers[c.server]) : 0;
	return port ? SocketKey{c.local_port, port} : SocketKey{0, 0};
}

// A socket whose end is unknown had ended when its owner opened the next one with the same port. Marks those
// that overlap nevertheless.
void FindUnclear(uint64_t bound_ns, std::vector<SocketLife> *lives)
{
	std::sort(lives->begin(), lives->end(),
		  [](const SocketLife &a, const SocketLife &b) { return a.opened_ns < b.opened_ns; });
	SocketLife *longest = nullptr;
	for (SocketLife &life : *lives) {
		if (longest && longest->owner == life.owner)
			longest->closed_ns = std::min(longest->closed_ns, life.opened_ns);
		if (longest && longest->closed_ns > life.opened_ns + bound_ns)
			longest->unclear = life.unclear = true;
		if (!longest || life.closed_ns >= longest->closed_ns)
			longest = &life;
	}
}

bool Overlap(const SocketLife &a, const SocketLife &b, uint64_t bound_ns)
{
	const uint64_t opened_ns = std::max(a.opened_ns, b.opened_ns);
	return opened_ns - std::min(opened_ns, bound_ns) <= std::min(a.closed_ns, b.closed_ns);
}

} // namespace

SocketPairs PairSockets(const Run &kernel, const Run &run, uint64_t bound_ns)
{
	std::map<SocketKey, SocketLives> all;
	auto add = [&](const Run &of, uint32_t number, const Connection &c, uint32_t owner,
		       std::vector<SocketLife> SocketLives::*lives) {
		if (const SocketKey key = KeyOf(of, c); key.first)
			(all[key].*lives)
			    .push_back({c.opened_ns, c.closed_ns ? c.closed_ns : UINT64_MAX, number, owner});
	};
	for (uint32_t i = 0; i < run.connections.size(); i++) {
		for (const Connection &earlier : run.connections[i].earlier)
			add(run, i, earlier, i, &SocketLives::load);
		add(run, i, run.connections[i], i, &SocketLives::load);
	}
	for (uint32_t i = 0; i < kernel.connections.size(); i++)
		add(kernel, i, kernel.connections[i], kernel.connections[i].client, &SocketLives::kernel);

	SocketPairs pairs(kernel.connections.size());
	for (auto &[key, lives] : all) {
		FindUnclear(bound_ns, &lives.load);
		FindUnclear(bound_ns, &lives.kernel);
		for (const SocketLife &seen : lives.kernel)
			for (const SocketLife &sent : lives.load)
				if (!seen.unclear && !sent.unclear && Overlap(seen, sent, bound_ns))
					pairs[seen.connection].push_back({sent.opened_ns, sent.connection});
	}
	return pairs;
}

void TakeReaders(const Run &kernel, const SocketPairs &pairs, Run *run)
{
	for (size_t i = 0; i < pairs.size(); i++) {
		if (pairs[i].size() != 1)
			continue;
		Connection &connection = run->connections[pairs[i].front().connection];
		if (connection.earlier.empty())
			connection.readers = kernel.connections[i].readers;
	}
}

} // namespace forktail::analysis

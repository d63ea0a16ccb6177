// SPDX-License-Identifier: MIT
// Parts wait by what they are until the proxy's requests of that time are read.
#include "passed_on.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "analysis/run/hosts.h"
#include "analysis/run/sort_nearly.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kTries = 4096; // parts that are compared with one request
// A part is a request's only if the rest of the request's time, at the proxy and on the network, is not
// longer than the part and this. A longer rest is the proxy's stall, whatever server the request went to.
constexpr uint64_t kMostElsewhereNs = 2'000'000;

// The client's end as the recorder writes it; "" if the log does not have it.
std::string ClientEnd(const Run &run, const Connection &c)
{
	if (!c.client || !c.local_port || run.request_clients[c.client - 1].hashed)
		return "";
	const std::string &address = run.request_clients[c.client - 1].address;
	if (address.empty())
		return "";
	const bool v6 = address.find(':') != std::string::npos;
	return (v6 ? "[" + address + "]:" : address + ":") + std::to_string(c.local_port);
}

// 1 + the index of the process that serves it; 0: unknown.
uint32_t TargetOf(const Run &run, const std::vector<Target> &targets, uint32_t server)
{
	const auto target = std::ranges::find_if(targets, [&](const Target &t) {
		return OwnId(run, t.pid) == run.server_pids[server] && t.host == run.server_hosts[server];
	});
	return target == targets.end() ? 0 : static_cast<uint32_t>(target - targets.begin() + 1);
}

uint64_t KeyOf(uint32_t proxy, const Requests &q, size_t i)
{
	return uint64_t{proxy} << 40 | uint64_t{q.op[i]} << 32 | q.request_bytes[i];
}

} // namespace

std::vector<PassedOn> FindPassedOn(const std::vector<Target> &targets, Run *run)
{
	if (!SeveralHosts(*run))
		return {};
	std::map<std::string, uint32_t> proxies; // as PassedOn::proxy, by local end
	for (uint32_t s = 0; s < run->servers.size(); s++)
		if (const uint32_t proxy = run->server_proxies[s] ? TargetOf(*run, targets, s) : 0)
			for (const std::string &end : targets[proxy - 1].local_ends)
				proxies[end] = proxy;
	std::vector<PassedOn> passed_on;
	for (size_t i = 0; i < run->connections.size() && !proxies.empty(); i++) {
		const Connection &c = run->connections[i];
		const auto proxy = proxies.find(ClientEnd(*run, c));
		if (proxy == proxies.end() || c.server >= run->servers.size() ||
		    targets[proxy->second - 1].host == run->server_hosts[c.server])
			continue;
		const std::string &address = run->servers[c.server];
		passed_on.resize(run->connections.size());
		passed_on[i] = {proxy->second,
				AddBehind({address, address, run->server_hosts[c.server]}, run)};
	}
	return passed_on;
}

PassedOnJoin::PassedOnJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
			   const std::vector<PassedOn> &passed_on, const std::vector<Target> &targets,
			   const Run &run)
    : WaitingJoin(std::move(blocks), window, &parts_, part, {&passed_on, true}, run.clocks_bound_ns),
      run_(run), passed_on_(passed_on)
{
	for (uint32_t s = 0; s < run.servers.size(); s++)
		proxy_of_server_.push_back(run.server_proxies[s] ? TargetOf(run, targets, s) : 0);
}

void PassedOnJoin::TakeWindow()
{
	const Requests &q = parts_.requests;
	if (q.request_bytes.empty())
		return;
	for (size_t i = q.lead; i < q.size(); i++) {
		const PassedOn &by = passed_on_[q.connection[i]];
		lines_[KeyOf(by.proxy, q, i)].push_back({q.sent_ns[i], q.end_ns[i], by.behind, false});
		waiting_++;
	}
}

size_t PassedOnJoin::Prune()
{
	size_t waiting = 0;
	for (auto line = lines_.begin(); line != lines_.end();) {
		std::erase_if(line->second,
			      [&](const PartSeen &p) { return p.taken || IsPast(p.answered_ns); });
		waiting += line->second.size();
		line = line->second.empty() ? lines_.erase(line) : std::next(line);
	}
	return waiting;
}

// The server that request i was passed on to; 0: not seen.
uint8_t PassedOnJoin::Take(const Requests &q, size_t i)
{
	const uint32_t server = run_.connections[q.connection[i]].server;
	const uint32_t proxy = server < proxy_of_server_.size() ? proxy_of_server_[server] : 0;
	const auto line = proxy ? lines_.find(KeyOf(proxy, q, i)) : lines_.end();
	if (line == lines_.end())
		return 0;
	const uint64_t read = q.read_ns[i] ? q.read_ns[i] : q.sent_ns[i];
	const uint64_t from = read - std::min(read, bound_ns_), until = q.end_ns[i] + bound_ns_;
	auto at = std::ranges::lower_bound(line->second, from, {}, &PartSeen::arrived_ns);
	PartSeen *longest = nullptr;
	for (size_t tries = 0; tries < kTries && at != line->second.end() && at->arrived_ns < until;
	     tries++, at++)
		if (!at->taken && at->answered_ns <= until &&
		    (!longest ||
		     at->answered_ns - at->arrived_ns > longest->answered_ns - longest->arrived_ns))
			longest = &*at;
	if (!longest)
		return 0;
	const uint64_t part_ns = longest->answered_ns - longest->arrived_ns;
	if (until - from > 2 * part_ns + kMostElsewhereNs + 2 * bound_ns_)
		return 0;
	longest->taken = true;
	return longest->behind;
}

void PassedOnJoin::Fill(Requests *q)
{
	q->server_arrival_ns.Truncate(0);
	q->answered_ns.Truncate(0);
	if (q->size() == q->lead || q->request_bytes.empty())
		return;
	Reach(*std::max_element(q->end_ns.begin() + static_cast<ptrdiff_t>(q->lead), q->end_ns.end()));
	for (auto &[key, line] : lines_)
		SortNearly(line.data(), line.data() + line.size(),
			   [](const PartSeen &a, const PartSeen &b) { return a.arrived_ns < b.arrived_ns; });
	std::vector<uint32_t> shortest_first(q->size() - q->lead);
	std::iota(shortest_first.begin(), shortest_first.end(), static_cast<uint32_t>(q->lead));
	std::ranges::stable_sort(shortest_first, {},
				 [&](uint32_t i) { return q->end_ns[i] - q->sent_ns[i]; });
	for (const uint32_t i : shortest_first)
		if (!q->behind[i] && q->connection[i] < run_.connections.size())
			q->behind[i] = Take(*q, i);
}

} // namespace forktail::analysis

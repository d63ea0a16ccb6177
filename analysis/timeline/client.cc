// SPDX-License-Identifier: MIT
// Load threads: which threads they are, and where they stalled while the server was idle.
#include "client.h"

#include <algorithm>
#include <map>

namespace forktail::analysis
{

namespace
{

// The recorded thread of a load generator with this tid that is the first to live after an instant, or -1.
// The first request may be due before its thread starts.
int64_t ClientThread(const Run &run, uint32_t tid, uint64_t t_ns)
{
	for (size_t i = 0; i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		if (t.tid == tid && (t.flags & FT_THREAD_CLIENT) && t_ns < t.end_ns)
			return static_cast<int64_t>(i);
	}
	return -1;
}

// The tid of a request's load thread, from the test in which it was due in its log; 0: unknown. Tests do not
// overlap.
uint32_t TidOf(const Run &run, uint32_t connection, uint64_t intended_ns)
{
	uint32_t tid = 0, thread = run.connections[connection].thread;
	for (const LoadStart &start : run.load_starts) {
		const Load &load = run.loads[start.load];
		if (connection < load.first_connection ||
		    connection >= load.first_connection + load.connection_count || start.t_ns > intended_ns)
			continue;
		tid = thread < start.tids.size() ? start.tids[thread] : 0;
	}
	return tid;
}

bool IsStalled(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && !IsInterrupt(p.cause);
}

} // namespace

Clients FindClients(const Run &run, const std::vector<uint64_t> &first_due_ns)
{
	Clients clients;
	clients.of_connection.assign(run.connections.size(), -1);
	if (run.load_starts.empty())
		return clients;
	std::map<int64_t, int32_t> found; // by thread
	for (uint32_t connection = 0; connection < first_due_ns.size(); connection++) {
		uint64_t due = first_due_ns[connection];
		if (due == UINT64_MAX)
			continue;
		int64_t thread = ClientThread(run, TidOf(run, connection, due), due);
		if (thread < 0)
			continue;
		auto [known, is_new] =
		    found.try_emplace(thread, static_cast<int32_t>(clients.timelines.size()));
		if (is_new)
			clients.timelines.push_back(BuildTimeline(run, static_cast<uint32_t>(thread)));
		clients.of_connection[connection] = known->second;
	}
	return clients;
}

uint64_t StalledIdle::Between(uint64_t from_ns, uint64_t to_ns) const
{
	// Up to an instant: the whole intervals before it, and the part of the one that contains it.
	auto until = [&](uint64_t t_ns) -> uint64_t {
		size_t n = static_cast<size_t>(std::lower_bound(start_ns.begin(), start_ns.end(), t_ns) -
					       start_ns.begin());
		return n == 0 ? 0 : before_ns[n - 1] + std::min(t_ns, end_ns[n - 1]) - start_ns[n - 1];
	};
	return from_ns < to_ns ? until(to_ns) - until(from_ns) : 0;
}

StalledIdle FindStalledIdle(const Timeline &server, const Timeline &client)
{
	StalledIdle both;
	uint64_t sum = 0;
	size_t s = 0, c = 0;
	while (s + 1 < server.pieces.size() && c + 1 < client.pieces.size()) {
		const Piece &a = server.pieces[s], &b = client.pieces[c];
		uint64_t a_end = server.pieces[s + 1].start_ns, b_end = client.pieces[c + 1].start_ns;
		uint64_t from = std::max(a.start_ns, b.start_ns), to = std::min(a_end, b_end);
		if (from < to && a.cause == Cause::Idle && a.span != kNoSpan && IsStalled(b)) {
			both.start_ns.push_back(from);
			both.end_ns.push_back(to);
			both.before_ns.push_back(sum);
			sum += to - from;
		}
		(a_end <= b_end ? s : c)++;
	}
	return both;
}

} // namespace forktail::analysis

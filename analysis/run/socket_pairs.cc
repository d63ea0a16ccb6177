// SPDX-License-Identifier: MIT
// Two clients on different hosts may have the same port at the same time. Which of the two a connection in
// the other log is would be a guess, so neither is paired.
#include "socket_pairs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace forktail::analysis
{

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

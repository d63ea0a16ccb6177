// SPDX-License-Identifier: MIT
// A connection is found among the recorder's sockets by its client's port, or by its inode. The thread that
// reads the socket serves it. If no read was seen, the thread that closed it does, in processes whose threads
// close what they read. An older kernel does not tell who reads: then the socket is in an epoll
// instance, and the thread that waits for that instance serves it.
#include "serving.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analysis/run/hosts.h"
#include "analysis/run/thread_finder.h"

namespace forktail::analysis
{

namespace
{

// A thread that waits for an epoll instance. Instances are identified by process and descriptor.
struct Waiter {
	uint64_t from_ns, to_ns;
	uint32_t tid, thread;
};
using Instance = std::pair<uint32_t, uint32_t>;
using Waiters = std::map<Instance, std::vector<Waiter>>;

// The thread of this id that lived at an instant.
uint32_t ThreadOf(const Run &run, const ThreadFinder &finder, uint32_t tid, uint64_t t_ns)
{
	const int64_t found = finder.Find(run.threads, tid, t_ns);
	if (found < 0)
		return kNoThread;
	const Thread &t = run.threads[static_cast<size_t>(found)];
	return t.start_ns <= t_ns && t_ns <= t.end_ns ? static_cast<uint32_t>(found) : kNoThread;
}

Waiters WaitersOf(const Run &run, const ThreadFinder &finder)
{
	Waiters waiters;
	std::map<uint32_t, std::vector<const ft_loop *>> by_thread;
	for (const ft_loop &l : run.loops)
		if (uint32_t thread = ThreadOf(run, finder, l.tid, l.t_ns); thread != kNoThread)
			by_thread[thread].push_back(&l);
	for (const auto &[thread, loops] : by_thread) {
		for (size_t i = 0; i < loops.size(); i++) {
			// The first record also covers the time before it: the thread waited for no other
			// instance then.
			uint64_t from = i ? loops[i]->t_ns : run.threads[thread].start_ns;
			uint64_t to = i + 1 < loops.size() ? loops[i + 1]->t_ns
				      : run.threads[thread].flags & FT_THREAD_ENDED
					  ? run.threads[thread].end_ns
					  : UINT64_MAX;
			waiters[{loops[i]->tgid, loops[i]->epoll}].push_back(
			    {from, to, loops[i]->tid, thread});
		}
	}
	// Several threads that wait for one instance may each serve any of its connections.
	for (auto &[instance, all] : waiters) {
		std::sort(all.begin(), all.end(),
			  [](const Waiter &a, const Waiter &b) { return a.from_ns < b.from_ns; });
		for (size_t i = 1; i < all.size(); i++)
			if (all[i].tid != all[i - 1].tid && all[i].from_ns < all[i - 1].to_ns) {
				all.clear();
				break;
			}
	}
	return waiters;
}

// A server's socket: its place, and the longest possible time of its existence.
struct Socket {
	uint64_t born_ns, gone_ns;
	struct Stay {
		uint64_t from_ns, to_ns;
		Instance instance;
	};
	std::vector<Stay> stays;
	uint32_t process; // the first process that had it
	uint32_t local_port, peer_port;
	uint64_t peer_inode;
};

std::vector<Socket> SocketsOf(const Run &run)
{
	constexpr uint32_t gone = static_cast<uint32_t>(FT_SOCKET_GONE);
	std::vector<Socket> sockets;
	for (size_t i = 0; i < run.sockets.size();) {
		const ft_socket &first = run.sockets[i];
		if (first.reader) {
			i++;
			continue;
		}
		Socket s = {first.before_ns, UINT64_MAX,      {}, first.tgid, first.local_port,
			    first.peer_port, first.peer_inode};
		for (; i < run.sockets.size() && run.sockets[i].inode == first.inode; i++) {
			const ft_socket &r = run.sockets[i];
			if (!s.stays.empty() && s.stays.back().to_ns == UINT64_MAX)
				s.stays.back().to_ns = r.epoll == gone ? r.seen_ns : r.before_ns;
			if (r.epoll == gone)
				s.gone_ns = r.seen_ns;
			else // a new one had no earlier place
				s.stays.push_back({s.stays.empty() ? r.before_ns : r.seen_ns,
						   UINT64_MAX,
						   {r.tgid, r.epoll}});
		}
		sockets.push_back(std::move(s));
	}
	return sockets;
}

// How long a socket and a connection may have been the same, in ns.
uint64_t Overlap(const Socket &s, const Connection &c)
{
	uint64_t from = std::max(s.born_ns, c.opened_ns);
	uint64_t to = std::min(s.gone_ns, c.closed_ns ? c.closed_ns : UINT64_MAX);
	return from < to ? to - from : 0;
}

std::vector<Served> ServedOf(const Socket &s, const Waiters &waiters)
{
	std::vector<Served> served;
	for (const Socket::Stay &stay : s.stays) {
		auto found = waiters.find(stay.instance);
		if (found == waiters.end())
			continue;
		for (const Waiter &w : found->second) {
			uint64_t from = std::max(stay.from_ns, w.from_ns), to = std::min(stay.to_ns, w.to_ns);
			if (from < to)
				served.push_back({from, to, w.thread});
		}
	}
	return served;
}

using Readers = std::vector<Connection::Reader>;

// Adds the threads that read the connection. The first one also had what came before its first read.
void AddServedByReaders(const Run &run, const ThreadFinder &finder, const Connection &c,
			const Readers &readers, std::vector<Served> *served)
{
	for (size_t i = 0; i < readers.size(); i++) {
		const uint64_t from = i ? readers[i].since_ns : c.opened_ns,
			       to = i + 1 < readers.size() ? readers[i + 1].since_ns
				    : c.closed_ns	   ? c.closed_ns
							   : UINT64_MAX;
		const uint32_t thread = ThreadOf(run, finder, readers[i].tid, readers[i].since_ns);
		if (thread != kNoThread && from < to)
			served->push_back({from, to, thread});
	}
}

// Clients on two hosts may use the same port. A server socket (or a record of its reader) that matches more
// than one connection is assigned to none.
using Claims = std::unordered_map<const void *, std::vector<size_t>>;

void LeaveOutAmbiguous(const Run &run, const Claims &claims, ServedConnections *all)
{
	auto end = [](const Connection &c) { return c.closed_ns ? c.closed_ns : UINT64_MAX; };
	for (const auto &[socket, connections] : claims)
		for (size_t a : connections)
			for (size_t b : connections)
				if (a != b && run.connections[a].opened_ns < end(run.connections[b]) &&
				    run.connections[b].opened_ns < end(run.connections[a]))
					(*all)[a].clear();
}

// The processes of servers, if ports alone do not distinguish them.
std::vector<uint32_t> ProcessesOf(const Run &run)
{
	std::vector<uint32_t> processes;
	std::string why;
	for (size_t s = 0; SeveralHosts(run) && s < run.servers.size(); s++)
		processes.push_back(ProcessOfServer(run, static_cast<int>(s), &why));
	return processes;
}

uint32_t ServersPort(const Run &run, const Connection &c)
{
	return c.server < run.servers.size() ? PortOf(run.servers[c.server]) : 0;
}

bool Closes(const ft_socket &s)
{
	return s.reader && s.epoll == static_cast<uint32_t>(FT_SOCKET_GONE);
}

// Processes in which the thread that reads a connection closes it. In others (Redis with I/O threads) one
// thread closes them all.
std::set<uint32_t> ClosedByReaders(const Run &run)
{
	constexpr uint32_t exceptions = 20; // at most one in so many
	struct Count {
		uint32_t same = 0, other = 0;
	};
	std::map<uint32_t, Count> counts;		  // by process
	for (size_t i = 1; i < run.sockets.size(); i++) { // by inode and time
		const ft_socket &read = run.sockets[i - 1], &close = run.sockets[i];
		if (!Closes(close) || !read.reader || Closes(read) || read.inode != close.inode)
			continue;
		Count &count = counts[close.tgid];
		(read.reader == close.reader ? count.same : count.other)++;
	}
	std::set<uint32_t> processes;
	for (const auto &[process, count] : counts)
		if (count.same && count.other * exceptions <= count.same)
			processes.insert(process);
	return processes;
}

// Records of readers that may be of a connection: those of one socket, the last one at its port while it was
// open. Without a read, the record of the thread that closed it. `taken` has the sockets of other
// connections.
std::vector<const ft_socket *> ReadsOf(const std::vector<const ft_socket *> &at_port, const Connection &c,
				       uint32_t port, uint32_t process, const std::set<uint64_t> &taken)
{
	// A server may read before the load generator notes the opening, and close after it noted the end.
	constexpr uint64_t apart_ns = 10'000'000'000;
	std::vector<const ft_socket *> reads;
	const ft_socket *close = nullptr; // the first one after its opening
	for (const ft_socket *s : at_port) {
		if ((c.local_port && port && s->local_port != port) || (process && s->tgid != process) ||
		    taken.count(s->inode))
			continue;
		if (Closes(*s)) {
			if (s->seen_ns >= c.opened_ns &&
			    (!c.closed_ns || s->seen_ns <= c.closed_ns + apart_ns) &&
			    (!close || s->seen_ns < close->seen_ns))
				close = s;
		} else if (s->seen_ns + apart_ns >= c.opened_ns &&
			   (!c.closed_ns || s->seen_ns <= c.closed_ns)) {
			reads.push_back(s);
		}
	}
	if (reads.empty() && close)
		return {close};
	std::ranges::sort(reads, {}, &ft_socket::seen_ns);
	const uint64_t inode = reads.empty() ? 0 : reads.back()->inode;
	std::erase_if(reads, [&](const ft_socket *s) { return s->inode != inode; });
	if (reads.size() > FT_READER_CHANGES) // later ones were not recorded
		reads.clear();
	return reads;
}

// By the threads that the kernel saw reading.
void AddReads(const Run &run, const ThreadFinder &finder, ServedConnections *all)
{
	std::unordered_map<uint64_t, std::vector<const ft_socket *>> by_port, by_inode;
	const std::set<uint32_t> closed_by_readers = ClosedByReaders(run);
	for (const ft_socket &s : run.sockets)
		if (s.reader && (!Closes(s) || closed_by_readers.count(s.tgid)))
			(s.peer_port ? by_port[s.peer_port] : by_inode[s.peer_inode]).push_back(&s);
	const std::vector<uint32_t> processes = ProcessesOf(run);
	Claims claims;
	std::set<uint64_t> taken;
	auto add = [&](const Connection &c, uint32_t port, size_t index) {
		auto &table = c.local_port ? by_port : by_inode;
		const auto found = table.find(c.local_port ? c.local_port : c.inode);
		if (found == table.end() || (!c.local_port && !c.inode))
			return;
		const bool process_named = c.server < processes.size();
		Readers readers;
		for (const ft_socket *s :
		     ReadsOf(found->second, c, port, process_named ? processes[c.server] : 0, taken)) {
			readers.push_back({s->seen_ns, s->reader});
			if (process_named)
				claims[s].push_back(index);
			else
				taken.insert(s->inode);
		}
		AddServedByReaders(run, finder, c, readers, &(*all)[index]);
	};
	for (size_t i = 0; i < all->size(); i++) {
		const Connection &c = run.connections[i];
		if (!(*all)[i].empty())
			continue;
		for (const Connection &earlier : c.earlier)
			add(earlier, ServersPort(run, c), i);
		add(c, ServersPort(run, c), i);
	}
	LeaveOutAmbiguous(run, claims, all);
}

// By the epoll instances that connections' sockets are in.
ServedConnections ServedBySockets(const Run &run, const ThreadFinder &finder)
{
	ServedConnections all(run.connections.size());
	if (run.sockets.empty())
		return all;
	const Waiters waiters = WaitersOf(run, finder);
	const std::vector<Socket> sockets = SocketsOf(run);
	std::unordered_map<uint64_t, std::vector<const Socket *>> by_port, by_inode;
	for (const Socket &s : sockets)
		if (s.peer_port)
			by_port[s.peer_port].push_back(&s);
		else
			by_inode[s.peer_inode].push_back(&s);
	const std::vector<uint32_t> processes = ProcessesOf(run);
	Claims claims;
	auto add = [&](const Connection &connection, uint32_t port, size_t index) {
		std::vector<Served> *served = &all[index];
		bool process_named = connection.server < processes.size();
		auto &table = connection.local_port ? by_port : by_inode;
		auto found = table.find(connection.local_port ? connection.local_port : connection.inode);
		if (found == table.end() || (!connection.local_port && !connection.inode))
			return;
		const Socket *best = nullptr;
		for (const Socket *s : found->second)
			if ((!connection.local_port || !port || s->local_port == port) &&
			    (!process_named || s->process == processes[connection.server]) &&
			    Overlap(*s, connection) &&
			    (!best || Overlap(*s, connection) > Overlap(*best, connection)))
				best = s;
		if (!best)
			return;
		if (process_named)
			claims[best].push_back(index);
		// Not longer than it was this socket: scans are some time apart, and the next socket of this
		// port may be another thread's.
		uint64_t closed_ns = connection.closed_ns ? connection.closed_ns : UINT64_MAX;
		for (const Served &s : ServedOf(*best, waiters))
			if (std::max(s.from_ns, connection.opened_ns) < std::min(s.to_ns, closed_ns))
				served->push_back({std::max(s.from_ns, connection.opened_ns),
						   std::min(s.to_ns, closed_ns), s.thread});
	};
	for (size_t c = 0; c < all.size(); c++) {
		const Connection &connection = run.connections[c];
		const uint32_t port = ServersPort(run, connection);
		for (const Connection &earlier : connection.earlier)
			add(earlier, port, c);
		add(connection, port, c);
	}
	LeaveOutAmbiguous(run, claims, &all);
	return all;
}

} // namespace

ServedConnections FindServed(const Run &run)
{
	const ThreadFinder finder(run.threads);
	ServedConnections all = ServedBySockets(run, finder);
	for (size_t c = 0; c < all.size(); c++)
		if (all[c].empty())
			AddServedByReaders(run, finder, run.connections[c], run.connections[c].readers,
					   &all[c]);
	AddReads(run, finder, &all);
	return all;
}

uint32_t ThreadAt(const std::vector<Served> &connection, uint64_t t_ns)
{
	for (const Served &s : connection)
		if (s.from_ns <= t_ns && t_ns < s.to_ns)
			return s.thread;
	return kNoThread;
}

} // namespace forktail::analysis

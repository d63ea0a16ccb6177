// SPDX-License-Identifier: MIT
// Which thread serves which connection, and when it spins for helpers.
//
// A connection is found among the recorder's sockets by its client's port, or by its inode. The thread that
// reads the socket serves it. If no read was seen, the thread that closed it does, in processes whose threads
// close what they read. An older kernel does not tell who reads: then the socket is in an epoll instance, and
// the thread that waits for that instance serves it.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "analysis/timeline.h"

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

// Only CPU samples distinguish a spinning thread from a working one. If a helper was off the CPU, the share
// of samples in which the main thread spun shows how long it waited. The main thread does its own part of the
// work first, so the waiting is at the end.

namespace
{

// Functions in which a main thread also is while it waits; its own work there is negligible. Functions called
// there, and inlined ones, have no names in the binaries of distributions.
constexpr const char *kAround[] = {
    "beforeSleep",		// waits are inlined into it
    "processIOThreadsReadDone", // Valkey repeats it while helpers have all the work
    "processIOThreadsWriteDone",
    "aeProcessEvents",
};
// Where helpers look for work.
constexpr const char *kHelperLoops[] = {"IOThreadMain"};

// Without a sample in it, a wait counts only if the iteration ends this soon after it.
constexpr uint64_t kSoonNs = 200'000;
// How long a sample shows what a thread does: a little more than the sampling period.
constexpr uint64_t kNearNs = 5'000'000;

enum class Doing : uint8_t { Unknown, Circles, Work };

template <size_t N> bool IsOneOf(const std::string &function, const char *const (&names)[N])
{
	return std::any_of(std::begin(names), std::end(names),
			   [&](const char *name) { return function == name; });
}

// For the main thread: by the innermost named function of the program. For a library function the caller
// decides: reading the clock is no work.
Doing DoingOfMain(const Stack &stack)
{
	for (const StackFrame &frame : stack.frames)
		if (!frame.function.empty() && frame.module == stack.program)
			return IsOneOf(frame.function, kHelperWaits) || IsOneOf(frame.function, kAround)
				   ? Doing::Circles
				   : Doing::Work;
	return Doing::Unknown;
}

// For a helper, of which usually only the innermost function is known: library code is work, unnamed code of
// the program may be polling.
Doing DoingOfHelper(const Stack &stack)
{
	if (stack.frames.empty())
		return Doing::Unknown;
	const StackFrame &frame = stack.frames[0];
	if (frame.module != stack.program)
		return Doing::Work;
	if (frame.function.empty())
		return Doing::Unknown;
	return IsOneOf(frame.function, kHelperLoops) ? Doing::Circles : Doing::Work;
}

// What the kernel does for a thread is work, except polling for events.
Doing DoingInKernel(const Run &run, uint16_t call)
{
	return call && SyscallName(run, call - 1).rfind("epoll_", 0) == 0 ? Doing::Unknown : Doing::Work;
}

// What a thread did at its samples.
struct Samples {
	struct One {
		uint64_t t_ns, period_ns;
		Doing doing;
	};
	std::vector<One> all; // by time

	Samples(const Run &run, const Thread &t, Doing (*doing_of)(const Stack &))
	{
		for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++) {
			const ft_cpu_sample &s = run.cpu_samples[i];
			Doing doing = Doing::Unknown;
			if (s.owner == FT_OWN_CODE && s.flags & FT_CPU_SAMPLE_KERNEL)
				doing = DoingInKernel(run, s.syscall);
			else if (s.owner == FT_OWN_CODE && s.stack && s.stack < run.stacks.size())
				doing = doing_of(run.stacks[s.stack]);
			all.push_back({s.t_ns, (s.period ? s.period : 16) * uint64_t{62'500}, doing});
		}
	}
	auto From(uint64_t t_ns) const
	{
		return std::partition_point(all.begin(), all.end(),
					    [&](const One &s) { return s.t_ns < t_ns; });
	}
};

struct Helper {
	uint32_t thread;
	const Timeline *timeline;
	Samples samples;
};

// A time in which a helper could not run.
struct Stall {
	uint64_t start_ns, end_ns;
	const Helper *helper;
};

bool IsHelper(const Thread &t, const Thread &main)
{
	return t.tgid == main.tgid && t.tid != t.tgid && t.comm.rfind("io_thd_", 0) == 0 &&
	       t.start_ns < main.end_ns && main.start_ns < t.end_ns;
}

// A parked helper waits for a lock that the main thread holds; a helper with its own loop may be idle.
bool Keeps(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && p.cause != Cause::LockWait;
}

void AddStalls(const Helper &helper, uint64_t from_ns, uint64_t to_ns, std::vector<Stall> *stalls)
{
	const Timeline &t = *helper.timeline;
	uint64_t from = std::max(from_ns, t.start_ns()), to = std::min(to_ns, t.end_ns());
	if (t.empty() || from >= to)
		return;
	uint32_t p = PieceAt(t, from);
	for (bool open = false; p + 1 < t.pieces.size() && t.pieces[p].start_ns < to; p++) {
		bool kept = Keeps(t.pieces[p]);
		if (kept && !open)
			stalls->push_back({std::max(from, t.pieces[p].start_ns), 0, &helper});
		if (kept) // its end may be after the iteration's: the last one waited for
			stalls->back().end_ns = t.pieces[p + 1].start_ns;
		open = kept;
	}
}

// Intervals that are already assigned, in order and not adjacent.
class Covered
{
public:
	// Calls `see` with the unassigned parts of [from, to), and assigns them.
	template <typename See> void Take(uint64_t from_ns, uint64_t to_ns, See see)
	{
		if (from_ns >= to_ns)
			return;
		auto first = std::partition_point(taken_.begin(), taken_.end(),
						  [&](const auto &t) { return t.second < from_ns; });
		auto last = first;
		std::pair<uint64_t, uint64_t> all = {from_ns, to_ns};
		uint64_t at = from_ns;
		for (; last != taken_.end() && last->first <= to_ns; ++last) {
			if (last->first > at)
				see(at, last->first);
			at = std::max(at, last->second);
			all = {std::min(all.first, last->first), std::max(all.second, last->second)};
		}
		if (at < to_ns)
			see(at, to_ns);
		if (first == last) {
			taken_.insert(first, all);
			return;
		}
		*first = all;
		taken_.erase(first + 1, last);
	}

private:
	std::vector<std::pair<uint64_t, uint64_t>> taken_;
};

struct SpinSearch {
	const Timeline &main;
	Samples samples;
	std::vector<Helper> helpers;
	uint64_t usual_ns = 0; // length of an iteration
	std::vector<Foreign> found = {};

	// Gives the main thread's own code in [from, to) to what the helper did then, or to `cause`.
	void Move(uint64_t from_ns, uint64_t to_ns, const Helper &helper, Cause cause)
	{
		uint64_t from = std::max(from_ns, main.start_ns()), to = std::min(to_ns, main.end_ns());
		if (from >= to)
			return;
		for (uint32_t p = PieceAt(main, from); from < to; p++) {
			uint64_t end = std::min(to, main.pieces[p + 1].start_ns);
			if (main.pieces[p].cause != Cause::ServerBusy) {
				from = end;
				continue;
			}
			if (cause == Cause::IoThread)
				found.push_back({from, end, helper.thread, cause});
			else
				MoveTo(from, end, helper);
			from = end;
		}
	}
	void MoveTo(uint64_t from, uint64_t to, const Helper &helper)
	{
		const Timeline &t = *helper.timeline;
		for (uint32_t p = PieceAt(t, from); from < to; p++) {
			uint64_t end = std::min(to, t.pieces[p + 1].start_ns);
			if (Keeps(t.pieces[p]))
				found.push_back({from, end, helper.thread, t.pieces[p].cause});
			from = end;
		}
	}

	// When the main thread began to wait for a helper that was off the CPU in [from, to): time before
	// `to`.
	uint64_t WaitStart(uint64_t from_ns, uint64_t to_ns, const Stall &stall,
			   uint64_t iteration_end_ns) const
	{
		uint64_t circles = 0, work = 0, length = to_ns - from_ns;
		for (auto s = samples.From(from_ns); s != samples.all.end() && s->t_ns < to_ns; ++s) {
			circles += s->doing == Doing::Circles ? s->period_ns : 0;
			work += s->doing == Doing::Work ? s->period_ns : 0;
		}
		if (circles + work)
			return to_ns - static_cast<uint64_t>(static_cast<double>(length) *
							     static_cast<double>(circles) /
							     static_cast<double>(circles + work));
		bool soon = iteration_end_ns <= stall.end_ns + kSoonNs && stall.end_ns <= iteration_end_ns;
		return soon && length > usual_ns ? from_ns + usual_ns : to_ns;
	}

	void LookAtStalls(uint64_t start_ns, uint64_t end_ns, Covered *covered)
	{
		std::vector<Stall> stalls;
		for (const Helper &helper : helpers)
			AddStalls(helper, start_ns, end_ns, &stalls);
		// A barrier: the main thread waits for the last helper.
		std::stable_sort(stalls.begin(), stalls.end(),
				 [](const Stall &a, const Stall &b) { return a.end_ns > b.end_ns; });
		for (const Stall &stall : stalls)
			covered->Take(stall.start_ns, std::min(stall.end_ns, end_ns),
				      [&](uint64_t from, uint64_t to) {
					      Move(WaitStart(from, to, stall, end_ns), to, *stall.helper,
						   Cause::Unknown);
				      });
	}

	// The helper whose sample at work is nearest to an instant, or nullptr.
	const Helper *AtWork(uint64_t t_ns) const
	{
		const Helper *nearest = nullptr;
		uint64_t least = kNearNs;
		for (const Helper &helper : helpers) {
			auto s = helper.samples.From(t_ns - std::min(t_ns, kNearNs));
			for (; s != helper.samples.all.end() && s->t_ns < t_ns + kNearNs; ++s) {
				uint64_t distance = s->t_ns > t_ns ? s->t_ns - t_ns : t_ns - s->t_ns;
				if (s->doing != Doing::Work || distance >= least)
					continue;
				least = distance;
				nearest = &helper;
			}
		}
		return nearest;
	}

	void LookAtCircles(uint64_t start_ns, uint64_t end_ns, Covered *covered)
	{
		// Up to a sample at work the thread worked; before the first sample of an iteration it mostly
		// waited. An iteration may end at a sample, if its end is not known otherwise.
		uint64_t worked_ns = start_ns;
		for (auto s = samples.From(start_ns); s != samples.all.end() && s->t_ns <= end_ns; ++s) {
			if (s->doing == Doing::Work)
				worked_ns = s->t_ns;
			const Helper *helper = s->doing == Doing::Circles ? AtWork(s->t_ns) : nullptr;
			if (!helper)
				continue;
			covered->Take(
			    std::max(worked_ns, s->t_ns - std::min(s->t_ns, kNearNs)), s->t_ns,
			    [&](uint64_t from, uint64_t to) { Move(from, to, *helper, Cause::IoThread); });
		}
	}
};

} // namespace

std::vector<Foreign> FindSpins(ThreadTimelines *threads, const Timeline &main)
{
	const Run &run = threads->run();
	const Thread &thread = run.threads[main.thread];
	if (thread.tid != thread.tgid)
		return {};
	std::vector<Helper> helpers;
	for (uint32_t i = 0; i < run.threads.size(); i++)
		if (IsHelper(run.threads[i], thread))
			helpers.push_back({i, &threads->Of(i), Samples(run, run.threads[i], DoingOfHelper)});
	if (helpers.empty())
		return {};
	SpinSearch search = {main, Samples(run, thread, DoingOfMain), std::move(helpers),
			     thread.usual_turn_ns};
	const ft_span *iteration = run.iterations.data() + thread.first_iteration;
	const ft_span *const end = iteration + thread.iteration_count;
	while (iteration != end) {
		// For a loop that never waits, samples define where iterations begin and end. Iterations
		// without a gap may be one, in which a wait crosses the sample.
		const uint64_t start_ns = iteration->start_ns;
		uint64_t end_ns = start_ns;
		Covered covered;
		for (; iteration != end && iteration->start_ns == end_ns; iteration++) {
			end_ns = iteration->start_ns + iteration->duration_ns;
			search.LookAtStalls(iteration->start_ns, end_ns, &covered);
		}
		search.LookAtCircles(start_ns, end_ns, &covered);
	}
	std::sort(search.found.begin(), search.found.end(),
		  [](const Foreign &a, const Foreign &b) { return a.start_ns < b.start_ns; });
	// Iterations do not overlap, except those defined only by samples.
	std::vector<Foreign> found;
	for (const Foreign &f : search.found) {
		Foreign *last = found.empty() ? nullptr : &found.back();
		if (last && f.start_ns == last->end_ns && f.thread == last->thread && f.cause == last->cause)
			last->end_ns = f.end_ns;
		else if (!last || f.start_ns >= last->end_ns)
			found.push_back(f);
	}
	return found;
}

} // namespace forktail::analysis

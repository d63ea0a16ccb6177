// SPDX-License-Identifier: MIT
// For tests of requests seen in the server's kernel: what the kernel saw, against the load generator's own
// log. A request that was seen must be one that was sent, in the connection's order; it arrived no earlier
// than it was sent, and was answered no later than the client had the answer.
#pragma once
#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/support/recorded.h"
#include "tests/system/load/load.h"

namespace forktail::test
{

struct Agreement {
	size_t sockets = 0;  // with requests that were seen
	size_t sent = 0;     // on these
	size_t seen = 0;     // likewise
	size_t late = 0;     // seen, but the answer only after the client had it
	size_t invented = 0; // seen, but no request that was sent has this command and includes these times
	size_t missed() const { return sent - (seen - invented); }
};

inline std::ostream &operator<<(std::ostream &o, const Agreement &a)
{
	return o << a.sent << " sent, " << a.seen << " seen on " << a.sockets << " sockets, " << a.late
		 << " of them late, " << a.invented << " invented";
}

// The client's socket: the port, or with a Unix socket its inode.
using ClientSocket = std::pair<uint32_t, uint64_t>;

inline ClientSocket client_socket(const ft_connection &c)
{
	return {c.local_port, c.local_port ? 0 : c.inode};
}

// The command as the load generator names it, which does not distinguish memcached's protocols.
inline std::string common_name(const std::string &command)
{
	return command == "MG" ? "GET" : command == "MS" ? "SET" : command;
}

struct NamedRequest {
	std::string command;
	uint64_t start_ns, end_ns;
};

// In the order of sending, by socket. Ports that are used again continue the list.
inline std::map<ClientSocket, std::vector<NamedRequest>> requests_by_socket(const Log &log)
{
	std::map<ClientSocket, std::vector<NamedRequest>> all;
	for (const ft_request &q : log.requests) {
		auto opened = log.sockets.upper_bound({q.connection, q.start_ns});
		if (opened != log.sockets.begin() && std::prev(opened)->first.first == q.connection)
			--opened; // the generator opens connections with one id again and again
		all[client_socket(opened->second)].push_back(
		    {common_name(log.manifest["ops"][q.op]), q.start_ns, q.end_ns});
	}
	for (auto &[socket, list] : all)
		std::stable_sort(list.begin(), list.end(),
				 [](const auto &a, const auto &b) { return a.start_ns < b.start_ns; });
	return all;
}

inline bool may_be(const NamedRequest &sent, const NamedRequest &seen)
{
	return sent.command == seen.command && sent.start_ns <= seen.start_ns && sent.end_ns > seen.start_ns;
}

// If all were seen, they are the same ones in the same order. Else finds each request that was seen among
// those that were sent: the first one after its predecessor that agrees.
inline void compare_socket(const std::vector<NamedRequest> &sent, const std::vector<NamedRequest> &seen,
			   Agreement *a)
{
	size_t next = 0;
	if (sent.size() == seen.size()) {
		for (; next < sent.size(); next++)
			if (!may_be(sent[next], seen[next]))
				a->invented++;
			else if (sent[next].end_ns < seen[next].end_ns)
				a->late++;
		return;
	}
	for (const NamedRequest &q : seen) {
		size_t first = sent.size(), i = next;
		for (; i < sent.size() && sent[i].start_ns <= q.start_ns; i++) {
			if (!may_be(sent[i], q))
				continue;
			first = std::min(first, i);
			if (sent[i].end_ns >= q.end_ns)
				break;
		}
		const bool agrees = i < sent.size() && sent[i].start_ns <= q.start_ns;
		a->late += !agrees && first < sent.size();
		a->invented += !agrees && first == sent.size();
		if (agrees || first < sent.size())
			next = (agrees ? i : first) + 1;
	}
}

// By socket of a load that was seen: what was sent, and what was seen. Commands that the load generator does
// not log, such as those when a connection begins, are left out, and so are requests before its first and
// after its last one.
struct SentAndSeen {
	std::vector<NamedRequest> sent, seen;
};

inline std::vector<SentAndSeen> sent_and_seen(const Log &load, const Log &kernel)
{
	std::vector<SentAndSeen> all;
	const auto seen = requests_by_socket(kernel);
	std::set<std::string> commands = {"unknown"};
	for (const std::string name : load.manifest["ops"])
		commands.insert(name);
	uint64_t begin = UINT64_MAX, end = 0;
	for (const ft_request &q : load.requests) {
		begin = std::min(begin, q.start_ns);
		end = std::max(end, q.end_ns);
	}
	for (const auto &[socket, sent] : requests_by_socket(load)) {
		const auto found = seen.find(socket);
		if (found == seen.end()) // not sampled
			continue;
		all.push_back({sent, {}});
		for (const NamedRequest &q : found->second)
			if (commands.count(q.command) && q.start_ns >= begin && q.start_ns <= end)
				all.back().seen.push_back(q);
	}
	return all;
}

inline Agreement compare_requests(const Log &load, const Log &kernel)
{
	Agreement a;
	for (const auto &[sent, logged] : sent_and_seen(load, kernel)) {
		a.sockets += !logged.empty();
		a.sent += sent.size();
		a.seen += logged.size();
		compare_socket(sent, logged, &a);
	}
	return a;
}

// The recorder's note of what it left out. Empty without one.
inline Json requests_note(const Log &kernel)
{
	for (const Json &note : kernel.notes)
		if (note.value("kind", "") == "requests")
			return note;
	return {};
}

// How many requests of each command were seen.
inline std::map<std::string, uint64_t> seen_commands(const Log &kernel)
{
	std::map<std::string, uint64_t> all;
	for (const ft_request &q : kernel.requests)
		all[kernel.manifest["ops"][q.op]]++;
	return all;
}

} // namespace forktail::test

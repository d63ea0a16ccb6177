// SPDX-License-Identifier: MIT
// Requests seen in the server's kernel, against those that the load generator logged itself: the same ones, in
// the same order, none invented; no earlier than they were sent, answered no later than the client had the
// answer.
#include <map>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/server.h"
#include "tests/system/load/load.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

// What both logs say about the requests of one socket.
struct Pair {
	std::vector<ft_request> sent, seen;
	uint64_t opened_ns = 0;
};

// The client's socket: the port, or with a Unix socket its inode.
using Socket = std::pair<uint32_t, uint64_t>;

Socket SocketOf(const ft_connection &c)
{
	return {c.local_port, c.local_port ? 0 : c.inode};
}

std::map<Socket, Pair> Pairs(const Log &load, const Log &kernel)
{
	std::map<Socket, Pair> pairs;
	for (const ft_request &q : load.requests) {
		Pair &p = pairs[SocketOf(load.connections.at(q.connection))];
		p.sent.push_back(q);
		p.opened_ns = load.connections.at(q.connection).opened_ns;
	}
	for (const ft_request &q : kernel.requests) {
		const auto found = pairs.find(SocketOf(kernel.connections.at(q.connection)));
		if (found != pairs.end())
			found->second.seen.push_back(q);
	}
	return pairs;
}

// How the kernel's requests agree with the load generator's.
struct Agreement {
	size_t sent = 0, seen = 0, sockets = 0;
	size_t uneven = 0; // sockets with another number of requests
	size_t other_op = 0, early = 0, late = 0;
};

Agreement Compare(const Log &load, const Log &kernel)
{
	Agreement a;
	for (const auto &[socket, p] : Pairs(load, kernel)) {
		if (p.seen.empty()) // not sampled
			continue;
		// The load generator logs no set-up of connections.
		std::vector<ft_request> logged;
		for (const ft_request &q : p.seen)
			if (q.start_ns >= p.sent.front().start_ns)
				logged.push_back(q);
		a.sockets++;
		a.sent += p.sent.size();
		a.seen += logged.size();
		a.uneven += p.sent.size() != logged.size();
		for (size_t i = 0; i < p.sent.size() && i < logged.size(); i++) {
			const ft_request &sent = p.sent[i], &seen = logged[i];
			const std::string wanted = load.manifest["ops"][sent.op];
			a.other_op += wanted != kernel.manifest["ops"][seen.op];
			a.early += seen.start_ns < sent.start_ns;
			a.late += seen.end_ns > sent.end_ns;
		}
	}
	return a;
}

struct Case {
	const char *name;
	bool tcp;
	bool memcached;
	std::vector<std::string> load;
};

Agreement RunCase(const Case &one, const std::vector<std::string> &options = {"--requests"})
{
	std::unique_ptr<Redis> redis;
	std::unique_ptr<Memcached> memcached;
	Endpoint at;
	pid_t pid;
	if (one.memcached) {
		memcached = std::make_unique<Memcached>(MemcachedOptions{.tcp = one.tcp});
		at = memcached->endpoint();
		pid = memcached->pid();
	} else {
		redis = std::make_unique<Redis>(RedisOptions{.tcp = one.tcp});
		at = redis->endpoint();
		pid = redis->pid();
	}
	TempDir dir;
	Recorder recorder(pid, options);
	Arguments arguments = one.tcp ? Arguments{"-p", std::to_string(at.port)} : Arguments{"-s", at.socket};
	if (one.memcached)
		arguments.insert(arguments.end(), {"--protocol", "memcache_text"});
	arguments.insert(arguments.end(), {"-q", "-o", dir.file("load.forktail")});
	arguments.insert(arguments.end(), one.load.begin(), one.load.end());
	const Result r = load(arguments);
	INFO(one.name << "\n" << r.err);
	REQUIRE(r.status == 0);
	const Recorded recorded = recorder.stop();
	CHECK(recorded.dropped() == 0);
	const Log kernel = read_log(recorder.path()), own = read_log(dir.file("load.forktail"));
	REQUIRE(kernel.error.empty());
	INFO(kernel.notes.back().dump());
	const Agreement a = Compare(own, kernel);
	INFO(a.sent << " sent, " << a.seen << " seen on " << a.sockets << " sockets, " << a.uneven
		    << " of them uneven; " << a.other_op << " other commands, " << a.early << " early, "
		    << a.late << " late");
	CHECK(a.sockets > 0);
	CHECK(a.uneven == 0);
	CHECK(a.other_op == 0);
	CHECK(a.early == 0);
	CHECK(a.late == 0);
	return a;
}

} // namespace

TEST_CASE("every request is seen, in order and within the client's times")
{
	REQUIRE(root());
	const Case cases[] = {
	    {"redis tcp", true, false, {"-n", "20000", "-c", "10", "-t", "set,get"}},
	    {"redis unix", false, false, {"-n", "20000", "-c", "10", "-t", "set,get"}},
	    {"redis tcp pipeline", true, false, {"-n", "100000", "-c", "10", "-P", "16", "-t", "set,get"}},
	    {"redis unix pipeline", false, false, {"-n", "100000", "-c", "10", "-P", "16", "-t", "set,get"}},
	    {"redis unix long pipeline", false, false, {"-n", "100000", "-c", "3", "-P", "64", "-t", "get"}},
	    {"redis tcp large", true, false, {"-n", "300", "-c", "3", "-d", "1000000", "-t", "set,get"}},
	    {"redis unix large", false, false, {"-n", "300", "-c", "3", "-d", "1000000", "-t", "set,get"}},
	    {"memcached tcp", true, true, {"-n", "20000", "-c", "10", "-t", "set,get"}},
	    {"memcached unix pipeline", false, true, {"-n", "50000", "-c", "10", "-P", "16", "-t", "get"}},
	};
	for (const Case &one : cases)
		RunCase(one);
}

TEST_CASE("a sample of connections has all of their requests")
{
	REQUIRE(root());
	const Case one = {"sample", true, false, {"-n", "40000", "-c", "200", "-t", "get"}};
	const Agreement a = RunCase(one, {"--requests=1/4"});
	CHECK(a.sockets > 10);
	CHECK(a.sockets < 120);
}

// SPDX-License-Identifier: MIT
// Requests seen in the server's kernel, against those that the load generator logged itself, with each kind of
// server, protocol, pipeline and size.
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"
#include "tests/system/record/requests.h"

using namespace forktail::test;

namespace
{

const Arguments kRequests = {"--requests"};

// Records the server while the load runs. Returns the comparison of both logs, and the kernel's.
Agreement Record(const std::string &name, const Served &server, const Arguments &arguments,
		 const Arguments &options = kRequests)
{
	TempDir dir;
	Recorder recorder(server.pid(), options);
	const Endpoint at = server.endpoint();
	Arguments all = at.socket.empty() ? Arguments{"-p", std::to_string(at.port)}
					  : Arguments{"-s", at.socket};
	all.insert(all.end(), {"-q", "--no-observer", "-o", dir.file("load.forktail")});
	all.insert(all.end(), arguments.begin(), arguments.end());
	const Result r = load(all);
	INFO(name << "\n" << r.err);
	REQUIRE(r.status == 0);
	const Recorded recorded = recorder.stop();
	CHECK(recorded.dropped() == 0);
	const Log own = read_log(dir.file("load.forktail")), kernel = read_log(recorder.path());
	REQUIRE(kernel.error.empty());
	const Agreement a = compare_requests(own, kernel);
	INFO(requests_note(kernel).dump() << "\n" << a);
	CHECK(a.sockets > 0);
	CHECK(a.invented == 0);
	CHECK(a.missed() == 0);
	return a;
}

} // namespace

TEST_CASE("every request to Redis is seen, in order and within the client's times")
{
	REQUIRE(root());
	const bool tcp = GENERATE(false, true);
	const std::string on = tcp ? "TCP, " : "Unix, ";
	Redis redis({.tcp = tcp});
	const Arguments mix = {"-n", "20000", "-t", "set,get"};
	const auto with = [&](Arguments more) {
		more.insert(more.end(), mix.begin(), mix.end());
		return more;
	};
	Record(on + "1 connection", redis, with({"-c", "1"}));
	Record(on + "1,000 connections", redis, with({"-c", "1000"}));
	Record(on + "pipeline 2", redis, with({"-c", "10", "-P", "2"}));
	Record(on + "pipeline 16", redis, with({"-c", "10", "-P", "16"}));
	Record(on + "pipeline 64", redis, with({"-c", "10", "-P", "64", "-d", "3-2000"}));
	Record(on + "1 MB", redis, {"-n", "200", "-c", "3", "-t", "set,get", "-d", "1000000"});
	Record(on + "1 MB, pipeline 4", redis,
	       {"-n", "200", "-c", "3", "-t", "set,get", "-d", "1000000", "-P", "4"});
	Record(on + "sizes mixed", redis,
	       {"-n", "3000", "-c", "5", "-t", "set,get", "-d", "3-100000", "-P", "8", "-r", "100"});
	Record(on + "a connection per request", redis, {"-n", "3000", "-c", "10", "-k", "0", "-t", "get"});
}

TEST_CASE("every request to memcached is seen, in each of its protocols")
{
	REQUIRE(root());
	const bool tcp = GENERATE(false, true);
	const std::string protocol = GENERATE("memcache_text", "memcache_meta", "memcache_binary");
	Memcached memcached({.tcp = tcp, .config = {"-t", "4", "-I", "2m"}});
	const std::string on = protocol + (tcp ? " TCP" : " Unix");
	for (const std::string pipeline : {"1", "2", "16", "64"})
		Record(on + " pipeline " + pipeline, memcached,
		       {"-n", "10000", "-c", "20", "-t", "set,get", "-P", pipeline, "--protocol", protocol});
	Record(on + " 1 MB", memcached,
	       {"-n", "200", "-c", "3", "-t", "set,get", "-d", "1000000", "--protocol", protocol});
}

TEST_CASE("servers that read and write in several threads")
{
	REQUIRE(root());
	const std::string kind = GENERATE("redis-server", "redis8", "valkey-server");
	const std::string program = kind == "redis-server" ? kind : newer_server(kind);
	if (program.empty()) {
		WARN("skipped: no " << kind);
		return;
	}
	Redis redis({.tcp = true,
		     .config = {"--io-threads", "3", "--io-threads-do-reads", "yes"},
		     .program = program});
	for (const std::string pipeline : {"1", "16"})
		Record(kind + " pipeline " + pipeline, redis,
		       {"-n", "40000", "-c", "50", "-t", "set,get", "-P", pipeline});
}

TEST_CASE("a sample of connections has all of their requests")
{
	REQUIRE(root());
	Redis redis({.tcp = true});
	const Agreement a =
	    Record("sample", redis, {"-n", "40000", "-c", "200", "-t", "get"}, {"--requests=1/4"});
	CHECK(a.sockets > 10);
	CHECK(a.sockets < 120);
}

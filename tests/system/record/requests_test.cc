// SPDX-License-Identifier: MIT
// Requests seen in the server's kernel, against those that the load generator logged itself, with each kind
// of server, protocol, pipeline and size.
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/servers/haproxy.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"
#include "tests/system/record/requests.h"

using namespace forktail::test;

namespace
{

// A recording of a server, during which loads run one after the other.
class Trial
{
public:
	explicit Trial(const Served &server, const Arguments &options = {"--requests=1/1"})
	    : at_(server.endpoint()), recorder_(server.pid(), options)
	{
	}
	// Another process to record as well: the server behind a proxy.
	Trial(const Served &server, const Served &behind)
	    : at_(server.endpoint()),
	      recorder_({"--pid", std::to_string(server.pid()), "--pid", std::to_string(behind.pid())},
			{"--requests=1/1"})
	{
	}
	void Load(const Arguments &arguments, bool exact = true)
	{
		const std::string path = dir_.file(std::to_string(logs_.size()));
		Arguments all = at_.socket.empty() ? Arguments{"-p", std::to_string(at_.port)}
						   : Arguments{"-s", at_.socket};
		all.insert(all.end(), {"-q", "--no-observer", "-o", path});
		all.insert(all.end(), arguments.begin(), arguments.end());
		const Result r = load(all);
		INFO(r.err);
		REQUIRE(r.status == 0);
		logs_.push_back(read_log(path));
		exact_.push_back(exact);
		names_.emplace_back();
		for (const std::string &word : arguments)
			names_.back() += word + " ";
	}
	// Compares the logs. Every request of an exact load has to be seen. Those that are missing in others
	// have to be counted as lost, and those with inexact ends as exchanges. The same if the machine was
	// too busy for the helper. Over a Unix socket the answer leaves just before the kernel's program
	// runs: if that is interrupted, the client may be earlier.
	std::vector<Agreement> Stop()
	{
		recorder_.stop();
		const Log kernel = read_log(recorder_.path());
		REQUIRE(kernel.error.empty());
		const Json note = requests_note(kernel);
		const size_t exchanges = note["exchanges"];
		const bool dropped = note["dropped_events"] > 0;
		if (dropped)
			WARN("not compared exactly: events were dropped");
		std::vector<Agreement> all;
		for (size_t i = 0; i < logs_.size(); i++) {
			const Agreement a = compare_requests(logs_[i], kernel);
			const bool exact = exact_[i] && !dropped;
			const size_t may_be_late = at_.socket.empty() ? 0 : a.sent / 200;
			all.push_back(a);
			INFO(names_[i] << "\n" << a << "\n" << note.dump());
			CHECK(a.sockets > 0);
			CHECK(a.late <= (exact ? may_be_late : exchanges));
			CHECK(a.invented <= (exact ? 0 : exchanges));
			CHECK((a.missed() == 0 || (!exact && (note["lost"] > 0 || dropped))));
			CHECK((dropped || a.seen > a.sent / 4));
		}
		return all;
	}

private:
	Endpoint at_;
	Recorder recorder_;
	TempDir dir_;
	std::vector<Log> logs_;
	std::vector<std::string> names_;
	std::vector<bool> exact_;
};

} // namespace

TEST_CASE("every request to Redis is seen, in order and within the client's times")
{
	REQUIRE(root());
	const bool tcp = GENERATE(false, true);
	INFO((tcp ? "TCP" : "Unix"));
	Redis redis({.tcp = tcp});
	Trial trial(redis);
	trial.Load({"-n", "5000", "-c", "1", "-t", "set,get"});
	trial.Load({"-n", "5000", "-c", "1000", "-t", "set,get"});
	for (const std::string pipeline : {"2", "16", "64"})
		trial.Load({"-n", "10000", "-c", "10", "-t", "set,get", "-P", pipeline});
	trial.Load({"-n", "200", "-c", "3", "-t", "set,get", "-d", "1000000"});
	trial.Load({"-n", "200", "-c", "5", "-t", "set,get", "-d", "3-100000", "-r", "100"});
	trial.Load({"-n", "700", "-c", "10", "-t", "get", "-k", "0", "--rate", "1000"});
	trial.Load({"-n", "100", "-c", "3", "-t", "set,get", "-d", "1000000", "-P", "4"}, false);
	trial.Load({"-n", "200", "-c", "3", "-t", "set,get", "-d", "3-100000", "-P", "8", "-r", "100"},
		   false);
	trial.Stop();
}

TEST_CASE("every request to memcached is seen, in each of its protocols")
{
	REQUIRE(root());
	const bool tcp = GENERATE(false, true);
	INFO((tcp ? "TCP" : "Unix"));
	Memcached memcached({.tcp = tcp, .config = {"-t", "4", "-I", "2m"}});
	Trial trial(memcached);
	for (const std::string protocol : {"memcache_text", "memcache_meta", "memcache_binary"}) {
		for (const std::string pipeline : {"1", "2", "16", "64"})
			trial.Load({"-n", "2000", "-c", "20", "-t", "set,get", "-P", pipeline, "--protocol",
				    protocol});
		trial.Load(
		    {"-n", "100", "-c", "3", "-t", "set,get", "-d", "1000000", "--protocol", protocol});
	}
	trial.Stop();
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
	INFO(program);
	// Waiting I/O threads occupy CPUs, of which the helper that reads the ring needs its share.
	Redis redis({.tcp = true,
		     .config = {"--io-threads", "2", "--io-threads-do-reads", "yes"},
		     .program = program});
	Trial trial(redis);
	for (const std::string pipeline : {"1", "2", "16", "64"})
		trial.Load({"-n", "5000", "-c", "50", "-t", "set,get", "-P", pipeline});
	trial.Stop();
}

TEST_CASE("a sample of connections has all of their requests")
{
	REQUIRE(root());
	Redis redis({.tcp = true});
	Trial trial(redis, {"--requests=1/4"});
	trial.Load({"-n", "10000", "-c", "200", "-t", "get"});
	const Agreement a = trial.Stop().front();
	CHECK(a.sockets > 10);
	CHECK(a.sockets < 120);
}

TEST_CASE("requests at a proxy are seen there")
{
	REQUIRE(root());
	const bool haproxy = GENERATE(false, true);
	INFO((haproxy ? "HAProxy, Unix" : "nutcracker, TCP"));
	Redis redis({.tcp = !haproxy});
	std::unique_ptr<Served> proxy;
	if (haproxy)
		proxy = std::make_unique<Haproxy>(HaproxyOptions{.server = {redis.socket(), 0}});
	else
		proxy = std::make_unique<Nutcracker>(
		    NutcrackerOptions{.servers = {"127.0.0.1:" + std::to_string(redis.port())}, .tcp = true});
	Trial trial(*proxy, redis);
	trial.Load({"-n", "5000", "-c", "20", "-t", "set,get"});
	trial.Load({"-n", "100", "-c", "3", "-t", "set,get", "-d", "100000"});
	trial.Load({"-n", "5000", "-c", "5", "-t", "set,get", "-P", "16"}, false);
	trial.Stop();
}

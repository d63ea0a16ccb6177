// SPDX-License-Identifier: MIT
// forktail-load's requests to a real memcached, in its text and its binary protocol, counted by memcached's
// own "stats"; and through twemproxy.
#include <map>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/system/load/monitor.h"

using namespace forktail::test;

namespace
{

const std::vector<std::string> kProtocols = {"memcache_text", "memcache_binary", "memcache_meta"};

uint64_t stat_of(const Memcached &server, const std::string &name)
{
	return std::stoull(server.stat(name));
}

std::string key_name(uint64_t n)
{
	const std::string digits = std::to_string(n);
	return "key:" + std::string(12 - digits.size(), '0') + digits;
}

// The value of a key in the server.
std::string value(const Memcached &server, const std::string &key)
{
	const std::string reply = server.command("get " + key, "END\r\n");
	if (reply.rfind("VALUE ", 0) != 0)
		return "";
	const size_t line = reply.find("\r\n") + 2;
	return reply.substr(line, reply.size() - line - 7);
}

} // namespace

TEST_CASE("every test of -t on memcached, against its own counters")
{
	for (const std::string &protocol : kProtocols) {
		Memcached server;
		INFO(protocol);
		const auto test = [&](const std::string &name, const std::string &keys = "100") {
			return Ran({"-s", server.socket(), "--protocol", protocol, "-t", name, "-n", "1000",
				    "-r", keys, "-c", "5", "-P", "4", "-d", "20"});
		};
		Ran set = test("set");
		CHECK(set.total()["errors"] == 0);
		CHECK(stat_of(server, "cmd_set") == 1000);
		CHECK(value(server, key_name(7)).size() == 20);
		Ran fill({"-s", server.socket(), "--protocol", protocol, "--fill", "100", "-d", "20"});
		CHECK(stat_of(server, "curr_items") == 100);
		Ran get = test("get");
		CHECK(get.total()["errors"] == 0);
		CHECK(get.total()["misses"] == 0);
		CHECK(stat_of(server, "get_hits") == 1000 + 1); // and the test's own
		Ran missed = test("get", "1000000000");
		CHECK(missed.total()["misses"].get<uint64_t>() == stat_of(server, "get_misses"));
		CHECK(missed.total()["misses"].get<uint64_t>() > 990);
		Ran append = test("append");
		CHECK(append.total()["errors"] == 0);
		CHECK(value(server, key_name(7)).size() > 20);
		CHECK(test("prepend").total()["errors"] == 0);
		CHECK(test("replace").total()["errors"] == 0);
		CHECK(value(server, key_name(7)).size() == 20);
		CHECK(test("touch").total()["errors"] == 0);
		CHECK(stat_of(server, "touch_hits") == 1000);
		server.command("set " + key_name(0) + " 0 0 1\r\n5");
		CHECK(test("incr", "1").total()["errors"] == 0);
		CHECK(stat_of(server, "incr_hits") == 1000);
		CHECK(value(server, key_name(0)) == "1005");
		CHECK(test("decr", "1").total()["errors"] == 0);
		CHECK(stat_of(server, "decr_hits") == 1000);
		CHECK(std::stoi(value(server, key_name(0))) == 5);
		Ran deleted = test("delete");
		CHECK(deleted.total()["misses"] == stat_of(server, "delete_misses"));
		CHECK(stat_of(server, "delete_hits") + stat_of(server, "delete_misses") == 1000);
		CHECK(stat_of(server, "delete_hits") > 90);
		Ran add = test("add");
		CHECK(add.total()["requests"] == 1000);
		CHECK(stat_of(server, "curr_items") == 100);
	}
}

TEST_CASE("all of memcached's tests in one call")
{
	for (const std::string &protocol : kProtocols) {
		Memcached server;
		// INCR and DECR find the values of SET, which are no numbers: all of them fail, the others do
		// not.
		Ran all(
		    {"-s", server.socket(), "--protocol", protocol, "-t", "all", "-n", "500", "-r", "50"});
		std::vector<std::string> names;
		for (const Json &run : all.runs) {
			names.push_back(run["name"]);
			CHECK(run["total"]["requests"] == 500);
		}
		CHECK(names == std::vector<std::string>{"SET", "GET", "ADD", "REPLACE", "APPEND", "PREPEND",
							"INCR", "DECR", "TOUCH", "DELETE"});
	}
}

TEST_CASE("memcached: a mix, custom commands, the growing base and expiry")
{
	for (const std::string &protocol : kProtocols) {
		Memcached server;
		INFO(protocol);
		const Arguments to = {"-s", server.socket(), "--protocol", protocol};
		const auto run = [&](Arguments more) {
			more.insert(more.end(), to.begin(), to.end());
			return Ran(more);
		};
		Ran mix = run({"--ratio", "1:4", "-n", "5000", "-r", "100", "-P", "3", "--threads", "2"});
		CHECK(stat_of(server, "cmd_set") == mix.requests("SET"));
		CHECK(stat_of(server, "cmd_get") == mix.requests("GET"));
		CHECK(mix.requests("SET") == Approx(1000).epsilon(0.2));
		// In capitals, too, and with numbers that differ from request to request.
		server.command("set counter 0 0 1\r\n0");
		Ran own = run({"-n", "1000", "-r", "1000", "--command", "INCR counter __int__", "--command",
			       "set k__int__ v__data__ __expiry__", "--expiry", "1000-2000"});
		CHECK(own.total()["errors"] == 0);
		const double sum = std::stod(value(server, "counter")),
			     count = static_cast<double>(own.requests("INCR"));
		CHECK(sum / count == Approx(500).epsilon(0.15)); // mean of 0 .. 999
		server.command("flush_all");
		Ran fill = run({"--fill", "500", "--key-prefix", "", "--key-length", "2-100"});
		const uint64_t misses = stat_of(server, "get_misses"), items = stat_of(server, "total_items");
		Ran base = run({"-t", "insert,select,update", "-n", "300", "-r", "500", "--key-prefix", "",
				"--key-length", "2-100"});
		REQUIRE(base.runs.size() == 3);
		for (size_t i = 0; i < 3; i++)
			CHECK(base.total(i)["errors"] == 0);
		CHECK(stat_of(server, "get_misses") == misses);
		CHECK(stat_of(server, "total_items") == items + 600);
		CHECK(value(server, key_name(1)) == "");
	}
}

TEST_CASE("memcached: verified values, and a byte changed by another client")
{
	for (const std::string &protocol : kProtocols) {
		Memcached server;
		INFO(protocol);
		const Arguments read = {
		    "-s", server.socket(), "--protocol", protocol,    "-t",	 "get", "-r", "50",
		    "-n", "1000",	   "-d",	 "300-30000", "--verify"};
		Ran fill({"-s", server.socket(), "--protocol", protocol, "--fill", "50", "-d", "300-30000",
			  "--verify"});
		Ran good(read);
		CHECK(good.total()["errors"] == 0);
		CHECK(good.total()["misses"] == 0);
		std::string bytes = value(server, key_name(33));
		REQUIRE(bytes.size() >= 300);
		bytes[299] ^= 1;
		server.command("set " + key_name(33) + " 0 0 " + std::to_string(bytes.size()) + "\r\n" +
			       bytes);
		Ran wrong(read, 1);
		CHECK(contains(wrong.result.err, "key number 33 "));
		CHECK(contains(wrong.result.err, "offset 299"));
		CHECK(wrong.total()["errors"].get<uint64_t>() > 0);
	}
}

TEST_CASE("memcached through twemproxy")
{
	Memcached server({.tcp = true});
	Nutcracker proxy({.protocol = NutcrackerOptions::MEMCACHED,
			  .servers = {"127.0.0.1:" + std::to_string(server.port())}});
	Ran run({"-s", proxy.socket(), "--protocol", "memcache_text", "-t", "set,get,append,delete", "-n",
		 "1000", "-r", "1", "-c", "5", "-P", "4"});
	REQUIRE(run.runs.size() == 4);
	for (size_t i = 0; i < 4; i++) {
		CHECK(run.total(i)["requests"] == 1000);
		CHECK(run.total(i)["errors"] == 0);
	}
	CHECK(run.total(1)["misses"] == 0);
	CHECK(stat_of(server, "get_hits") == 1000);
	CHECK(stat_of(server, "delete_hits") == 1);
	CHECK(run.total(3)["misses"] == 999);
}

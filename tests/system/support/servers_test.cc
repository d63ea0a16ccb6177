// SPDX-License-Identifier: MIT
// The harness of memcached, twemproxy and HAProxy: they start where they should, answer, and leave nothing.
#include <csignal>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/servers/haproxy.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/support/servers/server.h"

using namespace forktail::test;

namespace
{

// What is left of a server with process id `pid` that stored its files there.
bool gone(pid_t pid, const std::string &directory)
{
	return kill(pid, 0) == -1 && !std::filesystem::exists(directory);
}

std::string get(const Endpoint &server, const std::string &key)
{
	return ask(server, "get " + key + "\r\n", "END\r\n");
}

std::string set(const Endpoint &server, const std::string &key, const std::string &value)
{
	return ask(server, "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n");
}

// A Redis command of words without spaces.
std::string redis(const Endpoint &server, const std::vector<std::string> &words, const std::string &until)
{
	std::string request = "*" + std::to_string(words.size()) + "\r\n";
	for (const auto &word : words)
		request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
	return ask(server, request, until);
}

} // namespace

TEST_CASE("memcached answers on its socket or its port, and has ended afterwards")
{
	for (const bool tcp : {false, true}) {
		INFO("tcp " << tcp);
		pid_t pid = 0;
		std::string directory;
		{
			Memcached memcached({.tcp = tcp, .config = {"-m", "32"}});
			pid = memcached.pid();
			directory = memcached.directory();
			CHECK(memcached.socket().empty() == tcp);
			CHECK((memcached.port() != 0) == tcp);
			CHECK(memcached.command("set k 5 0 3\r\na\r\n") == "STORED\r\n");
			CHECK(memcached.command("get k none", "END\r\n") ==
			      "VALUE k 5 3\r\na\r\n\r\nEND\r\n");
			CHECK(memcached.command("nonsense") == "ERROR\r\n");
			CHECK(memcached.stat("pid") == std::to_string(pid));
			CHECK(memcached.stat("curr_items") == "1");
			CHECK(memcached.stat("limit_maxbytes") == std::to_string(32 << 20));
			CHECK(memcached.stat("nonsense").empty());
			CHECK_THROWS(ask(memcached.endpoint(), "get k\r\n", "NEVER", Seconds(0.1)));
		}
		CHECK(gone(pid, directory));
	}
}

TEST_CASE("a stopped memcached and a stopped twemproxy end too")
{
	pid_t pids[2];
	std::string directories[2];
	{
		Memcached memcached;
		Nutcracker proxy({.protocol = NutcrackerOptions::MEMCACHED, .servers = {memcached.socket()}});
		pids[0] = memcached.pid(), pids[1] = proxy.pid();
		directories[0] = memcached.directory(), directories[1] = proxy.directory();
		memcached.process().signal(SIGSTOP);
		proxy.process().signal(SIGSTOP);
	}
	CHECK(gone(pids[0], directories[0]));
	CHECK(gone(pids[1], directories[1]));
}

TEST_CASE("a memcached or twemproxy that cannot start reports why")
{
	const auto why = [](const auto &start) -> std::string {
		try {
			start();
		} catch (const std::exception &e) {
			return e.what();
		}
		return "";
	};
	CHECK(why([] {
		      Memcached({.tcp = false, .config = {"-I", "nonsense"}});
	      }).find("Item max size") != std::string::npos);
	const std::string proxy =
	    why([] { Nutcracker({.servers = {"127.0.0.1:1"}, .distribution = "nonsense"}); });
	CHECK(proxy.find("distribution") != std::string::npos);
}

TEST_CASE("twemproxy spreads keys over memcached servers, on sockets and ports")
{
	pid_t pid = 0;
	std::string directory;
	for (const bool tcp : {false, true}) {
		INFO("tcp " << tcp);
		{
			Memcached a, b({.tcp = true, .config = {}});
			Nutcracker proxy({.protocol = NutcrackerOptions::MEMCACHED,
					  .servers = {a.socket(), "127.0.0.1:" + std::to_string(b.port())},
					  .tcp = tcp});
			pid = proxy.pid();
			directory = proxy.directory();
			CHECK(proxy.socket().empty() == tcp);
			CHECK((proxy.port() != 0) == tcp);
			int on_a = 0, on_b = 0;
			for (int i = 0; i < 50; i++) {
				const std::string key = "key:" + std::to_string(i);
				REQUIRE(set(proxy.endpoint(), key, "v") == "STORED\r\n");
				REQUIRE(get(proxy.endpoint(), key) ==
					"VALUE " + key + " 0 1\r\nv\r\nEND\r\n");
				on_a += get(a.endpoint(), key) != "END\r\n";
				on_b += get(b.endpoint(), key) != "END\r\n";
			}
			CHECK(on_a + on_b == 50);
			CHECK(on_a > 0);
			CHECK(on_b > 0);
			CHECK(proxy.stats().find("\"forktail\"") != std::string::npos);
			CHECK(proxy.log().find("nutcracker") != std::string::npos);
		}
		CHECK(gone(pid, directory));
	}
}

TEST_CASE("twemproxy answers an error for a dead server")
{
	Nutcracker lost({.protocol = NutcrackerOptions::MEMCACHED,
			 .servers = {"127.0.0.1:1"},
			 .distribution = "modula",
			 .settings = {"timeout: 1000"}});
	CHECK(ask(lost.endpoint(), "get k\r\n").rfind("SERVER_ERROR ", 0) == 0);
}

TEST_CASE("HAProxy forwards a server's answers, on its socket or its port, and has ended afterwards")
{
	for (const bool tcp : {false, true}) {
		INFO("tcp " << tcp);
		pid_t pid = 0;
		std::string directory;
		{
			Memcached memcached({.tcp = !tcp, .config = {}});
			Haproxy proxy({.server = memcached.endpoint(), .tcp = tcp});
			pid = proxy.pid();
			directory = proxy.directory();
			CHECK(set(proxy.endpoint(), "k", "v") == "STORED\r\n");
			CHECK(get(memcached.endpoint(), "k") == "VALUE k 0 1\r\nv\r\nEND\r\n");
			const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) +
									  "/task");
			CHECK(std::distance(begin(threads), end(threads)) == 2);
			proxy.process().signal(SIGSTOP);
		}
		CHECK(gone(pid, directory));
	}
	CHECK_THROWS(Haproxy({.server = {"/nowhere", 0}, .threads = 100000}));
}

TEST_CASE("servers of a later Debian run with this machine's paths, and have helpers")
{
	for (const std::string name : {"redis-server", "valkey-server"}) {
		const std::string program = newer_server(name);
		if (program.empty()) {
			WARN("SKIPPED: script/servers has made no " << name << " here");
			continue;
		}
		Redis redis({.tcp = true, .config = {"--io-threads", "2"}, .program = program});
		INFO(name << " " << redis.info("redis_version"));
		CHECK(redis.command({"SET", "k", "v"}) == "OK");
		CHECK(
		    redis.info(name == "redis-server" ? "redis_version" : "valkey_version").rfind("8.", 0) ==
		    0);
		const std::string process = "/proc/" + std::to_string(redis.pid());
		// Its own file, by a path of this machine.
		CHECK(std::filesystem::read_symlink(process + "/exe") == std::filesystem::canonical(program));
		CHECK(read_file(process + "/comm") == name + "\n");
		bool helper = false;
		for (const auto &thread : std::filesystem::directory_iterator(process + "/task"))
			helper = helper || read_file(thread.path() / "comm") == "io_thd_1\n";
		CHECK(helper);
	}
}

TEST_CASE("twemproxy in front of Redis servers")
{
	Redis a, b({.tcp = true, .config = {}, .program = "redis-server"});
	Nutcracker proxy({.servers = {a.socket(), "127.0.0.1:" + std::to_string(b.port())},
			  .distribution = "modula",
			  .tcp = true});
	for (int i = 0; i < 20; i++) {
		const std::string key = "key:" + std::to_string(i);
		REQUIRE(redis(proxy.endpoint(), {"SET", key, "value"}, "\r\n") == "+OK\r\n");
		REQUIRE(redis(proxy.endpoint(), {"GET", key}, "value\r\n") == "$5\r\nvalue\r\n");
		REQUIRE((a.command({"GET", key}) == "value") != (b.command({"GET", key}) == "value"));
	}
	CHECK(a.command({"DBSIZE"}) != "0");
	CHECK(b.command({"DBSIZE"}) != "0");
	CHECK(run({"redis-cli", "-p", std::to_string(proxy.port()), "GET", "key:1"}).out == "value\n");
}

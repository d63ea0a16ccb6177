// SPDX-License-Identifier: MIT
// forktail lab serve: servers of each kind listen at the printed addresses, and nothing of them is left,
// whatever ends it or its parent.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/endpoint.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace
{

// Its standard input is a FIFO that the test keeps open.
struct Serving : LabProcess {
	std::string fifo = dir.file("held");
	int held = -1;
	json servers; // as it printed them

	explicit Serving(const std::vector<std::string> &words, bool with_parent = false,
			 const std::vector<std::pair<std::string, std::string>> &environment = {})
	{
		REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
		held = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
		std::vector<std::string> argv = {
		    "sh",
		    "-c",
		    with_parent ? "\"$@\" <\"$0\" & wait" : "exec \"$@\" <\"$0\"",
		    fifo,
		    program("forktail"),
		    "lab",
		    "serve"};
		argv.insert(argv.end(), words.begin(), words.end());
		Begin(argv, environment);
		eventually([&] { return lab->out().find('\n') != std::string::npos || !lab->running(); },
			   Seconds(90));
		if (!lab->out().empty())
			servers = parse_json(lab->out()).at("servers");
	}
	~Serving() { LetGo(); }
	Serving(const Serving &) = delete;
	Serving &operator=(const Serving &) = delete;

	void LetGo()
	{
		if (held >= 0)
			close(held);
		held = -1;
	}
	Endpoint At(size_t i) const { return {servers.at(i).at("socket"), servers.at(i).at("port")}; }
	pid_t Pid(size_t i) const { return servers.at(i).at("pid"); }
	std::string Answer(size_t i, const std::vector<std::string> &words) const
	{
		std::vector<std::string> argv = {"redis-cli", "-p", std::to_string(At(i).port)};
		if (!At(i).socket.empty())
			argv = {"redis-cli", "-s", At(i).socket};
		argv.insert(argv.end(), words.begin(), words.end());
		return forktail::test::run(argv).out;
	}
	std::vector<std::string> Roles() const
	{
		std::vector<std::string> roles;
		for (const json &server : servers)
			roles.push_back(server.at("role"));
		return roles;
	}
	void CheckNothingLeft()
	{
		CHECK(eventually([&] { return Alive().empty() && Left().empty(); }, Seconds(30)));
		CHECK(Alive() == std::vector<std::string>{});
		CHECK(Left() == std::vector<std::string>{});
	}
};

struct Case {
	std::vector<std::string> words, roles;
};

std::string Of(pid_t pid, const std::string &file)
{
	return read_file("/proc/" + std::to_string(pid) + "/" + file);
}

} // namespace

TEST_CASE("Servers of each kind listen at the printed addresses until standard input closes")
{
	const Case one = GENERATE(
	    Case{{"redis"}, {"server"}}, Case{{"redis", "--count", "2", "--tcp"}, {"server", "server"}},
	    Case{{"redis", "--replicas", "1"}, {"primary", "replica"}},
	    Case{{"redis", "--cluster", "--count", "3", "--replicas", "1"},
		 {"primary", "primary", "primary", "replica", "replica", "replica"}},
	    Case{{"memcached"}, {"server"}}, Case{{"memcached", "--tcp"}, {"server"}},
	    Case{{"nutcracker"}, {"server", "proxy"}}, Case{{"haproxy", "--tcp"}, {"server", "proxy"}},
	    Case{{"sentinel", "--count", "2", "--replicas", "1"},
		 {"primary", "replica", "sentinel", "sentinel"}});
	CAPTURE(one.words);
	Serving serving(one.words);
	INFO(serving.lab->err());
	REQUIRE(serving.Roles() == one.roles);
	const std::string out = serving.lab->out();
	CHECK(out.find('\n') == out.size() - 1);
	for (size_t i = 0; i < one.roles.size(); i++) {
		const json &server = serving.servers[i];
		INFO(server.dump());
		CHECK(kill(serving.Pid(i), 0) == 0);
		CHECK(accepts(serving.At(i)));
		CHECK(server["address"] == (serving.At(i).socket.empty()
						? "127.0.0.1:" + std::to_string(serving.At(i).port)
						: serving.At(i).socket));
		CHECK(server["version"].get<std::string>().find('.') != std::string::npos);
		CHECK(fs::is_directory(server["directory"].get<std::string>()));
		CHECK(fs::exists(server["log"].get<std::string>()));
		if (server["kind"] == "memcached")
			CHECK(ask(serving.At(i), "version\r\n").rfind("VERSION ", 0) == 0);
		else
			CHECK(serving.Answer(i, {"get", "key"}).find("Could not") == std::string::npos);
	}
	if (one.roles.back() == "replica")
		CHECK(serving.Answer(one.roles.size() - 1, {"role"}).rfind("slave\n", 0) == 0);
	if (one.roles.back() == "proxy")
		CHECK(serving.Answer(1, {"set", "key", "value"}) == "OK\n");
	serving.LetGo();
	CHECK(serving.lab->wait(Seconds(30)) == 0);
	CHECK(serving.lab->err().empty());
	serving.CheckNothingLeft();
}

TEST_CASE("Whatever ends lab serve or its parent, no server is left")
{
	SECTION("a signal")
	{
		const int signal = GENERATE(SIGINT, SIGTERM, SIGKILL);
		CAPTURE(signal);
		Serving serving({"redis", "--count", "2"});
		REQUIRE(serving.servers.size() == 2);
		serving.lab->signal(signal);
		CHECK(serving.lab->wait(Seconds(30)) == (signal == SIGKILL ? 128 + SIGKILL : 0));
		serving.CheckNothingLeft();
	}
	SECTION("kill -9 of a parent whose end of standard input another process keeps open")
	{
		Serving serving({"memcached", "--tcp"}, true);
		REQUIRE(serving.servers.size() == 1);
		serving.lab->signal(SIGKILL);
		CHECK(serving.lab->wait(Seconds(30)) == 128 + SIGKILL);
		serving.CheckNothingLeft();
	}
	SECTION("kill -9 of a parent, with its end of standard input")
	{
		Serving serving({"redis"}, true);
		REQUIRE(serving.servers.size() == 1);
		serving.lab->signal(SIGKILL);
		serving.LetGo();
		serving.CheckNothingLeft();
	}
	SECTION("a stopped server")
	{
		Serving serving({"redis"});
		REQUIRE(serving.servers.size() == 1);
		kill(serving.Pid(0), SIGSTOP);
		serving.LetGo();
		CHECK(serving.lab->wait(Seconds(30)) == 0);
		serving.CheckNothingLeft();
	}
}

TEST_CASE("When servers end by themselves, the last one ends lab serve")
{
	Serving serving({"redis", "--count", "2"});
	REQUIRE(serving.servers.size() == 2);
	kill(serving.Pid(0), SIGKILL);
	CHECK(serving.Says("forktail lab: redis1 (redis-server) was killed by signal 9 (Killed)"));
	CHECK(serving.Answer(1, {"ping"}) == "PONG\n");
	CHECK(serving.lab->running());
	serving.Answer(1, {"shutdown", "nosave"});
	CHECK(serving.lab->wait(Seconds(30)) == 3);
	CHECK(serving.lab->err().find("redis2 (redis-server) ended with status 0") != std::string::npos);
	serving.CheckNothingLeft();
}

TEST_CASE("Servers are started with lab serve's options")
{
	SECTION("where they run and with which options")
	{
		Serving serving({"redis", "--cpus", "0", "--", "--maxmemory", "12345678", "--save", ""});
		INFO(serving.lab->err());
		REQUIRE(serving.servers.size() == 1);
		CHECK(Of(serving.Pid(0), "status").find("Cpus_allowed_list:\t0\n") != std::string::npos);
		CHECK(Of(serving.Pid(0), "comm") == "redis-server\n");
		CHECK(serving.Answer(0, {"config", "get", "maxmemory"}) == "maxmemory\n12345678\n");
		CHECK(serving.Answer(0, {"config", "get", "save"}) == "save\n\n");
	}
	SECTION("their environment")
	{
		Serving serving({"memcached", "--env", "FT_ONE=1", "--env", "FT_TWO=a b"});
		REQUIRE(serving.servers.size() == 1);
		const std::string environment = Of(serving.Pid(0), "environ");
		CHECK(environment.find(std::string("FT_ONE=1\0", 9)) != std::string::npos);
		CHECK(environment.find(std::string("FT_TWO=a b\0", 11)) != std::string::npos);
		CHECK(Of(serving.Pid(0), "comm") == "memcached\n");
	}
	SECTION("a directory that is preserved")
	{
		TempDir kept;
		Serving serving({"redis", "--directory", kept.path()});
		REQUIRE(serving.servers.size() == 1);
		CHECK(serving.At(0).socket == kept.path() + "/redis/redis.sock");
		CHECK(serving.Answer(0, {"save"}) == "OK\n");
		serving.LetGo();
		CHECK(serving.lab->wait(Seconds(30)) == 0);
		CHECK(fs::exists(kept.path() + "/redis/dump.rdb"));
		CHECK(fs::exists(kept.path() + "/logs/redis.log"));
	}
	SECTION("a proxy of running servers, and a program")
	{
		Serving server({"redis", "--program", "/usr/bin/redis-server"});
		REQUIRE(server.servers.size() == 1);
		CHECK(server.Answer(0, {"set", "key", "value"}) == "OK\n");
		const std::string kind = GENERATE("nutcracker", "haproxy");
		Serving proxy({kind, "--of", server.At(0).socket});
		INFO(proxy.lab->err());
		REQUIRE(proxy.Roles() == std::vector<std::string>{"proxy"});
		CHECK(proxy.Answer(0, {"get", "key"}) == "value\n");
	}
	SECTION("a server with a password")
	{
		Serving serving({"redis", "--", "--requirepass", "secret"});
		REQUIRE(serving.servers.size() == 1);
		CHECK(serving.Answer(0, {"-a", "secret", "ping"}) == "PONG\n");
	}
	SECTION("a server that reads its data first")
	{
		TempDir kept;
		const std::vector<std::string> words = {
		    "redis", "--directory", kept.path(), "--", "--enable-debug-command", "yes"};
		{
			Serving first(words);
			REQUIRE(first.servers.size() == 1);
			first.Answer(0, {"debug", "populate", "1000000"});
			CHECK(first.Answer(0, {"save"}) == "OK\n");
			first.LetGo();
			CHECK(first.lab->wait(Seconds(30)) == 0);
		}
		Serving second(words);
		REQUIRE(second.servers.size() == 1);
		CHECK(second.Answer(0, {"dbsize"}) == "1000000\n");
	}
}

TEST_CASE("lab serve reports what it cannot do, and why")
{
	struct Refusal {
		std::vector<std::string> words;
		int status;
		std::string sentence;
	};
	const Refusal one = GENERATE(
	    Refusal{{"nonsense"},
		    2,
		    "forktail lab: unknown kind of server \"nonsense\": use redis, redis8, valkey, "
		    "keydb, memcached, nutcracker, haproxy and sentinel\n"},
	    Refusal{{}, 2, "KIND is required"}, Refusal{{"redis", "--count", "0"}, 2, "--count"},
	    Refusal{{"redis", "--of", "/s"}, 2, "--of needs a proxy: redis is not a proxy\n"},
	    Refusal{{"memcached", "--cluster"}, 2, "--cluster needs servers with the Redis protocol"},
	    Refusal{{"memcached", "--replicas", "1"}, 2, "--replicas: memcached does not support replicas\n"},
	    Refusal{{"redis", "--env", "FT"}, 2, "--env needs NAME=VALUE, not FT\n"},
	    Refusal{{"redis8"}, 3, "no program is installed for a server of kind redis8"},
	    Refusal{{"memcached", "--program", "/nowhere/memcached"}, 3, "/nowhere/memcached"},
	    Refusal{{"redis", "--", "--maxmemory", "nonsense"}, 3, "maxmemory"});
	CAPTURE(one.words);
	Serving serving(one.words, false, {{"FORKTAIL_SERVERS", "/nowhere"}});
	CHECK(serving.lab->wait(Seconds(30)) == one.status);
	CHECK(serving.lab->err().find(one.sentence) != std::string::npos);
	CHECK(serving.lab->out().empty());
	serving.CheckNothingLeft();
}

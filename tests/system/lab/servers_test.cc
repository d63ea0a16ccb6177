// SPDX-License-Identifier: MIT
// The lab's servers are real ones: each kind starts, answers a load, and ends without a trace. Clusters move
// slots, Sentinels fail over.
#include <csignal>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/process.h"
#include "lab/host/machine.h"
#include "tests/system/lab/servers_support.h"

using namespace forktail::test;
using namespace forktail::lab;

namespace
{

// Plans that are started one after the other, and which of them is queried.
struct Case {
	std::vector<ServerPlan> plans;
	std::string asked;
};

ServerPlan Proxy(int count, bool tcp, const std::string &of)
{
	ServerPlan plan = Plan("proxy", "nutcracker", count, tcp);
	plan.of = of;
	plan.config = {"timeout: 2000", "-m 512"};
	return plan;
}

ServerPlan Threaded(ServerPlan plan)
{
	plan.config = {"--io-threads", "3"};
	return plan;
}

ServerPlan Before(const std::string &of, bool tcp)
{
	ServerPlan plan = Plan("front", "haproxy", 1, tcp);
	plan.of = of;
	return plan;
}

std::vector<Case> Cases()
{
	return {
	    {{Plan("redis", "redis")}, "redis"},
	    {{Plan("redis", "redis", 1, true)}, "redis"},
	    {{Plan("redis", "redis", 3)}, "redis"},
	    {{Plan("redis", "redis", 3, true)}, "redis2"},
	    {{Threaded(Plan("redis", "redis8", 2))}, "redis"},
	    {{Threaded(Plan("valkey", "valkey", 2, true))}, "valkey"},
	    {{Plan("keydb", "keydb", 2, true)}, "keydb"},
	    {{Plan("cache", "memcached")}, "cache"},
	    {{Plan("cache", "memcached", 2, true)}, "cache"},
	    {{Plan("redis", "redis", 3), Proxy(1, false, "redis")}, "proxy"},
	    {{Plan("redis", "redis"), Before("redis", true)}, "front"},
	    {{Plan("cache", "memcached", 1, true), Before("cache", false)}, "front"},
	    {{Plan("cache", "memcached", 2, true), Proxy(2, true, "cache")}, "proxy"},
	};
}

// How many slots an instance of a Cluster has.
size_t SlotsOf(Lab &lab, const std::string &name)
{
	std::istringstream lines(lab.Command(name, {"CLUSTER", "NODES"}));
	for (std::string line; std::getline(lines, line);) {
		if (line.find("myself") == std::string::npos)
			continue;
		std::istringstream words(line);
		std::string word;
		for (int i = 0; i < 8; i++)
			words >> word;
		size_t slots = 0;
		while (words >> word) {
			size_t dash = word.find('-');
			slots += dash == std::string::npos
				     ? 1
				     : std::stoul(word.substr(dash + 1)) - std::stoul(word) + 1;
		}
		return slots;
	}
	return 0;
}

} // namespace

TEST_CASE("Servers of each kind answer a load, and leave nothing")
{
	Case one = GENERATE(from_range(Cases()));
	std::string path, version;
	for (const ServerPlan &plan : one.plans)
		if (!FindServer(plan.kind, &path, &version)) {
			WARN("SKIPPED: no " << plan.kind << " here");
			return;
		}
	Lab lab;
	for (const ServerPlan &plan : one.plans)
		lab.Start(plan);
	Result load =
	    run(lab.LoadLine(one.asked, {"-n", "2000", "-c", "8", "-r", "1000", "-t", "set,get", "-q"}));
	std::string words;
	for (const std::string &word : LoadWords(lab.topology, one.asked))
		words += word + " ";
	INFO(words << "\n" << load.out << load.err);
	CHECK(load.status == 0);

	std::vector<pid_t> pids;
	for (const auto &instance : lab.topology.instances) {
		pids.push_back(instance->child->pid);
		CHECK_FALSE(is_gone(pids.back()));
		CHECK(std::filesystem::exists(instance->log));
		CHECK(instance->version.find('.') != std::string::npos);
	}
	CHECK(lab.Left().size() == 1);
	bool closed = GENERATE(false, true); // with the session instead of StopServers
	bool good = closed ? CloseSession(&lab.session, &lab.error)
			   : StopServers(&lab.session, &lab.topology, &lab.error);
	INFO(lab.error);
	CHECK(good);
	for (pid_t pid : pids)
		CHECK(is_gone(pid));
	CHECK(lab.Left() == std::vector<std::string>{});
}

TEST_CASE("Servers can be started again under the same names")
{
	Lab lab;
	for (int i = 0; i < 2; i++) {
		lab.Start(Plan("redis", "redis", 2, true));
		CHECK(lab.Command("redis1", {"DBSIZE"}) == "0");
		lab.Command("redis1", {"SET", "k", "v"});
		REQUIRE(StopServers(&lab.session, &lab.topology, &lab.error));
		CHECK(lab.topology.instances.empty());
	}
}

TEST_CASE("A redis-server takes no snapshots by itself unless its configuration has them")
{
	Lab lab;
	ServerPlan plan = Plan("redis", "redis");
	SECTION("not configured")
	{
		lab.Start(plan);
		CHECK(lab.Command("redis", {"CONFIG", "GET", "save"}) == "save\n");
	}
	SECTION("configured")
	{
		plan.config = {"--save", "900 1", "--appendonly", "yes"};
		lab.Start(plan);
		CHECK(lab.Command("redis", {"CONFIG", "GET", "save"}) == "save\n900 1");
		CHECK(lab.Command("redis", {"CONFIG", "GET", "appendonly"}) == "appendonly\nyes");
	}
}

TEST_CASE("Instances run on their assigned CPUs, all threads from the start")
{
	std::vector<int> online;
	REQUIRE(forktail::common::ParseCpus(
	    read_file("/sys/devices/system/cpu/online")
		.substr(0, read_file("/sys/devices/system/cpu/online").find('\n')),
	    &online));
	Lab lab;
	ServerPlan plan = Plan("redis", "redis", static_cast<int>(online.size()) + 1);
	SECTION("each on its own")
	{
		plan.cpus = "each";
		lab.Start(plan);
		for (size_t i = 0; i < lab.topology.instances.size(); i++)
			CHECK(StatusOf(lab.topology.instances[i]->child->pid, "Cpus_allowed_list") ==
			      std::to_string(online[i % online.size()]));
	}
	SECTION("all on one")
	{
		plan.cpus = std::to_string(online[0]);
		lab.Start(plan);
		for (const auto &instance : lab.topology.instances)
			CHECK(StatusOf(instance->child->pid, "Cpus_allowed_list") == plan.cpus);
	}
	SECTION("on a missing CPU")
	{
		plan.cpus = "1000";
		CHECK_FALSE(lab.TryStart(plan));
		CHECK(lab.error == "cannot start redis1 (redis-server) on CPUs 1000: Invalid argument");
	}
}

TEST_CASE("A server that does not start is reported with its own message, and leaves nothing")
{
	Lab lab;
	ServerPlan plan = Plan("redis", "redis", 1, true);
	SECTION("a wrong setting")
	{
		plan.config = {"--no-such-setting", "1"};
		CHECK_FALSE(lab.TryStart(plan));
		CHECK(lab.error.rfind("redis (redis-server) ended with status 1; its last messages:\n", 0) ==
		      0);
		CHECK(lab.error.find("no-such-setting") != std::string::npos);
	}
	SECTION("a wrong setting of a proxy")
	{
		lab.Start(plan);
		ServerPlan proxy = Proxy(1, true, "redis");
		proxy.config = {"timeout: soon"};
		CHECK_FALSE(lab.TryStart(proxy));
		CHECK(lab.error.rfind("proxy (nutcracker) ended with status 1; its last messages:\n", 0) ==
		      0);
	}
	SECTION("connections to more than one possible server")
	{
		lab.Start(Plan("redis", "redis", 2));
		CHECK_FALSE(lab.TryStart(Before("redis", true)));
		CHECK(lab.error ==
		      "front forwards connections to exactly one server, but redis has 2 instances");
	}
	SECTION("an unknown kind")
	{
		plan.kind = "oracle";
		CHECK_FALSE(lab.TryStart(plan));
		CHECK(lab.error == "no program is installed for a server of kind oracle (redis)");
	}
	SECTION("a primary that no replica can reach")
	{
		lab.Start(Plan("redis", "redis"));
		plan.name = "copy";
		plan.replica_of = "redis";
		CHECK_FALSE(lab.TryStart(plan));
		CHECK(lab.error ==
		      "redis listens on a Unix socket: copy cannot replicate it. Set `listen = \"tcp\"`.");
	}
	REQUIRE(StopServers(&lab.session, &lab.topology, &lab.error));
	CHECK(lab.Left() == std::vector<std::string>{});
}

TEST_CASE("A port taken by another process before the server starts is not a failure")
{
	std::string program = GENERATE("redis-server", "memcached");
	Lab lab;
	std::vector<int> taken;
	auto command = [&](const Endpoint &endpoint) {
		if (taken.empty()) {
			int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			sockaddr_in address = {};
			address.sin_family = AF_INET;
			address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
			address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			REQUIRE(bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0);
			REQUIRE(listen(fd, 1) == 0);
			taken = {fd, endpoint.port};
		}
		forktail::lab::Command start;
		start.name = program;
		start.argv = {program, program == "memcached" ? "-p" : "--port",
			      std::to_string(endpoint.port)};
		if (program == "memcached")
			start.argv.insert(start.argv.end(), {"-l", "127.0.0.1", "-u", "root"});
		start.output = lab.dir.file("log");
		return start;
	};
	Endpoint endpoint;
	Child *child = nullptr;
	bool good = StartListening(&lab.session, "", command, 20, &endpoint, &child, &lab.error);
	INFO(lab.error);
	REQUIRE(good);
	CHECK(endpoint.port != taken[1]);
	CHECK_FALSE(child->ended);
	CHECK(child->needed);
	int fd = ConnectTo(endpoint);
	CHECK(fd >= 0);
	close(fd);
	close(taken[0]);
}

TEST_CASE("The death of a server ends a wait, unless it was killed on purpose")
{
	Lab lab;
	lab.Start(Plan("redis", "redis", 2));
	pid_t pid = lab["redis2"].child->pid;
	SECTION("by accident")
	{
		kill(pid, SIGKILL);
		bool good = true;
		for (int i = 0; i < 100 && good; i++)
			good = Step(&lab.session, 100, &lab.error);
		CHECK_FALSE(good);
		CHECK(lab.error.rfind("redis2 (redis-server) was killed by signal 9 (Killed)", 0) == 0);
	}
	SECTION("on purpose")
	{
		REQUIRE(KillInstance(&lab.session, &lab["redis2"], &lab.error));
		CHECK(is_gone(pid));
		CHECK_FALSE(lab["redis2"].redis);
		CHECK(Step(&lab.session, 10, &lab.error));
		CHECK(lab.Command("redis1", {"PING"}) == "PONG");
	}
}

TEST_CASE("A replica has its primary's data when it has started")
{
	Lab lab;
	ServerPlan primary = Plan("redis", "redis", 2, true);
	primary.config = {"--repl-diskless-sync-delay", "0"};
	lab.Start(primary);
	lab.Command("redis1", {"SET", "k", "first"});
	lab.Command("redis2", {"SET", "k", "second"});
	ServerPlan copy = Plan("copy", "redis", 2);
	copy.replica_of = "redis";
	lab.Start(copy);
	CHECK(lab.Command("copy1", {"GET", "k"}) == "first");
	CHECK(lab.Command("copy2", {"GET", "k"}) == "second");
}

TEST_CASE("A Cluster moves slots while all its keys remain readable")
{
	Lab lab;
	ServerPlan plan = Plan("redis", "redis", 3);
	plan.cluster = true;
	plan.replicas = 1;
	plan.config = {"--repl-diskless-sync-delay", "0"};
	lab.Start(plan);
	REQUIRE(lab.topology.instances.size() == 6);
	Result fill = run(lab.LoadLine("redis", {"--fill", "20000", "-d", "50", "--verify"}));
	INFO(fill.err);
	REQUIRE(fill.status == 0);
	size_t before = SlotsOf(lab, "redis1"), target = SlotsOf(lab, "redis3");
	size_t keys = std::stoul(lab.Command("redis3", {"DBSIZE"}));

	// A closed loop: an interrupted open loop leaves due requests unsent, which counts as an error.
	forktail::lab::Command load;
	load.name = "forktail-load";
	load.argv =
	    lab.LoadLine("redis", {"-t", "get", "-r", "20000", "-d", "50", "--verify", "-c", "2",
				   "--duration", "600", "--fail-if", "misses>0", "--fail-if", "errors>0"});
	load.output = lab.dir.file("load.txt");
	Child *child = forktail::lab::Start(&lab.session, load, &lab.error);
	REQUIRE(child);
	child->needed = true;
	bool moved = MoveSlots(&lab.session, &lab.topology, &lab["redis1"], &lab["redis3"], 1000, &lab.error);
	INFO(lab.error);
	REQUIRE(moved);
	CHECK(SlotsOf(lab, "redis1") == before - 1000);
	CHECK(SlotsOf(lab, "redis3") == target + 1000);
	CHECK(std::stoul(lab.Command("redis3", {"DBSIZE"})) > keys);
	bool ended = WaitForEnd(&lab.session, child, SIGINT, 20, &lab.error);
	bool good = ended && Succeeded(*child, &lab.error);
	INFO(lab.error << read_file(load.output));
	CHECK(good);
	// It was running while slots moved.
	CHECK(read_file(load.output).find("requests were sent again") != std::string::npos);

	CHECK_FALSE(
	    MoveSlots(&lab.session, &lab.topology, &lab["redis1"], &lab["redis3"], 16000, &lab.error));
	CHECK(lab.error == "redis1 has " + std::to_string(before - 1000) + " slots: cannot move 16000");
}

TEST_CASE("Sentinels fail over when the primary is killed")
{
	Lab lab;
	ServerPlan primary = Plan("redis", "redis", 1, true);
	primary.config = {"--repl-diskless-sync-delay", "0"};
	lab.Start(primary);
	ServerPlan copy = Plan("copy", "redis", 2, true);
	copy.replica_of = "redis";
	lab.Start(copy);
	ServerPlan watch = Plan("watch", "sentinel", 3);
	watch.of = "redis";
	watch.config = {"down-after-milliseconds 500", "failover-timeout 3000", "--hz", "50"};
	lab.Start(watch);
	CHECK(lab.Command("watch1", {"SENTINEL", "MASTER", kSentinelMaster})
		  .find("\ndown-after-milliseconds\n500\n") != std::string::npos);
	CHECK(lab.Command("watch1", {"INFO"}).find("configured_hz:50\r") != std::string::npos);

	forktail::lab::Command load;
	load.name = "forktail-load";
	load.argv = lab.LoadLine(
	    "watch", {"-t", "set", "-r", "1000", "--rate", "500", "--duration", "600", "--progress"});
	load.output = lab.dir.file("load.txt");
	bool loading = false; // one line per second
	load.on_line = [&](const std::string &) { loading = true; };
	Child *child = forktail::lab::Start(&lab.session, load, &lab.error);
	REQUIRE(child);
	while (!loading && !child->ended)
		REQUIRE(Step(&lab.session, 100, &lab.error));
	bool killed = KillInstance(&lab.session, &lab["redis"], &lab.error);
	INFO(lab.error);
	REQUIRE(killed);
	CHECK(eventually(
	    [&] {
		    return lab.Command("copy1", {"ROLE"}).rfind("master", 0) == 0 ||
			   lab.Command("copy2", {"ROLE"}).rfind("master", 0) == 0;
	    },
	    Seconds(30)));
	bool ended = WaitForEnd(&lab.session, child, SIGINT, 40, &lab.error);
	bool good = ended && Succeeded(*child, &lab.error);
	INFO(lab.error << read_file(load.output));
	CHECK(good);
}

// SPDX-License-Identifier: MIT
// The shape of a load on real servers: how many requests, when, over which connections, by which calls;
// warm-up and repeats. Everything is counted, by the server or in the log. Nothing here depends on the speed
// of the machine.
#include <cmath>
#include <csignal>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

// One run with log and JSON, which must succeed.
struct Run {
	TempDir dir;
	Result result;
	Log log;
	Json json, figures, total;

	Run(const Arguments &where, const Arguments &more, const ProcessOptions &options = {})
	{
		Arguments all = {"-o", dir.file("log"), "--json", dir.file("json"), "-q"};
		all.insert(all.end(), where.begin(), where.end());
		all.insert(all.end(), more.begin(), more.end());
		result = load(all, options);
		INFO(result.err);
		REQUIRE(result.status == 0);
		log = read_log(dir.file("log"));
		REQUIRE(log.error == "");
		CHECK(log.whole());
		json = parse_json(read_file(dir.file("json")));
		figures = json["runs"][0];
		total = figures["total"];
	}
	// Due times since the start of the load, in order.
	std::vector<double> due_s() const
	{
		std::vector<double> all;
		const uint64_t start = figures["start_ns"];
		for (const ft_request &q : log.requests)
			all.push_back((static_cast<double>(q.intended_ns) - static_cast<double>(start)) *
				      1e-9);
		std::sort(all.begin(), all.end());
		return all;
	}
	// Requests of each connection, in the order of their start.
	std::map<uint32_t, std::vector<ft_request>> by_connection() const
	{
		std::map<uint32_t, std::vector<ft_request>> all;
		for (const ft_request &q : log.requests)
			all[q.connection].push_back(q);
		for (auto &[id, some] : all)
			std::stable_sort(
			    some.begin(), some.end(),
			    [](const ft_request &a, const ft_request &b) { return a.start_ns < b.start_ns; });
		return all;
	}
};

Arguments at(const Redis &redis)
{
	return {"-s", redis.socket()};
}
Arguments at_port(const Redis &redis)
{
	return {"-p", std::to_string(redis.port())};
}

size_t between(const std::vector<double> &due, double from, double to)
{
	return static_cast<size_t>(
	    std::count_if(due.begin(), due.end(), [&](double t) { return t >= from && t < to; }));
}

int number(Redis &redis, const char *name)
{
	return std::stoi("0" + redis.info(name));
}

// A line of /proc/PID/status (or a thread's), without its name.
std::string status_line(const std::string &path, const std::string &name)
{
	std::istringstream in(read_file(path));
	for (std::string line; std::getline(in, line);)
		if (line.rfind(name + ":", 0) == 0)
			return line.substr(line.find_first_not_of(" \t", name.size() + 1));
	return "";
}

} // namespace

TEST_CASE("profiles of the rate: as many requests are due in each part as the shape has")
{
	Redis redis;
	Run steps(at(redis), {"--profile", "steps:200x500ms,1000x500ms,400x500ms"});
	auto due = steps.due_s();
	CHECK(due.size() == 800);
	CHECK(between(due, 0, 0.5) == 100);
	CHECK(between(due, 0.5, 1) == 500);
	CHECK(between(due, 1, 1.5) == 200);
	CHECK(contains(steps.result.out, "rate by profile"));

	Run ramp(at(redis), {"--profile", "ramp:0-1000x1s"});
	due = ramp.due_s();
	CHECK(static_cast<double>(due.size()) == Approx(500).margin(1));
	CHECK(static_cast<double>(between(due, 0, 0.5)) == Approx(125).margin(2));

	Run square(at(redis), {"--profile", "square:100,900,1s", "--duration", "2", "--threads", "2"});
	due = square.due_s();
	CHECK(static_cast<double>(due.size()) == Approx(1000).margin(2));
	for (const double from : {0.0, 1.0}) {
		CHECK(static_cast<double>(between(due, from, from + 0.5)) == Approx(50).margin(3));
		CHECK(static_cast<double>(between(due, from + 0.5, from + 1)) == Approx(450).margin(3));
	}

	Run sine(at(redis), {"--profile", "sine:100,900,1s", "--duration", "1"});
	due = sine.due_s();
	CHECK(static_cast<double>(due.size()) == Approx(500).margin(2));
	// 500 + 400 sin: its upper half has 250 + 400 / pi.
	CHECK(static_cast<double>(between(due, 0, 0.5)) == Approx(250 + 400 / M_PI).margin(3));

	Run counted(at(redis), {"--profile", "square:100,900,1s", "-n", "77"});
	CHECK(counted.log.requests.size() == 77);
	for (const Run *r : {&steps, &ramp, &square, &sine, &counted})
		for (const ft_request &q : r->log.requests)
			REQUIRE((q.start_ns >= q.intended_ns && q.status <= FT_STATUS_MISS));
}

TEST_CASE("a profile of connections: only that many send")
{
	Redis redis;
	Run run(at(redis), {"--profile", "connections:steps:2x700ms,8x700ms", "-c", "8", "--duration",
			    "1400ms", "--think", "5ms"});
	const uint64_t start = run.figures["start_ns"];
	std::set<uint32_t> early, late;
	for (const ft_request &q : run.log.requests) {
		if (q.start_ns < start + 600000000)
			early.insert(q.connection);
		else if (q.start_ns > start + 900000000)
			late.insert(q.connection);
	}
	CHECK(early == std::set<uint32_t>{0, 1});
	CHECK(late.size() == 8);

	Run open(at(redis), {"--profile", "connections:steps:1x400ms,3x10s", "-c", "4", "--rate", "500",
			     "--duration", "1"});
	CHECK(open.log.requests.size() == 500);
	std::set<uint32_t> used;
	for (const ft_request &q : open.log.requests)
		used.insert(q.connection);
	CHECK(used == std::set<uint32_t>{0, 1, 2});
}

TEST_CASE("warm-up is in the log and not in the figures, which are exact")
{
	Redis redis;
	for (const bool open_loop : {true, false}) {
		INFO(open_loop);
		Arguments more = {"--warmup", "500ms",	  "--duration", "500ms",	 "-c",
				  "4",	      "--series", "/dev/null",	"--buckets=1ms", "--no-observer"};
		if (open_loop)
			more.insert(more.end(), {"--rate", "1000"});
		else
			more.insert(more.end(), {"--think", "1ms"});
		Run run(at(redis), more);
		const uint64_t start = run.figures["start_ns"];
		std::vector<uint64_t> counted;
		size_t warm = 0, quick = 0;
		for (const ft_request &q : run.log.requests) {
			if (q.intended_ns < start) {
				warm++;
				continue;
			}
			counted.push_back(q.end_ns - q.intended_ns);
			quick += counted.back() <= 1000000;
		}
		std::sort(counted.begin(), counted.end());
		if (open_loop) {
			CHECK(warm == 500);
			CHECK(counted.size() == 500);
		}
		CHECK(warm > 0);
		CHECK(run.total["requests"] == counted.size());
		CHECK(run.total["latency_ns"]["max"] == counted.back());
		CHECK(run.total["latency_ns"]["min"] == counted.front());
		CHECK(run.figures["exact"] == true);
		for (const auto &[name, p] :
		     std::map<std::string, double>{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}})
			CHECK(run.total["latency_ns"][name] == percentile(counted, p));
		CHECK(run.total["buckets"][0]["requests"] == quick);
		CHECK(run.log.notes[0]["warmup_end_ns"] == start);
	}
}

TEST_CASE("until a number of requests, a time, whichever is first, or Ctrl-C")
{
	Redis redis;
	CHECK(Run(at(redis), {"--requests", "1234"}).log.requests.size() == 1234);
	CHECK(Run(at(redis), {"-n", "50", "--duration", "30", "--threads", "3"}).log.requests.size() == 50);
	Run timed(at(redis), {"-n", "100000000", "--duration", "400ms", "--think", "1ms"});
	CHECK(timed.log.requests.size() < 100000000);
	const uint64_t start = timed.figures["start_ns"];
	for (const ft_request &q : timed.log.requests)
		REQUIRE(q.start_ns < start + 400000000 + 50000000);
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "-l", "-q", "--think", "1ms", "-o", dir.file("log")}));
	REQUIRE(eventually([&] { return !read_log(dir.file("log")).requests.empty(); }));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(10)) == 0);
	const Log log = read_log(dir.file("log"));
	CHECK(log.whole());
	CHECK(log.summary["reason"] == "interrupted");
	CHECK(log.summary["runs"][0]["total"]["requests"] == log.requests.size());
}

TEST_CASE("pipelines and batches: that many outstanding, that many in a write")
{
	Redis redis;
	for (const auto &[pipeline, batch] :
	     std::vector<std::pair<int, int>>{{1, 0}, {16, 0}, {16, 4}, {8, 8}, {10, 3}}) {
		INFO(pipeline << " " << batch);
		Arguments more = {"-n", "4800", "-c", "3", "-P", std::to_string(pipeline)};
		if (batch)
			more.insert(more.end(), {"--batch", std::to_string(batch)});
		Run run(at(redis), more);
		CHECK(run.log.requests.size() == 4800);
		int most = 0, largest = 0, smaller = 0;
		for (const auto &[id, some] : run.by_connection()) {
			std::map<uint64_t, int> writes;
			std::vector<std::pair<uint64_t, int>> steps;
			for (const ft_request &q : some) {
				writes[q.start_ns]++;
				steps.emplace_back(q.start_ns, 1);
				steps.emplace_back(q.end_ns, -1);
			}
			for (const auto &[when, n] : writes) {
				largest = std::max(largest, n);
				smaller += n < (batch ? batch : pipeline);
			}
			std::sort(steps.begin(), steps.end()); // ends before starts at the same instant
			int now = 0;
			for (const auto &[when, step] : steps)
				most = std::max(most, now += step);
		}
		CHECK(most <= pipeline);
		CHECK(most >= (batch ? batch : pipeline));
		CHECK(largest == (batch ? batch : pipeline));
		CHECK(smaller <= 3); // the last one of a connection
	}
}

TEST_CASE("a new connection every N requests, with login and database, on TCP and Unix sockets")
{
	Redis redis({.tcp = true, .config = {"--requirepass", "secret"}});
	redis.command({"AUTH", "secret"});
	const auto password = with_environment({{"FORKTAIL_PASSWORD", "secret"}});
	for (const Arguments &where : {at(redis), at_port(redis)})
		for (const Arguments &how :
		     std::vector<Arguments>{{"--reconnect", "10"},
					    {"--reconnect", "10", "-P", "4"},
					    {"-k", "0"},
					    {"--reconnect", "10", "--rate", "4000"},
					    {"-k", "0", "--rate", "2000"},
					    {"--reconnect", "10", "--blocking"},
					    {"--reconnect", "10", "--no-wait", "-P", "5"},
					    {"-k", "0", "--think", "1ms"}}) {
			INFO(where[0] << " " << how[0] << " " << how[1] << " "
				      << (how.size() > 2 ? how[2] : ""));
			redis.command({"FLUSHALL"});
			const int before = number(redis, "total_connections_received");
			Arguments more = {"-t",		"set", "-r",	       "400", "--key-pattern",
					  "sequential", "-n",  "400",	       "-c",  "4",
					  "--dbnum",	"3",   "--no-observer"};
			more.insert(more.end(), how.begin(), how.end());
			Run run(where, more, password);
			CHECK(run.total["errors"] == 0);
			CHECK(run.log.requests.size() == 400);
			CHECK(run.figures["connections_broken"] == 0);
			const int opened = number(redis, "total_connections_received") - before;
			const int each = how[0] == "-k" ? 1 : 10;
			// The search for an address, the probe, and the load's connections. A pipeline is cut
			// at N; of the last requests a connection may have fewer.
			CHECK(opened >= 400 / each + 2);
			CHECK(opened <= 400 / each + 2 + 8);
			CHECK(redis.command({"SELECT", "3"}) == "OK");
			CHECK(redis.command({"DBSIZE"}) == "400");
			redis.command({"SELECT", "0"});
			CHECK(redis.command({"DBSIZE"}) == "0");
			// The log knows the socket of each request.
			CHECK(run.log.sockets.size() >= 400u / static_cast<unsigned>(each));
			std::set<uint64_t> inodes;
			for (const auto &[which, s] : run.log.sockets)
				inodes.insert(s.inode);
			CHECK(inodes.size() == run.log.sockets.size());
			for (const ft_request &q : run.log.requests) {
				auto s = run.log.sockets.upper_bound({q.connection, q.start_ns});
				REQUIRE(s != run.log.sockets.begin());
				s--;
				INFO(s->second.opened_ns << " to " << s->second.closed_ns << ", "
							 << q.start_ns << " to " << q.end_ns);
				REQUIRE(s->second.id == q.connection);
				REQUIRE(q.end_ns <= s->second.closed_ns);
			}
			const bool thinks = how.back() == "1ms";
			for (const auto &[id, some] : run.by_connection())
				for (size_t i = 1; thinks && i < some.size(); i++)
					REQUIRE(some[i].start_ns >= some[i - 1].end_ns + 1000000);
		}
}

TEST_CASE("a new connection every N requests to memcached")
{
	for (const bool tcp : {false, true}) {
		Memcached server({.tcp = tcp, .config = {}});
		const Arguments where =
		    tcp ? Arguments{"-p", std::to_string(server.port())} : Arguments{"-s", server.socket()};
		for (const char *protocol : {"memcache_text", "memcache_binary"}) {
			if (protocol == std::string("memcache_binary") && tcp)
				continue;
			const int before = std::stoi(server.stat("total_connections"));
			Run run(where, {"--protocol", protocol, "--reconnect", "5", "-n", "200", "-c", "2",
					"--no-observer"});
			CHECK(run.total["errors"] == 0);
			CHECK(run.log.requests.size() == 200);
			const int opened = std::stoi(server.stat("total_connections")) - before;
			CHECK(opened >= 40 + 2);
			CHECK(opened <= 40 + 2 + 4 + 1);
		}
	}
}

TEST_CASE("think time is between an answer and the next request")
{
	Redis redis;
	for (const char *mode : {"--threads=1", "--blocking", "-P2"}) {
		Run run(at(redis), {"--think", "3ms", "-n", "60", "-c", "3", mode});
		INFO(mode);
		CHECK(run.log.requests.size() == 60);
		for (const auto &[id, some] : run.by_connection())
			for (size_t i = 1; i < some.size(); i++)
				REQUIRE((some[i].start_ns == some[i - 1].start_ns ||
					 some[i].start_ns >= some[i - 1].end_ns + 3000000));
	}
}

TEST_CASE("blocking calls, and answers read later: everything is answered, in order")
{
	Redis redis;
	for (const Arguments &mode : std::vector<Arguments>{{"--blocking"},
							    {"--blocking", "-P", "7"},
							    {"--no-wait"},
							    {"--no-wait", "-P", "50"},
							    {"--blocking", "--rate", "3000"},
							    {"--no-wait", "--rate", "3000", "-P", "20"},
							    {"--no-wait", "-P", "30", "--reconnect", "45"},
							    {"--blocking", "-d", "100000", "-P", "20"},
							    {"--no-wait", "-d", "100000", "-P", "100"}}) {
		INFO(mode[0] << " " << (mode.size() > 1 ? mode[1] : "") << " " << mode.back());
		const int before = number(redis, "total_commands_processed");
		Arguments more = {"-n", "2003", "-c", "3", "--no-observer"};
		more.insert(more.end(), mode.begin(), mode.end());
		Run run(at(redis), more);
		CHECK(run.log.requests.size() == 2003);
		CHECK(run.total["errors"] == 0);
		CHECK(number(redis, "total_commands_processed") - before >= 2003);
		// The log has a connection's requests in the order of their ends. Their starts must have the
		// same order.
		std::map<uint32_t, uint64_t> last;
		for (const ft_request &q : run.log.requests) {
			REQUIRE(q.start_ns >= last[q.connection]);
			REQUIRE(q.end_ns > q.start_ns);
			last[q.connection] = q.start_ns;
		}
		CHECK(last.size() == 3);
	}
	Memcached memcached;
	for (const char *protocol : {"memcache_text", "memcache_binary"})
		for (const char *mode : {"--blocking", "--no-wait"}) {
			Run run({"-s", memcached.socket()},
				{"--protocol", protocol, "-n", "2003", "-c", "2", mode});
			CHECK(run.log.requests.size() == 2003);
			CHECK(run.total["errors"] == 0);
		}
}

TEST_CASE("cpus: each load thread runs on its assigned CPU")
{
	Redis redis;
	const unsigned count = std::thread::hardware_concurrency();
	const std::string last = std::to_string(count - 1);
	TempDir dir;
	Process p(load_command(
	    {"-s", redis.socket(), "-l", "-q", "--threads", "2", "--cpus", "0," + last, "--think", "1ms"}));
	std::map<std::string, std::string> allowed;
	REQUIRE(eventually([&] {
		const Result list = run({"ls", "/proc/" + std::to_string(p.pid()) + "/task"});
		std::istringstream in(list.out);
		for (std::string tid; std::getline(in, tid);) {
			const std::string path =
			    "/proc/" + std::to_string(p.pid()) + "/task/" + tid + "/status";
			allowed[status_line(path, "Name")] = status_line(path, "Cpus_allowed_list");
		}
		return allowed["load-0"] == "0" && allowed["load-1"] == last;
	}));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(10)) == 0);
	CHECK(load({"-s", redis.socket(), "--cpus", "1023", "-n", "1"}).status == 2);
}

TEST_CASE("idle connections are open and send nothing")
{
	Redis redis;
	Process p(
	    load_command({"-s", redis.socket(), "-l", "-q", "-c", "5", "--idle", "200", "--think", "1ms"}));
	CHECK(eventually([&] { return redis.info("connected_clients") == "206"; }));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(10)) == 0);
	CHECK(eventually([&] { return redis.info("connected_clients") == "1"; }));
}

TEST_CASE("thousands of connections, each used, within 32 MB and 200 bytes for each")
{
	Redis redis({.tcp = false, .config = {"--maxclients", "15000"}});
	for (const int count : {1000, 10000}) {
		INFO(count);
		TempDir dir;
		Process p(load_command({"-s", redis.socket(), "-c", std::to_string(count), "-l", "-q",
					"--rate", "20000", "-o", dir.file("log"), "--no-observer"}));
		REQUIRE(eventually([&] { return number(redis, "connected_clients") > count; }, Seconds(30)));
		auto used = [&] {
			std::set<uint32_t> ids;
			for (const ft_request &q : read_log(dir.file("log")).requests)
				ids.insert(q.connection);
			ids.erase(UINT32_MAX); // due when Ctrl-C came
			return ids.size();
		};
		REQUIRE(eventually([&] { return used() == static_cast<size_t>(count); }, Seconds(30)));
		const int kb =
		    std::stoi("0" + status_line("/proc/" + std::to_string(p.pid()) + "/status", "VmHWM"));
		p.signal(SIGINT);
		REQUIRE(p.wait(Seconds(20)) == 0);
		CHECK(read_log(dir.file("log")).whole());
		CHECK(used() == static_cast<size_t>(count));
		INFO(kb << " KB");
		CHECK(kb > 0);
		if (!FORKTAIL_SANITIZED)
			CHECK(kb * 1024 < (32 << 20) + 200 * count);
	}
}

TEST_CASE("30,000 connections over TCP to one address, from several")
{
	rlimit limit;
	REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_max < 31000 && geteuid() != 0) {
		WARN("SKIPPED: too few descriptors");
		return;
	}
	Redis redis({.tcp = true, .config = {"--maxclients", "31000", "--tcp-backlog", "4096"}});
	if (redis.command({"CONFIG", "GET", "maxclients"}) != "maxclients\n31000") {
		WARN("SKIPPED: redis-server has too few descriptors");
		return;
	}
	Run run(at_port(redis), {"-c", "30000", "-n", "60000", "--no-observer"});
	CHECK(run.total["errors"] == 0);
	std::set<uint32_t> used;
	for (const ft_request &q : run.log.requests)
		used.insert(q.connection);
	CHECK(used.size() == 30000);
}

TEST_CASE("memcached over IPv6")
{
	if (read_file("/proc/net/if_inet6").empty()) {
		WARN("SKIPPED: this host has no IPv6");
		return;
	}
	const std::string port = std::to_string(free_port());
	Process server({"memcached", "-l", "::1", "-p", port, "-u", "nobody"});
	Result r;
	CHECK(eventually([&] {
		r = load({"-h", "::1", "-p", port, "--protocol", "memcache_text", "-n", "500", "-q"});
		return r.status == 0;
	}));
	CHECK(contains(r.out, "500"));
}

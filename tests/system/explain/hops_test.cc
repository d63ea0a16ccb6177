// SPDX-License-Identifier: MIT
// Several recorded server processes: a stall made in one of them is found there, and requests to the others
// are not blamed on it.
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr double kMs = 1e6;

std::string at_port(int port)
{
	return "127.0.0.1:" + std::to_string(port);
}

// Three instances and their recording.
struct Instances {
	TempDir dir;
	std::vector<std::unique_ptr<Redis>> servers;
	std::vector<std::string> addresses;
	std::unique_ptr<Process> recorder, load;

	Instances()
	{
		RedisOptions options;
		options.tcp = true;
		options.config = {"--enable-debug-command", "yes"};
		for (int i = 0; i < 3; i++) {
			servers.push_back(std::make_unique<Redis>(options));
			addresses.push_back(at_port(servers.back()->port()));
		}
	}
	// More connections than requests that can be delayed at once, so that no request waits for another
	// one's connection.
	void Run(std::vector<pid_t> pids, const std::vector<std::string> &where)
	{
		std::string list;
		for (auto &s : servers)
			pids.push_back(s->pid());
		for (pid_t pid : pids)
			list += (list.empty() ? "" : ",") + std::to_string(pid);
		recorder = std::make_unique<Process>(std::vector<std::string>{
		    program("forktail"), "record", "--pid", list, "-o", dir.file("server.forktail")});
		REQUIRE(eventually(
		    [&] { return recorder->err().find("recording ") == 0 || !recorder->running(); },
		    Seconds(60)));
		INFO(recorder->err());
		REQUIRE(recorder->running());
		std::vector<std::string> argv = {
		    program("forktail"), "load", "-q", "--no-observer", "--rate", "1500",
		    "--duration",	 "120",	 "-r", "100000",	"-o",	  dir.file("load.forktail")};
		argv.insert(argv.end(), where.begin(), where.end());
		load = std::make_unique<Process>(argv);
		Go(1000);
	}
	// Waits until each instance has served this many more.
	void Go(unsigned long long commands)
	{
		for (auto &s : servers) {
			const auto served = [&] { return std::stoull(s->info("total_commands_processed")); };
			const auto before = served();
			REQUIRE(eventually([&] { return served() > before + commands; }, Seconds(60)));
		}
	}
	void Stop()
	{
		load->signal(SIGINT);
		INFO(load->err());
		REQUIRE(load->wait(Seconds(60)) == 0);
		recorder->signal(SIGINT);
		REQUIRE(recorder->wait(Seconds(60)) == 0);
	}
	Json Explain(const std::string &slow) const
	{
		const Result r = forktail::test::run(
		    {program("forktail"), "explain", dir.path(), "--json", "--requests", "--slow", slow});
		INFO(r.err);
		REQUIRE(r.status == 0);
		return parse_json(r.out);
	}
	std::string Text() const
	{
		return forktail::test::run(
			   {program("forktail"), "explain", dir.path(), "--slow", "20ms", "--all"})
		    .out;
	}
};

struct Stopped {
	uint64_t from_ns, to_ns;
	bool holds(uint64_t t_ns) const { return from_ns <= t_ns && t_ns < to_ns; }
};

Stopped stop(Served &server)
{
	const uint64_t from = ft_now_ns();
	server.signal(SIGSTOP);
	sleep_for(Seconds(0.3));
	server.signal(SIGCONT);
	return {from, ft_now_ns()};
}

void check_parts(const Json &j)
{
	for (const Json &r : j["slow_requests"]) {
		uint64_t sum = 0;
		for (const Json &part : r["parts"])
			sum += part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
		REQUIRE(sum == r["latency_ns"].get<uint64_t>());
	}
	double share = 0;
	for (const Json &cause : j["causes"])
		share += cause["share"].get<double>();
	CHECK(share == Approx(1.0));
}

// The episode with the most time among those that contain an instant of this interval.
Json episode_in(const Json &j, const Stopped &s)
{
	Json worst;
	for (const Json &e : j["episodes"]) {
		const uint64_t start = e["start_ns"], end = start + e["duration_ns"].get<uint64_t>();
		if (start < s.to_ns && end > s.from_ns &&
		    (worst.is_null() || e["time_ns"] > worst["time_ns"]))
			worst = e;
	}
	return worst;
}

std::string evidence(const Json &episode)
{
	std::string text;
	for (const Json &sentence : episode["evidence"])
		text += sentence.get<std::string>() + "\n";
	return text;
}

// For requests due in an interval: how long they were stopped, by place, in ms.
std::map<std::string, double> stopped_at(const Json &j, const Stopped &s, const std::string &behind)
{
	std::map<std::string, double> at;
	for (const Json &r : j["slow_requests"]) {
		if (!s.holds(r["start_ns"]) || (!behind.empty() && r.value("behind", "") != behind))
			continue;
		for (const Json &part : r["parts"])
			if (part["cause"] == "stopped")
				at[part.value("hop", "")] +=
				    (part["direct_ns"].get<double>() + part["queued_ns"].get<double>()) / kMs;
	}
	return at;
}

} // namespace

TEST_CASE("a stall behind a proxy is found at its instance, the proxy's stall at the proxy")
{
	REQUIRE(root());
	Instances all;
	NutcrackerOptions options;
	options.tcp = true;
	std::string behind;
	for (size_t i = 0; i < all.addresses.size(); i++) {
		options.servers.push_back(all.addresses[i]);
		behind += (i ? ",server" : "server") + std::to_string(i) + "=" + all.addresses[i];
	}
	Nutcracker proxy(options);
	const std::string proxy_name = "nutcracker " + at_port(proxy.port()),
			  stopped_name = "redis-server " + all.addresses[1],
			  forked_name = "redis-server " + all.addresses[2];
	all.servers[2]->command({"DEBUG", "POPULATE", "2000000", "key", "100"});
	all.Run({proxy.pid()}, {"-p", std::to_string(proxy.port()), "--behind", behind, "-c", "600"});

	const Stopped instance = stop(*all.servers[1]);
	all.Go(200);
	const Stopped front = stop(proxy);
	all.Go(200);
	CHECK(all.servers[2]->command({"BGSAVE"}) == "Background saving started");
	CHECK(eventually([&] { return all.servers[2]->info("rdb_bgsave_in_progress") == "0"; }, Seconds(60)));
	all.Go(200);
	all.Stop();
	const Json slow = all.Explain("20ms"), every = all.Explain("1us");
	check_parts(slow);
	check_parts(every);

	{ // hops: each process once, with its requests
		REQUIRE(every["hops"].size() == 4);
		uint64_t served = 0, time = 0;
		for (const Json &h : every["hops"]) {
			INFO(h.dump());
			const bool is_proxy = h["name"] == proxy_name;
			CHECK(h["role"] == (is_proxy ? "proxy" : "instance"));
			CHECK((h["comm"] == "nutcracker") == is_proxy);
			if (is_proxy)
				CHECK(h["served"] == every["requests"]["count"]);
			else
				served += h["served"].get<uint64_t>();
			uint64_t causes = 0;
			for (const Json &c : h["causes"])
				causes += c["time_ns"].get<uint64_t>();
			CHECK(causes == h["time_ns"].get<uint64_t>());
			time += causes;
		}
		// Requests that were not sent have no server behind.
		CHECK(served + every["requests"]["by_status"].value("unsent", 0u) ==
		      every["requests"]["count"].get<uint64_t>());
		CHECK(time <= every["slow"]["time_ns"].get<uint64_t>());
	}
	{ // the stopped instance
		const Json e = episode_in(slow, instance);
		REQUIRE(!e.is_null());
		INFO(e.dump(1));
		CHECK(e["causes"][0]["cause"] == "stopped");
		CHECK(e["hops"][0]["name"] == stopped_name);
		CHECK(e["hops"][0]["share"].get<double>() > 0.9);
		CHECK(evidence(e).find(stopped_name + ": the server was stopped") != std::string::npos);
		const auto at = stopped_at(every, instance, all.addresses[1]);
		// 500 requests per second for 300 ms, each of which waited half of it on average.
		INFO(Json(at).dump());
		CHECK(at.size() == 1);
		CHECK(at.count(stopped_name) == 1);
		CHECK(at.begin()->second > 50 * 150);
		for (const std::string &other : {all.addresses[0], all.addresses[2]})
			CHECK(stopped_at(every, instance, other).empty());
	}
	{ // the stopped proxy: all of its requests, whichever server they were for
		const Json e = episode_in(slow, front);
		REQUIRE(!e.is_null());
		INFO(e.dump(1));
		CHECK(e["causes"][0]["cause"] == "stopped");
		CHECK(e["hops"][0]["name"] == proxy_name);
		CHECK(e["hops"][0]["share"].get<double>() > 0.9);
		CHECK(evidence(e).find(proxy_name + ": the server was stopped") != std::string::npos);
		for (const std::string &address : all.addresses) {
			const auto at = stopped_at(every, front, address);
			INFO(Json(at).dump());
			CHECK(at.size() == 1);
			CHECK(at.count(proxy_name) == 1);
		}
	}
	{ // the fork
		double forked = 0;
		for (const Json &r : every["slow_requests"])
			for (const Json &part : r["parts"])
				if (part["cause"] == "fork") {
					REQUIRE(part["hop"] == forked_name);
					forked += part["direct_ns"].get<double>();
				}
		CHECK(forked > 1 * kMs);
	}
	const std::string text = all.Text();
	INFO(text);
	CHECK(text.find("\nhop ") != std::string::npos);
	CHECK(text.find("\n" + proxy_name) != std::string::npos);
	CHECK(text.find("\n" + stopped_name) != std::string::npos);
}

TEST_CASE("a server that was not recorded is named, and the wait for it is not the network")
{
	REQUIRE(root());
	Redis redis({.tcp = true, .config = {}});
	NutcrackerOptions options;
	options.tcp = true;
	options.servers = {at_port(redis.port())};
	Nutcracker proxy(options);
	for (const bool with_requests : {false, true}) {
		// Without a load generator's log there are the requests that the kernel saw.
		std::vector<std::string> more, words = {program("forktail"),
							"load",
							"-q",
							"--no-observer",
							"-p",
							std::to_string(proxy.port()),
							"--rate",
							"1000",
							"--duration",
							"3",
							"-c",
							"100"};
		if (with_requests)
			more = {"--requests=1/1"};
		Recorder recorder(proxy.pid(), more);
		const std::string dir = std::filesystem::path(recorder.path()).parent_path();
		if (!with_requests)
			words.insert(words.end(), {"-o", dir + "/load.forktail"});
		Process load(words);
		sleep_for(Seconds(1.5));
		redis.signal(SIGSTOP);
		sleep_for(Seconds(0.3));
		redis.signal(SIGCONT);
		REQUIRE(load.wait(Seconds(60)) == 0);
		recorder.stop();
		const Json j =
		    parse_json(run({program("forktail"), "explain", dir, "--json"}, Seconds(60)).out);
		CHECK(j["requests"]["unrecorded_peers"] == Json({at_port(redis.port())}));
		const std::string answer = j["answer"];
		INFO(answer);
		CHECK(answer.find("no recorded cause") != std::string::npos);
		CHECK(answer.find("waiting for " + at_port(redis.port()) + ", which was not recorded") !=
		      std::string::npos);
	}
}

TEST_CASE("two proxies in front of the same instances: the time is found at the right one")
{
	REQUIRE(root());
	Instances all;
	NutcrackerOptions options;
	options.tcp = true;
	std::string behind;
	for (size_t i = 0; i < all.addresses.size(); i++) {
		options.servers.push_back(all.addresses[i]);
		behind += (i ? ",server" : "server") + std::to_string(i) + "=" + all.addresses[i];
	}
	Nutcracker one(options), other(options);
	const std::string one_name = "nutcracker " + at_port(one.port()),
			  stopped_name = "redis-server " + all.addresses[1];
	all.Run({one.pid(), other.pid()}, {"--server", at_port(one.port()), "--server", at_port(other.port()),
					   "--behind", behind, "-c", "300"});
	const Stopped instance = stop(*all.servers[1]);
	all.Go(200);
	const Stopped front = stop(one);
	all.Go(200);
	all.Stop();
	const Json slow = all.Explain("20ms");
	check_parts(slow);
	REQUIRE(slow["hops"].size() == 5);
	const Json behind_both = episode_in(slow, instance), at_one = episode_in(slow, front);
	REQUIRE(!behind_both.is_null());
	REQUIRE(!at_one.is_null());
	INFO(behind_both.dump(1) << at_one.dump(1));
	CHECK(behind_both["causes"][0]["cause"] == "stopped");
	CHECK(behind_both["hops"][0]["name"] == stopped_name);
	CHECK(behind_both["hops"][0]["share"].get<double>() > 0.9);
	CHECK(at_one["causes"][0]["cause"] == "stopped");
	CHECK(at_one["hops"][0]["name"] == one_name);
	CHECK(at_one["hops"][0]["share"].get<double>() > 0.9);
}

TEST_CASE("several instances without a proxy: each request's hop is that of its connection")
{
	REQUIRE(root());
	Instances all;
	std::vector<std::string> where = {"-c", "200"};
	for (const std::string &address : all.addresses)
		where.insert(where.end(), {"--server", address});
	all.Run({}, where);
	const Stopped instance = stop(*all.servers[1]);
	all.Go(200);
	all.Stop();
	const Json slow = all.Explain("20ms");
	check_parts(slow);
	REQUIRE(slow["hops"].size() == 3);
	const Json e = episode_in(slow, instance);
	REQUIRE(!e.is_null());
	INFO(e.dump(1));
	CHECK(e["hops"][0]["name"] == "redis-server " + all.addresses[1]);
	CHECK(e["causes"][0]["cause"] == "stopped");
	const auto at = stopped_at(slow, instance, "");
	CHECK(at.size() == 1);
	CHECK(at.count("redis-server " + all.addresses[1]) == 1);
}

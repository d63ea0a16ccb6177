// SPDX-License-Identifier: MIT
// Metrics and watch of a recorder with --requests: every request of real clients is counted exactly once, for
// its server and command, as the server itself counts it.
#include <csignal>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/live/http.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

// A recorder of a ring whose guard serves metrics.
struct RequestRing {
	TempDir dir;
	const std::string ring = dir.file("ring"), metrics = dir.file("metrics.sock");
	std::unique_ptr<Process> recorder;

	explicit RequestRing(const std::vector<std::string> &targets)
	{
		std::vector<std::string> words = {program("forktail-record"),
						  "--keep",
						  "1m,200MB",
						  "--requests=1/1",
						  "--metrics",
						  metrics,
						  "-o",
						  ring};
		words.insert(words.end(), targets.begin(), targets.end());
		recorder = std::make_unique<Process>(words);
		REQUIRE(eventually(
		    [&] {
			    return recorder->err().find("recording ") != std::string::npos &&
				   !Get(metrics).empty();
		    },
		    Seconds(30)));
	}
	std::string Text() const { return Body(Get(metrics)); }
	double Count(const std::string &server, const std::string &command,
		     const std::string &outcome = "ok") const
	{
		const double count =
		    Value(Text(), "forktail_request_seconds_count{server=\"" + server + "\",command=\"" +
				      command + "\",outcome=\"" + outcome + "\"}");
		return std::isnan(count) ? 0 : count;
	}
	// The guard reads twice a second what the recorder writes twice a second.
	bool Reaches(const std::string &server, const std::string &command, double count,
		     const std::string &outcome = "ok") const
	{
		return eventually([&] { return Count(server, command, outcome) >= count; }, Seconds(20));
	}
};

// The server's own count of a command's calls.
double Calls(Redis *redis, const std::string &command)
{
	const std::string text = redis->info("cmdstat_" + command);
	return text.rfind("calls=", 0) == 0 ? std::stod(text.substr(6)) : 0;
}

void Load(const std::vector<std::string> &words)
{
	std::vector<std::string> all = {"redis-benchmark", "-q"};
	all.insert(all.end(), words.begin(), words.end());
	const Result r = run(all, Seconds(120));
	INFO(r.err);
	REQUIRE(r.status == 0);
}

// Requests of a client in the last minute, as watch prints them.
double ClientCount(const std::string &ring, const std::string &name)
{
	const Result once = run({program("forktail"), "watch", ring, "--once", "--json"}, Seconds(30));
	INFO(once.err);
	REQUIRE(once.status == 0);
	const auto figures = parse_json(once.out);
	double count = 0;
	for (const auto &server : figures["servers"])
		for (const auto &client : server["clients"])
			count += client["client"] == name ? client["count"].get<double>() : 0;
	return count;
}

} // namespace

TEST_CASE("metrics count every request once, as the server does")
{
	REQUIRE(root());
	Redis tcp({.tcp = true}), local;
	RequestRing r({"--pid", std::to_string(tcp.pid()), "--pid", std::to_string(local.pid())});
	INFO(r.recorder->err());
	tcp.command({"CONFIG", "RESETSTAT"});
	local.command({"CONFIG", "RESETSTAT"});
	const std::string port = std::to_string(tcp.port());
	Load({"-p", port, "-t", "set,get", "-n", "20000", "-c", "10"});
	Load({"-p", port, "-t", "get", "-n", "60000", "-c", "7", "-P", "16"});
	Load({"-p", port, "-t", "set", "-n", "3000", "-c", "10", "-k", "0"});
	Load({"-s", local.socket(), "-t", "incr", "-n", "20000", "-c", "10"});

	REQUIRE(run({"sh", "-c",
		     "for i in $(seq 50); do echo HSET key:__rand_int__ f v; echo GET none; done | "
		     "redis-cli -p " +
			 port})
		    .status == 0);

	const std::string at_port = "redis-server:" + port, at_socket = "redis-server:" + local.socket();
	CHECK(Calls(&tcp, "get") == 80'050);
	CHECK(Calls(&tcp, "set") == 23'000);
	CHECK(r.Reaches(at_port, "GET", 80'000));
	CHECK(r.Reaches(at_port, "SET", 23'000));
	CHECK(r.Reaches(at_socket, "INCR", 20'000));
	CHECK(r.Reaches(at_port, "HSET", 50, "error"));
	CHECK(r.Reaches(at_port, "GET", 50, "miss"));
	sleep_for(Seconds(1.5)); // nothing more comes
	const std::string text = r.Text();
	INFO(text.substr(text.find("# HELP forktail_request_seconds"), 6000));
	CHECK(r.Count(at_port, "GET") == 80'000);
	CHECK(r.Count(at_port, "SET") == 23'000);
	CHECK(r.Count(at_socket, "INCR") == 20'000);
	CHECK(r.Count(at_socket, "GET") == 0);
	CHECK(r.Count(at_port, "HSET", "error") == 50);
	CHECK(r.Count(at_port, "HSET") == 0);
	CHECK(r.Count(at_port, "GET", "miss") == 50);
	CHECK(r.Count("other", "GET") == 0);
	CHECK(Value(text, "forktail_request_sample") == 1);
	CHECK(Value(text, "forktail_requests_recorded_seconds_total") > 1);
	const std::string get = "{server=\"" + at_port + "\",command=\"GET\",outcome=\"ok\"";
	CHECK(Value(text, "forktail_request_seconds_bucket" + get + ",le=\"+Inf\"}") == 80'000);
	CHECK(Value(text, "forktail_request_seconds_bucket" + get + ",le=\"1e-06\"}") == 0);
	CHECK(Value(text, "forktail_request_seconds_sum" + get + "}") > 80'000 * 1e-6);
	const Result checked = run({"promtool", "check", "metrics"}, Seconds(30), {{}, "", text});
	CHECK(checked.out + checked.err == "");

	// The same requests by client, once watch shows the second in which they ended. Each benchmark also
	// sends a few to learn the server's settings.
	double of_tcp = 0, of_local = 0;
	eventually(
	    [&] {
		    of_tcp = ClientCount(r.ring, "127.0.0.1");
		    of_local = ClientCount(r.ring, "redis-benchmark");
		    return of_tcp >= 103'100 && of_local >= 20'000;
	    },
	    Seconds(20));
	CHECK(of_tcp >= 103'100);
	CHECK(of_tcp < 103'200);
	CHECK(of_local >= 20'000);
	CHECK(of_local < 20'100);
}

TEST_CASE("requests of a server that begins later have its name at once")
{
	REQUIRE(root());
	const std::string port = std::to_string(free_port());
	const std::vector<std::string> server = {"redis-server", "--port", port, "--save", ""};
	const auto answers = [&] { return run({"redis-cli", "-p", port, "PING"}).out == "PONG\n"; };
	auto redis = std::make_unique<Process>(server);
	REQUIRE(eventually(answers, Seconds(10)));
	RequestRing r({"--port", port});
	INFO(r.recorder->err());
	Load({"-p", port, "-t", "set", "-n", "2000", "-c", "5"});
	redis->signal(SIGKILL);
	redis->wait(Seconds(10));
	redis = std::make_unique<Process>(server);
	REQUIRE(
	    eventually([&] { return r.recorder->err().find("began") != std::string::npos; }, Seconds(30)));
	REQUIRE(eventually(answers, Seconds(10)));
	sleep_for(Seconds(0.5));
	Load({"-p", port, "-t", "set", "-n", "3000", "-c", "5"});
	const std::string name = "redis-server:" + port;
	CHECK(r.Reaches(name, "SET", 5000));
	CHECK(r.Count(name, "SET") == 5000);
	CHECK(r.Count("other", "SET") == 0);
}

TEST_CASE("requests at a port that a server opens later have its name at once")
{
	REQUIRE(root());
	Redis redis;
	RequestRing r({"--pid", std::to_string(redis.pid())});
	INFO(r.recorder->err());
	const std::string port = std::to_string(free_port()), name = "redis-server:" + port;
	REQUIRE(redis.command({"CONFIG", "SET", "port", port}) == "OK");
	CHECK(eventually(
	    [&] {
		    Load({"-p", port, "-t", "set", "-n", "100", "-c", "5"});
		    sleep_for(Seconds(1));
		    return r.Count(name, "SET") + r.Count("other", "SET") > 0;
	    },
	    Seconds(30)));
	CHECK(r.Count(name, "SET") > 0);
	CHECK(r.Count("other", "SET") == 0);
}

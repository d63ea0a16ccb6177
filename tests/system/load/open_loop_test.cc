// SPDX-License-Identifier: MIT
// Properties of the open loop: requests are due by the clock and not by the server, each is sent and counted
// however late, and its latency includes its lateness.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

TEST_CASE("constant arrivals: as many as due, evenly spaced, none early")
{
	Redis redis;
	TempDir dir;
	const Result r = load({"-s", redis.socket(), "--rate", "5000", "--duration", "1", "-q", "-o",
			       dir.file("log"), "--json", dir.file("json"), "-c", "20"});
	REQUIRE(r.status == 0);
	const Log log = read_log(dir.file("log"));
	REQUIRE(log.requests.size() == 5000);
	const auto due = log.schedule();
	for (size_t i = 0; i < due.size(); i++)
		REQUIRE(due[i] == i * 200000);
	for (const ft_request &q : log.requests) {
		REQUIRE(q.start_ns >= q.intended_ns);
		REQUIRE(q.end_ns > q.start_ns);
		REQUIRE(q.status <= FT_STATUS_MISS);
	}
	CHECK(log.manifest["arrival"] == "constant");
	CHECK(log.manifest["rate"] == 5000);
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	CHECK(figures["exact"] == true);
	CHECK(figures["total"]["latency_ns"]["p99"] == percentile(log.latencies(), 99));
	CHECK(figures["total"]["latency_ns"]["max"] == log.latencies().back());
	CHECK(figures["sent_late_ns"]["max"].get<uint64_t>() > 0);
	CHECK(contains(r.out, "open loop at 5000/s (constant)"));
	CHECK(contains(r.out, "sent late"));
}

TEST_CASE("Poisson arrivals: the number due, and the same instants for the same seed")
{
	Redis redis;
	std::vector<std::vector<uint64_t>> due;
	for (const char *seed : {"11", "11", "12"}) {
		TempDir dir;
		const Result r =
		    load({"-s", redis.socket(), "--rate", "3000", "--arrival", "poisson", "--duration", "1",
			  "--threads", "2", "--seed", seed, "-q", "-o", dir.file("log")});
		REQUIRE(r.status == 0);
		due.push_back(read_log(dir.file("log")).schedule());
		CHECK(static_cast<double>(due.back().size()) == Approx(3000).margin(5 * 55));
	}
	CHECK(due[0] == due[1]);
	CHECK(due[0] != due[2]);
}

TEST_CASE("a number of requests ends an open loop too")
{
	Redis redis;
	TempDir dir;
	REQUIRE(load({"-s", redis.socket(), "--rate", "20000", "-n", "3001", "--threads", "2", "-q", "-o",
		      dir.file("log")})
		    .status == 0);
	CHECK(read_log(dir.file("log")).requests.size() == 3001);
}

TEST_CASE("a stalled server is charged for every request due meanwhile, and none is lost")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--rate", "2000", "--duration", "2", "-c", "10", "-q",
				"-o", dir.file("log"), "--json", dir.file("json")}));
	sleep_for(Seconds(0.7));
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.5));
	redis.process().signal(SIGCONT);
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Log log = read_log(dir.file("log"));
	REQUIRE(log.requests.size() == 4000);
	const auto due = log.schedule();
	for (size_t i = 0; i < due.size(); i++)
		REQUIRE(due[i] == i * 500000);
	CHECK(log.with_status(FT_STATUS_OK) + log.with_status(FT_STATUS_MISS) == 4000);
	// 1000 of 4000 were due in the half second, from 0.5 s before its end to its end: p90 is near 0.3 s.
	// A closed loop would have 10 slow requests, the p99.75 and above.
	const Json latency = parse_json(read_file(dir.file("json")))["runs"][0]["total"]["latency_ns"];
	CHECK(latency["max"].get<uint64_t>() >= 490000000);
	CHECK(latency["p99"].get<uint64_t>() >= 400000000);
	CHECK(latency["p90"].get<uint64_t>() >= 200000000);
}

TEST_CASE("with pipelining, idle connections are used before busy ones")
{
	Redis redis;
	TempDir dir;
	// Far fewer outstanding requests than connections: none ever has to wait behind another.
	REQUIRE(load({"-s", redis.socket(), "--rate", "200", "--duration", "1", "-c", "50", "-P", "16", "-q",
		      "-o", dir.file("log")})
		    .status == 0);
	const Log log = read_log(dir.file("log"));
	std::map<uint32_t, int> per_connection;
	for (const ft_request &q : log.requests)
		per_connection[q.connection]++;
	CHECK(per_connection.size() == 50);
	for (const auto &[id, n] : per_connection)
		CHECK(n == 4);
}

TEST_CASE("more than the server can handle: the backlog is sent and awaited after the end")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--rate", "4000", "--duration", "500ms", "-c", "1",
				"-q", "-o", dir.file("log")}));
	sleep_for(Seconds(0.2));
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.8)); // beyond the end
	redis.process().signal(SIGCONT);
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Log log = read_log(dir.file("log"));
	CHECK(log.requests.size() == 2000);
	CHECK(log.with_status(FT_STATUS_UNSENT) + log.with_status(FT_STATUS_TIMEOUT) == 0);
}

TEST_CASE("a server that is killed: what falls due until the planned end was never sent, and is in the log")
{
	for (const Arguments &plan :
	     std::vector<Arguments>{{"--duration", "2"},
				    {"-n", "2000", "--threads", "2"},
				    {"--duration", "2", "--blocking"},
				    {"--duration", "2", "--on-error", "reconnect", "--drain", "100ms"}}) {
		INFO(plan.front() << plan.size());
		Redis redis;
		TempDir dir;
		Arguments all = {"-s", redis.socket(),	"--rate", "1000",	   "-c", "4", "-q",
				 "-o", dir.file("log"), "--json", dir.file("json")};
		all.insert(all.end(), plan.begin(), plan.end());
		Process p(load_command(all));
		sleep_for(Seconds(0.5));
		redis.process().signal(SIGKILL);
		REQUIRE(p.wait(Seconds(30)) == 3);
		CHECK(contains(p.err(), "requests that were due by the planned end were never sent"));
		const Log log = read_log(dir.file("log"));
		CHECK(log.requests.size() == 2000);
		const size_t unsent = log.with_status(FT_STATUS_UNSENT);
		CHECK(unsent > 1000);
		uint64_t first_ns = UINT64_MAX, last_ns = 0, end_ns = 0;
		for (const ft_request &q : log.requests) {
			first_ns = std::min(first_ns, q.intended_ns);
			last_ns = std::max(last_ns, q.intended_ns);
			end_ns = std::max(end_ns, q.end_ns);
		}
		CHECK(last_ns - first_ns > 1990000000);
		for (const ft_request &q : log.requests)
			if (q.status == FT_STATUS_UNSENT)
				REQUIRE(q.end_ns + 10000000 >= last_ns); /* waited for the end */
		const Json run = parse_json(read_file(dir.file("json")))["runs"][0];
		CHECK(run["total"]["errors_by_kind"]["never sent"] == unsent);
		CHECK(run["error_times"]["never sent"]["count"] == unsent);
		CHECK(run["error_times"]["never sent"]["last_ns"] == last_ns);
	}
}

TEST_CASE("a server that never answers again: due requests are logged, unanswered or unsent, with their wait")
{
	Redis redis;
	TempDir dir;
	Process p(
	    load_command({"-s", redis.socket(), "--rate", "1000", "--duration", "1", "-c", "5", "--drain",
			  "300ms", "-q", "-o", dir.file("log"), "--json", dir.file("json")}));
	sleep_for(Seconds(0.5));
	redis.process().signal(SIGSTOP);
	REQUIRE(p.wait(Seconds(30)) == 3);
	CHECK(contains(p.err(), "were not answered"));
	const Log log = read_log(dir.file("log"));
	CHECK(log.whole());
	CHECK(log.requests.size() == 1000);
	CHECK(log.with_status(FT_STATUS_TIMEOUT) == 5);
	CHECK(log.with_status(FT_STATUS_UNSENT) > 300);
	for (const ft_request &q : log.requests)
		if (q.status == FT_STATUS_UNSENT)
			REQUIRE(q.end_ns - q.intended_ns >= 290000000);
	const Json total = parse_json(read_file(dir.file("json")))["runs"][0]["total"];
	CHECK(total["requests"] == 1000);
	CHECK(total["errors_by_kind"]["never sent"] == log.with_status(FT_STATUS_UNSENT));
	CHECK(total["latency_ns"]["p99"].get<uint64_t>() > 290000000);
	CHECK(contains(p.out(), "never sent"));
}

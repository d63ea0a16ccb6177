// SPDX-License-Identifier: MIT
// From a real server under real load to its explanation: stalls made by the test, one of each kind, must be
// reported with their names, times and lengths, and every account must add up.
#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <unistd.h>

#include "analysis/source.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr uint64_t ms = 1'000'000; // ns
constexpr double kMs = 1e6;

uint64_t Now()
{
	return ft_now_ns();
}

// A recorder and a load generator that write into one directory.
struct RealRun {
	TempDir dir;
	Redis server;
	std::unique_ptr<Process> recorder, load;

	explicit RealRun(const RedisOptions &options = {}) : server(options) {}

	void Record()
	{
		recorder = std::make_unique<Process>(std::vector<std::string>{
		    program("forktail"), "record", "--pid", std::to_string(server.pid()), "-o",
		    dir.file("server.forktail")});
		REQUIRE(eventually(
		    [&] { return recorder->err().find("recording ") == 0 || !recorder->running(); },
		    Seconds(60)));
		INFO(recorder->err());
		REQUIRE(recorder->running());
	}
	void Load(const std::vector<std::string> &more)
	{
		std::vector<std::string> argv = {
		    program("forktail"),      "load", "-q", "-s", server.socket(), "-o",
		    dir.file("load.forktail")};
		argv.insert(argv.end(), more.begin(), more.end());
		load = std::make_unique<Process>(argv);
	}
	void Stop()
	{
		if (load) {
			INFO(load->err());
			REQUIRE(load->wait(Seconds(120)) == 0);
		}
		recorder->signal(SIGINT);
		INFO(recorder->err());
		REQUIRE(recorder->wait(Seconds(60)) == 0);
	}
	Json Explain(const std::vector<std::string> &more) const
	{
		std::vector<std::string> argv = {program("forktail"), "explain", dir.path(), "--json"};
		argv.insert(argv.end(), more.begin(), more.end());
		Result r = run(argv);
		INFO(r.err);
		REQUIRE(r.status == 0);
		return parse_json(r.out);
	}
};

// The accounts of all threads, within 0.1 % of wall time (and a microsecond, for short-lived threads).
void CheckAccounts(const Json &explanation)
{
	REQUIRE(!explanation["account"]["threads"].empty());
	for (const Json &t : explanation["account"]["threads"]) {
		double wall = t["wall_ns"], accounted = t["accounted_ns"];
		INFO(t["role"] << " " << t["tid"] << ": wall " << wall << " ns, accounted " << accounted
			       << " ns");
		CHECK(std::abs(accounted - wall) <= wall * 0.001 + 1000);
	}
}

void CheckParts(const Json &explanation)
{
	size_t requests = 0;
	for (const Json &r : explanation["slow_requests"]) {
		uint64_t sum = 0;
		for (const Json &part : r["parts"])
			sum += part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
		REQUIRE(sum == r["latency_ns"].get<uint64_t>());
		requests++;
	}
	CHECK(requests == explanation["slow"]["count"]);
	double share = 0;
	for (const Json &cause : explanation["causes"])
		share += cause["share"].get<double>();
	CHECK(share == Approx(1.0));
}

// The episode that contains an instant, or null.
Json EpisodeAt(const Json &explanation, uint64_t t_ns)
{
	for (const Json &e : explanation["episodes"]) {
		uint64_t start = e["start_ns"], length = e["duration_ns"];
		if (start <= t_ns && t_ns < start + length)
			return e;
	}
	return nullptr;
}

// The most direct time of a cause in one request, in ns: that of a request due before the cause began,
// because one is due every half a millisecond.
double MostDirect(const Json &explanation, const std::string &cause)
{
	double most = 0;
	for (const Json &r : explanation["slow_requests"])
		for (const Json &part : r["parts"])
			if (part["cause"] == cause)
				most = std::max(most, part["direct_ns"].get<double>());
	return most;
}

// A cause's time in the serving thread's account, in ns.
double ServingTime(const Json &explanation, const std::string &cause)
{
	for (const Json &t : explanation["account"]["threads"])
		if (t["serving"] == true)
			return t["by_cause"].value(cause, 0.0);
	return 0;
}

// A load generator that waits for a CPU at the start takes its part of that request.
void CheckMostDirect(const Json &explanation, const std::string &cause)
{
	INFO(cause);
	CHECK(MostDirect(explanation, cause) <= ServingTime(explanation, cause) + 1 * kMs);
	CHECK(MostDirect(explanation, cause) >= ServingTime(explanation, cause) - 10 * kMs);
}

std::string EvidenceOf(const Json &episode)
{
	std::string text;
	for (const Json &sentence : episode["evidence"])
		text += sentence.get<std::string>() + "\n";
	return text;
}

// What the test did to the server, with the instant in its middle and its duration.
struct Stall {
	uint64_t middle_ns = 0;
	double length_ns = 0;
};

template <class Do> Stall During(Do act)
{
	uint64_t start = Now();
	act();
	uint64_t end = Now();
	return {start + (end - start) / 2, static_cast<double>(end - start)};
}

} // namespace

TEST_CASE("stalls made on purpose are named, with their length, at their time")
{
	if (geteuid() != 0) {
		WARN("SKIPPED: recording needs root");
		return;
	}
	RedisOptions options;
	options.config = {"--enable-debug-command", "yes", "--appendonly", "yes"};
	RealRun real(options);
	real.server.command({"DEBUG", "POPULATE", "2000000", "key", "100"});
	real.Record();
	real.Load({"--rate", "2000", "--duration", "120", "-c", "20", "-r", "2000000", "-d", "200", "--ratio",
		   "1:4"});
	sleep_for(Seconds(1.5));

	CHECK(real.server.command({"BGSAVE"}) == "Background saving started");
	uint64_t forked_ns = Now();
	CHECK(eventually([&] { return real.server.info("rdb_bgsave_in_progress") == "0"; }, Seconds(60)));
	double redis_fork_ns = std::stod(real.server.info("latest_fork_usec")) * 1000;
	sleep_for(Seconds(0.5));
	Stall stopped = During([&] {
		kill(real.server.pid(), SIGSTOP);
		sleep_for(Seconds(0.2));
		kill(real.server.pid(), SIGCONT);
	});
	sleep_for(Seconds(1));
	Stall asleep = During([&] { real.server.command({"DEBUG", "SLEEP", "0.15"}); });
	sleep_for(Seconds(1));
	Stall busy = During([&] {
		real.server.command(
		    {"EVAL", "local n = 0 for i = 1, 2e7 do n = n + i % 7 end return n", "0"});
	});
	sleep_for(Seconds(0.5));
	real.load->signal(SIGINT);
	real.Stop();
	Json all = real.Explain({"--requests", "--slow", "1us"}), slow = real.Explain({"--slow", "5ms"});

	CheckAccounts(all);
	CheckParts(all);
	CHECK(all["slow"]["count"] == all["requests"]["count"]);
	// Requests due when the load was ended may not have been sent.
	INFO(all["requests"].dump());
	CHECK(all["requests"]["errors"] == all["requests"]["by_status"].value("unsent", 0));
	for (const Json &d : all["drops"]["intervals"])
		// Runs that the kernel skipped, and samples for which a busy machine had no time, are not an
		// error here.
		CHECK((d["source"] == "missed" || d["source"] == "unwinding"));

	{ // SIGSTOP
		Json e = EpisodeAt(slow, stopped.middle_ns);
		REQUIRE(!e.is_null());
		INFO(e.dump(1));
		CHECK(e["causes"][0]["cause"] == "stopped");
		CHECK(EvidenceOf(e).find("the server was stopped (SIGSTOP) for") != std::string::npos);
		CHECK(ServingTime(all, "stopped") ==
		      Approx(stopped.length_ns).margin(0.1 * stopped.length_ns));
		CheckMostDirect(all, "stopped");
	}
	{ // a sleep
		Json e = EpisodeAt(slow, asleep.middle_ns);
		REQUIRE(!e.is_null());
		INFO(e.dump(1));
		CHECK(e["causes"][0]["cause"] == "sleep");
		CHECK(EvidenceOf(e).find("blocked in") != std::string::npos);
		// The kernel sleeps a little longer than requested, never shorter.
		CHECK(ServingTime(all, "sleep") >= 150 * kMs);
		CHECK(ServingTime(all, "sleep") <= asleep.length_ns);
		CheckMostDirect(all, "sleep");
	}
	{ // a slow command
		Json e = EpisodeAt(slow, busy.middle_ns);
		REQUIRE(!e.is_null());
		INFO(e.dump(1));
		// On a busy machine it may have waited for a CPU as well. The time it ran was its own code.
		std::map<std::string, double> shares;
		for (const Json &cause : e["causes"])
			shares[cause["cause"]] = cause["share"];
		CHECK(shares["server-busy"] + shares["run-queue"] > 0.9);
		CHECK(shares["server-busy"] > 0.1);
		CHECK(EvidenceOf(e).find("in one event-loop iteration of") != std::string::npos);
	}
	{ // the fork of a snapshot, equal to Redis' figure
		forktail::analysis::Run run;
		std::string error;
		REQUIRE(forktail::analysis::LoadRun(real.dir.path(), &run, &error));
		const ft_span *fork = nullptr;
		for (const ft_span &s : run.spans)
			if (s.owner == FT_FORK && !s.off_cpu &&
			    s.tid == static_cast<uint32_t>(real.server.pid()) && s.start_ns < forked_ns &&
			    (!fork || s.start_ns > fork->start_ns))
				fork = &s;
		REQUIRE(fork);
		// Redis reads its clock before and after. A CPU wait in between is in its figure and not in
		// the fork's.
		uint64_t wait_ns = 0;
		for (const ft_span &s : run.spans)
			if (s.tid == fork->tid && s.off_cpu && s.depth == 0 &&
			    s.start_ns + s.duration_ns + ms > fork->start_ns &&
			    s.start_ns < fork->start_ns + fork->duration_ns + ms)
				wait_ns += s.runnable_ns;
		INFO("recorded " << fork->duration_ns << " ns and " << wait_ns
				 << " ns of CPU waits next to it; Redis reports " << redis_fork_ns << " ns");
		double recorded = static_cast<double>(fork->duration_ns),
		       waited = static_cast<double>(wait_ns);
		CHECK(redis_fork_ns >= recorded * 0.9);
		CHECK(redis_fork_ns <= (recorded + waited) * 1.1 + 0.3 * kMs);
		// A request due at its beginning waited for all of it.
		Json all_causes = all["causes"];
		std::map<std::string, double> times;
		for (const Json &cause : all_causes)
			times[cause["cause"]] = cause["time_ns"];
		CHECK(times["fork"] > 0);
		CHECK(times["cow-copy"] > 0);
		std::string half = std::to_string(fork->duration_ns / 2) + "ns";
		Json e = EpisodeAt(real.Explain({"--slow", half}), fork->start_ns + fork->duration_ns / 2);
		REQUIRE(!e.is_null());
		CHECK(EvidenceOf(e).find("as BGSAVE started snapshot child") != std::string::npos);
	}
}

TEST_CASE("another client leaves no request log, and stalls are found anyway")
{
	if (geteuid() != 0) {
		WARN("SKIPPED: recording needs root");
		return;
	}
	RedisOptions options;
	options.config = {"--enable-debug-command", "yes"};
	RealRun real(options);
	real.Record();
	Process client({"redis-benchmark", "-s", real.server.socket(), "-c", "10", "-n", "100000000", "-q",
			"-t", "get"});
	sleep_for(Seconds(1));
	Stall asleep = During([&] { real.server.command({"DEBUG", "SLEEP", "0.15"}); });
	sleep_for(Seconds(0.5));
	client.signal(SIGTERM);
	client.wait(Seconds(10));
	real.Stop();

	Json j = real.Explain({});
	CHECK(j["requests"]["from"] == "iterations");
	CHECK(j["slow"]["threshold_ns"] == 1'000'000);
	CheckAccounts(j);
	Json e = EpisodeAt(j, asleep.middle_ns);
	REQUIRE(!e.is_null());
	INFO(e.dump(1));
	CHECK(e["causes"][0]["cause"] == "sleep");
	CHECK(e["worst_ns"].get<double>() == Approx(asleep.length_ns).margin(0.1 * asleep.length_ns));
	Result text = run({program("forktail"), "explain", real.dir.path(), "--all"});
	CHECK(text.status == 0);
	CHECK(text.out.find("No request log: stalls are found from") != std::string::npos);
}

TEST_CASE("another client does not notice a server that was woken late; its iterations show it")
{
	if (geteuid() != 0) {
		WARN("SKIPPED: recording needs root");
		return;
	}
	RealRun real;
	const std::string pid = std::to_string(real.server.pid());
	REQUIRE(run({"taskset", "-a", "-cp", "0", pid}).status == 0);
	// Real-time priority, so that the server, which is woken for every request, has to wait.
	Process hog({"taskset", "-c", "0", "chrt", "-f", "1", "sh", "-c",
		     "while :; do i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; sleep 0.02; done"});
	real.Record();
	Process client({"taskset", "-c", "1", "redis-benchmark", "-s", real.server.socket(), "-c", "1", "-n",
			"2000", "-q", "-t", "get"});
	client.wait(Seconds(60));
	real.Stop();

	Json j = real.Explain({"--slow", "1ms"});
	CHECK(j["requests"]["from"] == "iterations");
	REQUIRE(j["slow"]["count"].get<int>() > 0);
	INFO(j["causes"].dump(1));
	CHECK(j["causes"][0]["cause"] == "run-queue");
}

TEST_CASE("a server that dies under load leaves a run that can be explained")
{
	if (geteuid() != 0) {
		WARN("SKIPPED: recording needs root");
		return;
	}
	RealRun real;
	real.Record();
	real.Load({"--rate", "1000", "--duration", "3", "-c", "5"});
	sleep_for(Seconds(1.5));
	real.server.process().signal(SIGKILL);
	real.load->wait(Seconds(60));
	real.load.reset();
	real.recorder->signal(SIGINT);
	CHECK(real.recorder->wait(Seconds(60)).has_value());

	Json j = real.Explain({"--requests"});
	CheckParts(j);
	CheckAccounts(j);
	CHECK(j["requests"]["errors"].get<uint64_t>() > 0);
	CHECK(j["requests"]["count"].get<uint64_t>() > 1000);
}

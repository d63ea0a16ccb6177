// SPDX-License-Identifier: MIT
// A load generator on the server's host. The recorder traces when its threads run, unless disabled. A
// disturbance by the test is named as the load generator's and never as the server's.
#include <chrono>
#include <csignal>
#include <sched.h>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/recorded.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr double kMs = 1e6;

struct Disturbed {
	Json explanation; // of requests that took at least 20 ms
	Recorded recorded;
	std::string text; // the same as text
};

struct How {
	bool before = false; // whether the load starts before the recording, or during it
	std::vector<std::string> record = {};
	// For 200 ms during its work: it is stopped, or a SCHED_FIFO task takes its CPU.
	bool starved = false;
};

uint64_t served(Redis *server)
{
	return std::stoull(server->info("total_commands_processed"));
}

void await(Redis *server, uint64_t more)
{
	const uint64_t then = served(server);
	REQUIRE(eventually([&] { return served(server) > then + more; }, Seconds(60)));
}

// Takes a CPU for 200 ms from all tasks except the kernel's own. It ends by its own clock, and if that fails
// by the kernel's, because a task on the same CPU could not end it.
[[noreturn]] void take_cpu(int cpu)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
	const rlimit at_most = {400000, 400000}; // us
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_param priority = {};
	priority.sched_priority = 50;
	if (setrlimit(RLIMIT_RTTIME, &at_most) || sched_setaffinity(0, sizeof one, &one) ||
	    sched_setscheduler(0, SCHED_FIFO, &priority))
		_exit(1);
	while (std::chrono::steady_clock::now() < end) {
	}
	_exit(0);
}

void disturb(Process *load, bool starved)
{
	if (starved) {
		const pid_t hog = fork();
		int status = -1;
		if (hog == 0)
			take_cpu(1);
		REQUIRE(waitpid(hog, &status, 0) == hog);
		REQUIRE(status == 0);
		return;
	}
	load->signal(SIGSTOP);
	sleep_for(Seconds(0.2));
	load->signal(SIGCONT);
}

Disturbed disturbed_load(const How &how)
{
	TempDir dir;
	Redis server;
	std::vector<std::string> load_argv = {"taskset",
					      "-c",
					      "1",
					      program("forktail-load"),
					      "-q",
					      "-s",
					      server.socket(),
					      "--rate",
					      "2000",
					      "-c",
					      "4",
					      "-o",
					      dir.file("load.forktail"),
					      "--duration",
					      "120"};
	REQUIRE(run({"taskset", "-cp", "0", std::to_string(server.pid())}).status == 0);
	std::unique_ptr<Process> load;
	if (how.before)
		load = std::make_unique<Process>(load_argv);
	std::vector<std::string> record_argv = {
	    program("forktail"),	  "record", "--pid",
	    std::to_string(server.pid()), "-o",	    dir.file("server.forktail")};
	record_argv.insert(record_argv.end(), how.record.begin(), how.record.end());
	Process recorder(record_argv);
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	if (!how.before)
		load = std::make_unique<Process>(load_argv);
	await(&server, 2000);
	disturb(load.get(), how.starved);
	await(&server, 1000);
	load->signal(SIGINT);
	INFO(load->err());
	REQUIRE(load->wait(Seconds(60)) == 0);
	CHECK(recorder.running()); // a load generator's end is not a target's end
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
	const std::vector<std::string> explain = {program("forktail"), "explain", dir.path(), "--slow",
						  "20ms"};
	std::vector<std::string> json = explain;
	std::vector<std::string> all = explain;
	json.insert(json.end(), {"--json", "--requests"});
	all.push_back("--all");
	const Result r = run(json), text = run(all);
	INFO(r.err);
	REQUIRE(r.status == 0);
	REQUIRE(text.status == 0);
	return {parse_json(r.out), read_recording(dir.file("server.forktail")), text.out};
}

// Accounts add up, and belong to the load generator where they are marked so. Returns the time of `cause` in
// its thread.
double check_accounts(const Json &j, const std::string &cause)
{
	double longest = 0;
	for (const Json &t : j["account"]["threads"]) {
		const double wall = t["wall_ns"], accounted = t["accounted_ns"];
		INFO(t.dump());
		CHECK(std::abs(accounted - wall) <= wall * 0.001 + 1000);
		CHECK((t["client"] == true) == (t["role"] == "load generator"));
		CHECK(!(t["client"] == true && t["serving"] == true));
		if (t["client"] == true && t["comm"] == "load-0")
			longest = std::max(longest, t["by_cause"].value(cause, 0.0));
	}
	return longest;
}

// The episode of the request that had most of `cause` itself, its time of that, and its evidence.
struct Worst {
	Json episode;
	double ns = 0;
	std::string text;
};

Worst worst_of(const Json &j, const std::string &cause)
{
	Worst worst;
	for (const Json &r : j["slow_requests"]) {
		uint64_t sum = 0;
		for (const Json &part : r["parts"]) {
			sum += part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
			if (part["cause"] == cause && part["direct_ns"].get<double>() > worst.ns) {
				worst.ns = part["direct_ns"];
				worst.episode = j["episodes"][r["episode"].get<size_t>()];
			}
		}
		REQUIRE(sum == r["latency_ns"].get<uint64_t>());
	}
	REQUIRE(!worst.episode.is_null());
	for (const Json &sentence : worst.episode["evidence"])
		worst.text += sentence.get<std::string>() + "\n";
	return worst;
}

void check_late(const Disturbed &d, const std::string &cause, const std::string &evidence)
{
	CHECK(check_accounts(d.explanation, cause) >= 150 * kMs);
	// The request with the longest own wait for the load generator was due when the disturbance began.
	const Worst worst = worst_of(d.explanation, "client-late");
	INFO(worst.episode.dump(1));
	CHECK(worst.ns >= 150 * kMs);
	CHECK(worst.episode["causes"][0]["cause"] == "client-late");
	for (const Json &c : worst.episode["causes"])
		CHECK(c["cause"] != "stopped"); // the server was never late
	CHECK(worst.text.find("the load generator's thread load-0 (") != std::string::npos);
	CHECK(worst.text.find(evidence) != std::string::npos);
	CHECK(d.text.find("did not run") == std::string::npos); // the known disturbance
}

} // namespace

TEST_CASE("a load generator that starts during the recording and is stopped is late by itself")
{
	REQUIRE(root());
	check_late(disturbed_load({}), "stopped", "was stopped by SIGSTOP for ");
}

TEST_CASE("so is one that ran before, and only its run states are traced")
{
	REQUIRE(root());
	How how;
	how.before = true;
	const Disturbed d = disturbed_load(how);
	check_late(d, "stopped", "was stopped by SIGSTOP for ");

	std::set<uint32_t> clients;
	for (const auto &[key, t] : d.recorded.threads)
		if (t.flags & FT_THREAD_CLIENT)
			clients.insert(t.tid);
	CHECK(clients.size() >= 2); // its main thread and its load thread
	for (const ft_span &s : d.recorded.spans)
		CHECK(!(clients.count(s.tid) && !s.off_cpu)); // no faults, interrupts, calls or iterations
	const uint32_t softirqs = FT_SOFTIRQ;
	for (const ft_tally &t : d.recorded.tallies) {
		const bool interrupt =
		    t.owner == FT_HARDIRQ || (t.owner >= softirqs && t.owner < softirqs + FT_SOFTIRQ_VECTORS);
		CHECK(!(clients.count(t.tid) &&
			(interrupt || t.owner == FT_PAGE_ZERO || t.owner == FT_PAGE_FILE)));
	}
	for (const ft_cpu_sample &s : d.recorded.cpu_samples)
		CHECK(!clients.count(s.tid));
}

TEST_CASE("a load generator whose CPU is taken is late by itself, and the CPU holder is named")
{
	REQUIRE(root());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		WARN("SKIPPED: needs a second CPU");
		return;
	}
	How how;
	how.starved = true;
	check_late(disturbed_load(how), "run-queue", " for a CPU, held by ");
}

TEST_CASE("without its threads, an answer that it did not read is network, with a note")
{
	REQUIRE(root());
	How how;
	how.before = true;
	how.record = {"--no-client"};
	const Disturbed d = disturbed_load(how);
	for (const auto &[key, t] : d.recorded.threads)
		CHECK(!(t.flags & FT_THREAD_CLIENT));
	CHECK(check_accounts(d.explanation, "stopped") == 0);
	for (const Json &r : d.explanation["slow_requests"])
		for (const Json &part : r["parts"])
			CHECK(part["cause"] != "stopped");
	// Lateness before sending is known from the log alone.
	const Worst worst = worst_of(d.explanation, "client-late");
	INFO(worst.text);
	CHECK(worst.ns >= 100 * kMs);
	CHECK(worst.text.find("the load generator sent requests late, by ") != std::string::npos);
	CHECK(d.text.find("the load generator's thread") == std::string::npos);
}

TEST_CASE("a load generator can be the target of a recording")
{
	REQUIRE(root());
	Redis server;
	// Without a rate, so that it is on the CPU when samples are taken, and with one connection, so that
	// it waits.
	Process load({program("forktail-load"), "-q", "-s", server.socket(), "-c", "1", "--duration", "120"});
	await(&server, 100);
	Recorder recorder(load.pid());
	await(&server, 30000);
	const Recorded r = recorder.stop();
	CHECK(r.count(static_cast<uint32_t>(load.pid()), FT_IDLE) > 0);
	CHECK(!r.cpu_samples.empty());
	for (const auto &[key, t] : r.threads)
		CHECK(!(t.tgid == static_cast<uint32_t>(load.pid()) && (t.flags & FT_THREAD_CLIENT)));
}

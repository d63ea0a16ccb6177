// SPDX-License-Identifier: MIT
// A load generator that requests arrival times. The time that answers wait unread while it is stopped is its
// own, to the nanosecond and without recording it. The server's time is not.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/load/background.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t kMs = 1'000'000;

bool stopped(pid_t pid)
{
	return read_file("/proc/" + std::to_string(pid) + "/stat").find(") T ") != std::string::npos;
}

// The times of the test's actions: both were stopped; the server continued, had answered; the load continued.
struct Instants {
	uint64_t server_on, answered, load_on;
};

// Every connection has a request at a server that does not answer. Then answers arrive at a load generator
// that does not read.
Instants stop_both(Redis &server, BackgroundLoad &load)
{
	Instants at = {};
	server.process().signal(SIGSTOP);
	REQUIRE(eventually([&] { return stopped(server.pid()); }, Seconds(10)));
	sleep_for(Seconds(0.05));
	load.process->signal(SIGSTOP);
	REQUIRE(eventually([&] { return stopped(load.process->pid()); }, Seconds(10)));
	at.server_on = ft_now_ns();
	server.process().signal(SIGCONT);
	// Earlier requests are answered in the event-loop iteration that has the first of these.
	for (int i = 0; i < 2; i++)
		REQUIRE(server.command({"PING"}) == "PONG");
	at.answered = ft_now_ns();
	sleep_for(Seconds(0.03));
	at.load_on = ft_now_ns();
	load.process->signal(SIGCONT);
	return at;
}

Arguments closed_load(const Redis &server)
{
	return {"-p", std::to_string(server.port()), "-c", "4", "-l", "--arrival-times"};
}

void end(BackgroundLoad &load)
{
	sleep_for(Seconds(1.2)); // more than one block of the log
	load.process->signal(SIGINT);
	load.end();
}

} // namespace

TEST_CASE("an answer that arrives while the load generator is stopped is unread until it continues")
{
	Redis server({.tcp = true, .config = {"--enable-debug-command", "yes"}});
	BackgroundLoad load(closed_load(server));
	load.under_way();
	const Instants at = stop_both(server, load);
	sleep_for(Seconds(0.1));
	const uint64_t asked = ft_now_ns();
	server.command({"DEBUG", "SLEEP", "0.05"}); // the control: a server that is late
	const uint64_t awake = ft_now_ns();
	end(load);

	size_t known = 0, unread = 0, slept = 0;
	for (const ft_request &q : load.log.requests) {
		known += q.arrival_ns != 0;
		if (q.arrival_ns) {
			REQUIRE(q.arrival_ns >= q.start_ns);
			REQUIRE(q.arrival_ns <= q.end_ns);
		}
		if (q.start_ns < at.server_on && q.end_ns > at.load_on) {
			unread++;
			INFO(q.start_ns << " " << q.arrival_ns << " " << q.end_ns << ", on at "
					<< at.load_on);
			CHECK(q.arrival_ns >= at.server_on);
			CHECK(q.arrival_ns <= at.answered);
		}
		if (q.start_ns < awake && q.end_ns > asked && q.end_ns - q.start_ns >= 40 * kMs) {
			slept++; // also a request sent a little after the sleep began
			CHECK(q.arrival_ns > asked + 50 * kMs);
		}
	}
	CHECK(unread == 4);
	CHECK(slept >= 4);
	// The first ones may have been sent before the kernel began to stamp.
	CHECK(known > load.log.requests.size() * 9 / 10);
	CHECK(load.log.manifest["arrival_times"] == true);
	const Json &arrivals = load.figures["by_arrival"];
	CHECK(arrivals["latency_ns"]["count"] == known);
	CHECK(arrivals["unread_ns"]["max"].get<uint64_t>() >= 29 * kMs);
	CHECK(load.out().find("time until answers arrived (ms") != std::string::npos);
	CHECK(load.out().find("socket-buffer wait (ms)") != std::string::npos);
}

TEST_CASE("without the option there are no arrival times")
{
	Redis server({.tcp = true, .config = {}});
	BackgroundLoad load({"-p", std::to_string(server.port()), "-n", "1000"});
	load.end();
	for (const ft_request &q : load.log.requests)
		REQUIRE(q.arrival_ns == 0);
	CHECK(load.figures.count("by_arrival") == 0);
	CHECK(load.out().find("arrived") == std::string::npos);
}

TEST_CASE("arrival times of pipelined, blocking and reopened connections, and of long answers")
{
	Redis server({.tcp = true, .config = {}});
	for (const Arguments &how : {Arguments{"-P", "16"},
				     {"--blocking", "-c", "2"},
				     {"--reconnect", "50"},
				     {"-d", "300000", "-t", "get", "-n", "2000"}}) {
		Arguments arguments = {"-n", "5000", "--arrival-times", "-p", std::to_string(server.port())};
		arguments.insert(arguments.end(), how.begin(), how.end());
		BackgroundLoad load(arguments);
		load.end();
		size_t known = 0;
		for (const ft_request &q : load.log.requests) {
			known += q.arrival_ns != 0;
			REQUIRE((!q.arrival_ns || (q.arrival_ns >= q.start_ns && q.arrival_ns <= q.end_ns)));
		}
		INFO(how[0]);
		CHECK(known > load.log.requests.size() / 2);
	}
}

TEST_CASE("explained: unread time is client-late, exactly, and the server's stop is not")
{
	REQUIRE(root());
	TempDir dir;
	Redis server({.tcp = true, .config = {}});
	BackgroundLoad load(closed_load(server));
	load.under_way();
	Process recorder({program("forktail"), "record", "--pid", std::to_string(server.pid()), "-o",
			  dir.file("server.forktail")});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	sleep_for(Seconds(0.3));
	const Instants at = stop_both(server, load);
	end(load);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
	std::filesystem::copy_file(load.dir.file("log"), dir.file("load.forktail"));
	const Result r =
	    run({program("forktail"), "explain", dir.path(), "--json", "--requests", "--slow", "20ms"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json j = parse_json(r.out);
	CHECK(j["requests"]["by_arrival"]["count"].get<uint64_t>() > 1000);
	CHECK(j["requests"]["by_arrival"]["longest_unread_ns"].get<uint64_t>() >= 29 * kMs);

	size_t found = 0;
	for (const Json &q : j["slow_requests"]) {
		const uint64_t start = q["start_ns"], end_ns = start + q["latency_ns"].get<uint64_t>();
		if (start >= at.server_on || end_ns <= at.load_on)
			continue;
		found++;
		uint64_t late = 0, at_server = 0, sum = 0;
		for (const Json &part : q["parts"]) {
			const uint64_t ns =
			    part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
			sum += ns;
			late += part["cause"] == "client-late" ? ns : 0;
			at_server += part["cause"] == "stopped" ? ns : 0;
		}
		INFO(q.dump(1));
		const uint64_t unread = end_ns - q["arrived_ns"].get<uint64_t>();
		CHECK(sum == q["latency_ns"].get<uint64_t>());
		CHECK(late >= unread);
		CHECK(late < unread + 5 * kMs);
		CHECK(unread >= 29 * kMs);
		CHECK(at_server >= 45 * kMs);
		const Json &episode = j["episodes"][q["episode"].get<size_t>()];
		CHECK(episode["answers"]["known"].get<uint64_t>() >= 4);
		std::string text;
		for (const Json &sentence : episode["evidence"])
			text += sentence.get<std::string>() + "\n";
		INFO(text);
		CHECK(text.find("replies were unread at the client for ") != std::string::npos);
	}
	CHECK(found == 4);
	const Result text = run({program("forktail"), "explain", dir.path(), "--all"});
	CHECK(text.out.find("Until replies arrived at the client: p50 ") != std::string::npos);
}

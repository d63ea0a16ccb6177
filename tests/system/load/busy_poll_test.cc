// SPDX-License-Identifier: MIT
// Load threads that never sleep generate the same load as others, in every way of sending, and do not sleep.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/load/background.h"

using namespace forktail::test;

namespace
{

// How often the load thread of a process gave up its CPU to wait.
long sleeps(pid_t pid)
{
	for (const auto &task :
	     std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
		if (read_file(task.path() / "comm") != "load-0\n")
			continue;
		const std::string status = read_file(task.path() / "status"),
				  name = "\nvoluntary_ctxt_switches:";
		return std::stol(status.substr(status.find(name) + name.size()));
	}
	return -1;
}

} // namespace

TEST_CASE("a thread that never sleeps does not, neither between requests nor for answers")
{
	if (!two_cpus())
		return;
	Redis server;
	const auto served = [&] { return std::stoull(server.info("total_commands_processed")); };
	for (const bool busy : {true, false}) {
		Arguments arguments = {"-s", server.socket(), "-l", "--rate", "2000", "-c", "4"};
		if (busy)
			arguments.push_back("--busy-poll");
		BackgroundLoad load(arguments);
		load.under_way();
		const long before = sleeps(load.process->pid());
		REQUIRE(before >= 0);
		const uint64_t then = served();
		REQUIRE(eventually([&] { return served() > then + 2000; }, Seconds(30)));
		const long slept = sleeps(load.process->pid()) - before;
		INFO((busy ? "busy" : "sleeping") << ": " << slept);
		CHECK((slept < 100) == busy); // others sleep once or twice per request
		load.process->signal(SIGINT);
		load.end();
		CHECK(load.log.manifest["busy_poll"] == busy);
	}
}

TEST_CASE("everything due is sent, nothing early, and runs end as usual")
{
	if (!two_cpus())
		return;
	Redis server({.tcp = true, .config = {}});
	for (const Arguments &how :
	     {Arguments{"-n", "3000"},
	      {"-n", "3000", "-P", "8"},
	      {"--rate", "3000", "--duration", "1"},
	      {"--rate", "3000", "-n", "3000", "--reconnect", "100"},
	      {"-n", "300", "-c", "3", "--think", "2ms"},
	      {"-n", "3000", "--arrival-times", "-p", std::to_string(server.port())}}) {
		Arguments arguments = {"--busy-poll"};
		arguments.insert(arguments.end(), how.begin(), how.end());
		if (how.size() < 2 || how[how.size() - 2] != "-p")
			arguments.insert(arguments.end(), {"-s", server.socket()});
		BackgroundLoad load(arguments);
		load.end();
		INFO(how[0] << " " << how[1]);
		CHECK(load.log.requests.size() == (how[1] == "300" ? 300 : 3000));
		CHECK(load.total["errors"] == 0);
		for (const ft_request &q : load.log.requests)
			REQUIRE(q.start_ns >= q.intended_ns);
	}
	// It does not wait longer than others for a server that does not answer.
	BackgroundLoad load({"--busy-poll", "-s", server.socket(), "--rate", "1000", "--duration", "1",
			     "--drain", "500ms", "-c", "2"});
	load.under_way();
	server.process().signal(SIGSTOP);
	const auto status = load.process->wait(Seconds(60));
	server.process().signal(SIGCONT);
	CHECK(status.has_value());
	CHECK(read_log(load.dir.file("log")).requests.size() == 1000);
}

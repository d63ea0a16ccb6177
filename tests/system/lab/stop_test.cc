// SPDX-License-Identifier: MIT
// A demo is ended in different ways at any time: no process, no temporary data and no incomplete run
// directory is left.
#include <csignal>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
namespace fs = std::filesystem;

namespace
{

// For a demo that has ended by itself: it cleans up before it ends.
void CheckNothingLeft(const LabRun &demo)
{
	CHECK(demo.Alive() == std::vector<std::string>{});
	CHECK(demo.Left() == std::vector<std::string>{});
	CHECK_FALSE(fs::exists(demo.run));
}

struct Moment {
	const char *said;
	double later;
	size_t alive; // the processes at that time: the lab, its keeper, redis-server ...
};
const Moment kMoments[] = {
    {"filling it", 0, 3}, {"filling it", 0.3, 3},   {"starting the recorder", 0, 3},
    {"load:", 0, 4},	  {"BGSAVE started", 0, 6},
};

bool Reached(LabRun &demo, const Moment &moment)
{
	bool said = demo.Says(moment.said);
	sleep_for(Seconds(moment.later));
	return said;
}

} // namespace

TEST_CASE("Ctrl-C and SIGTERM at any moment leave nothing behind")
{
	auto moment = GENERATE(from_range(std::begin(kMoments), std::end(kMoments)));
	int signal = GENERATE(SIGINT, SIGTERM);
	LabRun demo;
	bool said = Reached(demo, moment);
	size_t alive = demo.Alive().size();
	demo.lab->signal(signal);
	auto status = demo.lab->wait(Seconds(20));
	INFO("at \"" << moment.said << "\", signal " << signal << "\n" << demo.lab->err());
	REQUIRE(said);
	CHECK(alive >= moment.alive);
	CHECK(status == 128 + signal);
	CHECK(demo.lab->err().find("forktail lab: stopped by ") != std::string::npos);
	CheckNothingLeft(demo);
}

TEST_CASE("SIGINT right after the start leaves nothing behind")
{
	int delay_ms = GENERATE(0, 3, 10, 30, 100);
	LabRun demo;
	// Earlier, the signal would end the test's own fork.
	std::string comm = "/proc/" + std::to_string(demo.lab->pid()) + "/comm";
	REQUIRE(eventually([&] { return read_file(comm) == "forktail\n"; }));
	sleep_for(Seconds(delay_ms / 1000.0));
	demo.lab->signal(SIGINT);
	auto status = demo.lab->wait(Seconds(20));
	INFO("after " << delay_ms << " ms\n" << demo.lab->err());
	CHECK(status == 128 + SIGINT);
	CheckNothingLeft(demo);
}

TEST_CASE("kill -9 of the lab leaves nothing behind")
{
	auto moment = GENERATE(from_range(std::begin(kMoments), std::end(kMoments)));
	LabRun demo;
	bool said = Reached(demo, moment);
	demo.lab->signal(SIGKILL);
	auto status = demo.lab->wait(Seconds(20));
	INFO("at \"" << moment.said << "\"\n" << demo.lab->err());
	REQUIRE(said);
	CHECK(status == 128 + SIGKILL);
	// The keeper still runs.
	CHECK(eventually([&] { return demo.Alive().empty(); }, Seconds(30)));
	CheckNothingLeft(demo);
}

TEST_CASE("The death of any part ends the demo with a sentence")
{
	struct Part {
		const char *command; // as its command line names it
		const char *name;    // as the message names it
	};
	auto part = GENERATE(Part{"redis-server", "redis-server"}, Part{"forktail-record", "forktail-record"},
			     Part{"forktail-load", "forktail-load"});
	LabRun demo({"--seconds", "20"});
	bool said = demo.Says("BGSAVE started");
	INFO(part.command << "\n" << demo.lab->err());
	REQUIRE(said);
	pid_t pid = demo.Find(part.command);
	REQUIRE(pid > 0);
	kill(pid, SIGKILL);
	CHECK(demo.lab->wait(Seconds(20)) == 3);
	CHECK(demo.lab->err().find("forktail lab: " + std::string(part.name) +
				   " was killed by signal 9 (Killed)") != std::string::npos);
	CheckNothingLeft(demo);
}

// SPDX-License-Identifier: MIT
// A scenario is ended in the middle of a point, by a part of it or by the lab itself: nothing of it is left
// on the machine, the lab reports the reason, and earlier recordings can be read.
#include <csignal>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
namespace fs = std::filesystem;

namespace
{

// A limited server that has to swap, behind a proxy. The first point ends soon, the second does not.
std::string Scenario()
{
	std::string kind = fs::exists("/sys/class/zram-control") ? "zram" : "file";
	return "title = \"A test\"\nabout = \"What a test needs.\"\nscale = { small = 1 }\n"
	       "[[sweep]]\nname = \"point\"\nvalues = [1, 2]\nalso.seconds = [1, 600]\n"
	       "[swap]\nkind = \"" +
	       kind +
	       "\"\nsize = \"128MiB\"\n"
	       "[[server]]\nname = \"store\"\nkind = \"redis\"\nmemory = \"24MiB\"\n"
	       "[[server]]\nname = \"proxy\"\nkind = \"nutcracker\"\nof = \"store\"\n"
	       "[[step]]\nname = \"fill\"\nto = \"store\"\nload = \"--fill 30000 -d 1000\"\n"
	       "[[step]]\nname = \"run\"\nto = \"proxy\"\nrecord = true\n"
	       "load = \"--rate 500 --duration {seconds}s -r 30000 -d 1000 -c 4 --ratio 1:1\"\n"
	       "[[table]]\ntitle = \"Rates\"\nby = \"point\"\n"
	       "[[table.column]]\ntitle = \"requests/s\"\nvalue = \"run.rps\"\n";
}

// False: this host cannot limit memory or swap.
bool InTheMiddle(ScenarioRun *run)
{
	run->Start();
	bool said = run->Says("--duration 600s");
	std::string err = run->lab->err();
	INFO(err);
	for (const char *lack : {": this host has no ", ": cannot swap ", ": cannot limit memory"})
		if (!said && err.find(lack) != std::string::npos) {
			WARN("SKIPPED: " << err);
			return false;
		}
	REQUIRE(said);
	REQUIRE(run->Says("  ETA 5", "--duration 600s")); // of 600 s: requests are answered
	CHECK_FALSE(run->Changed().empty());
	CHECK_FALSE(run->Left().empty());
	return true;
}

void CheckNothingLeft(const ScenarioRun &run, const std::vector<std::string> &zrams)
{
	CHECK(run.Alive() == std::vector<std::string>{});
	CHECK(run.Left() == std::vector<std::string>{});
	CHECK(run.Changed() == std::vector<std::string>{});
	CHECK(Zrams() == zrams);
}

// The finished point can be explained. For the other there is an explanation, or a sentence that gives the
// reason.
void CheckReadable(const ScenarioRun &run)
{
	Result done = forktail::test::run({program("forktail"), "explain", run.run + "/points/point=1/run"});
	INFO(done.err);
	CHECK(done.status == 0);
	CHECK_FALSE(done.out.empty());
	CHECK(fs::exists(run.run + "/points/point=1/point.json"));
	CHECK_FALSE(fs::exists(run.run + "/points/point=2/point.json"));
	CHECK_FALSE(fs::exists(run.run + "/results.json"));
	Result killed =
	    forktail::test::run({program("forktail"), "explain", run.run + "/points/point=2/run"});
	INFO("the killed one: " << killed.status << "\n" << killed.err << killed.out);
	CHECK_FALSE(killed.timed_out);
	CHECK((killed.status == 0 ? !killed.out.empty()
				  : killed.status < 128 && killed.err.rfind("forktail: ", 0) == 0));
}

} // namespace

TEST_CASE("The death of any part ends the scenario and names the part")
{
	struct Part {
		const char *command; // as its command line names it
		const char *name;    // as the message names it
	};
	auto part =
	    GENERATE(Part{"redis-server", "store (redis-server)"}, Part{"nutcracker -", "proxy (nutcracker)"},
		     Part{"forktail-record", "forktail-record"}, Part{"--duration 600s", "forktail-load"});
	std::vector<std::string> zrams = Zrams();
	ScenarioRun run(Scenario());
	if (!InTheMiddle(&run))
		return;
	INFO(part.name);
	pid_t pid = run.Find(part.command);
	REQUIRE(pid > 0);
	kill(pid, SIGKILL);
	auto status = run.lab->wait(Seconds(60));
	INFO(run.lab->err());
	CHECK(status == 3);
	CHECK(run.lab->err().find("forktail lab: " + run.file + ":") != std::string::npos);
	CHECK(run.lab->err().find(": " + std::string(part.name) + " was killed by signal 9 (Killed)") !=
	      std::string::npos);
	CheckNothingLeft(run, zrams);
	CheckReadable(run);
}

TEST_CASE("Ctrl-C, SIGTERM and kill -9 in the middle of a point leave nothing behind")
{
	int signal = GENERATE(SIGINT, SIGTERM, SIGKILL);
	std::vector<std::string> zrams = Zrams();
	ScenarioRun run(Scenario());
	if (!InTheMiddle(&run))
		return;
	run.lab->signal(signal);
	auto status = run.lab->wait(Seconds(60));
	INFO("signal " << signal << "\n" << run.lab->err());
	CHECK(status == 128 + signal);
	if (signal == SIGKILL) // its keeper still runs
		CHECK(eventually([&] { return run.Alive().empty(); }, Seconds(60)));
	else
		CHECK(run.lab->err().find("stopped by ") != std::string::npos);
	CheckNothingLeft(run, zrams);
	CheckReadable(run);
}

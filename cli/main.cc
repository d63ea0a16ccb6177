// SPDX-License-Identifier: MIT
// forktail: the one command a user types. What needs root or a load goes to the C programs that sit beside
// this one, so that a server needs no analysis and a client no privileges; the rest is done here.
//
// Exit status: 0 done, 1 the answer is "no", 2 usage, 3 the environment or the input can't.
#include <cstdio>
#include <string>

#include "command.h"
#include "lab/lab.h"

namespace
{

using forktail::cli::kDone;
using forktail::cli::kUsage;

const char kHelp[] =
    "forktail names the kernel event behind every Redis latency spike.\n"
    "\n"
    "  forktail record --pid PID -o RUN/server.forktail   record where a server's time goes (root)\n"
    "  forktail record --config FILE                      the same as the service does, by its "
    "configuration\n"
    "  forktail trigger DIR NAME                          ask the guard of a ring for a snapshot\n"
    "  forktail load -o RUN/load.forktail ...             put load on a server and log every request\n"
    "  forktail explain RUN                               say what made the slow requests slow\n"
    "  forktail report RUN -o FILE.html                   the same as a page with a timeline\n"
    "  forktail report A B -o FILE.html                   two runs, or several of each, beside each other\n"
    "  forktail export RUN -o FILE                        the same for another tool, by the file's "
    "extension\n"
    "  forktail fleet JOB --data DIR                      what many hosts' runs cost, with Spark\n"
    "  forktail gate RUN LIMIT...                         fail a build that is too slow, and say what made "
    "it "
    "so\n"
    "  forktail diff A B                                  what changed from one run, or several, to "
    "another\n"
    "  forktail sql RUN... [QUERY]                        asks DuckDB about runs, as tables\n"
    "  forktail watch DIR                                 what recorded servers are doing now\n"
    "  forktail snapshot DIR --last 60s -o RUN            a part of what is recorded all the time, to keep\n"
    "  forktail lab demo                                  all of it, on a server of its own\n"
    "  forktail lab run NAME                              an experiment: tables, charts, causes\n"
    "  forktail hosts run PLAN.toml -o RUN                load and recorders on several hosts, one run\n"
    "  forktail clock serve | probe HOST -o RUN/clock.forktail\n"
    "                                                     how two hosts' clocks compare\n"
    "  forktail doctor                                    what this host lets forktail record\n"
    "\n"
    "forktail COMMAND --help tells a command's options.\n";

} // namespace

int main(int argc, char **argv)
{
	std::string command = argc > 1 ? argv[1] : "";
	int rest = argc - 2;
	char **args = argv + 2;
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {
	    {"diff", forktail::cli::DiffCommand},	  {"explain", forktail::cli::ExplainCommand},
	    {"export", forktail::cli::ExportCommand},	  {"fleet", forktail::cli::FleetCommand},
	    {"gate", forktail::cli::GateCommand},	  {"hosts", forktail::cli::HostsCommand},
	    {"record", forktail::cli::RecordCommand},	  {"report", forktail::cli::ReportCommand},
	    {"snapshot", forktail::cli::SnapshotCommand}, {"sql", forktail::cli::SqlCommand},
	    {"trigger", forktail::cli::TriggerCommand},	  {"watch", forktail::cli::WatchCommand},
	};
	for (const auto &c : commands)
		if (command == c.name)
			return c.run(rest, args);
	if (command == "doctor")
		return forktail::cli::RunProgram("forktail-record", "--doctor", rest, args);
	if (command == "load")
		return forktail::cli::RunProgram("forktail-load", nullptr, rest, args);
	if (command == "clock")
		return forktail::cli::RunProgram("forktail-clock", nullptr, rest, args);
	if (command == "lab")
		return forktail::lab::LabMain(argc - 1, argv + 1);
	if (command == "--version" || command == "version") {
		printf("forktail %s\n", FORKTAIL_VERSION);
		return kDone;
	}
	if (command == "help" || command == "--help" || command == "-h") {
		fputs(kHelp, stdout);
		return kDone;
	}
	if (command.empty())
		fprintf(stderr, "forktail: a command is missing; forktail help lists them\n");
	else
		fprintf(stderr, "forktail: there is no command '%s'; forktail help lists them\n",
			command.c_str());
	return kUsage;
}

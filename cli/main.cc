// SPDX-License-Identifier: MIT
// forktail: the command that users type. Recording and load generation are separate C programs next to this
// one: a server host needs no analysis code, a client host no privileges.
//
// Exit status: 0 done, 1 the answer is "no", 2 usage, 3 a failure of the environment or the input.
#include <cstdio>
#include <string>

#include "command.h"
#include "python.h"

namespace
{

using forktail::cli::kDone;
using forktail::cli::kUsage;

const char kHelp[] =
    "forktail names the kernel event behind every Redis latency spike.\n"
    "\n"
    "  forktail record --pid PID -o RUN/server.forktail   record the kernel events of a server (root)\n"
    "  forktail record --config FILE                      record as the service does, configured by "
    "FILE\n"
    "  forktail trigger DIR NAME                          take a snapshot of the ring now\n"
    "  forktail load -o RUN/load.forktail ...             generate load and log every request\n"
    "  forktail explain RUN                               explain what made the slow requests slow\n"
    "  forktail report RUN -o FILE.html                   write the explanation as an HTML page\n"
    "  forktail report A B -o FILE.html                   write a page that compares two sides\n"
    "  forktail export RUN -o FILE                        export to another tool's format\n"
    "  forktail fleet JOB --data DIR                      compute over many hosts' runs with Spark\n"
    "  forktail gate RUN LIMIT...                         check a run against limits, for CI\n"
    "  forktail diff A B                                  compare two runs, or two sides of runs\n"
    "  forktail sql RUN... [QUERY]                        query runs as tables with DuckDB\n"
    "  forktail watch DIR                                 show live what recorded servers do\n"
    "  forktail snapshot DIR --last 60s -o RUN            save a part of the ring as a run\n"
    "  forktail mark DIR \"deploy 42\"                      note what happened now; explain shows it\n"
    "  forktail lab demo                                  start a server, load it, record, explain\n"
    "  forktail lab run NAME                              run an experiment: tables, charts, causes\n"
    "  forktail hosts run PLAN.toml -o RUN                generate load and record on several hosts\n"
    "  forktail clock serve | probe HOST -o RUN/clock.forktail\n"
    "                                                     compare the clocks of two hosts\n"
    "  forktail doctor                                    print what forktail can record on this host\n"
    "\n"
    "forktail COMMAND --help prints the options of a command.\n";

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
	    {"diff", forktail::cli::DiffCommand},	{"explain", forktail::cli::ExplainCommand},
	    {"export", forktail::cli::ExportCommand},	{"gate", forktail::cli::GateCommand},
	    {"mark", forktail::cli::MarkCommand},	{"record", forktail::cli::RecordCommand},
	    {"report", forktail::cli::ReportCommand},	{"snapshot", forktail::cli::SnapshotCommand},
	    {"trigger", forktail::cli::TriggerCommand}, {"watch", forktail::cli::WatchCommand},
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
	if (command == "fleet")
		return forktail::cli::RunPython("fleet", {"pyspark"}, rest, args);
	if (command == "sql")
		return forktail::cli::RunPython("sql", {"duckdb"}, rest, args);
	if (command == "hosts")
		return forktail::cli::RunPython("hosts", {}, rest, args);
	if (command == "lab")
		return forktail::cli::RunPython("lab", {}, rest, args);
	if (command == "--version" || command == "version") {
		printf("forktail %s\n", FORKTAIL_VERSION);
		return kDone;
	}
	if (command == "help" || command == "--help" || command == "-h") {
		fputs(kHelp, stdout);
		return kDone;
	}
	if (command.empty())
		fprintf(stderr, "forktail: no command given; forktail help lists the commands\n");
	else
		fprintf(stderr, "forktail: unknown command '%s'; forktail help lists the commands\n",
			command.c_str());
	return kUsage;
}

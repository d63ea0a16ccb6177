// SPDX-License-Identifier: MIT
// forktail: the command that users type. Recording and load generation are separate C programs next to this
// one: a server host needs no analysis code, a client host no privileges.
//
// Exit status: 0 done, 1 the answer is "no", 2 usage, 3 a failure of the environment or the input.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "command.h"
#include "common/json.h"
#include "python.h"

namespace
{

using namespace forktail::cli;

struct Row {
	const char *usage;   // its first word is the command; it may have several rows
	const char *meaning; // for forktail help
	int (*run)(int argc, char **argv);
};

int Load(int argc, char **argv)
{
	return RunProgram("forktail-load", nullptr, argc, argv);
}
int Clock(int argc, char **argv)
{
	return RunProgram("forktail-clock", nullptr, argc, argv);
}
int Fleet(int argc, char **argv)
{
	return RunPython("fleet", {"pyspark"}, argc, argv);
}
int Sql(int argc, char **argv)
{
	return RunPython("sql", {"duckdb"}, argc, argv);
}
int Mcp(int argc, char **argv)
{
	return RunPython("mcp", {"mcp"}, argc, argv);
}
int Forecast(int argc, char **argv)
{
	return RunPython("forecast", {"redis"}, argc, argv);
}
int Try(int argc, char **argv)
{
	return RunPython("try", {"redis"}, argc, argv);
}
int Hosts(int argc, char **argv)
{
	return RunPython("hosts", {}, argc, argv);
}
int Lab(int argc, char **argv)
{
	return RunPython("lab", {}, argc, argv);
}

const Row kCommands[] = {
    {"record --port N -o RUN/server.forktail", "record the kernel events of a server (root)", RecordCommand},
    {"record -- COMMAND", "record while a command runs, and explain", RecordCommand},
    {"record --config FILE", "record as the service does, configured by FILE", RecordCommand},
    {"doctor", "print what forktail can record on this host", DoctorCommand},
    {"doctor --port N --duration 10s", "record a server, explain, leave nothing behind (root)",
     DoctorCommand},
    {"load -o RUN/load.forktail ...", "generate load and log every request", Load},
    {"explain RUN", "explain what made the slow requests slow", ExplainCommand},
    {"causes [NAME]", "what a cause is, how it is known, what to do", CausesCommand},
    {"report RUN -o FILE.html", "write the explanation as an HTML page", ReportCommand},
    {"report A B -o FILE.html", "write a page that compares two sides", ReportCommand},
    {"export RUN -o FILE", "export to another tool's format", ExportCommand},
    {"gate RUN LIMIT...", "check a run against limits, for CI", GateCommand},
    {"diff A B", "compare two runs, or two sides of runs", DiffCommand},
    {"sql RUN... [QUERY]", "query runs as tables with DuckDB", Sql},
    {"mcp DIR...", "serve runs to an agent (MCP, read-only)", Mcp},
    {"forecast --port N", "what a snapshot would cost now, and whether it fits", Forecast},
    {"try 'config set NAME VALUE' --port N", "try a setting on a live server, and put it back (root)", Try},
    {"watch DIR", "show live what recorded servers do", WatchCommand},
    {"snapshot DIR --last 60s -o RUN", "save a part of the ring as a run", SnapshotCommand},
    {"trigger DIR NAME", "take a snapshot of the ring now", TriggerCommand},
    {"mark DIR \"deploy 42\"", "note what happened now; explain shows it", MarkCommand},
    {"lab demo", "start a server, load it, record, explain", Lab},
    {"lab run NAME", "run an experiment: tables, charts, causes", Lab},
    {"hosts run PLAN.toml -o RUN", "generate load and record on several hosts", Hosts},
    {"clock serve | probe HOST -o FILE", "compare the clocks of two hosts", Clock},
    {"fleet JOB --data DIR", "compute over many hosts' runs with Spark", Fleet},
};

std::string NameOf(const Row &row)
{
	return std::string(row.usage, strcspn(row.usage, " "));
}

const Row *Find(const std::string &name)
{
	const auto row = std::find_if(std::begin(kCommands), std::end(kCommands),
				      [&](const Row &r) { return NameOf(r) == name; });
	return row == std::end(kCommands) ? nullptr : row;
}

int Help()
{
	constexpr size_t meanings = 51, least = 90; // columns
	const size_t columns = Columns();
	std::string text = "forktail names the kernel event behind Redis latency spikes.\n"
			   "\n"
			   "Examples:\n"
			   "  sudo forktail doctor --port 6379 --duration 10s\n"
			   "  sudo forktail record --port 6379 --duration 60s -o monday/server.forktail\n"
			   "  forktail explain monday\n"
			   "\n"
			   "Commands:\n";
	for (const Row &row : kCommands) {
		const std::string usage = std::string("  forktail ") + row.usage;
		const bool beside = columns >= least && usage.size() + 2 <= meanings;
		text += beside ? usage + std::string(meanings - usage.size(), ' ') : usage + "\n      ";
		text += std::string(row.meaning) + "\n";
	}
	text += "\nforktail help COMMAND prints the options of a command.\n";
	return fputs(text.c_str(), stdout) == EOF || fflush(stdout) ? kCant : kDone;
}

int UnknownCommand(const std::string &name)
{
	std::vector<std::string> all;
	for (const Row &row : kCommands)
		all.push_back(NameOf(row));
	std::vector<const char *> names;
	for (const std::string &one : all)
		names.push_back(one.c_str());
	const std::string closest = DidYouMean(name, names);
	return Refuse("unknown command '" + name + "'." +
			  (closest.empty() ? " forktail help lists the commands" : closest),
		      kUsage);
}

} // namespace

int main(int argc, char **argv)
{
	const std::string command = argc > 1 ? argv[1] : "";
	if (command.empty())
		return Refuse("no command given. forktail help lists the commands", kUsage);
	if (command == "--version" || command == "version") {
		printf("forktail %s\n", FORKTAIL_VERSION);
		return kDone;
	}
	const bool help = command == "help" || command == "--help" || command == "-h";
	if (help && argc == 2)
		return Help();
	const std::string name = help ? argv[2] : command;
	const Row *row = Find(name);
	if (!row)
		return UnknownCommand(name);
	if (!help)
		return row->run(argc - 2, argv + 2);
	char asked[] = "--help"; // of the words behind, which may be a subcommand's
	std::vector<char *> words(argv + 3, argv + argc);
	words.push_back(asked);
	words.push_back(nullptr);
	return row->run(static_cast<int>(words.size()) - 1, words.data());
}

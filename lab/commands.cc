// SPDX-License-Identifier: MIT
// Checks everything before the start: names, files, scales, and the arguments of each load (by forktail-load
// --check).
#include "commands.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/format.h"
#include "common/json.h"
#include "lab/pages/compare.h"
#include "lab/pages/document.h"
#include "lab/pages/page.h"
#include "lab/run/files.h"
#include "lab/run/programs.h"
#include "lab/run/progress.h"
#include "lab/scenario/words.h"
#include "lab/servers/kinds.h"
#include "lab/servers/servers.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

constexpr double kCheckSeconds = 10;
constexpr size_t kWidth = 160; // of tables that are not printed on a terminal

size_t TerminalWidth()
{
	winsize size = {};
	return isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : kWidth;
}

bool IsFile(const std::string &name)
{
	return name.size() > 5 && name.substr(name.size() - 5) == ".toml";
}

// Scenario files, sorted by name.
bool FilesIn(const std::string &directory, std::vector<std::string> *files, std::string *error)
{
	std::error_code ec;
	for (const auto &entry : fs::directory_iterator(directory, ec))
		if (IsFile(entry.path()))
			files->push_back(entry.path());
	std::sort(files->begin(), files->end());
	if (!files->empty())
		return true;
	*error = "no scenarios in " + directory + ": name their directory with --scenarios";
	return false;
}

bool Load(const std::string &directory, const std::string &name, const Values &settings, Scenario *scenario,
	  std::string *error)
{
	std::string path = IsFile(name) ? name : directory + "/" + name + ".toml";
	if (fs::exists(path))
		return ReadScenario(path, scenario, error, settings);
	*error = "unknown scenario " + name + ": forktail lab list prints all scenarios";
	return false;
}

// Arguments of forktail-load for the kind of server `to`.
std::vector<std::string> KindWords(const Scenario &scenario, const std::string &to, const Values &values)
{
	for (const ServerSpec &server : scenario.servers)
		if (Matches(server.only, values) && to.rfind(server.name, 0) == 0)
			return CheckWords(server.kind, server.cluster);
	return CheckWords("redis", false);
}

// Checks every load's arguments with forktail-load. False: *error is "FILE:LINE: " and its message.
bool CheckLoads(Session *session, const Scenario &scenario, const Scale &scale, const std::string &programs,
		std::string *error)
{
	std::string to, text;
	std::set<std::vector<std::string>> seen;
	for (const Values &values : PointsOf(scenario, scale))
		for (const StepSpec &step : scenario.steps) {
			if (step.load.empty() || !Matches(step.only, values) ||
			    !Expand(step.by, values, &text, error) || text != "forktail-load")
				continue;
			Command command;
			std::vector<std::string> words;
			if (!Expand(step.to, values, &to, error) || !Expand(step.load, values, &text, error))
				return false;
			if (!SplitWords(text, &words)) {
				*error = scenario.file + ":" + std::to_string(step.line) +
					 ": a quote in the load's arguments is not closed";
				return false;
			}
			command.name = "forktail-load";
			command.output = "/dev/null";
			command.argv = {programs + "/forktail-load", "--check"};
			for (const std::string &word : KindWords(scenario, to, values))
				command.argv.push_back(word);
			command.argv.insert(command.argv.end(), words.begin(), words.end());
			if (!seen.insert(command.argv).second)
				continue;
			Child *child = Start(session, command, error);
			if (!child || !WaitForEnd(session, child, 0, kCheckSeconds, error))
				return false;
			if (common::EndedWell(*child))
				continue;
			*error = scenario.file + ":" + std::to_string(step.line) + ": " +
				 (child->last.empty() ? "forktail-load does not accept the arguments"
						      : child->last.front());
			return false;
		}
	return true;
}

// Reads the scenario as it was when it ran, from the run directory.
bool ReadScenarioOf(const std::string &directory, const std::string &name, Scenario *scenario,
		    std::string *error)
{
	std::string path = directory + "/" + kIdentityFile;
	const std::string text = ReadFile(path);
	size_t head = text.find(kIdentityEnd);
	if (head == std::string::npos) {
		*error = path + " does not contain the scenario of the run";
		return false;
	}
	if (!ParseScenario(text.substr(head + kIdentityEnd.size()), path, scenario, error))
		return false;
	scenario->name = name;
	return true;
}

std::string FiltersText(const Filter &filter)
{
	std::string text;
	for (const auto &[name, values] : filter) {
		text += (text.empty() ? " (if " : ", ") + name + " is ";
		for (size_t i = 0; i < values.size(); i++)
			text += (i ? " or " : "") + values[i];
	}
	return text.empty() ? "" : text + ")";
}

std::string ActionText(const Action &action)
{
	std::string text;
	if (!action.ask.empty())
		text = "ask " + action.server + ": " + action.ask;
	else if (!action.start.empty())
		text = "start " + action.start;
	else if (!action.kill.empty())
		text = "kill -9 " + action.kill;
	else if (!action.move_slots.empty())
		text = "move " + action.move_slots + " slots from " + action.server + " to " + action.to;
	else if (!action.await.empty())
		text = "wait for the " + action.await + " of " + action.server;
	else if (!action.spread.empty())
		text = "spread soft interrupts: " + action.spread;
	else if (!action.wait.empty())
		text = "wait " + action.wait;
	else
		text = "note figures as " + action.note;
	return text + FiltersText(action.only);
}

void PrintServers(const Scenario &scenario)
{
	printf("\nservers\n");
	for (const ServerSpec &server : scenario.servers) {
		std::string text = "  " + server.name + ": " + server.kind;
		if (server.count != "1")
			text += ", " + server.count + " instances";
		if (server.cluster)
			text +=
			    ", a Cluster" +
			    (server.replicas.empty() ? "" : " with " + server.replicas + " replicas each");
		if (!server.of.empty())
			text += ", " + std::string(FindKind(server.kind)->of) + " " + server.of;
		if (!server.replica_of.empty())
			text += ", replica of " + server.replica_of;
		if (server.later)
			text += ", later";
		text += ", " + server.listen;
		if (!server.memory.empty())
			text += ", at most " + server.memory + " of memory";
		if (!server.cpus.empty())
			text += ", CPUs " + server.cpus;
		for (const std::string &word : server.config)
			text += " " + word;
		printf("%s%s\n", text.c_str(), FiltersText(server.only).c_str());
	}
}

void PrintSteps(const Scenario &scenario)
{
	printf("\nsteps of each point\n");
	for (const StepSpec &step : scenario.steps) {
		if (step.load.empty()) {
			printf("  %s%s\n", ActionText(step.action).c_str(), FiltersText(step.only).c_str());
			continue;
		}
		printf("  %s: %s to %s%s: %s%s\n", step.name.c_str(), step.by.c_str(), step.to.c_str(),
		       step.record ? ", recorded" : "", step.load.c_str(), FiltersText(step.only).c_str());
		for (const Action &event : step.events)
			printf("    at %s %s\n", event.at.c_str(), ActionText(event).c_str());
	}
}

void PrintSweeps(const Scenario &scenario, const Scale &scale)
{
	for (const Sweep &sweep : scenario.sweeps) {
		auto fewer = sweep.at.find(scale.name);
		printf("  %s:", sweep.name.c_str());
		for (const std::string &value : fewer == sweep.at.end() ? sweep.values : fewer->second)
			printf(" %s%s", value.c_str(), &value == &sweep.values.back() ? "" : ",");
		printf("%s\n", sweep.keep_servers ? " (on the same servers)" : "");
	}
}

std::string OutDirectory(const RunOptions &options)
{
	if (!options.out.empty())
		return options.out;
	time_t now = time(nullptr);
	char when[32];
	strftime(when, sizeof when, "-%Y%m%d-%H%M%S", localtime(&now));
	std::string name = options.names.size() == 1 ? options.names[0] : "lab";
	return "runs/" + std::string(fs::path(name).stem()) + when;
}

// Writes tables to standard output, DIR/tables.txt and table-N.csv, the page, and the section of a document.
bool Publish(Session *session, const Scenario &scenario, const Results &results, const std::string &directory,
	     const std::string &document, std::string *error)
{
	Output output;
	if (!MakeOutput(session, scenario, results, &output, error))
		return false;
	std::string text = TextOf(results, output, TerminalWidth());
	printf("%s\n%s\n", common::VisibleLines(scenario.title).c_str(), text.c_str());
	fflush(stdout);
	if (!ReplaceFile(directory + "/tables.txt", TextOf(results, output, kWidth), error) ||
	    !ReplaceFile(directory + "/report.html", PageOf(scenario, results, output, directory), error))
		return false;
	for (size_t i = 0; i < output.tables.size(); i++)
		if (!ReplaceFile(directory + "/table-" + std::to_string(i + 1) + ".csv",
				 TableCsv(output.tables[i]), error))
			return false;
	printf("report: %s/report.html\n\n", directory.c_str());
	return document.empty() || WriteSection(document, scenario, results, output, error);
}

bool RunOne(Session *session, const Scenario &scenario, const RunOptions &options,
	    const std::string &directory, Results *results, std::string *error)
{
	ExperimentOptions experiment;
	experiment.scale_text = options.scale;
	experiment.out = directory;
	experiment.repeats = options.repeats;
	experiment.resume = options.resume && fs::exists(directory);
	experiment.command = options.command;
	experiment.settings = options.settings;
	experiment.plain = options.plain;
	experiment.no_client = options.no_client;
	if (!ParseScale(scenario, options.scale, &experiment.scale, error) ||
	    !RunExperiment(session, scenario, experiment, results, error))
		return false;
	if (scenario.explanation)
		printf("\nreport: %s/report.html\n", directory.c_str());
	return scenario.explanation ||
	       Publish(session, scenario, *results, directory, options.document, error);
}

} // namespace

std::string ScenarioDirectory()
{
	const char *directory = getenv("FORKTAIL_SCENARIOS");
	return directory && *directory ? directory : FORKTAIL_SCENARIOS;
}

bool ListScenarios(const std::string &directory, std::string *error)
{
	std::vector<std::string> files;
	if (!FilesIn(directory, &files, error))
		return false;
	for (const std::string &file : files) {
		Scenario scenario;
		if (!ReadScenario(file, &scenario, error))
			return false;
		printf("%-20s %-3s %s\n", scenario.name.c_str(), scenario.report.c_str(),
		       scenario.title.c_str());
	}
	return true;
}

bool ShowScenario(const std::string &directory, const std::string &name, const std::string &scale_text,
		  std::string *error)
{
	Scenario scenario;
	Scale scale;
	if (!Load(directory, name, {}, &scenario, error) ||
	    (!scale_text.empty() && !ParseScale(scenario, scale_text, &scale, error)))
		return false;
	printf("%s: %s\n\n%s\n", scenario.name.c_str(), scenario.title.c_str(), scenario.about.c_str());
	if (!scenario.question.empty())
		printf("\n%s\n", scenario.question.c_str());
	if (!scenario.source.empty())
		printf("\npublished: report %s, %s\n", scenario.report.c_str(), scenario.source.c_str());
	std::vector<Values> points = PointsOf(scenario, scale);
	printf("\n%zu point%s at scale %s\n", points.size(), points.size() == 1 ? "" : "s",
	       scale_text.empty() ? "1" : scale_text.c_str());
	PrintSweeps(scenario, scale);
	for (const Size &size : scenario.sizes)
		printf("  %s: %s\n", size.name.c_str(), points[0].at(size.name).c_str());
	PrintServers(scenario);
	PrintSteps(scenario);
	if (!scenario.tables.empty())
		printf("\ntables\n");
	for (const Table &table : scenario.tables)
		printf("  %s\n", table.title.c_str());
	if (!scenario.charts.empty())
		printf("\ncharts\n");
	for (const Chart &chart : scenario.charts)
		printf("  %s\n", chart.title.c_str());
	return true;
}

bool LoadScenarios(const std::string &directory, const RunOptions &options, std::vector<Scenario> *scenarios,
		   std::string *error)
{
	std::vector<std::string> names, all;
	for (const std::string &name : options.names)
		if (name != "all")
			names.push_back(name);
		else if (!FilesIn(directory, &all, error))
			return false;
	// "all" only means scenarios with tables.
	for (const std::string &file : all) {
		Scenario scenario;
		if (!Load(directory, file, options.settings, &scenario, error))
			return false;
		if (!scenario.explanation)
			names.push_back(file);
	}
	for (const std::string &name : names) {
		Scale scale;
		Scenario scenario;
		if (!Load(directory, name, options.settings, &scenario, error) ||
		    !ParseScale(scenario, options.scale, &scale, error))
			return false;
		if (scenario.explanation && (options.repeats > 1 || !options.document.empty())) {
			*error = "--repeat and --write need a scenario with tables: " + scenario.name +
				 " has no tables";
			return false;
		}
		for (StepSpec &step : scenario.steps)
			step.client = step.client && !options.no_client;
		scenarios->push_back(scenario);
	}
	if (options.resume && options.out.empty()) {
		*error = "--resume needs --out with the directory to continue in";
		return false;
	}
	return true;
}

bool RunScenarios(Session *session, const std::vector<Scenario> &scenarios, const RunOptions &options,
		  bool *wrong, std::string *error)
{
	std::string out = OutDirectory(options), programs;
	if (!FindPrograms(&programs, error))
		return false;
	for (const Scenario &scenario : scenarios) {
		Scale scale;
		if (!ParseScale(scenario, options.scale, &scale, error) ||
		    !CheckLoads(session, scenario, scale, programs, error)) {
			*wrong = !StopSignal();
			return false;
		}
	}
	if (scenarios.size() == 1) {
		Results results;
		return RunOne(session, scenarios[0], options, out, &results, error);
	}
	if (fs::exists(out) && !options.resume) {
		*error = out + " exists: name another directory, or use --resume to continue in it";
		return false;
	}
	std::vector<IndexEntry> index;
	Results where;
	size_t failed = 0;
	for (const Scenario &scenario : scenarios) {
		Results results;
		std::string why;
		IndexEntry entry{scenario.name, scenario.title, "done", 0, scenario.name + "/report.html"};
		if (RunOne(session, scenario, options, out + "/" + scenario.name, &results, &why)) {
			entry.seconds = results.seconds;
			where = results;
		} else if (StopSignal()) {
			*error = why;
			return false;
		} else {
			Say(scenario.name + " failed: " + why);
			entry.state = "failed: " + why;
			entry.link.clear();
			failed++;
		}
		index.push_back(entry);
	}
	if (!ReplaceFile(out + "/index.html", IndexOf(index, where), error))
		return false;
	printf("all: %s/index.html\n", out.c_str());
	if (failed == 0)
		return true;
	*error = std::to_string(failed) + " of " + std::to_string(scenarios.size()) + " scenarios failed:";
	for (const IndexEntry &entry : index)
		if (entry.link.empty())
			*error += "\n" + entry.name + ": " + entry.state.substr(8);
	return false;
}

bool CompareRuns(const std::string &first, const std::string &second, std::string *error)
{
	Results one, other;
	Scenario scenario;
	if (!ReadResults(first + "/results.json", &one, error) ||
	    !ReadResults(second + "/results.json", &other, error) ||
	    !ReadScenarioOf(first, one.scenario, &scenario, error))
		return false;
	std::string text;
	if (!CompareResults(scenario, one, other, TerminalWidth(), &text, error))
		return false;
	printf("%s", text.c_str());
	return true;
}

} // namespace forktail::lab

// SPDX-License-Identifier: MIT
// Loads, their events and their recordings; see steps.h.
#include "lab/steps.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lab/actions.h"
#include "lab/counters.h"
#include "lab/figures.h"
#include "lab/limits.h"
#include "lab/logs.h"
#include "lab/machine.h"
#include "lab/programs.h"
#include "lab/progress.h"
#include "lab/scenario_check.h"
#include "recording/recording.h"

namespace forktail
{
namespace
{

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kRecorderSeconds = 30; // to write what it has
constexpr uint64_t kCauseKnown_ns = 200'000'000;
constexpr int kNoAnswer = 3; // forktail-load's exit status when servers were lost

// A load under way.
struct Load {
	PointRun *run;
	const StepSpec *step;
	std::string directory; // its files
	std::string to;
	std::vector<std::string> words;
	double seconds = 0; // its --duration, or 0
	Child *child = nullptr, *recorder = nullptr;
	size_t next_event = 0;
	uint64_t first_event_ns = 0;			       // by the time of day
	std::vector<std::pair<double, const Action *>> events; // seconds after its start
};

std::string Where(const PointRun &run, int line)
{
	return run.scenario->file + ":" + std::to_string(line) + ": ";
}

// The load's --duration in seconds; 0 without one.
double DurationOf(const std::vector<std::string> &words)
{
	for (size_t i = 0; i + 1 < words.size(); i++)
		if (words[i] == "--duration") {
			char *unit = nullptr;
			double number = strtod(words[i + 1].c_str(), &unit);
			std::string name = unit;
			return number * (name == "ms" ? 0.001 : name == "m" ? 60 : 1);
		}
	return 0;
}

void Schedule(Load *load)
{
	for (const Action &event : load->step->events) {
		Due due;
		ParseDue(event.at, &due);
		load->events.emplace_back(due.is_share ? due.share * load->seconds : due.seconds, &event);
	}
	std::stable_sort(load->events.begin(), load->events.end(),
			 [](const auto &a, const auto &b) { return a.first < b.first; });
}

// What forktail-load calls a server, and what the scenario does.
std::map<std::string, std::string> NamesOf(const Topology &topology)
{
	std::map<std::string, std::string> names;
	for (const auto &instance : topology.instances)
		names[instance->Address()] = instance->name;
	return names;
}

std::vector<std::string> Argv(const Load &load, const std::string &by)
{
	std::vector<std::string> argv, words = LoadWords(*load.run->topology, load.to, load.step->record);
	argv.push_back(by == "forktail-load" ? load.run->programs + "/" + by : by);
	argv.insert(argv.end(), words.begin(), words.end());
	argv.insert(argv.end(), load.words.begin(), load.words.end());
	if (by == "redis-benchmark") {
		argv.push_back("--csv");
		return argv;
	}
	argv.insert(argv.end(), {"--json", load.directory + "/load.json", "--progress"});
	if (std::none_of(load.words.begin(), load.words.end(),
			 [](const std::string &word) { return word.rfind("--buckets", 0) == 0; }))
		argv.push_back("--buckets");
	if (load.step->record)
		argv.insert(argv.end(), {"-o", load.directory + "/load.forktail"});
	return argv;
}

bool StartTracing(Load *load, std::string *error)
{
	std::vector<pid_t> pids;
	for (const auto &instance : load->run->topology->instances)
		if (instance->child && !instance->child->ended && instance->kind != "sentinel")
			pids.push_back(instance->child->pid);
	load->recorder = StartRecorder(load->run->session, load->run->programs, pids, true,
				       load->directory + "/server.forktail", error);
	return load->recorder;
}

bool StartLoad(Load *load, std::string *error)
{
	const StepSpec &step = *load->step;
	const Values &values = load->run->point->values;
	std::string text, by, cpus;
	if (!Expand(step.load, values, &text, error) || !Expand(step.by, values, &by, error) ||
	    !Expand(step.cpus, values, &cpus, error) || !Expand(step.to, values, &load->to, error))
		return false;
	if (!SplitWords(text, &load->words)) {
		*error = "a quote of the load's words does not end";
		return false;
	}
	if (LoadWords(*load->run->topology, load->to).empty()) {
		*error = "there is no server " + load->to + " now";
		return false;
	}
	load->seconds = DurationOf(load->words);
	Schedule(load);
	if (step.record && !StartTracing(load, error))
		return false;
	Command command;
	command.name = by;
	command.argv = Argv(*load, by);
	command.cpus = cpus;
	command.output = load->directory + (by == "forktail-load" ? "/load.txt" : "/load.csv");
	command.on_line = SayMeanwhile;
	Say(step.name + ": " + by + " " + text);
	load->child = Start(load->run->session, command, error);
	return load->child;
}

bool Succeeded(const Load &load, std::string *error)
{
	int status = load.child->status;
	if (load.step->errors && WIFEXITED(status) && WEXITSTATUS(status) == kNoAnswer)
		return true;
	return forktail::Succeeded(*load.child, error);
}

bool RunEvent(Load *load, std::string *error)
{
	const Action &event = *load->events[load->next_event++].second;
	if (!load->first_event_ns && Matches(event.only, load->run->point->values)) {
		timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		load->first_event_ns =
		    static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
	}
	if (RunAction(load->run, event, error))
		return true;
	*error = Where(*load->run, event.line) + *error;
	return false;
}

// A load that lost its server may be seen to end before the server is: its sockets close a moment before its
// end is known. The server's end is then the cause. False always.
bool NameTheCause(Session *session, std::string *error)
{
	std::string cause;
	for (uint64_t start_ns = ft_now_ns(); ft_now_ns() - start_ns < kCauseKnown_ns;)
		if (!Step(session, 20, &cause)) {
			*error = cause;
			break;
		}
	return false;
}

// Waits for the load's end and does the events meanwhile. What comes too late is done all the same: later
// steps count on it.
bool Follow(Load *load, std::string *error)
{
	uint64_t start_ns = ft_now_ns();
	while (!load->child->ended) {
		if (!Step(load->run->session, 20, error))
			return false;
		double seconds = static_cast<double>(ft_now_ns() - start_ns) / 1e9;
		if (load->next_event < load->events.size() && !load->child->ended &&
		    seconds >= load->events[load->next_event].first && !RunEvent(load, error))
			return false;
	}
	if (!Succeeded(*load, error))
		return NameTheCause(load->run->session, error);
	while (load->next_event < load->events.size()) {
		const Action &event = *load->events[load->next_event].second;
		if (Matches(event.only, load->run->point->values))
			load->run->notes->push_back("the load \"" + load->step->name +
						    "\" was over before its event at " + event.at +
						    ", which came after it");
		if (!RunEvent(load, error))
			return false;
	}
	return true;
}

bool WriteRunJson(const Load &load, std::string *error)
{
	Json versions = {{"forktail", FORKTAIL_VERSION}}, commands = Json::array();
	for (const auto &instance : load.run->topology->instances) {
		versions[instance->kind] = instance->version;
		commands.push_back(CommandLine(instance->child->argv));
	}
	commands.push_back(CommandLine(load.recorder->argv));
	commands.push_back(CommandLine(load.child->argv));
	Json json = {{"host", HostName()},
		     {"kernel", KernelRelease()},
		     {"scenario", load.run->scenario->name},
		     {"step", load.step->name},
		     {"values", load.run->point->values},
		     {"versions", versions},
		     {"commands", commands},
		     {"started_unix", time(nullptr)}};
	std::ofstream out(load.directory + "/run.json");
	out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
	out.close();
	if (out)
		return true;
	*error = "can't write " + load.directory + "/run.json";
	return false;
}

// Logs tell milliseconds, so what came in the event's own millisecond may look earlier.
constexpr uint64_t kLogTick_ns = 1000000;

void AddLogMarks(const Load &load)
{
	for (const LogMark &mark : load.step->logs) {
		uint64_t first_ns = 0;
		if (!Matches(mark.only, load.run->point->values))
			continue;
		for (const Instance *instance : InstancesOf(*load.run->topology, mark.server)) {
			uint64_t t_ns =
			    FindInLog(instance->log, mark.text, load.first_event_ns - kLogTick_ns);
			if (t_ns && (!first_ns || t_ns < first_ns))
				first_ns = t_ns;
		}
		if (first_ns)
			load.run->point->numbers[load.step->name + "." + mark.name] =
			    static_cast<double>(first_ns) - static_cast<double>(load.first_event_ns);
	}
}

double RequestsOf(const Load &load)
{
	auto requests = load.run->point->numbers.find(load.step->name + ".requests");
	return requests == load.run->point->numbers.end() ? 0 : requests->second;
}

bool RunLoad(PointRun *run, const StepSpec &step, std::string *error)
{
	Load load;
	load.run = run;
	load.step = &step;
	load.directory = run->directory + "/" + step.name;
	std::error_code ec;
	fs::create_directories(load.directory, ec);
	run->step = step.name;
	Counters before, after;
	if (!ReadCounters(run->session, *run->topology, &before, error) || !StartLoad(&load, error) ||
	    !Follow(&load, error) || !ReadCounters(run->session, *run->topology, &after, error))
		return false;
	if (load.recorder && (!WaitForEnd(run->session, load.recorder, SIGINT, kRecorderSeconds, error) ||
			      !forktail::Succeeded(*load.recorder, error) || !WriteRunJson(load, error)))
		return false;
	bool read = load.child->name == "forktail-load"
			? AddLoadFigures(step.name, load.directory + "/load.json", NamesOf(*run->topology),
					 run->point, error)
			: AddBenchmarkFigures(step.name, load.directory + "/load.csv", run->point, error);
	if (!read)
		return false;
	AddDifference(step.name, *run->topology, before, after, RequestsOf(load), run->point);
	AddLogMarks(load);
	if (step.record)
		run->point->recorded.push_back(step.name);
	return true;
}

} // namespace

bool SplitWords(const std::string &text, std::vector<std::string> *words)
{
	words->clear();
	bool in_word = false;
	char quote = 0;
	for (char c : text) {
		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? 0 : c;
			if (!in_word)
				words->emplace_back();
			in_word = true;
		} else if (!quote && isspace(static_cast<unsigned char>(c))) {
			in_word = false;
		} else {
			if (!in_word)
				words->emplace_back();
			in_word = true;
			words->back() += c;
		}
	}
	return !quote;
}

bool MakePlan(const ServerSpec &spec, const Values &values, ServerPlan *plan, std::string *error)
{
	std::string count, listen, memory, replicas;
	if (!Expand(spec.count, values, &count, error) || !Expand(spec.listen, values, &listen, error) ||
	    !Expand(spec.memory, values, &memory, error) ||
	    !Expand(spec.replicas, values, &replicas, error) ||
	    !Expand(spec.cpus, values, &plan->cpus, error))
		return false;
	plan->name = spec.name;
	plan->kind = spec.kind;
	plan->count = atoi(count.c_str());
	plan->tcp = listen == "tcp";
	plan->of = spec.of;
	plan->replica_of = spec.replica_of;
	plan->replicas = atoi(replicas.c_str());
	plan->cluster = spec.cluster;
	if (!memory.empty() && !ParseBytes(memory, &plan->memory_bytes)) {
		*error = "\"" + memory + "\" is no size of memory";
		return false;
	}
	for (const std::string &word : spec.config) {
		plan->config.emplace_back();
		if (!Expand(word, values, &plan->config.back(), error))
			return false;
	}
	return true;
}

bool RunStep(PointRun *run, const StepSpec &step, std::string *error)
{
	if (!Matches(step.only, run->point->values))
		return true;
	if (step.load.empty() ? RunAction(run, step.action, error) : RunLoad(run, step, error))
		return true;
	*error = Where(*run, step.line) + *error;
	return false;
}

bool ExplainSteps(PointRun *run, std::string *error)
{
	for (const std::string &step : run->point->recorded) {
		std::string directory = run->directory + "/" + step, json = directory + "/explain.json";
		Say("explaining " + step);
		if (!RunForktail(run->session, run->programs, {"explain", directory, "--json", "--requests"},
				 json, error) ||
		    !AddExplanation(step, json, NamesOf(*run->topology), run->point, error) ||
		    !RunForktail(run->session, run->programs,
				 {"report", directory, "-o", directory + "/report.html"}, "/dev/null", error))
			return false;
	}
	return true;
}

} // namespace forktail

// SPDX-License-Identifier: MIT
// Runs a load with its events, its recording and its counters: the recorder runs from before the first
// request until after the last, and counters are read before and after both.
#include "steps.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>

#include "actions.h"
#include "common/process.h"
#include "common/text.h"
#include "counters.h"
#include "forks.h"
#include "lab/scenario/scenario_check.h"
#include "lab/scenario/words.h"
#include "lab/servers/kinds.h"
#include "lab/servers/logs.h"
#include "program_figures.h"
#include "programs.h"
#include "progress.h"
#include "recording/recording.h"
#include "run_json.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

constexpr double kRecorderSeconds = 30; // to write its data
constexpr uint64_t kCauseKnown_ns = 200'000'000;
constexpr int kNo = 1,
	      kNoAnswer = 3; // forktail-load's exit status when the answer is no, and when servers were lost

// A running load.
struct Load {
	PointRun *run;
	const StepSpec *step;
	std::string directory; // its files
	std::string figures;   // forktail-load's JSON
	Forks forks;
	long started_unix = time(nullptr);
	std::string to;
	std::vector<std::string> words;
	Child *child = nullptr, *recorder = nullptr;
	size_t next_event = 0;
	uint64_t first_event_ns = 0; // CLOCK_REALTIME
	std::vector<TimedEvent> events;
};

std::string Where(const PointRun &run, int line)
{
	return run.plain ? "" : run.scenario->file + ":" + std::to_string(line) + ": ";
}

// The load's --duration in seconds; 0 without one.
double DurationOf(const std::vector<std::string> &words)
{
	uint64_t ns = 0;
	for (size_t i = 0; i + 1 < words.size(); i++)
		if (words[i] == "--duration" && !parse_duration(words[i + 1].c_str(), TIME_ANY, TIME_S, &ns))
			return 0; // forktail-load refuses it
	return static_cast<double>(ns) / 1e9;
}

// Maps forktail-load's names of servers (addresses) to the scenario's.
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
	argv.insert(argv.end(), {"--json", load.figures, "--progress"});
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
		if (instance->child && !instance->child->ended && instance->kind->carries)
			pids.push_back(instance->child->pid);
	std::vector<std::string> options;
	if (!load->step->client)
		options.push_back("--no-client");
	if (!load->step->requests.empty())
		options.push_back("--requests=" + load->step->requests);
	Say("starting the recorder");
	load->recorder = StartRecorder(load->run->session, load->run->programs, pids, options,
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
		*error = "a quote in the load's arguments is not closed";
		return false;
	}
	if (LoadWords(*load->run->topology, load->to).empty()) {
		*error = "the server " + load->to + " is not running";
		return false;
	}
	load->events = EventTimes(step, load->words);
	if (step.record && !StartTracing(load, error))
		return false;
	Command command;
	command.name = by;
	command.argv = Argv(*load, by);
	command.cpus = cpus;
	command.output = load->directory + (by == "forktail-load" ? "/load.txt" : "/load.csv");
	command.on_line = SayMeanwhile;
	if (step.say.empty())
		Say(step.name + ": " + by + " " + text);
	else if (!SayText(*load->run, step.say, error))
		return false;
	if (load->recorder)
		load->run->commands.push_back(common::CommandLine(load->recorder->command.argv));
	load->run->commands.push_back(common::CommandLine(command.argv));
	load->child = Start(load->run->session, command, error);
	return load->child;
}

bool Has(const std::vector<std::string> &words, const std::string &option)
{
	return std::any_of(words.begin(), words.end(), [&option](const std::string &word) {
		return word == option || word.rfind(option + "=", 0) == 0;
	});
}

bool Succeeded(const Load &load, std::string *error)
{
	int status = load.child->status;
	if (load.step->errors && WIFEXITED(status) && WEXITSTATUS(status) == kNoAnswer)
		return true;
	// A search that found no rate has figures too.
	if (WIFEXITED(status) && WEXITSTATUS(status) == kNo && Has(load.words, "--find"))
		return true;
	return forktail::lab::Succeeded(*load.child, error);
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
	bool fork = event.report && Matches(event.only, load->run->point->values);
	if (fork ? AskForFork(load->run, event, &load->forks, error) : RunAction(load->run, event, error))
		return true;
	*error = Where(*load->run, event.line) + *error;
	return false;
}

// If a load lost its server, the end of the load may be seen before the end of the server, which is the
// cause. Always returns false.
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

// True if the next event is due. An event that forks waits for the previous fork to end.
bool IsDue(const Load &load, double seconds)
{
	if (load.next_event == load.events.size() || load.child->ended)
		return false;
	const auto &[at, event] = load.events[load.next_event];
	return seconds >= at && !(event->report && load.forks.server);
}

// Waits for the end of the load and runs its events. Late events run after the load because later steps may
// need them; late forks are skipped because no request can notice them.
bool Follow(Load *load, std::string *error)
{
	uint64_t start_ns = ft_now_ns();
	while (!load->child->ended) {
		if (!Step(load->run->session, 20, error))
			return false;
		double seconds = static_cast<double>(ft_now_ns() - start_ns) / 1e9;
		if (!LookAtFork(load->run, &load->forks, error) ||
		    (IsDue(*load, seconds) && !RunEvent(load, error)))
			return false;
	}
	if (!Succeeded(*load, error))
		return NameTheCause(load->run->session, error);
	while (load->next_event < load->events.size()) {
		const Action &event = *load->events[load->next_event].second;
		if (event.report) {
			load->run->notes->push_back("the load ended before " + event.ask + " could start");
			load->next_event++;
			continue;
		}
		if (Matches(event.only, load->run->point->values))
			load->run->notes->push_back("the load \"" + load->step->name +
						    "\" ended before its event at " + event.at +
						    ", which ran after the load");
		if (!RunEvent(load, error))
			return false;
	}
	return true;
}

// Logs have milliseconds, so a line in the event's millisecond may look earlier.
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
	bool alone = !run->scratch.empty();
	load.directory = !alone	       ? run->directory + "/" + step.name
			 : step.record ? run->directory
				       : run->scratch + "/" + step.name;
	load.figures = (alone ? run->scratch : load.directory) + "/load.json";
	std::error_code ec;
	fs::create_directories(load.directory, ec);
	run->step = step.name;
	Counters before, after;
	if (!ReadCounters(run->session, *run->topology, &before, error) || !StartLoad(&load, error) ||
	    !Follow(&load, error) || !ReadCounters(run->session, *run->topology, &after, error))
		return false;
	if (load.recorder && (!WaitForEnd(run->session, load.recorder, SIGINT, kRecorderSeconds, error) ||
			      !forktail::lab::Succeeded(*load.recorder, error)))
		return false;
	if (!AwaitFork(run, &load.forks, error) ||
	    (load.recorder && !WriteRunJson(*run, {step.name, run->commands, &load.forks, load.started_unix},
					    load.directory + "/run.json", error)))
		return false;
	bool read = load.child->command.name == "forktail-load"
			? AddLoadFigures(step.name, load.figures, NamesOf(*run->topology), run->point, error)
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

std::vector<TimedEvent> EventTimes(const StepSpec &step, const std::vector<std::string> &words)
{
	const double load_seconds = DurationOf(words);
	std::vector<TimedEvent> events;
	for (const Action &event : step.events) {
		Due due;
		ParseDue(event.at, &due);
		events.emplace_back(due.is_share ? due.share * load_seconds : due.seconds, &event);
	}
	std::stable_sort(events.begin(), events.end(),
			 [](const auto &a, const auto &b) { return a.first < b.first; });
	return events;
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

namespace
{

// Arguments of explain or report for a directory.
std::vector<std::string> Words(const PointRun &run, const std::string &command, const std::string &directory,
			       const std::string &step)
{
	std::vector<std::string> words = {command, directory};
	for (const StepSpec &spec : run.scenario->steps)
		if (spec.name == step && !spec.slow.empty() && Matches(spec.only, run.point->values))
			words.insert(words.end(), {"--slow", spec.slow});
	return words;
}

bool WriteReport(PointRun *run, const std::string &directory, const std::string &step, std::string *error)
{
	std::vector<std::string> words = Words(*run, "report", directory, step);
	words.insert(words.end(), {"-o", directory + "/report.html"});
	return RunForktail(run->session, run->programs, words, "/dev/null", error);
}

// If the load searched for a rate, explains the runs at the highest that held and at the next one.
bool ExplainSearch(PointRun *run, const std::string &directory, const std::string &step, std::string *error)
{
	std::vector<SearchedRate> rates;
	if (!AddSearch(step, directory + "/load.json", run->point, &rates, error))
		return false;
	for (const SearchedRate &rate : rates) {
		std::string name = step + "." + rate.name, json = directory + "/" + rate.name + ".json";
		std::vector<std::string> words = Words(*run, "explain", directory, step);
		words.insert(words.end(),
			     {"--json", "--requests", "--since", rate.since, "--until", rate.until});
		if (!RunForktail(run->session, run->programs, words, json, error) ||
		    !AddExplanation(name, json, NamesOf(*run->topology), run->point, error))
			return false;
		NameCause(name, rate.client_at_limit, run->point);
	}
	return true;
}

} // namespace

bool ExplainSteps(PointRun *run, std::string *error)
{
	for (const std::string &step : run->point->recorded) {
		std::string directory = run->directory + "/" + step, json = directory + "/explain.json";
		std::vector<std::string> words = Words(*run, "explain", directory, step);
		std::string command = "forktail";
		for (const std::string &word : words)
			command += " " + word;
		Say("explaining " + step + ": " + command); // with the threshold of the scenario
		words.insert(words.end(), {"--json", "--requests"});
		if (!RunForktail(run->session, run->programs, words, json, error) ||
		    !AddExplanation(step, json, NamesOf(*run->topology), run->point, error) ||
		    !ExplainSearch(run, directory, step, error) || !WriteReport(run, directory, step, error))
			return false;
	}
	return true;
}

bool PrintExplanation(PointRun *run, std::string *error)
{
	const std::string &step = run->point->recorded.at(0), &directory = run->directory;
	Say("explaining " + directory);
	if (RunForktail(run->session, run->programs, Words(*run, "explain", directory, step), "", error) &&
	    WriteReport(run, directory, step, error))
		return true;
	*error += "\nThe recordings are in " + directory;
	return false;
}

} // namespace forktail::lab

// SPDX-License-Identifier: MIT
// Runs the points of a scenario, groups of them on the same servers, and repeats; or the single recording of
// a scenario that prints its explanation.
#include "experiment.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>

#include "common/format.h"
#include "files.h"
#include "lab/host/machine.h"
#include "lab/host/swap.h"
#include "lab/scenario/words.h"
#include "lab/servers/kinds.h"
#include "lab/servers/servers.h"
#include "programs.h"
#include "progress.h"
#include "recording/recording.h"
#include "steps.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

// One point, once.
struct Task {
	Values values;
	int repeat = 0;
	std::string name;  // of its directory under points/
	std::string group; // tasks of a group share their servers
	std::string label; // for messages
};

struct Experiment {
	Session *session;
	const Scenario &scenario;
	const ExperimentOptions &options;
	Results *results;
	std::string out, programs; // absolute; as typed for an explanation
	std::string scratch;	   // a temporary directory, or ""
	std::vector<Task> tasks;
	Topology topology;
	Swap swap;
	bool swapping = false;
};

std::string Plain(const std::string &text)
{
	std::string plain;
	for (char c : text)
		plain += isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
	return plain;
}

void AddTasks(Experiment *experiment)
{
	const Scenario &scenario = experiment->scenario;
	std::vector<Values> points = PointsOf(scenario, experiment->options.scale);
	for (int repeat = 0; repeat < experiment->options.repeats; repeat++)
		for (const Values &values : points) {
			Task task;
			task.values = values;
			task.repeat = repeat;
			for (const Sweep &sweep : scenario.sweeps) {
				const std::string &value = values.at(sweep.name);
				task.label += (task.label.empty() ? "" : ", ") + sweep.name + " " + value;
				task.name += (task.name.empty() ? "" : ",") + sweep.name + "=" + Plain(value);
				if (!sweep.keep_servers)
					task.group += value + "/";
			}
			if (task.name.empty())
				task.name = "point";
			if (experiment->options.repeats > 1) {
				task.name += ",repeat=" + std::to_string(repeat + 1);
				task.label += " (" + std::to_string(repeat + 1) + " of " +
					      std::to_string(experiment->options.repeats) + ")";
			}
			task.group += std::to_string(repeat);
			experiment->tasks.push_back(task);
		}
}

// Points must have different directory names: small scales and replaced characters can make them equal.
bool AreApart(const Experiment &experiment, std::string *error)
{
	std::set<std::string> names;
	for (const Task &task : experiment.tasks)
		if (!names.insert(task.name).second) {
			*error = experiment.scenario.file +
				 ": two points are the same at this scale: " + task.label;
			return false;
		}
	return true;
}

std::string DirectoryOf(const Experiment &experiment, const Task &task)
{
	return experiment.scenario.explanation ? experiment.out : experiment.out + "/points/" + task.name;
}

std::string LogsOf(const Experiment &experiment, const Task &task)
{
	return DirectoryOf(experiment, task) + (experiment.scenario.explanation ? "" : "/logs");
}

std::string FileOf(const Experiment &experiment, const Task &task)
{
	return DirectoryOf(experiment, task) + "/point.json";
}

bool IsDone(const Experiment &experiment, const Task &task)
{
	return fs::exists(FileOf(experiment, task));
}

// Points on the same servers must be repeated together, because the servers' data depends on the earlier
// points.
bool GroupIsDone(const Experiment &experiment, const std::string &group)
{
	return std::all_of(experiment.tasks.begin(), experiment.tasks.end(),
			   [&](const Task &task) { return task.group != group || IsDone(experiment, task); });
}

// The identity of a run directory, so that no other run continues in it.
std::string Identity(const Experiment &experiment)
{
	std::string settings;
	for (const auto &[name, value] : experiment.options.settings)
		settings += "\nset " + name + "=" + value;
	if (experiment.options.no_client)
		settings += "\nno client";
	return "scale " + experiment.options.scale_text + "\nrepeats " +
	       std::to_string(experiment.options.repeats) + settings + kIdentityEnd +
	       ReadFile(experiment.scenario.file);
}

bool OpenDirectory(Experiment *experiment, std::string *error)
{
	std::error_code ec;
	experiment->out = fs::absolute(experiment->options.out, ec).lexically_normal();
	std::string identity = experiment->out + "/" + kIdentityFile;
	if (fs::exists(experiment->out)) {
		if (!experiment->options.resume) {
			*error = experiment->options.out +
				 " exists: name another directory, or use --resume to continue in it";
			return false;
		}
		if (!HoldsNothing(experiment->out)) {
			if (ReadFile(identity) == Identity(*experiment))
				return true;
			*error = experiment->options.out +
				 " was started with another scenario file, scale or number of repeats";
			return false;
		}
	}
	if (fs::create_directories(experiment->out + "/points", ec); ec) {
		*error = "cannot create the directory " + experiment->options.out + ": " + ec.message();
		return false;
	}
	return ReplaceFile(identity, Identity(*experiment), error);
}

bool DropSwap(Experiment *experiment, std::string *error)
{
	bool had = experiment->swapping;
	experiment->swapping = false;
	return !had || RemoveSwap(experiment->session, &experiment->swap, error);
}

// Swap stays for all points of a group: removing it would read all pages back.
bool SetSwap(Experiment *experiment, const Values &values, std::string *error)
{
	const SwapSpec &spec = experiment->scenario.swap;
	if (!DropSwap(experiment, error))
		return false;
	if (spec.kind.empty() || !Matches(spec.only, values))
		return true;
	std::string size, directory;
	uint64_t bytes = 0;
	if (!Expand(spec.size, values, &size, error))
		return false;
	if (!ParseBytes(size, &bytes)) {
		*error = "\"" + size + "\" is not a size for swap, such as 256MiB";
		return false;
	}
	if (!MakeTempDirectory(experiment->session, &directory, error) ||
	    !MakeSwap(experiment->session, spec.kind, bytes, directory, &experiment->swap, error))
		return false;
	experiment->swapping = true;
	return true;
}

// "redis-server 7.0.15, pid 13640, on a Unix socket in /tmp/forktail-lab.x/redis".
void SayServer(const Instance &instance)
{
	Say(fs::path(instance.child->command.argv[0]).filename().string() + " " + instance.version +
	    ", pid " + std::to_string(instance.child->pid) + ", on " +
	    (instance.port ? instance.Address() : "a Unix socket in " + instance.directory));
}

bool StartGroup(Experiment *experiment, const Task &task, std::string *error)
{
	if (!StopServers(experiment->session, &experiment->topology, error) ||
	    !SetSwap(experiment, task.values, error))
		return false;
	for (const ServerSpec &spec : experiment->scenario.servers) {
		ServerPlan plan;
		if (spec.later || !Matches(spec.only, task.values))
			continue;
		plan.by_program = experiment->options.plain;
		if (!MakePlan(spec, task.values, &plan, error) ||
		    !StartServers(experiment->session, plan, LogsOf(*experiment, task), &experiment->topology,
				  error)) {
			if (!experiment->options.plain)
				*error = experiment->scenario.file + ":" + std::to_string(spec.line) + ": " +
					 *error;
			return false;
		}
		if (spec.say)
			for (const Instance *instance : InstancesOf(experiment->topology, spec.name))
				SayServer(*instance);
	}
	for (const auto &instance : experiment->topology.instances)
		experiment->results->versions[instance->kind->name] = instance->version;
	return true;
}

PointRun RunOf(Experiment *experiment, const Task &task, Results *done)
{
	PointRun run;
	run.session = experiment->session;
	run.scenario = &experiment->scenario;
	run.programs = experiment->programs;
	run.directory = DirectoryOf(*experiment, task);
	run.logs = LogsOf(*experiment, task);
	run.plain = experiment->options.plain;
	run.topology = &experiment->topology;
	run.point = &done->points[0];
	run.notes = &done->notes;
	return run;
}

bool RunSteps(PointRun *run, std::string *error)
{
	for (const StepSpec &step : run->scenario->steps)
		if (!RunStep(run, step, error))
			return false;
	return true;
}

bool RunTask(Experiment *experiment, const Task &task, bool fresh, std::string *error)
{
	std::string directory = DirectoryOf(*experiment, task);
	std::error_code ec;
	fs::remove_all(directory, ec);
	fs::create_directories(directory + "/logs", ec);
	Results done;
	done.points.resize(1);
	Point &point = done.points[0];
	point.values = task.values;
	if (fresh && !StartGroup(experiment, task, error))
		return false;
	PointRun run = RunOf(experiment, task, &done);
	if (!RunSteps(&run, error) || !ExplainSteps(&run, error))
		return false;
	done.versions = experiment->results->versions;
	for (std::string &step : point.recorded)
		step = "points/" + task.name + "/" + step;
	return WriteResults(FileOf(*experiment, task), done, error);
}

// The keeper removes the directory unless all steps succeed.
bool MakeRunDirectory(const Experiment &experiment, std::string *error)
{
	std::error_code ec;
	fs::path path = fs::absolute(experiment.out, ec);
	fs::create_directories(path.parent_path(), ec);
	if (mkdir(path.c_str(), 0755) != 0) {
		*error = "cannot create the run directory " + experiment.out + ": " + std::strerror(errno);
		return false;
	}
	Keep(experiment.session->keeper, Leftover::kDirectory, path);
	return true;
}

// The one recording of a scenario that prints its explanation.
bool RunRecording(Experiment *experiment, std::string *error)
{
	if (experiment->options.resume && fs::exists(experiment->out))
		return true; // it exists only if it is complete
	const Task &task = experiment->tasks[0];
	Results done;
	done.points.resize(1);
	done.points[0].values = task.values;
	PointRun run = RunOf(experiment, task, &done);
	run.scratch = experiment->scratch;
	if (!StartGroup(experiment, task, error) || !RunSteps(&run, error) ||
	    !StopServers(experiment->session, &experiment->topology, error) || !DropSwap(experiment, error))
		return false;
	Release(experiment->session->keeper, Leftover::kDirectory, fs::absolute(experiment->out));
	for (const std::string &note : done.notes)
		Say("note: " + note);
	return PrintExplanation(&run, error);
}

// Reduces the data set to the size that this machine has space for.
bool Fit(Scenario *scenario, const Scale &scale, const std::string &directory, std::string *error)
{
	auto size = std::find_if(scenario->sizes.begin(), scenario->sizes.end(),
				 [&](const Size &one) { return one.name == scenario->fit; });
	uint64_t wanted_mb = std::stoull(PointsOf(*scenario, scale)[0].at(scenario->fit));
	std::string why;
	uint64_t size_mb = ChooseSizeMb(wanted_mb, AvailableMemoryBytes(), RoomIn(directory), &why);
	if (size_mb == 0) {
		*error = why + ": that is too little for the scenario " + scenario->name;
		return false;
	}
	if (size_mb == wanted_mb)
		return true;
	Say("the data set is " + std::to_string(size_mb) + " MiB instead of " + std::to_string(wanted_mb) +
	    ": " + why);
	size->full = size->least = static_cast<double>(size_mb);
	size->fixed = true;
	return true;
}

std::string TimeLeft(uint64_t start_ns, size_t done, size_t left)
{
	if (done == 0)
		return "";
	uint64_t each_ns = (ft_now_ns() - start_ns) / done;
	return "; about " + common::FormatDuration(each_ns * left) + " left";
}

bool RunTasks(Experiment *experiment, std::string *error)
{
	std::vector<const Task *> left;
	for (const Task &task : experiment->tasks)
		if (!GroupIsDone(*experiment, task.group))
			left.push_back(&task);
	uint64_t start_ns = ft_now_ns();
	for (size_t i = 0; i < left.size(); i++) {
		const Task &task = *left[i];
		Say(experiment->scenario.name + ", point " +
		    std::to_string(experiment->tasks.size() - left.size() + i + 1) + " of " +
		    std::to_string(experiment->tasks.size()) + (task.label.empty() ? "" : ": " + task.label) +
		    TimeLeft(start_ns, i, left.size() - i));
		if (!RunTask(experiment, task, i == 0 || left[i - 1]->group != task.group, error))
			return false;
	}
	return StopServers(experiment->session, &experiment->topology, error) && DropSwap(experiment, error);
}

double Median(std::vector<double> numbers)
{
	std::sort(numbers.begin(), numbers.end());
	size_t middle = numbers.size() / 2;
	return numbers.size() % 2 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

// Merges the repeats of a point.
Point Merge(const std::vector<Point> &repeats)
{
	Point merged = repeats.back();
	merged.repeats = static_cast<int>(repeats.size());
	if (repeats.size() == 1)
		return merged;
	std::map<std::string, std::vector<double>> all;
	for (const Point &point : repeats)
		for (const auto &[name, number] : point.numbers)
			all[name].push_back(number);
	for (const auto &[name, numbers] : all) {
		merged.numbers[name] = Median(numbers);
		merged.least[name] = *std::min_element(numbers.begin(), numbers.end());
		merged.most[name] = *std::max_element(numbers.begin(), numbers.end());
	}
	return merged;
}

bool Collect(Experiment *experiment, std::string *error)
{
	Results *results = experiment->results;
	size_t points = experiment->tasks.size() / static_cast<size_t>(experiment->options.repeats);
	for (size_t i = 0; i < points; i++) {
		std::vector<Point> repeats;
		for (size_t task = i; task < experiment->tasks.size(); task += points) {
			Results one;
			if (!ReadResults(FileOf(*experiment, experiment->tasks[task]), &one, error))
				return false;
			repeats.push_back(one.points.at(0));
			results->versions.insert(one.versions.begin(), one.versions.end());
			for (const std::string &note : one.notes)
				if (std::find(results->notes.begin(), results->notes.end(), note) ==
				    results->notes.end())
					results->notes.push_back(note);
		}
		results->points.push_back(Merge(repeats));
	}
	return WriteResults(experiment->out + "/results.json", *results, error);
}

// Creates directories and tasks.
bool Prepare(Experiment *experiment, Scenario *fitted, std::string *error)
{
	const ExperimentOptions &options = experiment->options;
	bool begun = options.resume && fs::exists(options.out);
	if (fitted->explanation) {
		experiment->out = options.out;
		if (!begun && !MakeRunDirectory(*experiment, error))
			return false;
	}
	if ((fitted->explanation || !fitted->fit.empty()) &&
	    !MakeTempDirectory(experiment->session, &experiment->scratch, error))
		return false;
	if (!fitted->fit.empty() && !Fit(fitted, options.scale, experiment->scratch, error))
		return false;
	AddTasks(experiment);
	return fitted->explanation || (AreApart(*experiment, error) && OpenDirectory(experiment, error));
}

} // namespace

bool RunExperiment(Session *session, const Scenario &scenario, const ExperimentOptions &options,
		   Results *results, std::string *error)
{
	uint64_t start_ns = ft_now_ns();
	*results = {};
	results->scenario = scenario.name;
	results->title = scenario.title;
	results->host = HostName();
	results->kernel = KernelRelease();
	results->cpu = CpuName();
	results->versions["forktail"] = FORKTAIL_VERSION;
	results->scale = options.scale_text;
	results->command = options.command;
	results->started_unix = time(nullptr);
	Scenario fitted = scenario;
	Experiment experiment{session, fitted, options, results, "", "", "", {}, {}, {}, false};
	if (!FindPrograms(&experiment.programs, error) || !Prepare(&experiment, &fitted, error))
		return false;
	if (scenario.explanation ? !RunRecording(&experiment, error) : !RunTasks(&experiment, error)) {
		// Restores the machine for the next experiment of this session.
		std::string unheard;
		EndChildren(session);
		StopServers(session, &experiment.topology, &unheard);
		DropSwap(&experiment, &unheard);
		return false;
	}
	results->seconds = static_cast<double>(ft_now_ns() - start_ns) / 1e9;
	return scenario.explanation || Collect(&experiment, error);
}

bool NeedsRoot(const Scenario &scenario)
{
	auto limited = [](const ServerSpec &server) { return !server.memory.empty(); };
	auto spreads = [](const Action &action) { return !action.spread.empty(); };
	auto records = [&](const StepSpec &step) {
		return step.record || spreads(step.action) ||
		       std::any_of(step.events.begin(), step.events.end(), spreads);
	};
	return !scenario.swap.kind.empty() ||
	       std::any_of(scenario.servers.begin(), scenario.servers.end(), limited) ||
	       std::any_of(scenario.steps.begin(), scenario.steps.end(), records);
}

} // namespace forktail::lab

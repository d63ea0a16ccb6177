// SPDX-License-Identifier: MIT
// Parses the command line and opens a session for commands that start programs, so that signals and errors
// leave nothing behind.
#include "lab.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <unistd.h>

#include "commands.h"
#include "common/json.h"
#include "pairs.h"
#include "serve.h"

namespace forktail::lab
{
namespace
{

constexpr int kDone = 0, kUsage = 2, kEnvironment = 3;

void Complain(const std::string &error)
{
	// The text may contain output of a server.
	fprintf(stderr, "forktail lab: %s\n", common::VisibleLines(error).c_str());
}

// Runs `work` in a session, which is always cleaned up.
int InSession(const std::function<bool(Session *, std::string *)> &work)
{
	Session session;
	std::string error, left;
	bool good = OpenSession(&session, &error) && work(&session, &error);
	bool clean = CloseSession(&session, &left);
	int signal = StopSignal();
	if (!good)
		Complain(error);
	if (!clean)
		Complain(left);
	if (!good && signal) {
		// The parent, often a shell script, must see the signal.
		std::signal(signal, SIG_DFL);
		raise(signal);
	}
	return good && clean ? kDone : kEnvironment;
}

bool IsRoot(const char *why)
{
	if (geteuid() == 0)
		return true;
	Complain(std::string(why) + ", which needs root: use sudo");
	return false;
}

// The demo's options become constants of its scenario.
struct DemoOptions {
	double seconds = 30, rate = 10'000;
	uint64_t size_mb = 1024;
};

std::string Setting(double number)
{
	char text[32];
	snprintf(text, sizeof text, "%.10g", number);
	return text;
}

void AddNoClient(CLI::App *run, RunOptions *options)
{
	run->add_flag("--no-client", options->no_client, "Do not record the threads of the load generator");
}

void AddDemo(CLI::App *app, DemoOptions *demo, RunOptions *options)
{
	CLI::App *run = app->add_subcommand(
	    "demo", "Record one redis-server under load while it takes a snapshot and rewrites its AOF.");
	run->add_option("--out", options->out, "Create this run directory (default: runs/demo-<time>)")
	    ->type_name("DIR");
	run->add_option("--seconds", demo->seconds, "Run the load for S seconds")
	    ->type_name("S")
	    ->check(CLI::Range(1.0, 3600.0))
	    ->capture_default_str();
	run->add_option("--rate", demo->rate, "Send R requests per second")
	    ->type_name("R")
	    ->check(CLI::Range(1.0, 10e6))
	    ->capture_default_str();
	run->add_option("--size-mb", demo->size_mb, "Fill the server with a data set of N MiB of its memory")
	    ->type_name("N")
	    ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
	    ->capture_default_str();
	AddNoClient(run, options);
}

void AddRun(CLI::App *app, RunOptions *options, std::vector<std::string> *settings)
{
	CLI::App *run = app->add_subcommand("run", "Run scenarios and print their tables.");
	run->add_option("NAME", options->names, "Name of a scenario, its file, or all")->required();
	run->add_option("--scale", options->scale,
			"Run at this scale: small, another scale of the scenario, or a factor")
	    ->type_name("F")
	    ->capture_default_str();
	run->add_option("--out", options->out, "Create this directory (default: runs/NAME-<time>)")
	    ->type_name("DIR");
	run->add_option("--repeat", options->repeats, "Run every point N times and print medians")
	    ->type_name("N")
	    ->check(CLI::Range(1, 1000))
	    ->capture_default_str();
	run->add_option("--write", options->document, "Also write tables and charts to this Markdown file")
	    ->type_name("FILE");
	run->add_option("--set", *settings, "Change a constant or a size of the scenario")
	    ->type_name("NAME=VALUE")
	    ->allow_extra_args(false);
	run->add_flag("--resume", options->resume, "Continue an interrupted run in its directory");
	AddNoClient(run, options);
}

void AddPairs(CLI::App *app, PairsOptions *pairs, std::vector<std::string> *settings)
{
	CLI::App *run = app->add_subcommand(
	    "pairs", "Run a scenario in pairs, for forktail diff: base against new, in random order.");
	run->add_option("SCENARIO", pairs->run.names, "Name of a scenario, or its file")
	    ->required()
	    ->expected(1);
	run->add_option(
	    "--base", pairs->base,
	    "The base side: a server program, a file with server settings, or NAME=VALUE settings "
	    "of the server or the scenario (default: the scenario unchanged)");
	run->add_option("--new", pairs->now, "The new side, in the same formats");
	run->add_option("--pairs", pairs->pairs, "Run N pairs")
	    ->type_name("N")
	    ->check(CLI::Range(1, 1000))
	    ->capture_default_str();
	run->add_option("--seed", pairs->seed, "Seed for the order of the runs and for the loads")
	    ->type_name("N")
	    ->capture_default_str();
	run->add_option("-o,--out", pairs->run.out, "Create this directory")->required()->type_name("DIR");
	run->add_option("--scale", pairs->run.scale,
			"Run at this scale: small, another scale of the scenario, or a factor")
	    ->type_name("F")
	    ->capture_default_str();
	run->add_option("--set", *settings, "Change a constant or a size of the scenario on both sides")
	    ->type_name("NAME=VALUE")
	    ->allow_extra_args(false);
	run->add_flag("--resume", pairs->run.resume, "Continue an interrupted run in its directory");
	AddNoClient(run, &pairs->run);
}

void AddServe(CLI::App *app, ServeOptions *options)
{
	ServerPlan &plan = options->plan;
	CLI::App *serve = app->add_subcommand("serve", "Start servers, print their addresses as one line of "
						       "JSON, and stop them when standard input closes.");
	serve->add_option("KIND", plan.kind, "redis, memcached or another kind of server in scenarios")
	    ->required();
	serve->add_option("ARGUMENT", plan.config, "After --: more arguments for the servers");
	serve->add_option("--count", plan.count, "Start N servers")
	    ->type_name("N")
	    ->check(CLI::Range(1, 100))
	    ->capture_default_str();
	serve->add_flag("--tcp", plan.tcp, "Listen on free ports of 127.0.0.1 (default: on Unix sockets)");
	serve->add_flag("--cluster", plan.cluster, "Join the servers as primaries of a Redis Cluster");
	serve->add_option("--replicas", plan.replicas, "Start N replicas of each primary")
	    ->type_name("N")
	    ->check(CLI::Range(0, 100))
	    ->capture_default_str();
	serve->add_option("--of", options->of, "Forward to the server at this address; repeatable")
	    ->type_name("ADDRESS")
	    ->allow_extra_args(false);
	serve->add_option("--cpus", plan.cpus, "Run all servers on these CPUs, or each on its own CPU")
	    ->type_name("LIST|each");
	serve->add_option("--env", plan.environment, "Set an environment variable of the servers; repeatable")
	    ->type_name("NAME=VALUE")
	    ->allow_extra_args(false);
	serve
	    ->add_option("--program", plan.program,
			 "Run this program (default: the usual program of the kind)")
	    ->type_name("FILE");
	serve
	    ->add_option(
		"--directory", options->directory,
		"Keep data, sockets and logs in DIR (default: a temporary directory, removed at the end)")
	    ->type_name("DIR");
}

// Converts the demo's options to a run of its scenario.
void TakeDemo(const DemoOptions &demo, RunOptions *run)
{
	run->names = {"demo"};
	run->scale = "1";
	run->plain = true;
	run->settings = {{"seconds", Setting(demo.seconds)},
			 {"rate", Setting(demo.rate)},
			 {"size_mb", std::to_string(demo.size_mb)}};
}

// Parses "NAME=VALUE" settings. False: the error is printed.
bool TakeSettings(const std::vector<std::string> &settings, RunOptions *run)
{
	for (const std::string &setting : settings) {
		size_t equals = setting.find('=');
		if (equals == std::string::npos) {
			Complain("--set needs NAME=VALUE, not " + setting);
			return false;
		}
		run->settings[setting.substr(0, equals)] = setting.substr(equals + 1);
	}
	return true;
}

int RunAll(const std::string &directory, const RunOptions &run)
{
	std::string error;
	std::vector<Scenario> scenarios;
	if (!LoadScenarios(directory, run, &scenarios, &error)) {
		Complain(error);
		return kUsage;
	}
	for (const Scenario &scenario : scenarios)
		if (NeedsRoot(scenario) &&
		    !IsRoot(("the scenario " + scenario.name + " records or limits its servers").c_str()))
			return kEnvironment;
	bool wrong = false;
	int status = InSession([&](Session *session, std::string *why) {
		return RunScenarios(session, scenarios, run, &wrong, why);
	});
	return wrong ? kUsage : status;
}

int RunAllPairs(const std::string &directory, const PairsOptions &pairs)
{
	std::string error;
	if (!CheckPairs(directory, pairs, &error)) {
		Complain(error);
		return kUsage;
	}
	if (!IsRoot("lab pairs records with BPF programs"))
		return kEnvironment;
	return InSession(
	    [&](Session *session, std::string *why) { return RunPairs(session, directory, pairs, why); });
}

int ServeAll(const ServeOptions &options)
{
	std::string error;
	std::vector<ServerPlan> plans;
	if (!PlanServe(options, &plans, &error)) {
		Complain(error);
		return kUsage;
	}
	return InSession(
	    [&](Session *session, std::string *why) { return Serve(session, options, plans, why); });
}

} // namespace

int LabMain(int argc, char **argv)
{
	CLI::App app("Experiments: start servers, a load and the recorder, and explain what happened.",
		     "forktail lab");
	app.require_subcommand(1);
	DemoOptions demo;
	RunOptions run;
	PairsOptions pairs;
	ServeOptions serve;
	std::vector<std::string> settings, of_pairs;
	std::string shown, scale, first, second, directory;
	AddDemo(&app, &demo, &run);
	app.add_subcommand("list", "List all scenarios.");
	CLI::App *show = app.add_subcommand("show", "Describe a scenario.");
	show->add_option("NAME", shown, "Name of a scenario, or its file")->required();
	show->add_option("--scale", scale,
			 "Describe it at this scale: a scale of the scenario, or a factor (default: 1)")
	    ->type_name("F");
	AddRun(&app, &run, &settings);
	AddPairs(&app, &pairs, &of_pairs);
	AddServe(&app, &serve);
	CLI::App *compare = app.add_subcommand("compare", "Compare the tables of two runs of a scenario.");
	compare->add_option("FIRST", first, "Directory of a run")->required();
	compare->add_option("SECOND", second, "Directory of another run")->required();
	app.add_option("--scenarios", directory, "Read scenarios from DIR (default: forktail's own)")
	    ->type_name("DIR");
	for (int i = 0; i < argc; i++)
		run.command += (i ? " " : "forktail ") + std::string(argv[i]);
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &e) {
		return app.exit(e) == 0 ? kDone : kUsage;
	}

	std::string error;
	if (app.got_subcommand("demo")) {
		if (!IsRoot("lab demo records with BPF programs"))
			return kEnvironment;
		TakeDemo(demo, &run);
	}
	if (app.got_subcommand("serve"))
		return ServeAll(serve);
	if (app.got_subcommand("compare")) {
		if (CompareRuns(first, second, &error))
			return kDone;
		Complain(error);
		return kEnvironment;
	}
	if (directory.empty())
		directory = ScenarioDirectory();
	if (app.got_subcommand("list") || app.got_subcommand("show")) {
		if (shown.empty() ? ListScenarios(directory, &error)
				  : ShowScenario(directory, shown, scale, &error))
			return kDone;
		Complain(error);
		return kUsage;
	}
	pairs.run.command = run.command;
	if (app.got_subcommand("pairs"))
		return TakeSettings(of_pairs, &pairs.run) ? RunAllPairs(directory, pairs) : kUsage;
	if (!TakeSettings(settings, &run))
		return kUsage;
	return RunAll(directory, run);
}

} // namespace forktail::lab

// SPDX-License-Identifier: MIT
// See pairs.h. The keys, operations and arrivals of a pair are the same on both sides: its loads have one
// seed.
#include "pairs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

#include "lab/run/files.h"
#include "lab/run/progress.h"
#include "lab/scenario/words.h"

namespace forktail::lab
{

namespace
{

namespace fs = std::filesystem;

const char *const kIdentity = "pairs.txt", *const kOrder = "order.txt";

ServerSpec *OnlyServer(Scenario *scenario)
{
	return scenario->servers.size() == 1 ? &scenario->servers[0] : nullptr;
}

bool IsKnob(const Scenario &scenario, const std::string &name)
{
	return scenario.constants.count(name) ||
	       std::any_of(scenario.sizes.begin(), scenario.sizes.end(),
			   [&](const Size &size) { return size.name == name; });
}

// "key value value" of a redis.conf as arguments.
bool AddLine(const std::string &line, std::vector<std::string> *config)
{
	std::vector<std::string> words;
	if (line.empty() || line[0] == '#')
		return true;
	if (!SplitWords(line, &words))
		return false;
	for (size_t i = 0; i < words.size(); i++)
		config->push_back(i ? words[i] : "--" + words[i]);
	return true;
}

bool AddFile(const std::string &path, ServerSpec *server, std::string *error)
{
	std::ifstream in(path);
	for (std::string line; std::getline(in, line);) {
		size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
		line = begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
		if (AddLine(line, &server->config))
			continue;
		*error = path + ": a quote is not closed: " + line;
		return false;
	}
	return true;
}

// "key=value" each; of a value of several words, the words of the server's setting.
bool AddSettings(const std::string &side, Scenario *scenario, Values *settings, std::string *error)
{
	std::vector<std::string> words;
	if (!SplitWords(side, &words)) {
		*error = "a quote is not closed: " + side;
		return false;
	}
	for (const std::string &word : words) {
		size_t equals = word.find('=');
		if (equals == std::string::npos || equals == 0) {
			*error = word + " is not a program, a file or a setting NAME=VALUE";
			return false;
		}
		std::string name = word.substr(0, equals), value = word.substr(equals + 1);
		if (IsKnob(*scenario, name)) {
			(*settings)[name] = value;
			continue;
		}
		ServerSpec *server = OnlyServer(scenario);
		if (!server) {
			*error = scenario->name + " has several servers: it is unknown which one " + name +
				 " is for";
			return false;
		}
		server->config.push_back("--" + name);
		server->config.push_back(value);
	}
	return true;
}

// The scenario as one side of a pair has it.
bool SideOf(const std::string &directory, const PairsOptions &options, bool base, uint64_t seed,
	    Scenario *scenario, Values *settings, std::string *error)
{
	const std::string &side = base ? options.base : options.now;
	RunOptions run = options.run;
	std::vector<Scenario> scenarios;
	if (!LoadScenarios(directory, run, &scenarios, error))
		return false;
	Scenario plain = scenarios[0];
	*settings = run.settings;
	if (!ApplySide(side, &plain, settings, error))
		return false;
	// Knobs are read with the file: what the side gives them has to be there then.
	run.settings = *settings;
	scenarios.clear();
	if (!LoadScenarios(directory, run, &scenarios, error))
		return false;
	*scenario = scenarios[0];
	Values again = *settings;
	if (!ApplySide(side, scenario, &again, error))
		return false;
	scenario->explanation = false; // of that there is one run only
	for (StepSpec &step : scenario->steps)
		if (!step.load.empty() && step.load.find("--seed") == std::string::npos &&
		    step.by == "forktail-load")
			step.load += " --seed " + std::to_string(seed);
	return true;
}

std::string IdentityOf(const PairsOptions &options)
{
	return "scenario " + options.run.names[0] + "\nbase " + options.base + "\nnew " + options.now +
	       "\nseed " + std::to_string(options.seed) + "\n";
}

// A directory that was begun is gone on in if the same was asked for.
bool OpenPairs(const PairsOptions &options, std::string *error)
{
	const std::string &out = options.run.out;
	std::error_code ec;
	const std::string begun = ReadFile(out + "/" + kIdentity);
	if (!fs::exists(out, ec) || (options.run.resume && HoldsNothing(out))) {
		fs::create_directories(out, ec);
		if (!ec)
			return ReplaceFile(out + "/" + kIdentity, IdentityOf(options), error);
		*error = "cannot create the directory " + out + ": " + ec.message();
		return false;
	}
	if (options.run.resume && begun == IdentityOf(options))
		return true;
	*error = options.run.resume
		     ? out + " was started with another scenario, other sides or another seed"
		     : out + " exists: name another directory, or use --resume to continue in it";
	return false;
}

// Which side comes first, of each pair: the same for a seed, however many there are to be.
std::vector<bool> DrawOrder(const PairsOptions &options)
{
	std::mt19937_64 random(options.seed);
	std::vector<bool> base_first;
	for (int pair = 0; pair < options.pairs; pair++)
		base_first.push_back(random() & 1);
	return base_first;
}

std::string PairName(size_t pair)
{
	char name[32];
	snprintf(name, sizeof name, "pair-%02zu", pair + 1);
	return name;
}

// Before the first run: what was drawn is not chosen by what came of it.
bool WriteOrder(const std::string &out, const std::vector<bool> &base_first, std::string *error)
{
	std::string text;
	for (size_t pair = 0; pair < base_first.size(); pair++)
		text += PairName(pair) + (base_first[pair] ? " base new\n" : " new base\n");
	return ReplaceFile(out + "/" + kOrder, text, error);
}

bool RunSide(Session *session, const std::string &directory, const PairsOptions &options, size_t pair,
	     bool base, std::string *error)
{
	ExperimentOptions experiment;
	Scenario scenario;
	if (!SideOf(directory, options, base, options.seed + pair + 1, &scenario, &experiment.settings,
		    error))
		return false;
	experiment.scale_text = options.run.scale;
	experiment.out = options.run.out + (base ? "/base/" : "/new/") + PairName(pair);
	experiment.resume = options.run.resume && fs::exists(experiment.out);
	experiment.command = options.run.command;
	experiment.no_client = options.run.no_client;
	Say("pair " + std::to_string(pair + 1) + " of " + std::to_string(options.pairs) + ": " +
	    (base ? "base" : "new"));
	Results results;
	return ParseScale(scenario, options.run.scale, &experiment.scale, error) &&
	       RunExperiment(session, scenario, experiment, &results, error);
}

} // namespace

bool ApplySide(const std::string &side, Scenario *scenario, Values *settings, std::string *error)
{
	std::error_code ec;
	if (side.empty())
		return true;
	if (!fs::is_regular_file(side, ec))
		return AddSettings(side, scenario, settings, error);
	ServerSpec *server = OnlyServer(scenario);
	if (!server) {
		*error = scenario->name + " has several servers: it is unknown which one " + side + " is for";
		return false;
	}
	if (access(side.c_str(), X_OK) != 0)
		return AddFile(side, server, error);
	if (side.find('\'') != std::string::npos) {
		*error = "cannot read the version of a program with a quote in its name: " + side;
		return false;
	}
	server->program = fs::absolute(side, ec);
	return true;
}

bool CheckPairs(const std::string &directory, const PairsOptions &options, std::string *error)
{
	for (bool base : {true, false}) {
		Scenario scenario;
		Values settings;
		Scale scale;
		if (!SideOf(directory, options, base, options.seed, &scenario, &settings, error) ||
		    !ParseScale(scenario, options.run.scale, &scale, error))
			return false;
		auto recorded = std::count_if(scenario.steps.begin(), scenario.steps.end(),
					      [](const StepSpec &step) { return step.record; });
		if (recorded == 1 && PointsOf(scenario, scale).size() == 1)
			continue;
		*error = scenario.name +
			 " cannot be run in pairs: pairs need one point and one recorded load, but it has " +
			 std::to_string(PointsOf(scenario, scale).size()) + " and " +
			 std::to_string(recorded);
		return false;
	}
	return true;
}

bool RunPairs(Session *session, const std::string &directory, const PairsOptions &options, std::string *error)
{
	const std::vector<bool> base_first = DrawOrder(options);
	if (!OpenPairs(options, error) || !WriteOrder(options.run.out, base_first, error))
		return false;
	for (size_t pair = 0; pair < base_first.size(); pair++)
		if (!RunSide(session, directory, options, pair, base_first[pair], error) ||
		    !RunSide(session, directory, options, pair, !base_first[pair], error))
			return false;
	printf("forktail diff %s/base %s/new\n", options.run.out.c_str(), options.run.out.c_str());
	return true;
}

} // namespace forktail::lab

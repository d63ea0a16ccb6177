// SPDX-License-Identifier: MIT
// forktail doctor: what this host can record, by forktail-record --doctor. With a target it is the one
// command for an incident: it records the target, explains, and leaves nothing behind.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "command.h"
#include "common/files.h"
#include "common/text.h"
#include "python.h"
#include "recorded.h"

namespace forktail::cli
{
namespace
{

const char kHelp[] =
    "Print what forktail can record on this host. With a target: record it, explain, print the "
    "settings of a Redis server and its host that cause spikes, and leave nothing behind.\n"
    "\n"
    "Examples:\n"
    "  forktail doctor\n"
    "  sudo forktail doctor --port 6379 --duration 10s\n"
    "  sudo forktail doctor --port 6379 --settings --run monday\n"
    "\n"
    "Usage: forktail doctor [TARGET [OPTION...]]\n"
    "\n"
    "  -h, --help              Print this help\n"
    "      --duration TIME     Record for TIME (default: 10s); Ctrl-C ends it earlier\n"
    "      --json              Without a target, or with --settings: print JSON\n"
    "      --json-schema       Print the JSON Schema of --json\n"
    "      --port N            Record the processes that listen on TCP port N\n"
    "      --run DIR           With --settings: also say what each one's cause took in this recording\n"
    "      --settings          Only print the settings, of --port, --pid, --name or --unix\n"
    "\n"
    "forktail record --help has the other targets (--pid, --unix, --name, --container, "
    "--unit, --cgroup) and options,\n"
    "which are the same here.\n"
    "Exit status: 0 done; 1 without a target: a recording would lack something, with "
    "--settings: one applies; 2 wrong usage; 3 this host or the target cannot be recorded.\n";

// Options of doctor, and as forktail.settings takes them.
using Options = std::vector<std::pair<std::string, const char *>>;
const Options kServer = {
    {"--port", "--port"}, {"--pid", "--pid"}, {"-p", "--pid"}, {"--name", "--name"}, {"--unix", "--socket"}};
const Options kRun = {{"--run", "--run"}};

// The first of these options that is given, with its value: {"--port", "6379"}. Empty: none.
std::vector<std::string> Given(const std::vector<std::string> &words, const Options &options)
{
	for (size_t i = 0; i < words.size(); i++)
		for (const auto &[given, taken] : options) {
			if (words[i] == given && i + 1 < words.size())
				return {taken, words[i + 1]};
			if (words[i].starts_with(given + "="))
				return {taken, words[i].substr(given.size() + 1)};
		}
	return {};
}

int Settings(std::vector<std::string> words)
{
	std::vector<char *> argv;
	for (std::string &word : words)
		argv.push_back(word.data());
	return RunPython("settings", {"redis"}, static_cast<int>(argv.size()), argv.data());
}

// The settings of the server that was recorded, if it can be asked, with what their causes took in the
// recording. A child: this process has a directory to remove.
void PrintSettings(std::vector<std::string> server, const std::string &run)
{
	if (server.empty())
		return;
	server.insert(server.end(), {"--optional", "--run", run});
	printf("\n");
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0)
		_exit(Settings(std::move(server)));
	if (child > 0)
		waitpid(child, nullptr, 0);
}

} // namespace

int DoctorCommand(int argc, char **argv)
{
	std::vector<std::string> words(argv, argv + argc);
	if (HasOption(words, "help", 'h')) {
		fputs(Wrapped(kHelp, Columns()).c_str(), stdout);
		return kDone;
	}
	if (HasOption(words, "settings")) {
		if (!HasOption(words, "json") && HasOption(words, "json-schema"))
			return Settings({"--json-schema"});
		std::vector<std::string> asked = Given(words, kServer);
		if (asked.empty())
			return Refuse("--settings needs a server: --port, --pid, --name or --unix", kUsage);
		const std::vector<std::string> run = Given(words, kRun);
		asked.insert(asked.end(), run.begin(), run.end());
		if (HasOption(words, "json"))
			asked.push_back("--json");
		return Settings(asked);
	}
	if (!HasTarget(words))
		return RunProgram("forktail-record", "--doctor", argc, argv);
	for (const char *kept : {"output", "keep", "config"})
		if (HasOption(words, kept, *kept == 'o' ? 'o' : 0))
			return Refuse(
			    std::string("forktail doctor leaves no recording behind, so it takes no --") +
				kept + ". Use forktail record",
			    kUsage);
	if (!HasOption(words, "duration"))
		words.insert(words.end(), {"--duration", "10s"});
	common::Pending directory; // removed at the end
	const char *root = getenv("TMPDIR");
	std::string error;
	if (!directory.Begin(std::string(root && *root ? root : "/tmp") + "/forktail-doctor",
			     common::Pending::kDirectory, &error))
		return Refuse(error + ". Set TMPDIR to another directory", kCant);
	words.insert(words.end(), {"--output", directory.at() + "/server.forktail"});
	const Recorded recorded = Supervise({.recorder = words, .command = {}, .line = can_rewrite_line()});
	if (!recorded.recorded)
		return recorded.status;
	const int status = PrintExplanation(recorded.path, STDOUT_FILENO, false);
	if (status == kDone)
		PrintSettings(Given(words, kServer), recorded.path);
	return status;
}

} // namespace forktail::cli

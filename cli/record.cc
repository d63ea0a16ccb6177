// SPDX-License-Identifier: MIT
// forktail record: runs forktail-record. With --config FILE the options come from the service's
// configuration, followed by those of the command line, which override them. With `-- COMMAND`, or on a
// terminal, it supervises the recorder and explains the recording (recorded.h); else it becomes the recorder.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "command.h"
#include "common/format.h"
#include "common/json.h"
#include "common/text.h"
#include "live/config.h"
#include "recorded.h"

namespace forktail::cli
{
namespace
{

// The arguments without --config FILE, --config=FILE and --check.
struct Words {
	std::string config;
	bool configured = false, check = false, help = false;
	std::vector<char *> rest;
};

Words Sort(int argc, char **argv)
{
	constexpr char option[] = "--config";
	constexpr size_t length = sizeof(option) - 1;
	Words w;
	for (int i = 0; i < argc; i++) {
		const bool begins = strncmp(argv[i], option, length) == 0;
		if (begins && argv[i][length] == 0 && i + 1 < argc) {
			w.config = argv[++i];
			w.configured = true;
		} else if (begins && argv[i][length] == '=') {
			w.config = argv[i] + length + 1;
			w.configured = true;
		} else if (strcmp(argv[i], "--check") == 0) {
			w.check = true;
		} else {
			w.rest.push_back(argv[i]);
		}
	}
	return w;
}

// Prints the meaning of the configuration file, for --check.
int Describe(const live::guard::Config &config)
{
	std::string line = "forktail-record";
	for (const std::string &word : config.record)
		line += " " + common::Visible(word);
	printf("%s\n", line.c_str());
	for (const live::guard::Trigger &t : config.triggers) {
		printf(
		    "%s: %s, from %s before to %s after%s\n", t.name.c_str(),
		    t.rule.text.empty() ? "on request" : t.rule.text.c_str(),
		    common::FormatDuration(t.before_ns).c_str(), common::FormatDuration(t.after_ns).c_str(),
		    t.command.argv.empty() ? "" : (", then " + common::Visible(t.command.argv[0])).c_str());
	}
	return kDone;
}

// Records while a command runs, or with a line on the terminal.
int RecordHere(std::vector<std::string> recorder, const std::vector<std::string> &command)
{
	if (!command.empty() && !HasOption(recorder, "output", 'o'))
		recorder.insert(recorder.end(),
				{"--output", "server.forktail"}); // as perf record has a default
	const Recorded recorded =
	    Supervise({.recorder = recorder, .command = command, .line = can_rewrite_line()});
	// On standard error, because standard output is the command's.
	if (recorded.recorded)
		PrintExplanation(RunOf(recorded), STDERR_FILENO, command.empty());
	return recorded.status;
}

} // namespace

int RecordCommand(int argc, char **argv)
{
	const std::vector<std::string> given(argv, argv + argc);
	const auto dashes = std::find(given.begin(), given.end(), "--");
	if (dashes != given.end() && dashes + 1 != given.end())
		return RecordHere({given.begin(), dashes}, {dashes + 1, given.end()});
	Words words = Sort(argc, argv);
	if (can_rewrite_line() && !words.configured && !words.check && !HasOption(given, "keep") &&
	    !HasOption(given, "help", '?') && !HasOption(given, "version", 'V') && HasTarget(given))
		return RecordHere(given, {});
	if (!words.configured)
		return words.check
			   ? Refuse("--check needs a configuration: forktail record --config FILE --check",
				    kUsage)
			   : RunProgram("forktail-record", nullptr, argc, argv);
	live::guard::Config config;
	std::string error;
	std::error_code ec;
	words.config = std::filesystem::absolute(words.config, ec);
	if (!live::guard::ReadConfig(words.config, &config, &error))
		return Refuse(error, kUsage);
	if (words.check)
		return Describe(config);
	config.record.insert(config.record.end(), {"--config", words.config});
	std::vector<char *> all;
	for (std::string &word : config.record)
		all.push_back(word.data());
	all.insert(all.end(), words.rest.begin(), words.rest.end());
	return RunProgram("forktail-record", nullptr, static_cast<int>(all.size()), all.data());
}

} // namespace forktail::cli

// SPDX-License-Identifier: MIT
// forktail doctor: what this host can record, by forktail-record --doctor. With a target it is the one
// command for an incident: it records the target, explains, and leaves nothing behind.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "command.h"
#include "common/files.h"
#include "common/text.h"
#include "recorded.h"

namespace forktail::cli
{
namespace
{

const char kHelp[] = "Print what forktail can record on this host. With a target: record it, explain, and "
		     "leave nothing behind.\n"
		     "\n"
		     "Examples:\n"
		     "  forktail doctor\n"
		     "  sudo forktail doctor --port 6379 --duration 10s\n"
		     "\n"
		     "Usage: forktail doctor [TARGET [OPTION...]]\n"
		     "\n"
		     "  -h, --help              Print this help\n"
		     "      --duration TIME     Record for TIME (default: 10s); Ctrl-C ends it earlier\n"
		     "      --json              Without a target: print JSON\n"
		     "      --json-schema       Without a target: print the JSON Schema of --json\n"
		     "      --port N            Record the processes that listen on TCP port N\n"
		     "\n"
		     "forktail record --help has the other targets (--pid, --unix, --name, --container, "
		     "--unit, --cgroup) and options,\n"
		     "which are the same here.\n"
		     "Exit status: 0 done; 1 without a target: a recording would lack something; 2 wrong "
		     "usage; 3 this host or the target "
		     "cannot be recorded.\n";

} // namespace

int DoctorCommand(int argc, char **argv)
{
	std::vector<std::string> words(argv, argv + argc);
	if (HasOption(words, "help", 'h')) {
		fputs(Wrapped(kHelp, Columns()).c_str(), stdout);
		return kDone;
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
	return recorded.recorded ? PrintExplanation(recorded.path, STDOUT_FILENO, false) : recorded.status;
}

} // namespace forktail::cli

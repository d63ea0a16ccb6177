// SPDX-License-Identifier: MIT
// Programs are searched next to the running one, so that all are of one build.
#include "programs.h"

#include <filesystem>
#include <memory>
#include <unistd.h>

#include "progress.h"

namespace forktail::lab
{
namespace
{

constexpr double kAnalysisSeconds = 120;

} // namespace

bool FindPrograms(std::string *directory, std::string *error)
{
	std::error_code ec;
	*directory = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
	for (const char *name : {"forktail", "forktail-record", "forktail-load"})
		if (access((*directory + "/" + name).c_str(), X_OK) != 0) {
			*error = "cannot find " + std::string(name) + " in " + *directory +
				 ": build all programs of forktail, for example with script/demo";
			return false;
		}
	return true;
}

Child *StartRecorder(Session *session, const std::string &programs, const std::vector<pid_t> &pids,
		     const std::vector<std::string> &options, const std::string &path, std::string *error)
{
	auto recording = std::make_shared<bool>(false); // outlives this call on failure
	Command record;
	record.name = "forktail-record";
	record.argv = {programs + "/forktail-record", "-o", path};
	record.argv.insert(record.argv.end(), options.begin(), options.end());
	for (pid_t pid : pids) {
		record.argv.push_back("--pid");
		record.argv.push_back(std::to_string(pid));
	}
	record.output = "/dev/null";
	record.on_line = [recording](const std::string &line) {
		*recording = *recording || line.rfind("recording ", 0) == 0;
		SayMeanwhile(line);
	};
	Child *recorder = Start(session, record, error);
	if (!recorder)
		return nullptr;
	recorder->needed = true;
	while (!*recording)
		if (!Step(session, 100, error))
			return nullptr;
	recorder->on_line = SayMeanwhile;
	return recorder;
}

bool RunForktail(Session *session, const std::string &programs, const std::vector<std::string> &words,
		 const std::string &output, std::string *error)
{
	Command command;
	command.name = "forktail " + words[0];
	command.argv = {programs + "/forktail"};
	command.argv.insert(command.argv.end(), words.begin(), words.end());
	command.output = output;
	command.on_line = SayMeanwhile;
	Child *child = Start(session, command, error);
	return child && WaitForEnd(session, child, 0, kAnalysisSeconds, error) && Succeeded(*child, error);
}

} // namespace forktail::lab

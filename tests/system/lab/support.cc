// SPDX-License-Identifier: MIT
// A lab under observation. See support.h.
#include "tests/system/lab/support.h"

#include <algorithm>
#include <filesystem>
#include <ios>
#include <sstream>

namespace fs = std::filesystem;

namespace forktail::test
{

LabProcess::LabProcess()
{
	fs::create_directory(temp);
}

void LabProcess::Begin(const std::vector<std::string> &argv,
		       const std::vector<std::pair<std::string, std::string>> &environment)
{
	ProcessOptions options;
	options.environment = {{"TMPDIR", temp}};
	options.environment.insert(options.environment.end(), environment.begin(), environment.end());
	lab = std::make_unique<Process>(argv, options);
}

LabRun::LabRun(const std::vector<std::string> &more, const std::string &forktail,
	       const std::vector<std::pair<std::string, std::string>> &environment)
{
	std::vector<std::string> argv = {forktail.empty() ? program("forktail") : forktail, "lab", "demo"};
	auto add = [&](const std::string &option, const std::string &value) {
		if (std::find(more.begin(), more.end(), option) == more.end())
			argv.insert(argv.end(), {option, value});
	};
	add("--out", run);
	add("--size-mb", "100");
	add("--seconds", "6");
	argv.insert(argv.end(), more.begin(), more.end());
	Begin(argv, environment);
}

ScenarioRun::ScenarioRun(const std::string &toml)
{
	write_file(file, toml);
}

void ScenarioRun::Start(const std::vector<std::string> &more)
{
	std::vector<std::string> argv = {program("forktail"), "lab", "run", file, "--out", run};
	argv.insert(argv.end(), more.begin(), more.end());
	Begin(argv);
}

int ScenarioRun::Finish(const std::vector<std::string> &more)
{
	Start(more);
	return lab->wait(Seconds(90)).value_or(-1);
}

bool LabProcess::Says(const std::string &text, const std::string &after)
{
	auto said = [&] {
		const std::string err = lab->err();
		const size_t from = after.empty() ? 0 : err.rfind(after);
		return from != std::string::npos && err.find(text, from) != std::string::npos;
	};
	eventually([&] { return said() || !lab->running(); }, Seconds(60));
	return said();
}

std::vector<std::string> LabProcess::Alive() const
{
	std::vector<std::string> alive;
	for (const fs::directory_entry &entry : fs::directory_iterator("/proc")) {
		std::string proc = entry.path(), pid = entry.path().filename();
		if (pid.find_first_not_of("0123456789") != std::string::npos)
			continue;
		std::error_code ec;
		std::string command, text;
		try {
			command = read_file(proc + "/cmdline");
			text = command + read_file(proc + "/environ");
		} catch (const std::ios_base::failure &) {
			continue; // it ended meanwhile
		}
		text += fs::read_symlink(proc + "/cwd", ec).string();
		if (text.find(dir.path()) == std::string::npos || is_gone(std::stoi(pid)))
			continue;
		std::replace(command.begin(), command.end(), '\0', ' ');
		alive.push_back(pid + " " + command);
	}
	return alive;
}

std::vector<std::string> LabProcess::Left() const
{
	std::vector<std::string> left;
	for (const fs::directory_entry &entry : fs::directory_iterator(temp))
		left.push_back(entry.path());
	return left;
}

std::vector<std::string> LabProcess::Changed() const
{
	std::vector<std::string> changed;
	for (const char *root : {"/sys/fs/cgroup", "/sys/fs/cgroup/memory"}) {
		std::error_code ec;
		for (const fs::directory_entry &entry : fs::directory_iterator(root, ec))
			if (entry.path().filename().string().rfind(
				"forktail-lab-" + std::to_string(lab->pid()) + "-", 0) == 0)
				changed.push_back(entry.path());
	}
	std::istringstream swaps(read_file("/proc/swaps"));
	for (std::string line; std::getline(swaps, line);)
		if (line.find(dir.path()) != std::string::npos)
			changed.push_back(line);
	return changed;
}

pid_t LabProcess::Find(const std::string &text) const
{
	for (const std::string &process : Alive())
		if (process.find(text) != std::string::npos)
			return std::stoi(process);
	return 0;
}

std::vector<std::string> Zrams()
{
	std::vector<std::string> devices;
	for (const fs::directory_entry &entry : fs::directory_iterator("/sys/block"))
		if (entry.path().filename().string().rfind("zram", 0) == 0)
			devices.push_back(entry.path());
	std::sort(devices.begin(), devices.end());
	return devices;
}

} // namespace forktail::test

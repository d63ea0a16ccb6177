// SPDX-License-Identifier: MIT
// A demo under observation; see lab_support.h.
#include "tests/system/lab_support.h"

#include <algorithm>
#include <filesystem>
#include <ios>

namespace ft::test
{
namespace
{

namespace fs = std::filesystem;

bool IsZombie(const std::string &proc)
{
	std::string stat = read_file(proc + "/stat");
	size_t comm_end = stat.rfind(')');
	return comm_end == std::string::npos || stat[comm_end + 2] == 'Z';
}

} // namespace

LabRun::LabRun(const std::vector<std::string> &more, const std::string &forktail,
	       const std::vector<std::pair<std::string, std::string>> &environment)
{
	fs::create_directory(temp);
	std::vector<std::string> argv = {forktail.empty() ? program("forktail") : forktail, "lab", "demo"};
	auto add = [&](const std::string &option, const std::string &value) {
		if (std::find(more.begin(), more.end(), option) == more.end())
			argv.insert(argv.end(), {option, value});
	};
	add("--out", run);
	add("--size-mb", "100");
	add("--seconds", "6");
	argv.insert(argv.end(), more.begin(), more.end());
	ProcessOptions options;
	options.environment = {{"TMPDIR", temp}};
	options.environment.insert(options.environment.end(), environment.begin(), environment.end());
	lab = std::make_unique<Process>(argv, options);
}

bool LabRun::Says(const std::string &text)
{
	auto said = [&] { return lab->err().find(text) != std::string::npos; };
	eventually([&] { return said() || !lab->running(); }, Seconds(60));
	return said();
}

std::vector<std::string> LabRun::Alive() const
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
			continue; // it ended while we looked
		}
		text += fs::read_symlink(proc + "/cwd", ec).string();
		if (text.find(dir.path()) == std::string::npos || IsZombie(proc))
			continue;
		std::replace(command.begin(), command.end(), '\0', ' ');
		alive.push_back(pid + " " + command);
	}
	return alive;
}

std::vector<std::string> LabRun::Left() const
{
	std::vector<std::string> left;
	for (const fs::directory_entry &entry : fs::directory_iterator(temp))
		left.push_back(entry.path());
	return left;
}

pid_t LabRun::Find(const std::string &text) const
{
	for (const std::string &process : Alive())
		if (process.find(text) != std::string::npos)
			return std::stoi(process);
	return 0;
}

} // namespace ft::test

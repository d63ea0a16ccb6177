// SPDX-License-Identifier: MIT
// See words.h.
#include "words.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace forktail::common
{

std::string ProgramPath()
{
	std::error_code ec;
	const char *path = getenv("PATH");
	return std::filesystem::read_symlink("/proc/self/exe", ec).parent_path().string() + ":" +
	       (path ? path : "/usr/local/bin:/usr/bin:/bin");
}

std::string FindProgram(const std::string &name, const std::string &directories)
{
	std::istringstream all(directories);
	for (std::string directory; std::getline(all, directory, ':');) {
		const std::string file = directory + "/" + name;
		if (!directory.empty() && access(file.c_str(), X_OK) == 0)
			return file;
	}
	return "";
}

std::string CommandLine(const std::vector<std::string> &argv)
{
	std::string line;
	for (const std::string &word : argv) {
		bool plain = !word.empty() && word.find_first_of(" '\"\\$&;|<>*?()`\n") == std::string::npos;
		line += line.empty() ? "" : " ";
		if (plain) {
			line += word;
			continue;
		}
		line += '\'';
		for (char c : word)
			line += c == '\'' ? std::string("'\\''") : std::string(1, c);
		line += '\'';
	}
	return line;
}

bool ParseCpus(const std::string &list, std::vector<int> *cpus)
{
	cpus->clear();
	const char *at = list.data(), *end = at + list.size();
	auto number = [&](int *value) {
		auto [rest, failure] = std::from_chars(at, end, *value);
		at = rest;
		return failure == std::errc() && *value >= 0 && *value < CPU_SETSIZE;
	};
	for (;;) {
		int first, last;
		if (!number(&first))
			return false;
		last = first;
		if (at != end && *at == '-' && (++at, !number(&last) || last < first))
			return false;
		for (int cpu = first; cpu <= last; cpu++)
			cpus->push_back(cpu);
		if (at == end)
			return true;
		if (*at++ != ',')
			return false;
	}
}

} // namespace forktail::common

// SPDX-License-Identifier: MIT
// Parts of commands: finding programs, words, lists of CPUs.
#pragma once

#include <string>
#include <vector>

namespace forktail::common
{

// Directories of forktail's own programs, in PATH's format: the one of this program, then PATH.
std::string ProgramPath();
// The path of a program in the first of these directories that contains it. "": in none.
std::string FindProgram(const std::string &name, const std::string &directories = ProgramPath());

// One line, with quotes where a shell needs them.
std::string CommandLine(const std::vector<std::string> &argv);

// A list of CPUs in the format of taskset and the kernel: "0-1,3" -> 0, 1, 3. False: not such a list.
bool ParseCpus(const std::string &list, std::vector<int> *cpus);

// Appends words to those of a command.
inline void Append(std::vector<std::string> *words, const std::vector<std::string> &more)
{
	words->insert(words->end(), more.begin(), more.end());
}

} // namespace forktail::common

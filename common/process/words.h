// SPDX-License-Identifier: MIT
// What commands are made of: programs that have to be found, words, lists of CPUs.
#pragma once

#include <string>
#include <vector>

namespace forktail::common
{

// Where forktail's own programs are, as PATH has it: beside this one, then on PATH.
std::string ProgramPath();
// The path of a program: in the first of these directories that has it. "": in none.
std::string FindProgram(const std::string &name, const std::string &directories = ProgramPath());

// One line, with quotes where a shell needs them.
std::string CommandLine(const std::vector<std::string> &argv);

// A list of CPUs as taskset and the kernel have it: "0-1,3" -> 0, 1, 3. False: not such a list.
bool ParseCpus(const std::string &list, std::vector<int> *cpus);

// Adds words to a command's.
inline void Append(std::vector<std::string> *words, const std::vector<std::string> &more)
{
	words->insert(words->end(), more.begin(), more.end());
}

} // namespace forktail::common

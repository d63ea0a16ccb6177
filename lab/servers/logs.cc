// SPDX-License-Identifier: MIT
// Times in Redis' logs are local time with milliseconds.
#include "logs.h"

#include <cstdlib>
#include <ctime>
#include <fstream>

namespace forktail::lab
{

uint64_t TimeOfLine(const std::string &line)
{
	size_t space = line.find(' ');
	if (space == std::string::npos)
		return 0;
	struct tm when = {};
	const char *rest = strptime(line.c_str() + space + 1, "%d %b %Y %H:%M:%S.", &when);
	if (!rest)
		return 0;
	when.tm_isdst = -1;
	char *end = nullptr;
	uint64_t ms = strtoull(rest, &end, 10);
	return end == rest + 3 ? static_cast<uint64_t>(mktime(&when)) * 1000000000 + ms * 1000000 : 0;
}

uint64_t FindInLog(const std::string &path, const std::string &text, uint64_t from_ns)
{
	std::ifstream in(path);
	for (std::string line; std::getline(in, line);)
		if (line.find(text) != std::string::npos && TimeOfLine(line) >= from_ns)
			return TimeOfLine(line);
	return 0;
}

} // namespace forktail::lab

// SPDX-License-Identifier: MIT
// See memory_limit.h. In a container the path may be the host's, which is not visible there. The limit is
// then in the root of the hierarchy.
#include "memory_limit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace forktail::live::guard
{
namespace
{

uint64_t LowestLimit(const std::string &hierarchy, const std::string &path, const char *file)
{
	uint64_t lowest = UINT64_MAX;
	for (std::filesystem::path group = path;; group = group.parent_path()) {
		uint64_t bytes; // "max" is not a number
		if (std::ifstream(hierarchy + group.string() + "/" + file) >> bytes)
			lowest = std::min(lowest, bytes);
		if (group == group.parent_path())
			return lowest;
	}
}

} // namespace

uint64_t MemoryLimit(const std::string &root)
{
	std::ifstream groups(root + "/proc/self/cgroup");
	uint64_t lowest = UINT64_MAX;
	// "0::/path" of version 2, "4:cpuset,memory:/path" of version 1.
	for (std::string line; std::getline(groups, line);) {
		const size_t first = line.find(':'), second = line.find(':', first + 1);
		if (second == std::string::npos)
			continue;
		const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
		const std::string path = line.substr(second + 1), hierarchies = root + "/sys/fs/cgroup";
		if (controllers == ",,")
			lowest = std::min(lowest, LowestLimit(hierarchies, path, "memory.max"));
		else if (controllers.find(",memory,") != std::string::npos)
			lowest = std::min(
			    lowest, LowestLimit(hierarchies + "/memory", path, "memory.limit_in_bytes"));
	}
	return lowest;
}

} // namespace forktail::live::guard

// SPDX-License-Identifier: MIT
// Memory limits by cgroups of version 1 or 2: finds the mount, creates the group, and for version 1 does
// background reclaim. The keeper is informed before a group is created, so that kill -9 cannot leave it
// behind.
#include "memory.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"
#include "undo.h"

namespace forktail::lab
{
namespace
{

bool HasWord(const std::string &words, const std::string &word, char between)
{
	std::istringstream in(words);
	for (std::string one; std::getline(in, one, between);)
		if (one == word)
			return true;
	return false;
}

// The root of the cgroup hierarchy with the memory controller.
struct MemoryRoot {
	std::string path;
	bool v1 = false;
};

bool FindMemoryRoot(MemoryRoot *root, std::string *error)
{
	std::ifstream mounts("/proc/mounts");
	std::string device, path, type, options;
	for (std::string rest; mounts >> device >> path >> type >> options; std::getline(mounts, rest)) {
		if (type == "cgroup" && HasWord(options, "memory", ','))
			*root = {path, true};
		else if (type == "cgroup2" && HasWord(FirstLine(path + "/cgroup.controllers"), "memory", ' '))
			*root = {path, false};
	}
	if (root->path.empty())
		*error = "cannot limit memory: this host has no cgroup with the memory controller";
	return !root->path.empty();
}

// In version 2 the root must enable the controller for its children.
bool HandOnMemory(Session *session, const std::string &root, std::string *error)
{
	std::string file = root + "/cgroup.subtree_control";
	if (HasWord(FirstLine(file), "memory", ' '))
		return true;
	Keep(session->keeper, Leftover::kSetting, file, "-memory");
	if (WriteSetting(file, "+memory"))
		return true;
	*error = "cannot limit memory: " + file + " does not accept +memory: " + std::strerror(errno);
	return false;
}

constexpr uint64_t kSwapKib = 1024; // less free swap counts as none

bool SwapIsFree()
{
	std::ifstream in("/proc/meminfo");
	std::string key, unit;
	for (uint64_t kib; in >> key >> kib; std::getline(in, unit))
		if (key == "SwapFree:")
			return kib >= kSwapKib;
	return false;
}

// A v1 group has no background reclaim like kswapd: the thread that needs a page of a full group reclaims
// one. In a group of a few hundred MB without file pages the kernel (6.18) sometimes finds only recently used
// pages and kills a process although there is swap. So the group has some space beyond the limit, and this
// process does the background reclaim by setting the limit, which fails without harm.
void Reclaim(const std::string &path, uint64_t bytes)
{
	uint64_t used = 0;
	std::ifstream(path + "/memory.usage_in_bytes") >> used;
	if (used <= bytes)
		return;
	std::string limit = path + "/memory.limit_in_bytes";
	WriteSetting(limit, std::to_string(bytes));
	if (SwapIsFree())
		WriteSetting(limit, std::to_string(bytes + kBeyondBytes));
}

} // namespace

bool LimitMemory(Session *session, const std::string &name, uint64_t bytes, std::string *path,
		 std::string *error)
{
	MemoryRoot root;
	if (!FindMemoryRoot(&root, error) || (!root.v1 && !HandOnMemory(session, root.path, error)))
		return false;
	*path = root.path + "/forktail-lab-" + std::to_string(getpid()) + "-" + name;
	Keep(session->keeper, Leftover::kCgroup, *path);
	std::string limit = *path + (root.v1 ? "/memory.limit_in_bytes" : "/memory.max");
	if (mkdir(path->c_str(), 0755) == 0 && WriteSetting(limit, std::to_string(bytes))) {
		if (root.v1 && SwapIsFree() && WriteSetting(limit, std::to_string(bytes + kBeyondBytes)))
			session->chores[*path] = [group = *path, bytes] { Reclaim(group, bytes); };
		return true;
	}
	*error = "cannot limit memory to " + std::to_string(bytes) + " bytes with the cgroup " + *path +
		 ": " + std::strerror(errno);
	return false;
}

bool EnterGroup(const std::string &path, pid_t pid, std::string *error)
{
	if (WriteSetting(path + "/cgroup.procs", std::to_string(pid)))
		return true;
	*error = "cannot move process " + std::to_string(pid) + " into the cgroup " + path + ": " +
		 std::strerror(errno);
	return false;
}

bool RemoveGroup(Session *session, const std::string &path, std::string *error)
{
	session->chores.erase(path);
	if (!RemoveCgroup(path)) {
		*error = "cannot remove the cgroup " + path + ": " + std::strerror(errno);
		return false;
	}
	Release(session->keeper, Leftover::kCgroup, path);
	return true;
}

} // namespace forktail::lab

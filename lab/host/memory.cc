// SPDX-License-Identifier: MIT
// Limits of memory by cgroups of either version: where the host mounts them, the group itself, and for
// version 1 the reclaim that nobody else does. The keeper hears of a group before it is made, so that not
// even a kill -9 in between leaves it behind.
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

// Where cgroups with the memory controller are: the root of a hierarchy.
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

// In version 2 the root has to hand the controller on.
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

constexpr uint64_t kSwapKib = 1024; // less than that free is none

bool SwapIsFree()
{
	std::ifstream in("/proc/meminfo");
	std::string key, unit;
	for (uint64_t kib; in >> key >> kib; std::getline(in, unit))
		if (key == "SwapFree:")
			return kib >= kSwapKib;
	return false;
}

// A v1 group has no reclaim in the background as the host has with kswapd: each page of a full group is
// reclaimed by who wants one. In a group of a few hundred MB without file pages the kernel (6.18) then now
// and again finds no page that wasn't just used, and kills although there is swap. So there is some room
// beyond the limit, and the background's work is done here: setting the limit has the kernel reclaim in this
// process, or fail without harm.
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

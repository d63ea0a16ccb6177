// SPDX-License-Identifier: MIT
// A message is one packet, so none comes in halves: a letter for what to do, then the group's number
// or a path; after a setting's path come a NUL and its content.
#include "keeper.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <set>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "undo.h"

namespace forktail::lab
{
namespace
{

constexpr char kAddGroup = 'G', kDropGroup = 'g', kAddDirectory = 'D', kDropDirectory = 'd', kAddSwap = 'S',
	       kDropSwap = 's', kAddCgroup = 'C', kDropCgroup = 'c', kAddSetting = 'W';

// A path, and what a file of /sys can hold: a page.
constexpr size_t kMessageBytes = 3 * PATH_MAX;

// How long killed groups may take to disappear: a process in an uninterruptible write goes when that is done.
constexpr int kGoneSeconds = 20;

struct Kept {
	std::set<pid_t> groups;
	std::set<std::string> directories, swaps, cgroups;
	std::map<std::string, std::string> settings; // file -> content
};

void Note(const std::string &message, Kept *kept)
{
	std::string rest = message.substr(1);
	switch (message[0]) {
	case kAddGroup:
		kept->groups.insert(std::stoi(rest));
		break;
	case kDropGroup:
		kept->groups.erase(std::stoi(rest));
		break;
	case kAddDirectory:
		kept->directories.insert(rest);
		break;
	case kDropDirectory:
		kept->directories.erase(rest);
		break;
	case kAddSwap:
		kept->swaps.insert(rest);
		break;
	case kDropSwap:
		kept->swaps.erase(rest);
		break;
	case kAddCgroup:
		kept->cgroups.insert(rest);
		break;
	case kDropCgroup:
		kept->cgroups.erase(rest);
		break;
	case kAddSetting: {
		size_t end = rest.find('\0');
		kept->settings.emplace(rest.substr(0, end), rest.substr(end + 1));
		break;
	}
	}
}

bool KillGroups(const std::set<pid_t> &groups)
{
	for (pid_t group : groups)
		kill(-group, SIGKILL);
	// Files come after processes: a writer that still lives would put them back.
	for (int i = 0; i < kGoneSeconds * 100; i++) {
		bool any = false;
		for (pid_t group : groups)
			any = any || kill(-group, 0) == 0;
		if (!any)
			return true;
		usleep(10'000);
	}
	return false;
}

[[noreturn]] void Keep(int fd)
{
	setsid();
	prctl(PR_SET_NAME, "forktail-keeper");
	for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
		signal(s, SIG_IGN);
	// Nothing of the lab's stays open here: whoever reads its output must see the end of it.
	int null = open("/dev/null", O_RDWR);
	for (int std_fd : {0, 1, 2})
		dup2(null, std_fd);
	dup2(fd, 3);
	close_range(4, UINT_MAX, 0);
	if (chdir("/") != 0)
		_exit(1);

	Kept kept;
	char message[kMessageBytes];
	for (;;) {
		ssize_t n = recv(3, message, sizeof(message), 0);
		if (n > 1)
			Note(std::string(message, static_cast<size_t>(n)), &kept);
		else if (n == 0 || errno != EINTR)
			break;
	}
	bool clean = KillGroups(kept.groups);
	for (const std::string &device : kept.swaps)
		clean = RemoveSwapDevice(device) && clean;
	for (const std::string &cgroup : kept.cgroups)
		clean = RemoveCgroup(cgroup) && clean;
	for (const auto &[file, content] : kept.settings)
		clean = WriteSetting(file, content) && clean;
	for (const std::string &directory : kept.directories) {
		std::error_code ec;
		std::filesystem::remove_all(directory, ec);
		clean = clean && !ec;
	}
	_exit(clean ? 0 : 1);
}

void Tell(const Keeper &keeper, char what, const std::string &rest)
{
	std::string message = what + rest;
	// If the keeper was killed there is nobody to tell; PR_SET_PDEATHSIG is then what is left.
	send(keeper.fd, message.data(), message.size(), MSG_NOSIGNAL);
}

} // namespace

bool StartKeeper(Keeper *keeper, std::string *error)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		*error = std::string("can't make a socket pair: ") + std::strerror(errno);
		return false;
	}
	keeper->pid = fork();
	if (keeper->pid == 0)
		Keep(ends[1]);
	int failed = errno;
	close(ends[1]);
	keeper->fd = ends[0];
	if (keeper->pid < 0) {
		close(keeper->fd);
		keeper->fd = -1;
		*error = std::string("can't fork: ") + std::strerror(failed);
		return false;
	}
	return true;
}

void KeepGroup(const Keeper &keeper, pid_t group)
{
	Tell(keeper, kAddGroup, std::to_string(group));
}

void ReleaseGroup(const Keeper &keeper, pid_t group)
{
	Tell(keeper, kDropGroup, std::to_string(group));
}

void KeepDirectory(const Keeper &keeper, const std::string &path)
{
	Tell(keeper, kAddDirectory, path);
}

void ReleaseDirectory(const Keeper &keeper, const std::string &path)
{
	Tell(keeper, kDropDirectory, path);
}

void KeepSwap(const Keeper &keeper, const std::string &device)
{
	Tell(keeper, kAddSwap, device);
}

void ReleaseSwap(const Keeper &keeper, const std::string &device)
{
	Tell(keeper, kDropSwap, device);
}

void KeepCgroup(const Keeper &keeper, const std::string &path)
{
	Tell(keeper, kAddCgroup, path);
}

void ReleaseCgroup(const Keeper &keeper, const std::string &path)
{
	Tell(keeper, kDropCgroup, path);
}

void KeepSetting(const Keeper &keeper, const std::string &file, const std::string &content)
{
	Tell(keeper, kAddSetting, file + '\0' + content);
}

bool CloseKeeper(Keeper *keeper, std::string *error)
{
	if (keeper->fd < 0)
		return true;
	close(keeper->fd);
	keeper->fd = -1;
	int status = 0;
	while (waitpid(keeper->pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	*error = "some processes, temporary files, cgroups or swap could not be removed";
	return false;
}

} // namespace forktail::lab

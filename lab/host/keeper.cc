// SPDX-License-Identifier: MIT
// A message is one packet, so none comes in halves: whether to keep or to release, a letter for the kind, the
// group's number or a path; after a setting's path come a NUL and its content.
#include "keeper.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "undo.h"

namespace forktail::lab
{
namespace
{

constexpr char kKeep = '+', kRelease = '-';

// A path, and what a file of /sys can hold: a page.
constexpr size_t kMessageBytes = 3 * PATH_MAX;

// How long killed groups may take to disappear: a process in an uninterruptible write goes when that is done.
constexpr int kGoneSeconds = 20;

using Names = std::map<std::string, std::string>; // with a setting's content

void Note(const std::string &message, std::map<Leftover, Names> *kept)
{
	const size_t end = message.find('\0');
	const std::string name = message.substr(2, end - 2);
	Names &names = (*kept)[static_cast<Leftover>(message[1])];
	if (message[0] == kKeep)
		names.emplace(name, message.substr(end + 1));
	else
		names.erase(name);
}

bool KillGroups(const Names &groups)
{
	for (const auto &[group, none] : groups)
		kill(-std::stoi(group), SIGKILL);
	// Files come after processes: a writer that still lives would put them back.
	for (int i = 0; i < kGoneSeconds * 100; i++) {
		bool any = false;
		for (const auto &[group, none] : groups)
			any = any || kill(-std::stoi(group), 0) == 0;
		if (!any)
			return true;
		usleep(10'000);
	}
	return false;
}

[[noreturn]] void BeKeeper(int fd)
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

	std::map<Leftover, Names> kept;
	char message[kMessageBytes];
	for (;;) {
		ssize_t n = recv(3, message, sizeof(message), 0);
		if (n > 0)
			Note(std::string(message, static_cast<size_t>(n)), &kept);
		else if (n == 0 || errno != EINTR)
			break;
	}
	bool clean = KillGroups(kept[Leftover::kGroup]);
	for (const auto &[device, none] : kept[Leftover::kSwap])
		clean = RemoveSwapDevice(device) && clean;
	for (const auto &[cgroup, none] : kept[Leftover::kCgroup])
		clean = RemoveCgroup(cgroup) && clean;
	for (const auto &[file, content] : kept[Leftover::kSetting])
		clean = WriteSetting(file, content) && clean;
	for (const auto &[directory, none] : kept[Leftover::kDirectory]) {
		std::error_code ec;
		std::filesystem::remove_all(directory, ec);
		clean = clean && !ec;
	}
	_exit(clean ? 0 : 1);
}

void Tell(const Keeper &keeper, char what, Leftover kind, const std::string &rest)
{
	const std::string message = std::string{what, static_cast<char>(kind)} + rest;
	// If the keeper was killed there is nobody to tell; PR_SET_PDEATHSIG is then what is left.
	send(keeper.fd, message.data(), message.size(), MSG_NOSIGNAL);
}

} // namespace

bool StartKeeper(Keeper *keeper, std::string *error)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		*error = std::string("cannot create a socket pair: ") + std::strerror(errno);
		return false;
	}
	keeper->pid = fork();
	if (keeper->pid == 0)
		BeKeeper(ends[1]);
	int failed = errno;
	close(ends[1]);
	keeper->fd = ends[0];
	if (keeper->pid < 0) {
		close(keeper->fd);
		keeper->fd = -1;
		*error = std::string("cannot fork: ") + std::strerror(failed);
		return false;
	}
	return true;
}

void Keep(const Keeper &keeper, Leftover kind, const std::string &name, const std::string &content)
{
	Tell(keeper, kKeep, kind, name + '\0' + content);
}

void Release(const Keeper &keeper, Leftover kind, const std::string &name)
{
	Tell(keeper, kRelease, kind, name + '\0');
}

bool CloseKeeper(Keeper *keeper, std::string *error)
{
	if (keeper->fd < 0)
		return true;
	shutdown(keeper->fd, SHUT_RDWR); // a process that was forked since may have it open too
	close(keeper->fd);
	keeper->fd = -1;
	int status = 0;
	while (waitpid(keeper->pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	*error = "cannot remove all processes, temporary files, cgroups and swap of the run";
	return false;
}

} // namespace forktail::lab

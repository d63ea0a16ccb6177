// SPDX-License-Identifier: MIT
// See control_client.h.
#include "control_client.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace forktail::live::guard
{
namespace
{

constexpr time_t kPatienceS = 5;
constexpr size_t kMostAnswer = 1000;

// 0 or an errno.
int Talk(int fd, const std::string &path, const std::string &line, std::string *answer)
{
	struct sockaddr_un to = {};
	const struct timeval patience = {kPatienceS, 0};
	char part[256];
	if (path.size() >= sizeof(to.sun_path))
		return ENAMETOOLONG;
	to.sun_family = AF_UNIX;
	memcpy(to.sun_path, path.c_str(), path.size());
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, reinterpret_cast<struct sockaddr *>(&to), sizeof(to)) ||
	    send(fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
		return errno;
	while (answer->size() < kMostAnswer && answer->find('\n') == std::string::npos) {
		const ssize_t n = recv(fd, part, sizeof(part), 0);
		if (n <= 0)
			return n ? errno : ECONNRESET;
		answer->append(part, static_cast<size_t>(n));
	}
	return 0;
}

} // namespace

Asked AskForTrigger(const std::string &path, const std::string &name, std::string *answer)
{
	struct stat there = {};
	std::string control = path, said;
	if (stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode))
		control += std::string("/") + kControlName;
	if (name.empty() || name.size() > kMostAsked || name.find('\n') != std::string::npos) {
		*answer = "the name is not valid for a trigger";
		return Asked::No;
	}
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int err = fd < 0 ? errno : Talk(fd, control, name + "\n", &said);
	if (fd >= 0)
		close(fd);
	const bool yes = said.compare(0, 4, "yes ") == 0, no = said.compare(0, 3, "no ") == 0;
	if (err || (!yes && !no)) {
		*answer = "no guard answers at " + control + ": " +
			  (err == EAGAIN ? "timeout" : strerror(err ? err : EPROTO));
		return Asked::Cant;
	}
	*answer = said.substr(yes ? 4 : 3, said.find('\n') - (yes ? 4 : 3));
	return yes ? Asked::Yes : Asked::No;
}

} // namespace forktail::live::guard

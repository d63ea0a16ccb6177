// SPDX-License-Identifier: MIT
// See notify.h. sd_notify is one datagram, which needs no library.
#include "notify.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/format/sanitize.h"

namespace forktail::live::guard
{
namespace
{

std::string notify_path;
unsigned long watchdog_us;
bool journal;

} // namespace

void Say(Level level, const std::string &text)
{
	std::string line = journal ? "<" + std::to_string(static_cast<int>(level)) + ">" : "";
	line += "forktail-guard: " + common::Visible(text) + "\n";
	fputs(line.c_str(), stderr);
}

void NotifyBegin()
{
	if (const char *path = getenv("NOTIFY_SOCKET"); path && (*path == '/' || *path == '@'))
		notify_path = path;
	if (const char *us = getenv("WATCHDOG_USEC"))
		watchdog_us = strtoul(us, nullptr, 10);
	journal = getenv("JOURNAL_STREAM") || !notify_path.empty();
	for (const char *name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
		unsetenv(name);
	setvbuf(stderr, nullptr, _IOLBF, 0);
}

void Notify(const std::string &state)
{
	struct sockaddr_un to = {};
	if (notify_path.empty() || notify_path.size() >= sizeof(to.sun_path))
		return;
	to.sun_family = AF_UNIX;
	memcpy(to.sun_path, notify_path.data(), notify_path.size());
	if (to.sun_path[0] == '@')
		to.sun_path[0] = 0;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	const auto length =
	    static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + notify_path.size());
	sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<struct sockaddr *>(&to),
	       length);
	close(fd);
}

unsigned long WatchdogUs()
{
	return watchdog_us;
}

} // namespace forktail::live::guard

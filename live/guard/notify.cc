// SPDX-License-Identifier: MIT
// See notify.h. Each message has a new socket, because the manager may have made another one since.
#include "notify.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "common/format/sanitize.h"
#include "common/manager/manager.h"

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
	const int manager = manager_connect(notify_path.c_str());
	manager_send(manager, state.data(), state.size());
	if (manager >= 0)
		close(manager);
}

unsigned long WatchdogUs()
{
	return watchdog_us;
}

} // namespace forktail::live::guard

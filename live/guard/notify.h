// SPDX-License-Identifier: MIT
// Messages for the service manager and the journal. Under systemd a line starts with its level as <N>.
// Nothing here fails: without a service manager the messages are dropped.
#pragma once

#include <string>

namespace forktail::live::guard
{

enum class Level : int { Error = 3, Warning = 4, Notice = 5, Info = 6 };

// Prints one line on standard error; untrusted text is sanitized.
void Say(Level level, const std::string &text);

// Reads and removes NOTIFY_SOCKET and the watchdog's period from the environment, so that no child can report
// for the service. Call it once, first.
void NotifyBegin();
// "READY=1", "STATUS=...", in the format of sd_notify(3).
void Notify(const std::string &state);
// Period of the watchdog in microseconds; 0: none.
unsigned long WatchdogUs();

} // namespace forktail::live::guard

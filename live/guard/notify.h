// SPDX-License-Identifier: MIT
// What the service manager and the journal are told. Under systemd a line's level stands before it as <N>; by
// hand it is a line as any program's. Nothing here fails: who isn't there is not told.
#pragma once

#include <string>

namespace forktail::live::guard
{

enum class Level : int { Error = 3, Warning = 4, Notice = 5, Info = 6 };

// One line on standard error; text of others is made visible.
void Say(Level level, const std::string &text);

// Takes NOTIFY_SOCKET out of the environment, so that no child speaks for the service, and the watchdog's
// period. To be called once, first.
void NotifyBegin();
// "READY=1", "STATUS=...", as sd_notify(3) has it.
void Notify(const std::string &state);
// How often the watchdog wants to be told, in microseconds; 0: there is none.
unsigned long WatchdogUs();

} // namespace forktail::live::guard

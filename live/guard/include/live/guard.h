// SPDX-License-Identifier: MIT
// The guard of a ring: triggers, snapshots, commands, metrics.
#pragma once

#include <string>
#include <vector>

#include "live/config.h"

namespace forktail::live::guard
{

// What the guard was asked for on its command line, and how that and the configuration file are one.

struct GuardOptions {
	std::string path;		// of the ring, or of one recording
	std::vector<std::string> rules; // --on
	std::string config;		// "": none
	std::string metrics, metrics_textfile;
	bool control = false; // in the ring's directory
	std::string forktail; // the program for explanations; "": none
};

// Merges the options and the configuration file. False: *error is one sentence.
bool ReadOptions(const GuardOptions &options, Config *config, std::string *error);

// The guard of a ring: follows the recording, checks the trigger rules, takes snapshots, answers on the
// control socket and reports to the service manager. It never communicates with the recorder, which never
// waits for it.

// Runs until SIGTERM or SIGINT, or until the recorder that started it ends. False: it could not start; *error
// is one sentence.
bool RunGuard(const GuardOptions &options, const Config &config, std::string *error);

// Drops the privileges of the guard to fewer than those of the ring's owner.

// Changes from root to the owner of `path`, drops all capabilities (also for children), and forbids system
// calls that access other processes or the kernel. False: *error is one sentence.
bool Confine(const std::string &path, std::string *error);

// Messages for the service manager and the journal. Under systemd a line starts with its level as <N>.
// Nothing here fails: without a service manager the messages are dropped.

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

// SPDX-License-Identifier: MIT
// The configuration of the service (TOML; /etc/forktail/record.toml). [record] becomes options of
// forktail-record; triggers, snapshots and metrics are for forktail-guard. docs/guides/always-on.md describes
// each key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rule.h"

namespace forktail::live::guard
{

// The command to run after a snapshot, of one trigger or the common one.
struct Command {
	std::vector<std::string> argv; // absolute path of a program, and arguments; empty: none
};

struct Trigger {
	std::string name;
	Rule rule;
	std::string server; // only for this server, by its name in metrics and watch; "": any
	uint64_t before_ns = 0, after_ns = 0;
	Command command;
};

struct SnapshotLimits {
	uint64_t cooldown_ns = 30'000'000'000; // between the end of one and the next
	uint64_t count = 20;		       // most snapshots retained
	uint64_t bytes = 1'000'000'000;	       // most bytes of all snapshots
	bool stop_when_full = false;	       // else the oldest are removed
	bool explain = true;
	uint64_t explain_ns = 120'000'000'000;	// an explanation that takes longer is killed
	uint64_t explain_bytes = 1'000'000'000; // or takes more memory
	uint64_t command_ns = 30'000'000'000;	// a command that runs longer is killed
};

struct Config {
	std::vector<std::string> record; // forktail-record's words, without its name
	std::string directory;		 // of the ring; "": not in the file
	std::string metrics, metrics_textfile;
	std::string control; // the control socket's path; "": none
	SnapshotLimits limits;
	std::vector<Trigger> triggers;
};

constexpr uint64_t kBeforeNs = 30'000'000'000, kAfterNs = 5'000'000'000;

// A trigger with default settings: for --on, and for SIGUSR1.
Trigger PlainTrigger(const Rule &rule);

// The trigger with this name, or nullptr.
const Trigger *FindTrigger(const std::vector<Trigger> &triggers, const std::string &name);

// `path` is for messages. False: *error is one sentence that says where.
bool ParseConfig(const std::string &text, const std::string &path, Config *config, std::string *error);
// Reads and parses a file.
bool ReadConfig(const std::string &path, Config *config, std::string *error);

} // namespace forktail::live::guard

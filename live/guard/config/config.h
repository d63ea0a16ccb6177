// SPDX-License-Identifier: MIT
// What a service of forktail's is configured by (TOML; /etc/forktail/record.toml): what is recorded and how,
// which forktail record --config makes words for forktail-record of, and when snapshots are made and what is
// done with them, which is forktail-guard's. docs/guides/always-on.md describes each key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rule.h"

namespace forktail::live::guard
{

// What is to be done about a snapshot: each trigger has its own, or that of all.
struct Command {
	std::vector<std::string> argv; // a program by its whole path, and words; empty: none
};

struct Trigger {
	std::string name;
	Rule rule;
	std::string server; // of this one only, as metrics and watch call it; "": of any
	uint64_t before_ns = 0, after_ns = 0;
	Command command;
};

struct SnapshotLimits {
	uint64_t cooldown_ns = 30'000'000'000; // between the end of one and the next
	uint64_t count = 20;		       // of snapshots kept
	uint64_t bytes = 1'000'000'000;	       // of all of them
	bool stop_when_full = false;	       // else the oldest go
	bool explain = true;
	uint64_t explain_ns = 120'000'000'000;	// an explanation that takes longer is given up
	uint64_t explain_bytes = 1'000'000'000; // or takes more memory
	uint64_t command_ns = 30'000'000'000;	// a command that runs longer is killed
};

struct Config {
	std::vector<std::string> record; // forktail-record's words, without its name
	std::string directory;		 // of the ring, "" if the file doesn't say
	std::string metrics, metrics_textfile;
	std::string control; // the control socket's path; "": none
	SnapshotLimits limits;
	std::vector<Trigger> triggers;
};

constexpr uint64_t kBeforeNs = 30'000'000'000, kAfterNs = 5'000'000'000;

// A trigger without a file: --on, and what fires unasked (SIGUSR1).
Trigger PlainTrigger(const Rule &rule);

// The trigger of that name; nullptr: there is none.
const Trigger *FindTrigger(const std::vector<Trigger> &triggers, const std::string &name);

// `path` is for messages. False: *error is one sentence that says where.
bool ParseConfig(const std::string &text, const std::string &path, Config *config, std::string *error);
// The same of a file, which may not be there.
bool ReadConfig(const std::string &path, Config *config, std::string *error);

} // namespace forktail::live::guard

// SPDX-License-Identifier: MIT
// The rules and the configuration file of the guard, which forktail record also reads, and the client of
// its control socket.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/timeline.h"

namespace forktail::live::guard
{

// The rule of a trigger, as users write it (docs/guides/always-on.md):
//
//   iteration > TIME         an event-loop iteration took longer ("turn" is accepted, too)
//   stall > TIME             a serving thread was stalled for longer, by any cause
//   stall(CAUSE) > TIME      the same, by one cause (docs/reference/causes.md); "softirq" is all its vectors
//   rate(CAUSE) > N/s        the cause affected a server's threads more often per second
//   drops > N                the recorder lost more records in a second
//
// Spaces are ignored.

enum class What : uint8_t {
	Iteration,
	Stall,
	Rate,
	Drops,
	Named, // has no rule: fires only on request, by name
};

struct Rule {
	What what = What::Named;
	std::bitset<analysis::kTimelineCauses> causes; // of Stall and Rate; "stall" has all stall causes
	uint64_t limit_ns = 0;			       // of Iteration and Stall
	double limit = 0;			       // of Rate (a second) and Drops
	std::string text;			       // normalized text
	std::string name;			       // for names of snapshots: "stall-fork"
};

// False: *error is one sentence.
bool ParseRule(const std::string &text, Rule *rule, std::string *error);

// The configuration of the service (TOML; /etc/forktail/record.toml). [record] becomes options of
// forktail-record; triggers, snapshots and metrics are for forktail-guard. contrib/record.toml describes
// each key.

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

// Requests a snapshot from the guard by the name of a trigger, for forktail trigger. The guard's
// configuration defines what the trigger does.
//
// One line in each direction over a stream socket: a name; then "yes " or "no " and a sentence.

constexpr char kControlName[] = "control"; // in the ring's directory
constexpr size_t kMostAsked = 200;	   // bytes of a line

enum class TriggerAnswer { Yes, No, Cant };

// `path` is the ring's directory or the socket. *answer is one sentence in each case.
TriggerAnswer AskForTrigger(const std::string &path, const std::string &name, std::string *answer);

} // namespace forktail::live::guard

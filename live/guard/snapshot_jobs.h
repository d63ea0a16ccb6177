// SPDX-License-Identifier: MIT
// Makes snapshots, and what comes after each: its explanation and the commands of the triggers that fired.
// All of it is done by children, so that nobody waits for a disk; snapshots and what comes after them one at
// a time each.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/process/child.h"
#include "live/guard/config/config.h"
#include "snapshot_plan.h"

namespace forktail::live::guard
{

struct WorkFigures {
	std::map<std::string, uint64_t> taken; // by trigger
	uint64_t failed = 0, disk_full = 0, refused = 0, removed = 0;
	uint64_t explained = 0, not_explained = 0;
	uint64_t commands = 0, commands_failed = 0;
};

// What triggers a snapshot is made for want to be run.
struct CommandOf {
	std::string trigger;
	Command command;
};

class Work
{
public:
	// `ring` is the ring's directory, `forktail` the program that explains ("": nothing is explained).
	Work(const std::string &ring, const std::string &forktail);
	~Work();
	void Use(const SnapshotLimits &limits) { limits_ = limits; }

	// Begins one. False: it won't be made, and it was said why.
	bool Take(const Plan &plan, uint64_t realtime_ns, const std::vector<CommandOf> &commands);
	// Looks after the children. True: a snapshot that was being made is made, or not.
	bool Look();

	// Of the last one that was made, or not: who asked for it first.
	const std::string &last_trigger() const { return last_trigger_; }
	bool last_made() const { return last_made_; }
	const WorkFigures &figures() const { return figures_; }
	const std::string &directory() const { return directory_; }

private:
	// What is to be done about one snapshot.
	struct Job {
		Plan plan;
		uint64_t realtime_ns = 0; // when the first fired
		std::string name, path;
		std::vector<CommandOf> commands;
		size_t step = 0; // the explanation first, then commands
	};
	bool Full();
	void Taken();
	bool BeginStep(Job *job);
	bool BeginExplaining(const Job &job);
	bool BeginCommand(const Job &job, const CommandOf &command);
	void StepEnded(const Job &job);
	void GoOn();

	const std::string ring_, directory_, forktail_;
	SnapshotLimits limits_;
	Job taking_;
	common::Child taker_, helper_;
	std::deque<Job> after_; // the first is the one at work
	WorkFigures figures_;
	std::string last_trigger_;
	bool last_made_ = false;
	bool said_full_ = false, said_refused_ = false;
};

} // namespace forktail::live::guard

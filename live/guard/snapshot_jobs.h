// SPDX-License-Identifier: MIT
// Takes snapshots, then explains them and runs the commands of the triggers that fired. Child processes do
// all of it, so the guard never waits for a disk. One snapshot and one follow-up run at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/process/child.h"
#include "live/guard/config/config.h"
#include "runner.h"
#include "snapshot_plan.h"

namespace forktail::live::guard
{

struct SnapshotCounts {
	std::map<std::string, uint64_t> taken; // by trigger
	uint64_t failed = 0, disk_full = 0, refused = 0, removed = 0;
	uint64_t explained = 0, not_explained = 0;
	uint64_t commands = 0, commands_failed = 0;
};

// The command of a trigger that fired for a snapshot.
struct CommandOf {
	std::string trigger;
	Command command;
};

class SnapshotJobs
{
public:
	// `ring` is the ring's directory, `forktail` the program for explanations ("": none), which `runner`
	// starts.
	SnapshotJobs(const std::string &ring, const std::string &forktail, Runner *runner);
	~SnapshotJobs();
	void Use(const SnapshotLimits &limits) { limits_ = limits; }

	// Starts a snapshot. False: no snapshot is taken, and the reason is printed.
	bool Take(const Plan &plan, uint64_t realtime_ns, const std::vector<CommandOf> &commands);
	// Checks the children. True: the current snapshot is done or has failed.
	bool Look();

	// Of the last snapshot: the first trigger, and whether it succeeded.
	const std::string &last_trigger() const { return last_trigger_; }
	bool last_made() const { return last_made_; }
	const SnapshotCounts &figures() const { return figures_; }
	const std::string &directory() const { return directory_; }

private:
	// All work for one snapshot.
	struct Job {
		Plan plan;
		uint64_t realtime_ns = 0; // when the first trigger fired
		std::string name, path;
		std::vector<CommandOf> commands;
		size_t step = 0; // 0: the explanation; then the commands
	};
	bool Full();
	void Taken();
	bool BeginStep(Job *job);
	bool BeginExplaining(const Job &job);
	bool BeginCommand(const Job &job, const CommandOf &command);
	void StepEnded(const Job &job);
	void Continue();

	const std::string ring_, directory_, forktail_;
	SnapshotLimits limits_;
	Job taking_;
	Runner &runner_; // of explanations and commands
	common::Child taker_;
	std::deque<Job> after_; // the first is in progress
	SnapshotCounts figures_;
	std::string last_trigger_;
	bool last_made_ = false;
	bool disk_full_reported_ = false, refusal_reported_ = false;
};

} // namespace forktail::live::guard

// SPDX-License-Identifier: MIT
// Decides when to take a snapshot and of which time: one at a time, with a cooldown.
//
// The first trigger that fires starts a plan: `before` is the time before the event, `after` the time after
// it. A trigger that fires until the end of the plan is added and moves the end by at most a minute, so a
// server that stalls all the time gets one snapshot after another. Then the cooldown starts. A trigger that
// fires during the cooldown starts the next plan if its `before` reaches beyond the cooldown's end; otherwise
// it is only counted.
#pragma once

#include <cstdint>
#include <vector>

#include "triggers.h"

namespace forktail::live::guard
{

struct Plan {
	uint64_t from_ns = 0, to_ns = 0;
	std::vector<Firing> fired; // the first started the plan; at most kMostFirings
	uint64_t count = 0;	   // of all triggers that fired
	bool empty() const { return fired.empty(); }
};
constexpr size_t kMostFirings = 100;
constexpr uint64_t kMostAfterNs = 60'000'000'000;

enum class FireResult : uint8_t { Begun, Added, Counted };

class Planner
{
public:
	explicit Planner(uint64_t cooldown_ns) : cooldown_ns_(cooldown_ns) {}
	void SetCooldown(uint64_t ns) { cooldown_ns_ = ns; }

	FireResult Fire(const Firing &fired, uint64_t before_ns, uint64_t after_ns);
	// The plan to execute at `now_ns`, when the recorder has written everything up to `newest_ns`; empty:
	// none yet.
	Plan Due(uint64_t newest_ns, uint64_t now_ns);
	// A snapshot is done or has failed: the cooldown starts.
	void Made(uint64_t now_ns);

	const Plan &plan() const { return plan_; } // the pending plan
	uint64_t counted() const { return counted_; }
	uint64_t cool_ns() const { return cool_ns_; } // end of the cooldown

private:
	Plan plan_;
	bool making_ = false;
	uint64_t cooldown_ns_;
	uint64_t cool_ns_ = 0;
	uint64_t counted_ = 0;
};

} // namespace forktail::live::guard

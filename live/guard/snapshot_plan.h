// SPDX-License-Identifier: MIT
// When a snapshot is made, and of what: one at a time, and not too often.
//
// The first that fires begins a plan: from so much before it to so much after it. What fires until its end is
// added, and moves the end, a minute at most: a server that stalls all the time gets a snapshot after the
// other rather than one that never ends. Then comes the cooldown. What fires in it begins the next plan if
// that can be made, once the cooldown is over, while "before" reaches back to it; earlier ones are only
// counted.
#pragma once

#include <cstdint>
#include <vector>

#include "triggers.h"

namespace forktail::live::guard
{

struct Plan {
	uint64_t from_ns = 0, to_ns = 0;
	std::vector<Fired> fired; // the first of them began it; at most kFiredKept
	uint64_t count = 0;	  // of all that fired
	bool empty() const { return fired.empty(); }
};
constexpr size_t kFiredKept = 100;
constexpr uint64_t kMostAfterNs = 60'000'000'000;

enum class Came : uint8_t { Begun, Added, Counted };

class Planner
{
public:
	explicit Planner(uint64_t cooldown_ns) : cooldown_ns_(cooldown_ns) {}
	void SetCooldown(uint64_t ns) { cooldown_ns_ = ns; }

	Came Fire(const Fired &fired, uint64_t before_ns, uint64_t after_ns);
	// What is to be made now that the recorder has written all up to `newest_ns`, and it is `now_ns`;
	// empty: nothing yet.
	Plan Due(uint64_t newest_ns, uint64_t now_ns);
	// One was made, or failed: the cooldown begins.
	void Made(uint64_t now_ns);

	const Plan &plan() const { return plan_; } // the one that is waited for
	uint64_t counted() const { return counted_; }
	uint64_t cool_ns() const { return cool_ns_; } // none is made before

private:
	Plan plan_;
	bool making_ = false;
	uint64_t cooldown_ns_;
	uint64_t cool_ns_ = 0;
	uint64_t counted_ = 0;
};

} // namespace forktail::live::guard

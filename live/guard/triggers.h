// SPDX-License-Identifier: MIT
// Holds what happened against the rules. Knows nothing of snapshots: what fires is said as often as it
// happens, once per turn, stall or second.
//
// Stalls count on threads that serve (live/follow/live.h): those with an event loop, and a server's main
// thread. A thread that does nothing but wait for a disk on the others' behalf keeps nobody waiting by it,
// and a snapshot's child is to take its time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "live/follow/live.h"
#include "live/guard/config/config.h"

namespace forktail::live::guard
{

// One trigger that fired.
struct Fired {
	std::string trigger; // its name
	std::string server;  // "": of none in particular
	std::string what;    // "fork for 25.1 ms", "a turn of 62.0 ms"
	uint64_t start_ns = 0, end_ns = 0;
};

class Watch
{
public:
	// Other triggers from now on. What fired by one of the same name does not fire again.
	void Use(const std::vector<Trigger> &triggers) { triggers_ = triggers; }
	const std::vector<Trigger> &triggers() const { return triggers_; }

	// Adds what fired to *fired.
	void See(const live::Batch &batch, const std::vector<live::Server> &servers,
		 const std::vector<live::ThreadTotals> &threads, std::vector<Fired> *fired);

private:
	struct Interval {
		uint64_t start_ns, end_ns;
	};
	bool IsNew(const Trigger &trigger, uint32_t thread, Interval interval);
	void SeeTurns(const Trigger &trigger, const live::Batch &batch, std::vector<Fired> *fired);
	void SeeStalls(const Trigger &trigger, const live::Batch &batch, std::vector<Fired> *fired);
	void SeeRates(const Trigger &trigger, const live::Batch &batch, std::vector<Fired> *fired);
	void SeeDrops(const Trigger &trigger, const live::Batch &batch, std::vector<Fired> *fired);
	bool Concerns(const Trigger &trigger, uint32_t server) const;
	bool IsChilds(uint32_t thread) const;
	const std::string &NameOf(uint32_t server) const;

	std::vector<Trigger> triggers_;
	const std::vector<live::Server> *servers_ = nullptr;	   // while it sees
	const std::vector<live::ThreadTotals> *threads_ = nullptr; // likewise
	// What a trigger fired for last, on each thread: a stall is told of while it lasts and when it is
	// over.
	std::map<std::pair<std::string, uint32_t>, Interval> last_;
};

} // namespace forktail::live::guard

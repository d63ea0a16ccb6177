// SPDX-License-Identifier: MIT
// Checks events against the trigger rules. A trigger fires once per event-loop iteration, stall or second.
//
// Only stalls of serving threads count (live/follow/live.h): threads with an event loop, and a server's main
// thread. Background threads and snapshot children do not delay clients.
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
	std::string server;  // "": no particular server
	std::string what;    //  "fork for 25.1 ms", "an event-loop iteration of 62.0 ms"
	uint64_t start_ns = 0, end_ns = 0;
};

class Watch
{
public:
	// Replaces the triggers. An event that already fired a trigger of the same name does not fire it
	// again.
	void Use(const std::vector<Trigger> &triggers) { triggers_ = triggers; }
	const std::vector<Trigger> &triggers() const { return triggers_; }

	// Adds the triggers that fired to *fired.
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
	const std::vector<live::Server> *servers_ = nullptr;	   // during See()
	const std::vector<live::ThreadTotals> *threads_ = nullptr; // likewise
	// The last event of each trigger and thread: a stall is reported while it lasts and again at its end.
	std::map<std::pair<std::string, uint32_t>, Interval> last_;
};

} // namespace forktail::live::guard

// SPDX-License-Identifier: MIT
// Overload of an open loop: for a long time more requests were due than were answered, while answers came at
// a steady rate. A stall is none: while it lasts answers do not come, and afterwards its backlog drains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/passes/count.h"
#include "analysis/run/part.h"
#include "cpu_times.h"

namespace forktail::analysis
{

struct Explanation;

struct Overload {
	enum Limit { Unknown, Server, Client }; // who used all of its CPU
	TimeSpan period = {0, 0};
	bool whole = false; // almost all of the time in which requests were due
	double due_per_s = 0, answered_per_s = 0;
	uint64_t backlog = 0; // due, and neither answered nor failed, at the period's end
	uint64_t unsent = 0;  // of the run
	Limit limit = Unknown;
	int thread = -1; // index into Run::threads; of that one, or the busiest serving one; -1: none
	double cpu = 0;	 // its share of a CPU in the period
	double server_cpu = 0, client_cpu = 0; // of the busiest serving and load threads; -1: not recorded
};

// The longest period of overload, without a limit.
std::optional<Overload> FindOverload(const Run &run, const LogFacts &facts);
// Finds who was at its limit. Requires the serving threads and the load threads.
void FindLimit(const Explanation &e, const CpuTimes &cpu, Overload *overload);

// "400,000 requests/s were due, 85,423/s were answered: the backlog grew from the first second to the last,
// to 1,572,885 requests (overload). redis-server ran 99 % of a CPU (GET 40 %): it was at its limit."; "" if
// nothing was overloaded, or it is not known what was at its limit.
std::string OverloadText(const Explanation &e);
// A note for an overload whose limit is not known; "" without one.
std::string OverloadNote(const Explanation &e);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Overload of an open loop: for a long time more requests were due than were answered, while answers came at
// a steady rate. A stall is none: while it lasts answers do not come, and afterwards its backlog drains.
#pragma once

#include <optional>
#include <string>

#include "analysis/passes/count.h"
#include "cpu_times.h"
#include "explanation.h"

namespace forktail::analysis
{

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

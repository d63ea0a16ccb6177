// SPDX-License-Identifier: MIT
// Blames all requests of a run, by passes over its log.
#pragma once

#include <string>
#include <vector>

#include "analysis/blame/blame.h"
#include "analysis/run/log.h"
#include "analysis/run/run.h"
#include "count.h"

namespace forktail::analysis
{

// Parses "1ms", "500us", "2s", "p99", "p99.9".
bool ParseThreshold(const std::string &text, Threshold *threshold, std::string *error);

// Blames requests (or, without a log, iterations) on the timelines. These are: one per entry of run.servers
// (at least one; an empty one makes all time Unknown), then one per entry of run.behind (an empty one makes
// time there Network), then the further threads that `serving` or the timelines' foreign time refer to. If
// load threads are known, time in which a request waited for one of them while the server was idle is
// ClientLate rather than Network.
Blame BlameRun(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
	       const Clients &clients = {}, const Serving &serving = {});

// The same for a log that is read by windows, and whose requests were counted (count.h).
Blame BlameLog(const Run &run, Log *log, LogFacts facts, const std::vector<Timeline> &timelines,
	       const Threshold &threshold, const Clients &clients, const Serving &serving,
	       const BlameLimits &limits, const Stretches &stretches, const Earlier &earlier = {});
// Without a log: event-loop iterations.
Blame BlameIterations(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
		      const BlameLimits &limits, const Stretches &stretches);

} // namespace forktail::analysis

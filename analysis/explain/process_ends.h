// SPDX-License-Identifier: MIT
// What the ends of recorded processes did to requests. A server's end is an outage: from its end to the first
// answer to a request that was sent after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/blame/outages.h"
#include "analysis/run/log.h"
#include "analysis/run/run.h"
#include "explanation.h"

namespace forktail::analysis
{

// Per Run::ended. Reads the log twice if a server of it has ended.
std::vector<ServerEnd> FindServerEnds(const Run &run, Log *log);
std::vector<Outage> OutagesOf(const Run &run, const std::vector<ServerEnd> &ends);

// The end behind most of the requests without an answer, as an index into Run::ended, or -1.
int OutageOf(const Explanation &e);
std::string NameOf(const ProcessEnd &end); // "redis-server (12345)"
std::string SignalName(int signal);	   // "SIGKILL"
// The cgroup that reached its limit of memory about then; "" if none did, or several.
std::string FullCgroup(const Run &run, uint64_t t_ns);
// How a process ended: ", killed by SIGKILL", ", with status 0"; "" if unknown.
std::string HowText(const Run &run, const ProcessEnd &end);
// "redis-server (12345) exited 3.00 s after the first request, killed by SIGKILL: 3,000 requests were due and
// never sent ..."; "" if OutageOf() is -1.
std::string OutageText(const Explanation &e);
// Notes on the other ends that a reader of the run must know.
std::vector<std::string> EndNotes(const Explanation &e);

} // namespace forktail::analysis

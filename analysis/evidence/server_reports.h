// SPDX-License-Identifier: MIT
// Sentences from the server's own reports: its slow log, latency monitor and forks, recorded by the load
// generator's observer; and outages, recorded by the load generator. Without a recorder on the server's host
// they are often the only evidence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// Sentences on reports of from_ns..to_ns (CLOCK_MONOTONIC), the longest first, at most `limit`. Reports
// shorter than a quarter of worst_ns, the episode's longest latency, are left out: they do not explain it.
std::vector<std::string> ServerReportSentences(const Run &run, uint64_t from_ns, uint64_t to_ns,
					       uint64_t worst_ns, size_t limit);

// "FCALL": the command of the longest entry of the slow log that overlaps from_ns..to_ns and lasted
// at_least_ns; "" without one.
std::string SlowCommand(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t at_least_ns);

// The longest outage that overlaps from_ns..to_ns, as a clause of CulpritFinder, and its length in ns; 0
// without one.
std::string OutageClause(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t *ns);

} // namespace forktail::analysis

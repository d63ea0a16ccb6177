// SPDX-License-Identifier: MIT
// Sentences used by both the screen and the whole text. They have no line breaks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/text.h"

namespace forktail::analysis
{

inline double SecondsAfter(uint64_t t_ns, uint64_t zero_ns)
{
	return t_ns >= zero_ns ? static_cast<double>(t_ns - zero_ns) / 1e9
			       : -static_cast<double>(zero_ns - t_ns) / 1e9;
}

// An instant as date and time in UTC; "" if the recordings hold no clock reading.
std::string ClockText(const Explanation &e, uint64_t t_ns);
// Number of requests, duration, load and errors.
std::string RequestsText(const Explanation &e);
// Where the requests of a kernel log were seen, and what that leaves out; "" for other logs.
std::string SeenText(const Explanation &e);
// The marks in the run, the last ones if there are many; "" without.
std::string MarksText(const Explanation &e);
std::string PercentilesText(const Latencies &latencies);
// The snapshot that slowed most requests, if snapshots are what the answer speaks of; "" without.
std::string LeadingSnapshotText(const Explanation &e);
// Percentiles until replies arrived at the client's host. Only if some arrival times are known.
std::string ArrivalsText(const Explanation &e);
// Where slow requests were while they had no other cause, as far as the server's kernel saw them; "" if the
// network is none of their main causes.
std::string NetworkSplitText(const Explanation &e);
// Number of slow requests, and the share of their time that is explained.
std::string SlowText(const Explanation &e);
// The account of each serving thread.
std::vector<std::string> AccountTexts(const Explanation &e);
// Dropped events, or that no event was dropped; empty without a recorder.
std::vector<std::string> DropTexts(const Explanation &e);
std::string CostText(const Explanation &e);
// Notes and warnings that limit the explanation.
std::vector<std::string> NoteTexts(const Explanation &e);

// Tables and JSON of what the server counted itself, beside what forktail recorded.

// "" if the server's counters were not recorded. Narrow terminals get fewer columns.
std::string ServerCommandsTable(const Explanation &e, const Style &style);
std::string ServerThreadsTable(const Explanation &e, const Style &style);

nlohmann::ordered_json ServerCommandsJson(const ServerCommands &counted);
nlohmann::ordered_json ServerThreadsJson(const Explanation &e);

// Draws latency over the time of a run with characters: the longest latency per column on a log scale, slow
// ones in colour, and the positions of the worst episodes below.

// `rows` lines of latency, one line with the positions of the episodes in `worst` (indices), and one time
// axis. Empty if no request was answered.
std::vector<std::string> LatencySketch(const Explanation &e, const Style &style, size_t rows,
				       const std::vector<uint32_t> &worst);

} // namespace forktail::analysis

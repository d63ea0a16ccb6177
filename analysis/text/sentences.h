// SPDX-License-Identifier: MIT
// Sentences used by both the screen and the whole text. They have no line breaks.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// An instant as date and time in UTC; "" if the recordings hold no clock reading.
std::string ClockText(const Explanation &e, uint64_t t_ns);
// Number of requests, duration, load and errors.
std::string RequestsText(const Explanation &e);
// Where the requests of a kernel log were seen, and what that leaves out; "" for other logs.
std::string SeenText(const Explanation &e);
// The marks in the run, the last ones if there are many; "" without.
std::string MarksText(const Explanation &e);
std::string PercentilesText(const Latencies &latencies);
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

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Sentences that the screen and the whole text have in common. They are not broken into lines yet.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// An instant by the time of day in UTC, as logs have it; "" if the recordings hold no clock reading.
std::string ClockText(const Explanation &e, uint64_t t_ns);
// How many requests, in how long, how they were sent, and errors.
std::string RequestsText(const Explanation &e);
std::string PercentilesText(const Latencies &latencies);
// Until answers arrived at the client's host. Only where that is known of any.
std::string ArrivalsText(const Explanation &e);
// How many are slow, and how much of their time is explained.
std::string SlowText(const Explanation &e);
// Of each serving thread, what its time went to.
std::vector<std::string> AccountTexts(const Explanation &e);
// What was dropped, or that nothing was; empty without a recorder.
std::vector<std::string> DropTexts(const Explanation &e);
std::string CostText(const Explanation &e);
// What limits the explanation.
std::vector<std::string> NoteTexts(const Explanation &e);

} // namespace forktail::analysis

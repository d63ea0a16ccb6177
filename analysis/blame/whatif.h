// SPDX-License-Identifier: MIT
// The table of causes: what each took from the slow requests, and every percentile without it.
#pragma once

#include <array>
#include <vector>

#include "blame.h"
#include "percentile.h"

namespace forktail
{

// Requests that were blamed in full: at least all that are slow, and all that could be among the slowest
// percent of the run with one stall taken out. Parts are in Blame::parts.
using Blamed = std::vector<SlowRequest>;

// Latencies of all answered requests with one cause taken out, for causes that nearly every request has a
// part in, so that full blame of a few would not do. Indexed by Cause - kStallCauses.
using WithoutHistograms = std::array<LogHistogram, static_cast<size_t>(kCauses - kStallCauses)>;

// Fills blame->causes from blame->slow. `histograms` may be null: then `blamed` holds every request.
void FillCauses(const Blamed &blamed, const WithoutHistograms *histograms, uint64_t answered, Blame *blame);

} // namespace forktail

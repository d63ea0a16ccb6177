// SPDX-License-Identifier: MIT
// The lanes of a report page.
#pragma once

#include "analysis/explain/explanation.h"
#include "clock.h"
#include "lane.h"

namespace forktail::analysis::report
{

// Makes the lanes of a run in one pass over it, within the limits.
ReportLanes MakeLanes(const Explanation &explanation, const ReportClock &clock, const LaneLimits &limits);

} // namespace forktail::analysis::report

// SPDX-License-Identifier: MIT
// The small charts of a report page: series that belong on one axis, sampled at the same times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "clock.h"

namespace forktail::analysis::report
{

struct MetricLine {
	std::string name;
	std::vector<float> values; // one per time; NaN where there is none
};

struct MetricChart {
	std::string name, unit;
	std::vector<uint32_t> times; // ticks
	std::vector<MetricLine> lines;
};

// Charts in the page's order. At most `samples` per line: of more, each stands for several by their mean.
std::vector<MetricChart> CollectMetrics(const Run &run, const ReportClock &clock, size_t samples = 6000);

} // namespace forktail::analysis::report

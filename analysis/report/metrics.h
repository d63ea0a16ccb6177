// SPDX-License-Identifier: MIT
// The small charts of a report page: series on one axis, sampled at the same times.
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
	std::vector<float> values; // one per time; NaN: none
};

struct MetricChart {
	std::string name, unit;
	std::vector<uint32_t> times; // ticks
	std::vector<MetricLine> lines;
};

// Charts in the page's order, with at most `samples` per line. With more, each value is the mean of several.
std::vector<MetricChart> CollectMetrics(const Run &run, const ReportClock &clock, size_t samples = 6000);

} // namespace forktail::analysis::report

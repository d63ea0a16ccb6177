// SPDX-License-Identifier: MIT
// Numbers of a server's INFO, which the load generator's observer asks for every second. All values of an
// answer are of one instant. Only changed ones are written: a value holds until the next one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/run/part.h"
#include "analysis/run/run.h"

namespace forktail::analysis
{

// nullptr: the server did not report it.
const Series *InfoSeries(const Run &run, const std::string &name);

// A value as a whole number. A recording may have any numbers: negative ones are 0.
uint64_t WholeInfo(double value);

// By how much it grew in the period, times `unit`. Nothing if it was not reported, or set back by a restart.
std::optional<uint64_t> InfoGrowth(const Run &run, const std::string &name, const TimeSpan &period,
				   double unit = 1);

} // namespace forktail::analysis

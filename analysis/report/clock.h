// SPDX-License-Identifier: MIT
// The page's unit of time: ticks after the first instant shown, fine enough that 32 bits hold the run. A tick
// is 14 ns for a minute and 0.84 us for an hour, below what a screen shows at any zoom.
#pragma once

#include <algorithm>
#include <cstdint>

namespace forktail::analysis::report
{

struct ReportClock {
	uint64_t begin_ns = 0; // first instant shown
	uint64_t end_ns = 0;
	uint64_t zero_ns = 0; // the zero of "+12.304 s"
	uint64_t tick_ns = 1;

	ReportClock(uint64_t begin, uint64_t end, uint64_t zero)
	    : begin_ns(begin), end_ns(std::max(end, begin + 1)), zero_ns(zero),
	      tick_ns((end_ns - begin_ns) / UINT32_MAX + 1)
	{
	}
	uint64_t Clamp(uint64_t t_ns) const { return std::clamp(t_ns, begin_ns, end_ns); }
	uint32_t Tick(uint64_t t_ns) const
	{
		return static_cast<uint32_t>((Clamp(t_ns) - begin_ns) / tick_ns);
	}
	double Seconds(uint64_t t_ns) const
	{
		return static_cast<double>(static_cast<int64_t>(t_ns - zero_ns)) / 1e9;
	}
};

} // namespace forktail::analysis::report

// SPDX-License-Identifier: MIT
// The period is that in which the loop's time grew.
#include "server_count.h"

#include "info_series.h"

namespace forktail::analysis
{

std::optional<ServerCount> ServerCountOf(const Run &run)
{
	constexpr uint64_t us = 1000;
	const Series *loop = InfoSeries(run, "eventloop_duration_sum");
	if (!loop || loop->samples.size() < 2)
		return {};
	const TimeSpan period = {loop->samples.front().t_ns, loop->samples.back().t_ns};
	const auto cycles = InfoGrowth(run, "eventloop_cycles", period),
		   loop_us = InfoGrowth(run, "eventloop_duration_sum", period),
		   command_us = InfoGrowth(run, "eventloop_duration_cmd_sum", period);
	if (!cycles || !loop_us || !command_us || period.since_ns == period.until_ns)
		return {};
	return ServerCount{period.until_ns - period.since_ns, *cycles, *loop_us * us, *command_us * us};
}

} // namespace forktail::analysis

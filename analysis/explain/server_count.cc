// SPDX-License-Identifier: MIT
// A value is written only when it has changed, so the last one holds until the end.
#include "server_count.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

const Series *Find(const Run &run, const char *name)
{
	const auto found = std::ranges::find_if(run.series, [&](const Series &s) { return s.name == name; });
	return found == run.series.end() || found->samples.size() < 2 ? nullptr : &*found;
}

// By how much it grew; nothing if it was set back.
std::optional<uint64_t> Growth(const Series &series)
{
	const bool grows = std::ranges::is_sorted(series.samples, {}, &Sample::value);
	const double by = series.samples.back().value - series.samples.front().value;
	return grows ? std::optional<uint64_t>(static_cast<uint64_t>(by)) : std::nullopt;
}

} // namespace

std::optional<ServerCount> ServerCountOf(const Run &run)
{
	constexpr uint64_t us = 1000;
	const Series *cycles = Find(run, "redis.eventloop_cycles"),
		     *loop = Find(run, "redis.eventloop_duration_sum"),
		     *commands = Find(run, "redis.eventloop_duration_cmd_sum");
	if (!cycles || !loop || !commands)
		return {};
	const auto turns = Growth(*cycles), loop_us = Growth(*loop), command_us = Growth(*commands);
	const uint64_t ns = loop->samples.back().t_ns - loop->samples.front().t_ns;
	if (!turns || !loop_us || !command_us || !ns)
		return {};
	return ServerCount{ns, *turns, *loop_us * us, *command_us * us};
}

} // namespace forktail::analysis

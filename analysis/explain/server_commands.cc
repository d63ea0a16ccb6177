// SPDX-License-Identifier: MIT
// Counters only grow while a process runs, so a smaller one was reset meanwhile (CONFIG RESETSTAT), and its
// command is left out.
#include "server_commands.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "common/json/json_read.h"
#include "common/statistics/histogram.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kUs = 1000;

using ByName = std::map<std::string, common::Json>;

// The last reading of this kind, and the first one of the same process.
struct Readings {
	const ServerReport *first = nullptr, *last = nullptr;

	bool Two() const { return first && first->t_ns < last->t_ns; }
};

std::string RunId(const ServerReport &report)
{
	return common::Text(common::ParseJson(report.text), "run_id");
}

Readings FindReadings(const Run &run, const char *kind)
{
	Readings found;
	for (const ServerReport &r : run.reports)
		if (r.kind == kind && (!found.last || r.t_ns > found.last->t_ns))
			found.last = &r;
	if (!found.last)
		return found;
	const std::string process = RunId(*found.last);
	for (const ServerReport &r : run.reports)
		if (r.kind == kind && (!found.first || r.t_ns < found.first->t_ns) && RunId(r) == process)
			found.first = &r;
	return found;
}

ByName CommandsOf(const ServerReport &report)
{
	ByName all;
	const common::Json j = common::ParseJson(report.text);
	if (const common::Json *commands = common::Member(j, "commands"); commands && commands->is_array())
		for (const common::Json &command : *commands)
			all[common::Text(command, "name")] = command;
	return all;
}

// The entry of a reading; one without members for a command that was not called before it.
const common::Json &At(const ByName &commands, const std::string &name)
{
	static const common::Json none = common::Json::object();
	const auto found = commands.find(name);
	return found == commands.end() ? none : found->second;
}

// Upper bounds in microseconds, with the number of calls up to each.
std::map<uint64_t, uint64_t> SlotsOf(const common::Json &command)
{
	std::map<uint64_t, uint64_t> slots;
	const common::Json *list = common::Member(command, "slots");
	if (!list || !list->is_array())
		return slots;
	for (const common::Json &slot : *list)
		if (slot.is_array() && slot.size() == 2 && slot[0].is_number_unsigned() &&
		    slot[1].is_number_unsigned())
			slots[slot[0].get<uint64_t>()] = slot[1].get<uint64_t>();
	return slots;
}

// The bound of the slot that has the percentile of the calls between two readings; 0: none.
uint64_t PercentileNs(const common::Json &before, const common::Json &after, double percentile)
{
	const uint64_t first = common::Whole(before, "calls"), last = common::Whole(after, "calls");
	if (last <= first)
		return 0;
	const uint64_t rank = common::Rank(last - first, percentile);
	const std::map<uint64_t, uint64_t> earlier = SlotsOf(before);
	for (const auto &[us, calls] : SlotsOf(after)) {
		// Slots without calls are left out: the one below has the same number.
		const auto above = earlier.upper_bound(us);
		const uint64_t then = above == earlier.begin() ? 0 : std::prev(above)->second;
		if (calls >= then + rank)
			return us * kUs;
	}
	return 0;
}

// The requests of all operations with this command.
std::optional<OperationCount> LoggedOf(const Run &run, const OperationCounts &by_op, const std::string &name)
{
	std::optional<OperationCount> sum;
	for (size_t op = 0; op < run.op_commands.size() && op < by_op.size(); op++) {
		const bool same =
		    std::ranges::equal(run.op_commands[op], name, [](unsigned char a, unsigned char b) {
			    return std::tolower(a) == std::tolower(b);
		    });
		if (!same)
			continue;
		sum = sum.value_or(OperationCount());
		sum->Add(by_op[op]);
	}
	return sum;
}

} // namespace

TimeSpan CommandCountsSpan(const Run &run)
{
	const Readings readings = FindReadings(run, "command-stats");
	return readings.Two() ? TimeSpan{readings.first->t_ns, readings.last->t_ns} : TimeSpan{0, 0};
}

std::optional<ServerCommands> ServerCommandsOf(const Run &run, const OperationCounts &by_op)
{
	const Readings readings = FindReadings(run, "command-stats");
	if (!readings.Two())
		return {};
	const Readings histograms = FindReadings(run, "command-latency");
	const bool partial = std::ranges::any_of(run.loads, &Load::only_slow);
	const ByName before = CommandsOf(*readings.first), after = CommandsOf(*readings.last);
	ByName latency_before, latency_after;
	if (histograms.Two()) {
		latency_before = CommandsOf(*histograms.first);
		latency_after = CommandsOf(*histograms.last);
	}
	ServerCommands all = {readings.last->t_ns - readings.first->t_ns, {}};
	for (const auto &[name, now] : after) {
		const common::Json &then = At(before, name);
		bool reset = false;
		auto growth = [&, &now = now](const char *counter) { // clang 14 captures no part of a pair
			const uint64_t from = common::Whole(then, counter), to = common::Whole(now, counter);
			reset |= to < from;
			return to - from;
		};
		ServerCommand c = {name,
				   growth("calls"),
				   growth("rejected_calls"),
				   growth("failed_calls"),
				   growth("usec") * kUs,
				   0,
				   0,
				   {}};
		if (reset || c.calls + c.rejected == 0)
			continue;
		c.p50_ns = PercentileNs(At(latency_before, name), At(latency_after, name), 50);
		c.p99_ns = PercentileNs(At(latency_before, name), At(latency_after, name), 99);
		if (!partial)
			c.logged = LoggedOf(run, by_op, name);
		all.commands.push_back(std::move(c));
	}
	std::ranges::stable_sort(all.commands, std::greater(), &ServerCommand::time_ns);
	return all;
}

} // namespace forktail::analysis

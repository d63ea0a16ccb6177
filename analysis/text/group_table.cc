// SPDX-License-Identifier: MIT
// The name has the width that the numbers leave: narrow terminals shorten it, and drop the causes.
#include "group_table.h"

#include <algorithm>

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kGroupRows = 20, kGroupCauses = 2;
constexpr size_t kNumberColumns = 12 + 4 * 10 + 9; // requests, four latencies, slow requests

std::string GroupCauses(const RequestGroup &g, size_t columns)
{
	std::string text;
	for (size_t c = 0; c < std::min(g.causes.size(), kGroupCauses); c++) {
		const std::string one =
		    std::string(c ? ", " : "  ") + CauseName(g.causes[c].cause) + " " +
		    common::FormatShare(static_cast<double>(g.causes[c].time_ns) /
					static_cast<double>(std::max<uint64_t>(g.slow_ns, 1)));
		if (DisplayWidth(text + one) > columns)
			break;
		text += one;
	}
	return text;
}

} // namespace

bool GroupTable(const Explanation &e, const Style &style, GroupBy by, std::string *text, std::string *error)
{
	const bool clients = by == GroupBy::Client;
	const std::vector<RequestGroup> &groups = clients ? e.by_client : e.by_command;
	if (groups.empty()) {
		*error =
		    e.blame.from_iterations
			? "--by needs a request log: 'forktail record --requests' or 'forktail load' "
			  "writes one"
			: "the request log of this run does not name clients: 'forktail record --requests' "
			  "does";
		return false;
	}
	size_t name = 8;
	for (size_t i = 0; i < std::min(kGroupRows, groups.size()); i++)
		name = std::max(name, DisplayWidth(groups[i].name));
	name = std::min(name, std::max<size_t>(16, style.columns - std::min(style.columns, kNumberColumns)));
	const size_t used = name + kNumberColumns, left = style.columns - std::min(style.columns, used);
	*text = "\n" +
		style.Strong(PadRight(clients ? "client" : "command", name) + PadLeft("requests", 12) +
			     PadLeft("p50", 10) + PadLeft("p99", 10) + PadLeft("p99.9", 10) +
			     PadLeft("max", 10) + PadLeft("slow", 9) + (left > 8 ? "  mostly" : "")) +
		"\n";
	for (size_t i = 0; i < std::min(kGroupRows, groups.size()); i++) {
		const RequestGroup &g = groups[i];
		const Latencies &l = g.latencies;
		*text += PadRight(Ellipsized(g.name, name, style), name) +
			 PadLeft(common::FormatCount(g.requests), 12);
		for (const uint64_t ns : {l.p50, l.p99, l.p99_9, l.max})
			*text += PadLeft(g.requests == g.errors ? "-" : common::FormatDuration(ns), 10);
		*text += PadLeft(common::FormatCount(g.slow), 9) + GroupCauses(g, left) + "\n";
	}
	if (groups.size() > kGroupRows)
		*text += style.Dim("(" +
				   common::Plural(groups.size() - kGroupRows,
						  clients ? "more client" : "more command",
						  clients ? "more clients" : "more commands") +
				   ": --json)") +
			 "\n";
	return true;
}

} // namespace forktail::analysis

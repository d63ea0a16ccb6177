// SPDX-License-Identifier: MIT
// A cell that is not known is "-". A column that is known for no row is left out.
#include "server_tables.h"

#include <algorithm>
#include <vector>

#include "analysis/run/hosts.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kRows = 5, kNameColumns = 20;

using Row = std::vector<std::string>; // a name, then numbers; "": unknown

std::string Duration(uint64_t ns)
{
	return ns ? common::FormatDuration(ns) : "";
}

std::string Signed(int64_t n, std::string (*format)(uint64_t))
{
	return n < 0 ? "-" + format(0 - static_cast<uint64_t>(n)) : format(static_cast<uint64_t>(n));
}

std::string Count(const std::optional<uint64_t> &n)
{
	return n ? common::FormatCount(*n) : "";
}

int64_t Less(uint64_t a, uint64_t b)
{
	return static_cast<int64_t>(a - b);
}

// Rows below their heads, as many columns as fit.
std::string Table(const Row &heads, const std::vector<Row> &rows, const Style &style)
{
	std::vector<std::string> lines(rows.size() + 1);
	size_t used = 0;
	for (size_t c = 0; c < heads.size(); c++) {
		size_t width = DisplayWidth(heads[c]);
		bool known = false;
		for (const Row &row : rows) {
			width = std::max(width, DisplayWidth(row[c]));
			known |= !row[c].empty();
		}
		if (!known)
			continue;
		if (c == 0)
			width = std::min(width, kNameColumns);
		if (used + width + (c ? 2 : 0) > style.columns)
			break;
		used += width + (c ? 2 : 0);
		for (size_t i = 0; i < lines.size(); i++) {
			const std::string &cell = i ? rows[i - 1][c] : heads[c];
			lines[i] += c ? "  " + PadLeft(cell.empty() ? "-" : cell, width)
				      : PadRight(Ellipsized(cell, width, style), width);
		}
	}
	std::string text = style.Strong(lines[0]) + "\n";
	for (size_t i = 1; i < lines.size(); i++)
		text += lines[i] + "\n";
	return text;
}

// What the columns are, as far as they are known for any command.
std::string CommandsCaption(const ServerCommands &counted)
{
	bool bounds = false, logged = false, served = false;
	for (const ServerCommand &c : counted.commands) {
		bounds |= c.p50_ns != 0;
		logged |= c.logged.has_value();
		served |= c.logged && c.logged->served;
	}
	return "Commands as the server counted them (INFO, over " + common::FormatDuration(counted.ns) +
	       "): time in the command's function" +
	       (bounds ? ", and upper bounds of its percentiles (LATENCY HISTOGRAM)." : ".") +
	       (logged ? " Requests are those of the log." : "") +
	       (served ? " Service is the time from the server's read to its answer." : "");
}

} // namespace

std::string ServerCommandsTable(const Explanation &e, const Style &style)
{
	if (!e.server_commands || e.server_commands->commands.empty())
		return "";
	const std::vector<ServerCommand> &all = e.server_commands->commands;
	std::vector<Row> rows;
	for (size_t i = 0; i < std::min(kRows, all.size()); i++) {
		const ServerCommand &c = all[i];
		const std::optional<OperationCount> &log = c.logged;
		rows.push_back(
		    {c.name, common::FormatCount(c.calls), common::FormatDuration(c.time_ns),
		     c.calls ? common::FormatDuration(c.MeanNs()) : "", Duration(c.p50_ns),
		     Duration(c.p99_ns), log ? common::FormatCount(log->requests) : "",
		     log ? Signed(c.Difference(), common::FormatCount) : "",
		     log && log->served ? common::FormatDuration(log->service_ns / log->served) : ""});
	}
	std::string text = "\n" + Wrap(CommandsCaption(*e.server_commands), 0, 0, style.columns) +
			   Table({"command", "calls", "time", "mean", "p50 <=", "p99 <=", "requests",
				  "difference", "service"},
				 rows, style);
	if (all.size() > kRows)
		text +=
		    "(" + common::Plural(all.size() - kRows, "more command", "more commands") + ": --json)\n";
	return text;
}

std::string ServerThreadsTable(const Explanation &e, const Style &style)
{
	const ServerThreads &all = e.server_threads;
	std::vector<Row> rows;
	for (const ServerThread &t : all.threads) {
		const bool known = t.thread >= 0;
		const std::optional<uint64_t> &counted = t.cpu_ns ? t.cpu_ns : t.active_ns;
		const int64_t difference = Less(counted.value_or(0), t.kernel_cpu_ns);
		rows.push_back({t.name, Count(t.connections), Count(t.reads), Count(t.writes),
				t.active_ns ? common::FormatDuration(*t.active_ns) : "",
				t.cpu_ns ? common::FormatDuration(*t.cpu_ns) : "",
				known ? common::FormatDuration(t.kernel_cpu_ns) : "",
				known && counted ? Signed(difference, common::FormatDuration) : ""});
	}
	if (rows.empty())
		return "";
	const bool recorded =
	    std::ranges::any_of(all.threads, [](const ServerThread &t) { return t.thread >= 0; });
	return "\n" +
	       Wrap("Threads as the server counted them (INFO, over " +
			common::FormatDuration(all.period.until_ns - all.period.since_ns) +
			(recorded ? "), and their CPU time in the kernel's account in the same time." : ")."),
		    0, 0, style.columns) +
	       Table({"thread", "connections", "reads", "writes", "active", "CPU (INFO)", "CPU (kernel)",
		      "difference"},
		     rows, style);
}

nlohmann::ordered_json ServerCommandsJson(const ServerCommands &counted)
{
	nlohmann::ordered_json commands = nlohmann::ordered_json::array();
	for (const ServerCommand &c : counted.commands) {
		nlohmann::ordered_json one = {{"name", c.name},		{"calls", c.calls},
					      {"rejected", c.rejected}, {"failed", c.failed},
					      {"time_ns", c.time_ns},	{"mean_ns", c.MeanNs()}};
		if (c.p50_ns)
			one.update({{"p50_ns", c.p50_ns}, {"p99_ns", c.p99_ns}});
		if (c.logged)
			one.update({{"requests", c.logged->requests}, {"difference", c.Difference()}});
		if (c.logged && c.logged->served)
			one.update({{"served", c.logged->served},
				    {"service_ns", c.logged->service_ns / c.logged->served}});
		commands.push_back(std::move(one));
	}
	return {{"ns", counted.ns}, {"commands", std::move(commands)}};
}

nlohmann::ordered_json ServerThreadsJson(const Explanation &e)
{
	nlohmann::ordered_json threads = nlohmann::ordered_json::array();
	for (const ServerThread &t : e.server_threads.threads) {
		nlohmann::ordered_json one = {{"name", t.name}};
		if (t.thread >= 0)
			one.update({{"tid", OwnId(e.run, e.run.threads[static_cast<size_t>(t.thread)].tid)},
				    {"kernel_cpu_ns", t.kernel_cpu_ns}});
		if (t.cpu_ns)
			one["cpu_ns"] = *t.cpu_ns;
		if (t.cpu_ns && t.thread >= 0)
			one["cpu_difference_ns"] = Less(*t.cpu_ns, t.kernel_cpu_ns);
		if (t.active_ns)
			one["active_ns"] = *t.active_ns;
		if (t.active_ns && t.thread >= 0)
			one["active_difference_ns"] = Less(*t.active_ns, t.kernel_cpu_ns);
		if (t.connections)
			one["connections"] = *t.connections;
		if (t.reads && t.writes)
			one.update({{"reads", *t.reads}, {"writes", *t.writes}});
		threads.push_back(std::move(one));
	}
	const TimeSpan &period = e.server_threads.period;
	return {{"ns", period.until_ns - period.since_ns}, {"threads", std::move(threads)}};
}

} // namespace forktail::analysis

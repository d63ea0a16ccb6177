// SPDX-License-Identifier: MIT
// Each check covers every point of every scale, because values differ between them. Only the first error is
// reported.
#include "scenario_check.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "common/text.h"
#include "formula.h"
#include "lab/servers/kinds.h"
#include "words.h"

namespace forktail::lab
{
namespace
{

constexpr int kMostInstances = 100;
const std::set<std::string> kForks = {"BGSAVE", "BGREWRITEAOF"};
const std::set<std::string> kAwaited = {"snapshot", "rewrite", "replicas"};

// Whole numbers in expanded templates: "3", not "3x" or "2.5".
bool IsCount(const std::string &text, int least, int most)
{
	int number = 0;
	auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
	return error == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
}

bool IsName(const std::string &text)
{
	auto plain = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
	return !text.empty() && isalpha(static_cast<unsigned char>(text[0])) &&
	       std::all_of(text.begin(), text.end(), plain);
}

struct Check {
	const Scenario &scenario;
	std::string *mistake;
	std::vector<Values> points;  // at all scales
	std::set<std::string> steps; // that produce figures

	void Fail(int line, const std::string &reason)
	{
		if (mistake->empty())
			*mistake = std::to_string(line) + ": " + reason;
	}
};

const Sweep *FindSweep(const Scenario &scenario, const std::string &name)
{
	for (const Sweep &sweep : scenario.sweeps)
		if (sweep.name == name)
			return &sweep;
	return nullptr;
}

const ServerSpec *FindSpec(const Scenario &scenario, const std::string &name)
{
	for (const ServerSpec &server : scenario.servers)
		if (server.name == name)
			return &server;
	return nullptr;
}

void CheckFilter(Check *check, const Filter &filter, int line)
{
	for (const auto &[name, values] : filter) {
		const Sweep *sweep = FindSweep(check->scenario, name);
		if (!sweep) {
			check->Fail(line, "unknown sweep variable \"" + name + "\"");
			continue;
		}
		// Values of formulas differ between scales.
		for (const std::string &value : values)
			if (std::find(sweep->values.begin(), sweep->values.end(), value) ==
				sweep->values.end() &&
			    sweep->values[0].find('{') == std::string::npos)
				check->Fail(line, "\"" + name + "\" has no value \"" + value + "\"");
	}
}

void CheckTemplate(Check *check, const std::string &text, const Filter &only, int line)
{
	std::string expanded, error;
	for (const Values &point : check->points)
		if (Matches(only, point) && !Expand(text, point, &expanded, &error)) {
			check->Fail(line, error);
			return;
		}
}

// "redis", "redis3" of several, or "redis{i}".
void CheckServer(Check *check, const std::string &name, int line)
{
	std::string group = name.substr(0, name.find('{'));
	if (FindSpec(check->scenario, group))
		return;
	while (!group.empty() && isdigit(static_cast<unsigned char>(group.back())))
		group.pop_back();
	if (!FindSpec(check->scenario, group))
		check->Fail(line, "unknown server \"" + name + "\"");
}

bool IsThere(const Check &check, const std::string &name, const Values &point)
{
	std::string group = name.substr(0, name.find_last_not_of("0123456789") + 1);
	return std::any_of(
	    check.scenario.servers.begin(), check.scenario.servers.end(),
	    [&](const ServerSpec &server) { return server.name == group && Matches(server.only, point); });
}

void CheckSweeps(Check *check)
{
	std::set<std::string> names;
	auto once = [&](const std::string &name, int line) {
		if (!IsName(name))
			check->Fail(
			    line, "\"" + name +
				      "\" is not a name: use letters, digits and _, starting with a letter");
		else if (!names.insert(name).second)
			check->Fail(line, "\"" + name + "\" is defined twice");
	};
	for (const Size &size : check->scenario.sizes) {
		once(size.name, 1);
		if (!(size.full > 0) || size.least < 0)
			check->Fail(1, "the size " + size.name + " must be above 0");
	}
	for (const auto &[name, unused] : check->scenario.constants)
		once(name, 1);
	for (const Sweep &sweep : check->scenario.sweeps) {
		once(sweep.name, sweep.line);
		if (std::set<std::string>(sweep.values.begin(), sweep.values.end()).size() <
		    sweep.values.size())
			check->Fail(sweep.line, "\"" + sweep.name + "\" has the same value twice");
		if (&sweep != &check->scenario.sweeps[0] && !sweep.keep_servers && (&sweep - 1)->keep_servers)
			check->Fail(
			    sweep.line,
			    "sweeps with `keep_servers` must come last, because nothing else may change "
			    "between their values");
		if (sweep.values.empty())
			check->Fail(sweep.line, "the sweep \"" + sweep.name + "\" has no values");
		for (const auto &[name, also] : sweep.also) {
			once(name, sweep.line);
			if (also.size() != sweep.values.size())
				check->Fail(sweep.line,
					    "`also." + name + "` needs a value for each of `values`");
		}
		for (const auto &[scale, values] : sweep.at)
			for (const std::string &value : values)
				if (std::find(sweep.values.begin(), sweep.values.end(), value) ==
				    sweep.values.end())
					check->Fail(sweep.line, "\"" + value + "\" at scale " + scale +
								    " is none of the values of \"" +
								    sweep.name + "\"");
	}
	for (const auto &[name, factor] : check->scenario.scales)
		if (!IsName(name) || !(factor > 0))
			check->Fail(1, "the scale \"" + name + "\" must be a factor above 0");
}

// PointsOf() expands templates in values; invalid ones remain unchanged.
void CheckValues(Check *check)
{
	auto worked_out = [&](const Values &point, const std::string &name, int line) {
		std::string expanded, error;
		if (point.at(name).find('{') != std::string::npos &&
		    !Expand(point.at(name), point, &expanded, &error))
			check->Fail(line, error);
	};
	for (const Values &point : check->points)
		for (const auto &[name, unused] : check->scenario.constants)
			worked_out(point, name, 1);
	for (const Values &point : check->points)
		for (const Sweep &sweep : check->scenario.sweeps) {
			worked_out(point, sweep.name, sweep.line);
			for (const auto &[name, unused] : sweep.also)
				worked_out(point, name, sweep.line);
		}
}

void CheckServers(Check *check)
{
	std::set<std::string> names;
	for (const ServerSpec &server : check->scenario.servers) {
		if (!IsName(server.name) || isdigit(static_cast<unsigned char>(server.name.back())))
			check->Fail(
			    server.line,
			    "the name of a server must be a name that does not end with a digit, not \"" +
				server.name + "\"");
		names.insert(server.name);
		const ServerKind *kind = FindKind(server.kind);
		if (!kind)
			check->Fail(server.line,
				    "unknown kind of server \"" + server.kind + "\": use " + KindNames());
		for (const std::string *other : {&server.of, &server.replica_of})
			if (!other->empty() && !names.count(*other))
				check->Fail(server.line, "the server \"" + *other + "\" must come before \"" +
							     server.name + "\"");
		if (kind && kind->of && server.of.empty())
			check->Fail(server.line,
				    "a " + server.kind + " needs `of` with the servers behind it");
		CheckFilter(check, server.only, server.line);
		for (const std::string *text :
		     {&server.count, &server.listen, &server.cpus, &server.memory, &server.replicas})
			CheckTemplate(check, *text, server.only, server.line);
		for (const std::string &text : server.config)
			CheckTemplate(check, text, server.only, server.line);
	}
	for (const Values &point : check->points) {
		std::set<std::string> here;
		for (const ServerSpec &server : check->scenario.servers) {
			std::string memory, count, listen, replicas, error;
			uint64_t bytes = 0;
			if (Matches(server.only, point) && !here.insert(server.name).second)
				check->Fail(server.line, "a point has two servers \"" + server.name + "\"");
			if (!Matches(server.only, point) || !Expand(server.memory, point, &memory, &error) ||
			    !Expand(server.count, point, &count, &error) ||
			    !Expand(server.listen, point, &listen, &error) ||
			    !Expand(server.replicas, point, &replicas, &error))
				continue;
			if (!memory.empty() && !ParseBytes(memory, &bytes))
				check->Fail(server.line,
					    "\"" + memory + "\" is not a size of memory such as 256MiB");
			if (!IsCount(count, 1, kMostInstances))
				check->Fail(server.line, "`count` must be 1 to 100, not " + count);
			if (!replicas.empty() && !IsCount(replicas, 0, kMostInstances))
				check->Fail(server.line, "`replicas` must be 0 to 100, not " + replicas);
			if (listen != "unix" && listen != "tcp")
				check->Fail(server.line, "`listen` must be unix or tcp, not " + listen);
		}
	}
}

void CheckSwap(Check *check)
{
	const SwapSpec &swap = check->scenario.swap;
	if (!swap.kind.empty() && swap.kind != "zram" && swap.kind != "file")
		check->Fail(swap.line, "unknown kind of swap \"" + swap.kind + "\": use zram or file");
	CheckFilter(check, swap.only, swap.line);
	CheckTemplate(check, swap.size, swap.only, swap.line);
	for (const Values &point : check->points) {
		std::string size, error;
		uint64_t bytes = 0;
		if (!swap.kind.empty() && Matches(swap.only, point) &&
		    Expand(swap.size, point, &size, &error) && !ParseBytes(size, &bytes))
			check->Fail(swap.line, "\"" + size + "\" is not a size of swap such as 256MiB");
	}
}

// Two loads with the same name would share figures and files.
void CheckNames(Check *check)
{
	for (const Values &point : check->points) {
		std::set<std::string> here;
		for (const StepSpec &step : check->scenario.steps) {
			const std::string &name = step.load.empty() ? step.action.note : step.name;
			if (!name.empty() && Matches(step.only, point) && !here.insert(name).second)
				check->Fail(step.line, "a point has two steps \"" + name + "\"");
		}
	}
}

// The text of `say` may contain figures of its step and of earlier steps.
void CheckSay(Check *check, const std::string &text, const Filter &only, int line)
{
	auto figure = [&](const std::string &name) -> std::optional<double> {
		if (name.find('.') == std::string::npos ||
		    !check->steps.count(name.substr(0, name.find('.'))))
			return {};
		return 1;
	};
	std::string expanded, error;
	for (const Values &point : check->points)
		if (Matches(only, point) && !ExpandText(text, point, figure, &expanded, &error)) {
			check->Fail(line, error);
			return;
		}
}

void CheckAction(Check *check, const Action &action, const Filter &only, int line)
{
	int things = 0;
	for (const std::string *text : {&action.ask, &action.start, &action.kill, &action.move_slots,
					&action.await, &action.spread, &action.wait, &action.note})
		things += !text->empty();
	if (things != 1)
		check->Fail(
		    line,
		    "a step needs exactly one of load, ask, start, kill, move_slots, await, spread, wait "
		    "and note");
	CheckFilter(check, action.only, line);
	for (const std::string *text : {&action.ask, &action.move_slots})
		CheckTemplate(check, *text, only, line);
	bool needs_server = !action.ask.empty() || !action.move_slots.empty() || !action.await.empty();
	if (needs_server && action.server.empty())
		check->Fail(line, "`server` is missing: name the server of this step");
	for (const std::string *name : {&action.start, &action.kill, &action.server, &action.to})
		if (!name->empty())
			CheckServer(check, *name, line);
	if (!action.move_slots.empty() && action.to.empty())
		check->Fail(line, "`move_slots` needs `to` with the node that receives the slots");
	if (!action.await.empty() && !kAwaited.count(action.await))
		check->Fail(line,
			    "unknown `await` \"" + action.await + "\": use snapshot, rewrite or replicas");
	if (!action.spread.empty() && action.spread != "on" && action.spread != "off")
		check->Fail(line, "`spread` must be \"on\" or \"off\"");
	Due due;
	if (!action.wait.empty() && (!ParseDue(action.wait, &due) || due.is_share))
		check->Fail(line, "`wait` must be a time such as 2s, not \"" + action.wait + "\"");
	if (!action.note.empty()) {
		if (!IsName(action.note))
			check->Fail(line, "\"" + action.note + "\" is not a name for figures");
		check->steps.insert(action.note);
	}
	CheckSay(check, action.say, only, line);
	if (action.report && (action.at.empty() || !kForks.count(action.ask)))
		check->Fail(line, "`report` needs an event that sends BGSAVE or BGREWRITEAOF");
}

void CheckSteps(Check *check)
{
	if (check->scenario.steps.empty())
		check->Fail(1, "a scenario needs a [[step]]");
	for (const StepSpec &step : check->scenario.steps) {
		CheckFilter(check, step.only, step.line);
		if (step.load.empty()) {
			CheckAction(check, step.action, step.only, step.line);
			continue;
		}
		if (!IsName(step.name))
			check->Fail(step.line, "\"" + step.name + "\" is not a name for figures");
		CheckSay(check, step.say, step.only, step.line);
		check->steps.insert(step.name);
		for (const std::string *text : {&step.load, &step.by, &step.cpus})
			CheckTemplate(check, *text, step.only, step.line);
		for (const Values &point : check->points) {
			std::string by, error;
			if (Matches(step.only, point) && Expand(step.by, point, &by, &error) &&
			    by != "forktail-load" && by != "redis-benchmark")
				check->Fail(step.line,
					    "`by` must be forktail-load or redis-benchmark, not " + by);
			else if (by == "redis-benchmark" && step.record)
				check->Fail(step.line, "`record` needs forktail-load, because "
						       "redis-benchmark does not log requests");
		}
		if (step.to.empty())
			check->Fail(step.line, "`to` is missing: name the server for the load");
		CheckTemplate(check, step.to, step.only, step.line);
		for (const Values &point : check->points) {
			std::string to, error;
			if (!Matches(step.only, point) || !Expand(step.to, point, &to, &error))
				continue;
			CheckServer(check, to, step.line);
			if (!IsThere(*check, to, point))
				check->Fail(step.line, "some points of the step have no server \"" + to +
							   "\": restrict the step with `only`");
		}
		for (const Action &event : step.events) {
			Due due;
			if (!ParseDue(event.at, &due))
				check->Fail(event.line, "`at` must be a share of the load such as 25% or a "
							"time such as 2s, not \"" +
							    event.at + "\"");
			if (due.is_share && step.load.find("--duration ") == std::string::npos)
				check->Fail(event.line,
					    "`at` with a share of the load needs a load with --duration");
			CheckAction(check, event, step.only, event.line);
		}
		for (const LogMark &mark : step.logs) {
			CheckFilter(check, mark.only, mark.line);
			CheckServer(check, mark.server, mark.line);
			if (!IsName(mark.name))
				check->Fail(mark.line, "\"" + mark.name + "\" is not a name for a figure");
			if (step.events.empty())
				check->Fail(mark.line, "a [[step.log]] measures time from the first event, "
						       "but the step has no event");
		}
	}
}

// A scenario that prints an explanation has one recording.
void CheckExplanation(Check *check)
{
	const Scenario &scenario = check->scenario;
	bool fits =
	    scenario.fit.empty() || std::any_of(scenario.sizes.begin(), scenario.sizes.end(),
						[&](const Size &size) { return size.name == scenario.fit; });
	if (!fits)
		check->Fail(1, "`fit` must name a size: \"" + scenario.fit + "\" is not a size");
	if (!scenario.explanation)
		return;
	auto recorded = std::count_if(scenario.steps.begin(), scenario.steps.end(),
				      [](const StepSpec &step) { return step.record; });
	if (recorded != 1 || !scenario.sweeps.empty() || !scenario.tables.empty() || !scenario.charts.empty())
		check->Fail(1, "a scenario that prints an explanation must have one recorded step and no "
			       "sweeps, tables or charts");
}

// Checks a figure or variable in a formula.
void CheckFigure(Check *check, const Column &column, std::string name)
{
	if (name.rfind("base.", 0) == 0) {
		if (column.against.empty())
			check->Fail(column.line, "\"" + name + "\" needs `against`");
		name = name.substr(5);
	}
	size_t dot = name.find('.');
	std::string first = name.substr(0, dot);
	if (dot == std::string::npos ? !check->points[0].count(first) : !check->steps.count(first))
		check->Fail(column.line, "no step produces \"" + name + "\"");
}

// `rows`: the values of {row}.
void CheckColumn(Check *check, const Column &column, std::vector<std::string> rows)
{
	CheckFilter(check, column.where, column.line);
	for (const auto &[name, value] : column.against)
		CheckFilter(check, {{name, {value}}}, column.line);
	std::string error;
	if (column.format != Format::kText && !CheckFormula(column.value, &error))
		check->Fail(column.line, error);
	if (rows.empty())
		rows.push_back("row");
	for (const std::string &row : rows)
		for (const std::string &name : NamesIn(column.value))
			CheckFigure(check, column, WithRow(name, row));
}

void CheckOutputs(Check *check)
{
	for (const Table &table : check->scenario.tables) {
		if (table.names.empty() && table.by.empty())
			check->Fail(table.line, "a table needs `rows` (names) or `by` (variables)");
		if (table.columns.empty())
			check->Fail(table.line, "a table needs a [[table.column]]");
		for (const std::string &name : table.by)
			if (!FindSweep(check->scenario, name))
				check->Fail(table.line, "unknown sweep variable \"" + name + "\"");
		CheckFilter(check, table.where, table.line);
		for (const Column &column : table.columns)
			CheckColumn(check, column, table.names);
	}
	for (const Chart &chart : check->scenario.charts) {
		if (!FindSweep(check->scenario, chart.x))
			check->Fail(chart.line, "unknown sweep variable \"" + chart.x + "\"");
		if (chart.series.empty())
			check->Fail(chart.line, "a chart needs a [[chart.series]]");
		CheckFilter(check, chart.where, chart.line);
		for (const Column &series : chart.series)
			CheckColumn(check, series, chart.each);
	}
}

} // namespace

void CheckScenario(const Scenario &scenario, std::string *mistake)
{
	Check check{scenario, mistake, {}, {}};
	CheckSweeps(&check);
	if (!mistake->empty())
		return;
	check.points = PointsOf(scenario, {"", 1});
	for (const auto &[name, factor] : scenario.scales)
		for (const Values &point : PointsOf(scenario, {name, factor}))
			check.points.push_back(point);
	CheckValues(&check);
	CheckServers(&check);
	CheckSwap(&check);
	CheckSteps(&check);
	CheckExplanation(&check);
	CheckNames(&check);
	if (mistake->empty())
		CheckOutputs(&check);
}

bool ParseDue(const std::string &text, Due *due)
{
	const char *unit = text.c_str();
	double number;
	uint64_t ns;
	if (parse_number(&unit, &number) && std::string(unit) == "%" && number <= 100) {
		*due = {true, number / 100, 0};
		return true;
	}
	if (!parse_duration(text.c_str(), TIME_MS | TIME_S, 0, &ns))
		return false;
	*due = {false, 0, static_cast<double>(ns) / 1e9};
	return true;
}

} // namespace forktail::lab

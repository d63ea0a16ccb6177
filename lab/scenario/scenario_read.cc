// SPDX-License-Identifier: MIT
// Reads scenario files (TOML) into the structures of scenario.h.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/text.h"
#include "common/toml.h"
#include "scenario.h"
#include "scenario_check.h"

namespace forktail::lab
{
namespace
{

const std::map<std::string, Format> kFormats = {
    {"number", Format::kNumber},
    {"count", Format::kCount},
    {"decimals1", Format::kDecimals1},
    {"decimals2", Format::kDecimals2},
    {"percent", Format::kPercent},
    {"ms", Format::kMs},
    {"us", Format::kUs},
    {"s", Format::kSeconds},
    {"bytes", Format::kBytes},
    {"text", Format::kText},
};

void ReadColumn(common::Table *reader, Column *column)
{
	column->line = reader->Line();
	reader->Required("title");
	reader->Required("value");
	reader->Text("title", &column->title);
	reader->Text("value", &column->value);
	std::string format = "count";
	reader->Text("format", &format);
	auto known = kFormats.find(format);
	if (known == kFormats.end()) {
		std::string all;
		for (const auto &[name, unused] : kFormats)
			all += (all.empty() ? "" : ", ") + name;
		reader->Refuse("unknown format \"" + format + "\": use one of " + all);
	} else {
		column->format = known->second;
	}
	reader->Map("where", &column->where);
	reader->Map("against", &column->against);
	reader->Map("published", &column->published);
}

void ReadAction(common::Table *reader, Action *action)
{
	action->line = reader->Line();
	reader->Text("ask", &action->ask);
	reader->Text("start", &action->start);
	reader->Text("kill", &action->kill);
	reader->Text("move_slots", &action->move_slots);
	reader->Text("await", &action->await);
	reader->Text("spread", &action->spread);
	reader->Text("wait", &action->wait);
	reader->Text("note", &action->note);
	reader->Text("say", &action->say);
	reader->Flag("report", &action->report);
	reader->Text("server", &action->server);
	reader->Text("to", &action->to);
	reader->Map("only", &action->only);
}

// The sample of requests that the recorder logs as the kernel sees them.
void ReadRequests(common::Table *reader, StepSpec *step)
{
	uint32_t one_in;
	reader->Text("requests", &step->requests);
	if (step->requests.empty())
		return;
	if (!parse_sample(step->requests.c_str(), &one_in))
		reader->Refuse("`requests` must be " SAMPLE_WANTED ", not \"" + step->requests + "\"",
			       "requests");
	if (!step->record)
		reader->Refuse("`requests` needs `record`", "requests");
}

void ReadStep(common::Table *reader, StepSpec *step)
{
	step->line = reader->Line();
	reader->Text("load", &step->load);
	if (step->load.empty() && reader->good()) { // without `load` the step is an action
		ReadAction(reader, &step->action);
		step->only.swap(step->action.only);
		return;
	}
	reader->Required("name");
	reader->Text("name", &step->name);
	reader->Text("to", &step->to);
	reader->Text("by", &step->by);
	reader->Text("cpus", &step->cpus);
	reader->Flag("record", &step->record);
	reader->Flag("client", &step->client);
	ReadRequests(reader, step);
	reader->Text("slow", &step->slow);
	reader->Text("say", &step->say);
	reader->Flag("errors", &step->errors);
	reader->Map("only", &step->only);
	reader->Each("event", "an event", [&](common::Table *event) {
		Action action;
		event->Required("at");
		event->Text("at", &action.at);
		ReadAction(event, &action);
		step->events.push_back(action);
	});
	reader->Each("log", "a log", [&](common::Table *log) {
		LogMark mark;
		mark.line = log->Line();
		for (const char *key : {"name", "server", "text"})
			log->Required(key);
		log->Text("name", &mark.name);
		log->Text("server", &mark.server);
		log->Text("text", &mark.text);
		log->Map("only", &mark.only);
		step->logs.push_back(mark);
	});
}

void ReadServer(common::Table *reader, ServerSpec *server)
{
	server->line = reader->Line();
	reader->Required("name");
	reader->Required("kind");
	reader->Text("name", &server->name);
	reader->Text("kind", &server->kind);
	reader->Text("count", &server->count);
	reader->Words("config", &server->config);
	reader->Text("listen", &server->listen);
	reader->Text("cpus", &server->cpus);
	reader->Text("memory", &server->memory);
	reader->Text("of", &server->of);
	reader->Text("replica_of", &server->replica_of);
	reader->Text("replicas", &server->replicas);
	reader->Flag("cluster", &server->cluster);
	reader->Flag("later", &server->later);
	reader->Flag("say", &server->say);
	reader->Map("only", &server->only);
}

void ReadTable(common::Table *reader, Table *table)
{
	table->line = reader->Line();
	reader->Required("title");
	reader->Text("title", &table->title);
	reader->Text("note", &table->note);
	reader->Words("rows", &table->names);
	reader->Words("by", &table->by);
	reader->Map("where", &table->where);
	reader->Each("column", "a column", [&](common::Table *column) {
		table->columns.emplace_back();
		ReadColumn(column, &table->columns.back());
	});
}

void ReadChart(common::Table *reader, Chart *chart)
{
	chart->line = reader->Line();
	reader->Required("title");
	reader->Required("x");
	reader->Text("title", &chart->title);
	reader->Text("x", &chart->x);
	reader->Text("y", &chart->y);
	reader->Flag("log_x", &chart->log_x);
	reader->Flag("log_y", &chart->log_y);
	reader->Words("each", &chart->each);
	reader->Map("where", &chart->where);
	reader->Each("series", "a series", [&](common::Table *series) {
		chart->series.emplace_back();
		ReadColumn(series, &chart->series.back());
	});
}

void ReadSweep(common::Table *reader, const std::map<std::string, double> &scales, Sweep *sweep)
{
	reader->Required("name");
	sweep->line = reader->Line();
	reader->Required("values");
	reader->Text("name", &sweep->name);
	reader->Text("title", &sweep->title);
	reader->Words("values", &sweep->values);
	reader->Flag("keep_servers", &sweep->keep_servers);
	reader->Map("also", &sweep->also);
	for (const auto &[scale, unused] : scales)
		if (reader->Has(scale.c_str()))
			reader->Words(scale.c_str(), &sweep->at[scale]);
}

void ReadAll(common::Table *reader, Scenario *scenario)
{
	for (const char *key : {"title", "about", "scale"})
		reader->Required(key);
	reader->Text("title", &scenario->title);
	reader->Text("about", &scenario->about);
	std::string print = "tables";
	reader->Text("print", &print);
	scenario->explanation = print == "explanation";
	if (!scenario->explanation && print != "tables")
		reader->Refuse("`print` must be tables or explanation, not " + print);
	reader->Text("fit", &scenario->fit);
	reader->Text("report", &scenario->report);
	reader->Text("source", &scenario->source);
	reader->Text("question", &scenario->question);
	reader->Map("scale", &scenario->scales);
	reader->Map("constants", &scenario->constants);
	reader->EachNamed("sizes", "a size", [&](const std::string &name, common::Table *one) {
		Size size;
		size.name = name;
		one->Required("full");
		one->Number("full", &size.full);
		one->Number("least", &size.least);
		scenario->sizes.push_back(size);
	});
	reader->Each("sweep", "a sweep", [&](common::Table *sweep) {
		scenario->sweeps.emplace_back();
		ReadSweep(sweep, scenario->scales, &scenario->sweeps.back());
	});
	reader->Inner("swap", [&](common::Table *swap) {
		scenario->swap.line = swap->Line();
		swap->Required("kind");
		swap->Required("size");
		swap->Text("kind", &scenario->swap.kind);
		swap->Text("size", &scenario->swap.size);
		swap->Map("only", &scenario->swap.only);
	});
	reader->Each("server", "a server", [&](common::Table *server) {
		scenario->servers.emplace_back();
		ReadServer(server, &scenario->servers.back());
	});
	reader->Each("step", "a step", [&](common::Table *step) {
		scenario->steps.emplace_back();
		ReadStep(step, &scenario->steps.back());
	});
	reader->Each("table", "a table", [&](common::Table *table) {
		scenario->tables.emplace_back();
		ReadTable(table, &scenario->tables.back());
	});
	reader->Each("chart", "a chart", [&](common::Table *chart) {
		scenario->charts.emplace_back();
		ReadChart(chart, &scenario->charts.back());
	});
	reader->End();
}

// Applies changed constants and sizes.
bool Set(const Values &settings, Scenario *scenario, std::string *error)
{
	for (const auto &[name, value] : settings) {
		auto size = std::find_if(scenario->sizes.begin(), scenario->sizes.end(),
					 [&](const Size &one) { return one.name == name; });
		auto constant = scenario->constants.find(name);
		if (constant != scenario->constants.end()) {
			constant->second = value;
			continue;
		}
		if (size == scenario->sizes.end()) {
			*error = "unknown constant or size \"" + name + "\"";
			return false;
		}
		// The same at every scale.
		char *end = nullptr;
		double number = strtod(value.c_str(), &end);
		if (value.empty() || *end || !std::isfinite(number) || number <= 0) {
			*error = "the size " + name + " must be above 0, not " + value;
			return false;
		}
		size->full = size->least = number;
		size->fixed = true;
	}
	return true;
}

} // namespace

bool ParseScenario(const std::string &text, const std::string &path, Scenario *scenario, std::string *error,
		   const Values &settings)
{
	*scenario = {};
	scenario->file = path;
	scenario->name = std::filesystem::path(path).stem();
	if (!common::ReadTables(
		text, path, "a scenario", [&](common::Table *table) { ReadAll(table, scenario); }, error,
		common::TextKind::kTemplate))
		return false;
	std::string mistake;
	if (!Set(settings, scenario, error)) {
		*error = path + ": " + *error;
		return false;
	}
	CheckScenario(*scenario, &mistake);
	if (!mistake.empty())
		*error = path + ":" + mistake;
	return mistake.empty();
}

bool ReadScenario(const std::string &path, Scenario *scenario, std::string *error, const Values &settings)
{
	std::ifstream in(path);
	std::string text{std::istreambuf_iterator<char>(in), {}};
	if (in && !in.bad())
		return ParseScenario(text, path, scenario, error, settings);
	*error = "cannot read the scenario " + path;
	return false;
}

} // namespace forktail::lab

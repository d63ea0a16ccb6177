// SPDX-License-Identifier: MIT
// Scenario files: TOML into the structures of scenario.h. What a key means and which there are stands once,
// where it is read; a key that nobody asked for is a mistake, and so is one of another type.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <toml++/toml.h>

#include "scenario.h"
#include "scenario_check.h"

namespace forktail::lab
{
namespace
{

// A table of the file while it is read. The first mistake is kept, and what is read after it doesn't matter.
class Reader
{
public:
	Reader(const toml::table &table, std::string what, std::string *mistake)
	    : table_(table), what_(std::move(what)), mistake_(mistake)
	{
	}

	int Line() const { return static_cast<int>(table_.source().begin.line); }
	bool Has(const char *key) const { return table_.contains(key); }

	void Fail(const toml::node *node, const std::string &reason)
	{
		int line = node ? static_cast<int>(node->source().begin.line) : Line();
		if (mistake_->empty())
			*mistake_ = std::to_string(line) + ": " + reason;
	}

	const toml::node *Find(const char *key)
	{
		known_.insert(key);
		return table_.get(key);
	}

	void Required(const char *key)
	{
		if (!table_.contains(key))
			Fail(nullptr, what_ + " needs `" + key + "`");
	}

	// A text; numbers count as the text they are written as.
	void Text(const char *key, std::string *to)
	{
		if (const toml::node *node = Find(key))
			if (!AsText(*node, to))
				Fail(node, "`" + std::string(key) + "` must be a text or a number");
	}

	void Number(const char *key, double *to)
	{
		if (const toml::node *node = Find(key)) {
			if (!AsNumber(*node, to))
				Fail(node, "`" + std::string(key) + "` must be a number");
		}
	}

	void Bool(const char *key, bool *to)
	{
		if (const toml::node *node = Find(key)) {
			if (node->is_boolean())
				*to = *node->value<bool>();
			else
				Fail(node, "`" + std::string(key) + "` must be true or false");
		}
	}

	// A list of texts; a single one is a list of one.
	void Texts(const char *key, std::vector<std::string> *to)
	{
		if (const toml::node *node = Find(key))
			if (!AsTexts(*node, to))
				Fail(node, "`" + std::string(key) + "` must be a text or a list of texts");
	}

	// { name = text, ... }
	void Map(const char *key, std::map<std::string, std::string> *to)
	{
		Each(key, [&](const std::string &name, const toml::node &node) {
			if (!AsText(node, &(*to)[name]))
				Fail(&node, "`" + name + "` must be a text or a number");
		});
	}

	void Numbers(const char *key, std::map<std::string, double> *to)
	{
		Each(key, [&](const std::string &name, const toml::node &node) {
			if (!AsNumber(node, &(*to)[name]))
				Fail(&node, "`" + name + "` must be a number");
		});
	}

	void Filters(const char *key, Filter *to)
	{
		Each(key, [&](const std::string &name, const toml::node &node) {
			if (!AsTexts(node, &(*to)[name]))
				Fail(&node, "`" + name + "` must be a value or a list of values");
		});
	}

	// A table of tables, { name = { ... } } or { name = value }.
	void Each(const char *key, const std::function<void(const std::string &, const toml::node &)> &read)
	{
		const toml::node *node = Find(key);
		if (!node)
			return;
		if (!node->is_table()) {
			Fail(node, "`" + std::string(key) + "` must be a table");
			return;
		}
		for (const auto &[name, value] : *node->as_table())
			read(std::string(name.str()), value);
	}

	// The tables of [[key]].
	void Tables(const char *key, const std::string &what, const std::function<void(Reader *)> &read)
	{
		const toml::node *node = Find(key);
		if (!node)
			return;
		if (!node->is_array_of_tables()) {
			Fail(node, "`" + std::string(key) + "` must be a list of tables: [[" + key + "]]");
			return;
		}
		for (const toml::node &one : *node->as_array()) {
			Reader reader(*one.as_table(), what, mistake_);
			read(&reader);
			reader.End();
		}
	}

	// One table.
	void Sub(const char *key, const std::string &what, const std::function<void(Reader *)> &read)
	{
		if (const toml::node *node = Find(key))
			Into(node, key, what, read);
	}

	// A table of tables by name.
	void Subs(const char *key, const std::string &what,
		  const std::function<void(const std::string &, Reader *)> &read)
	{
		Each(key, [&](const std::string &name, const toml::node &node) {
			Into(&node, name, what, [&](Reader *reader) { read(name, reader); });
		});
	}

	// Refuses the keys that were not asked for.
	void End()
	{
		for (const auto &[key, node] : table_)
			if (!known_.count(std::string(key.str()))) {
				std::string all;
				for (const std::string &name : known_)
					all += (all.empty() ? "" : ", ") + name;
				Fail(&node,
				     what_ + " has no `" + std::string(key.str()) + "`; it has " + all);
			}
	}

	static bool AsText(const toml::node &node, std::string *to)
	{
		if (node.is_string())
			*to = *node.value<std::string>();
		else if (node.is_integer())
			*to = std::to_string(*node.value<int64_t>());
		else if (node.is_floating_point()) {
			char text[32];
			snprintf(text, sizeof text, "%.15g", *node.value<double>());
			*to = text;
		} else
			return false;
		return true;
	}

	// Infinities and NaN are none, nor are integers that a double doesn't hold.
	static bool AsNumber(const toml::node &node, double *to)
	{
		auto number = node.is_number() ? node.value<double>() : std::nullopt;
		if (!number || !std::isfinite(*number))
			return false;
		*to = *number;
		return true;
	}

	static bool AsTexts(const toml::node &node, std::vector<std::string> *to)
	{
		std::string one;
		if (AsText(node, &one)) {
			to->push_back(one);
			return true;
		}
		if (!node.is_array())
			return false;
		for (const toml::node &element : *node.as_array()) {
			if (!AsText(element, &one))
				return false;
			to->push_back(one);
		}
		return true;
	}

private:
	void Into(const toml::node *node, const std::string &key, const std::string &what,
		  const std::function<void(Reader *)> &read)
	{
		if (!node->is_table()) {
			Fail(node, "`" + key + "` must be a table");
			return;
		}
		Reader reader(*node->as_table(), what, mistake_);
		read(&reader);
		reader.End();
	}

	const toml::table &table_;
	std::string what_;
	std::string *mistake_;
	std::set<std::string> known_;
};

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

void ReadColumn(Reader *reader, Column *column)
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
		reader->Fail(nullptr, "there is no format \"" + format + "\"; there are " + all);
	} else {
		column->format = known->second;
	}
	reader->Filters("where", &column->where);
	reader->Map("against", &column->against);
	reader->Numbers("published", &column->published);
}

void ReadAction(Reader *reader, Action *action)
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
	reader->Bool("report", &action->report);
	reader->Text("server", &action->server);
	reader->Text("to", &action->to);
	reader->Filters("only", &action->only);
}

void ReadStep(Reader *reader, StepSpec *step)
{
	step->line = reader->Line();
	reader->Text("load", &step->load);
	if (step->load.empty()) {
		ReadAction(reader, &step->action);
		step->only.swap(step->action.only);
		return;
	}
	reader->Required("name");
	reader->Text("name", &step->name);
	reader->Text("to", &step->to);
	reader->Text("by", &step->by);
	reader->Text("cpus", &step->cpus);
	reader->Bool("record", &step->record);
	reader->Bool("client", &step->client);
	reader->Text("slow", &step->slow);
	reader->Text("say", &step->say);
	reader->Bool("errors", &step->errors);
	reader->Filters("only", &step->only);
	reader->Tables("event", "an event", [&](Reader *event) {
		Action action;
		event->Required("at");
		event->Text("at", &action.at);
		ReadAction(event, &action);
		step->events.push_back(action);
	});
	reader->Tables("log", "a log", [&](Reader *log) {
		LogMark mark;
		mark.line = log->Line();
		for (const char *key : {"name", "server", "text"})
			log->Required(key);
		log->Text("name", &mark.name);
		log->Text("server", &mark.server);
		log->Text("text", &mark.text);
		log->Filters("only", &mark.only);
		step->logs.push_back(mark);
	});
}

void ReadServer(Reader *reader, ServerSpec *server)
{
	server->line = reader->Line();
	reader->Required("name");
	reader->Required("kind");
	reader->Text("name", &server->name);
	reader->Text("kind", &server->kind);
	reader->Text("count", &server->count);
	reader->Texts("config", &server->config);
	reader->Text("listen", &server->listen);
	reader->Text("cpus", &server->cpus);
	reader->Text("memory", &server->memory);
	reader->Text("of", &server->of);
	reader->Text("replica_of", &server->replica_of);
	reader->Text("replicas", &server->replicas);
	reader->Bool("cluster", &server->cluster);
	reader->Bool("later", &server->later);
	reader->Bool("say", &server->say);
	reader->Filters("only", &server->only);
}

void ReadTable(Reader *reader, Table *table)
{
	table->line = reader->Line();
	reader->Required("title");
	reader->Text("title", &table->title);
	reader->Text("note", &table->note);
	reader->Texts("rows", &table->names);
	reader->Texts("by", &table->by);
	reader->Filters("where", &table->where);
	reader->Tables("column", "a column", [&](Reader *column) {
		table->columns.emplace_back();
		ReadColumn(column, &table->columns.back());
	});
}

void ReadChart(Reader *reader, Chart *chart)
{
	chart->line = reader->Line();
	reader->Required("title");
	reader->Required("x");
	reader->Text("title", &chart->title);
	reader->Text("x", &chart->x);
	reader->Text("y", &chart->y);
	reader->Bool("log_x", &chart->log_x);
	reader->Bool("log_y", &chart->log_y);
	reader->Texts("each", &chart->each);
	reader->Filters("where", &chart->where);
	reader->Tables("series", "a series", [&](Reader *series) {
		chart->series.emplace_back();
		ReadColumn(series, &chart->series.back());
	});
}

void ReadSweep(Reader *reader, const std::map<std::string, double> &scales, Sweep *sweep)
{
	reader->Required("name");
	sweep->line = reader->Line();
	reader->Required("values");
	reader->Text("name", &sweep->name);
	reader->Text("title", &sweep->title);
	reader->Texts("values", &sweep->values);
	reader->Bool("keep_servers", &sweep->keep_servers);
	reader->Filters("also", &sweep->also);
	for (const auto &[scale, unused] : scales)
		if (reader->Has(scale.c_str()))
			reader->Texts(scale.c_str(), &sweep->at[scale]);
}

void ReadAll(Reader *reader, Scenario *scenario)
{
	for (const char *key : {"title", "about", "scale"})
		reader->Required(key);
	reader->Text("title", &scenario->title);
	reader->Text("about", &scenario->about);
	std::string print = "tables";
	reader->Text("print", &print);
	scenario->explanation = print == "explanation";
	if (!scenario->explanation && print != "tables")
		reader->Fail(nullptr, "`print` is tables or explanation, not " + print);
	reader->Text("fit", &scenario->fit);
	reader->Text("report", &scenario->report);
	reader->Text("source", &scenario->source);
	reader->Text("question", &scenario->question);
	reader->Numbers("scale", &scenario->scales);
	reader->Map("constants", &scenario->constants);
	reader->Subs("sizes", "a size", [&](const std::string &name, Reader *one) {
		Size size;
		size.name = name;
		one->Required("full");
		one->Number("full", &size.full);
		one->Number("least", &size.least);
		scenario->sizes.push_back(size);
	});
	reader->Tables("sweep", "a sweep", [&](Reader *sweep) {
		scenario->sweeps.emplace_back();
		ReadSweep(sweep, scenario->scales, &scenario->sweeps.back());
	});
	reader->Sub("swap", "`swap`", [&](Reader *swap) {
		scenario->swap.line = swap->Line();
		swap->Required("kind");
		swap->Required("size");
		swap->Text("kind", &scenario->swap.kind);
		swap->Text("size", &scenario->swap.size);
		swap->Filters("only", &scenario->swap.only);
	});
	reader->Tables("server", "a server", [&](Reader *server) {
		scenario->servers.emplace_back();
		ReadServer(server, &scenario->servers.back());
	});
	reader->Tables("step", "a step", [&](Reader *step) {
		scenario->steps.emplace_back();
		ReadStep(step, &scenario->steps.back());
	});
	reader->Tables("table", "a table", [&](Reader *table) {
		scenario->tables.emplace_back();
		ReadTable(table, &scenario->tables.back());
	});
	reader->Tables("chart", "a chart", [&](Reader *chart) {
		scenario->charts.emplace_back();
		ReadChart(chart, &scenario->charts.back());
	});
	reader->End();
}

// Constants and sizes as whoever runs the scenario wants them.
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
			*error = "there is no constant or size \"" + name + "\" to set";
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
	toml::table table;
	try {
		table = toml::parse(text, path);
	} catch (const toml::parse_error &e) {
		*error =
		    path + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description());
		return false;
	}
	std::string mistake;
	Reader reader(table, "a scenario", &mistake);
	ReadAll(&reader, scenario);
	if (mistake.empty() && !Set(settings, scenario, error)) {
		*error = path + ": " + *error;
		return false;
	}
	if (mistake.empty())
		CheckScenario(*scenario, &mistake);
	if (mistake.empty())
		return true;
	*error = path + ":" + mistake;
	return false;
}

bool ReadScenario(const std::string &path, Scenario *scenario, std::string *error, const Values &settings)
{
	std::ifstream in(path);
	std::string text{std::istreambuf_iterator<char>(in), {}};
	if (in && !in.bad())
		return ParseScenario(text, path, scenario, error, settings);
	*error = "can't read the scenario " + path;
	return false;
}

} // namespace forktail::lab

// SPDX-License-Identifier: MIT
// See config.h.
#include "config.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/toml/table.h"
#include "record_words.h"

namespace forktail::live::guard
{
namespace
{

using common::Table;

constexpr uint64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;
constexpr uint64_t kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr size_t kMostTriggers = 100;

// A trigger name is part of file names and comes from callers without privileges.
bool IsName(const std::string &name)
{
	return !name.empty() && name.size() <= 40 && isalnum(static_cast<unsigned char>(name[0])) &&
	       std::all_of(name.begin(), name.end(),
			   [](unsigned char c) { return isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

void ReadCommand(common::Table *table, Command *command)
{
	if (!table->Has("exec"))
		return;
	command->argv.clear();
	table->Words("exec", &command->argv);
	if (!command->argv.empty() && command->argv[0].compare(0, 1, "/") != 0)
		table->Refuse("`exec` must start with the absolute path of a program, because no shell is "
			      "used, not \"" +
				  command->argv[0] + "\"",
			      "exec");
}

void ReadTimes(common::Table *table, Trigger *trigger)
{
	table->TimeWithin("before", 0, kHour, &trigger->before_ns);
	table->TimeWithin("after", 0, kHour, &trigger->after_ns);
}

void ReadSnapshots(common::Table *table, Config *config, Trigger *common)
{
	SnapshotLimits *l = &config->limits;
	std::string full = "oldest-go";
	ReadTimes(table, common);
	ReadCommand(table, &common->command);
	table->TimeWithin("cooldown", 0, kDay, &l->cooldown_ns);
	table->Count("keep", 1, 10000, &l->count);
	table->Size("bytes", &l->bytes);
	table->Text("when-full", &full);
	if (full != "oldest-go" && full != "stop")
		table->Refuse("`when-full` must be \"oldest-go\" or \"stop\", not \"" + full + "\"",
			      "when-full");
	l->stop_when_full = full == "stop";
	table->Flag("explain", &l->explain);
	table->TimeWithin("explain-time", kSecond, kHour, &l->explain_ns);
	table->Size("explain-memory", &l->explain_bytes);
	table->TimeWithin("exec-time", 100 * kMillisecond, kHour, &l->command_ns);
}

void ReadTrigger(common::Table *table, const Trigger &common, Config *config)
{
	Trigger trigger = common;
	std::string rule, error;
	table->Text("on", &rule);
	if (table->Has("on") && !ParseRule(rule, &trigger.rule, &error))
		table->Refuse(error, "on");
	trigger.name = trigger.rule.name;
	table->Text("name", &trigger.name);
	table->Text("server", &trigger.server);
	ReadTimes(table, &trigger);
	ReadCommand(table, &trigger.command);
	if (!table->Has("on") && !table->Has("name"))
		table->Refuse("a [[trigger]] needs a rule (`on`) or a name for forktail trigger (`name`)");
	if (!IsName(trigger.name))
		table->Refuse("the `name` of a trigger consists of at most 40 letters, digits, '-', '_' and "
			      "'.', not \"" +
				  trigger.name + "\"",
			      "name");
	if (FindTrigger(config->triggers, trigger.name))
		table->Refuse("two triggers have the name \"" + trigger.name + "\": change one `name`");
	if (config->triggers.size() == kMostTriggers)
		table->Refuse("more than " + std::to_string(kMostTriggers) + " triggers are configured");
	config->triggers.push_back(trigger);
}

void ReadMetrics(common::Table *table, Config *config)
{
	table->Text("listen", &config->metrics);
	table->Text("textfile", &config->metrics_textfile);
}

void ReadControl(common::Table *table, Config *config)
{
	table->Text("socket", &config->control);
	if (table->Has("socket") && config->control.compare(0, 1, "/") != 0)
		table->Refuse("`socket` must be an absolute path, not \"" + config->control + "\"", "socket");
}

} // namespace

Trigger PlainTrigger(const Rule &rule)
{
	Trigger trigger;
	trigger.rule = rule;
	trigger.name = rule.name;
	trigger.before_ns = kBeforeNs;
	trigger.after_ns = kAfterNs;
	return trigger;
}

const Trigger *FindTrigger(const std::vector<Trigger> &triggers, const std::string &name)
{
	const auto t =
	    std::find_if(triggers.begin(), triggers.end(), [&](const Trigger &x) { return x.name == name; });
	return t == triggers.end() ? nullptr : &*t;
}

bool ParseConfig(const std::string &text, const std::string &path, Config *config, std::string *error)
{
	*config = {};
	return common::ReadTables(
	    text, path, "the configuration",
	    [&](common::Table *table) {
		    Trigger common = PlainTrigger({});
		    table->Inner("record",
				 [&](Table *t) { ReadRecord(t, &config->record, &config->directory); });
		    table->Inner("metrics", [&](Table *t) { ReadMetrics(t, config); });
		    table->Inner("control", [&](Table *t) { ReadControl(t, config); });
		    table->Inner("snapshots", [&](Table *t) { ReadSnapshots(t, config, &common); });
		    table->Each("trigger", "a [[trigger]]",
				[&](Table *t) { ReadTrigger(t, common, config); });
		    table->End();
	    },
	    error);
}

bool ReadConfig(const std::string &path, Config *config, std::string *error)
{
	std::ifstream file(path);
	std::ostringstream text;
	if (file)
		text << file.rdbuf();
	if (!file || !text) {
		*error = "cannot read " + path + ": " + strerror(errno);
		return false;
	}
	return ParseConfig(text.str(), path, config, error);
}

} // namespace forktail::live::guard

// SPDX-License-Identifier: MIT
// See plan.h. A key that nobody knows is a mistake: what is misspelled must not be as if it weren't there.
#include "plan.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <toml++/toml.h>

#include "units/parse.h"

namespace forktail::hosts
{
namespace
{

// One table of the plan, and what was wrong first.
class Table
{
public:
	Table(const toml::table &table, const std::string &what, const std::string &path, std::string *error)
	    : table_(table), what_(what), path_(path), error_(error)
	{
	}
	bool good() const { return error_->empty(); }
	void Refuse(const toml::node &at, const std::string &why)
	{
		if (good())
			*error_ = path_ + ":" + std::to_string(at.source().begin.line) + ": " + why;
	}
	void Refuse(const std::string &why) { Refuse(table_, why); }
	void Known(std::initializer_list<const char *> keys)
	{
		for (const auto &[key, node] : table_)
			if (std::none_of(keys.begin(), keys.end(),
					 [&](const char *k) { return key.str() == k; }))
				Refuse(node, what_ + " has no `" + std::string(key.str()) + "`");
	}
	// Texts stay as they are where the key is missing.
	void Text(const char *key, std::string *out)
	{
		const toml::node *node = table_.get(key);
		if (node && !node->is_string())
			Refuse(*node, "`" + std::string(key) + "` is a text");
		else if (node)
			*out = node->as_string()->get();
	}
	void Flag(const char *key, bool *out)
	{
		const toml::node *node = table_.get(key);
		if (node && !node->is_boolean())
			Refuse(*node, "`" + std::string(key) + "` is true or false");
		else if (node)
			*out = node->as_boolean()->get();
	}
	void Time(const char *key, uint64_t *ns)
	{
		std::string text;
		const toml::node *node = table_.get(key);
		Text(key, &text);
		if (node && good() && !parse_duration(text.c_str(), TIME_ANY, TIME_S, ns))
			Refuse(*node,
			       "`" + std::string(key) + "` is a time such as \"30s\", not \"" + text + "\"");
	}
	// A text, a number, or a list of them.
	void Words(const char *key, std::vector<std::string> *out)
	{
		const toml::node *node = table_.get(key);
		if (!node)
			return;
		if (const toml::array *list = node->as_array())
			for (const toml::node &one : *list)
				Word(key, one, out);
		else
			Word(key, *node, out);
	}
	template <typename Each> void Tables(const char *key, const std::string &what, Each each)
	{
		const toml::node *node = table_.get(key);
		const toml::array *list = node ? node->as_array() : nullptr;
		if (node && !list)
			return Refuse(*node, "[[" + std::string(key) + "]] is written with two brackets");
		for (size_t i = 0; list && i < list->size() && good(); i++) {
			const toml::table *one = (*list)[i].as_table();
			if (!one)
				return Refuse(*node,
					      "[[" + std::string(key) + "]] is written with two brackets");
			Table table(*one, what, path_, error_);
			each(&table);
		}
	}

private:
	void Word(const char *key, const toml::node &node, std::vector<std::string> *out)
	{
		if (const auto *text = node.as_string())
			out->push_back(text->get());
		else if (const auto *number = node.as_integer())
			out->push_back(std::to_string(number->get()));
		else
			Refuse(node, "`" + std::string(key) + "` is a text or a list of texts");
	}

	const toml::table &table_;
	const std::string what_, &path_;
	std::string *error_;
};

// What may be a directory's or a file's name and part of a line that a shell sees.
bool IsName(const std::string &name)
{
	return !name.empty() && name.size() <= 64 && std::isalnum(static_cast<unsigned char>(name[0])) &&
	       std::all_of(name.begin(), name.end(), [](unsigned char c) {
		       return std::isalnum(c) || c == '-' || c == '_' || c == '.';
	       });
}

void ReadHost(Table *table, Plan *plan)
{
	PlanHost host;
	table->Known({"name", "address", "network", "programs"});
	table->Text("name", &host.name);
	host.address = host.name;
	table->Text("address", &host.address);
	host.network = host.address;
	table->Text("network", &host.network);
	table->Text("programs", &host.programs);
	if (!IsName(host.name))
		table->Refuse("a host needs a `name` of letters, digits, '-', '_' and '.', not \"" +
			      host.name + "\"");
	if (host.address.empty() || host.address.find_first_of(",:; \t\n'\"") != std::string::npos)
		table->Refuse("the address of " + host.name +
			      " has to be one name or address as mpirun takes it, not \"" + host.address +
			      "\"");
	for (const PlanHost &other : plan->hosts) {
		if (other.name == host.name)
			table->Refuse("the host " + host.name + " is there twice");
		else if (other.address == host.address)
			table->Refuse("the hosts " + other.name + " and " + host.name +
				      " have the same address, " + host.address);
	}
	plan->hosts.push_back(host);
}

// The host and name of something that runs on it. `taken` has names of that host's files.
void ReadPlace(Table *table, const Plan &plan, const char *what, const std::string &otherwise,
	       std::string *host, std::string *name)
{
	table->Text("host", host);
	table->Text("name", name);
	if (!FindHost(plan, *host))
		return table->Refuse("a " + std::string(what) + " needs a `host` of the plan's, not \"" +
				     *host + "\"");
	auto taken = [&](const std::string &n) {
		for (const PlanRecorder &r : plan.recorders)
			if (r.host == *host && r.name == n)
				return true;
		for (const PlanLoad &l : plan.loads)
			if (l.host == *host && l.name == n)
				return true;
		return n == "clock"; // that of the comparison
	};
	if (name->empty()) {
		*name = otherwise;
		for (int i = 2; taken(*name); i++)
			*name = otherwise + "-" + std::to_string(i);
	}
	if (!IsName(*name))
		table->Refuse("a name is of letters, digits, '-', '_' and '.', not \"" + *name + "\"");
	if (taken(*name))
		table->Refuse("the name \"" + *name + "\" is taken on " + *host);
}

void ReadRecorder(Table *table, Plan *plan)
{
	static const char *const kTargets[] = {"port", "pid", "name-of", "unix", "container", "cgroup"};
	PlanRecorder recorder;
	table->Known({"host", "name", "options", "port", "pid", "name-of", "unix", "container", "cgroup"});
	ReadPlace(table, *plan, "recorder", "server", &recorder.host, &recorder.name);
	for (const char *target : kTargets) {
		std::vector<std::string> words;
		table->Words(target, &words);
		for (const std::string &word : words) {
			recorder.targets.push_back(
			    "--" + std::string(std::string(target) == "name-of" ? "name" : target));
			recorder.targets.push_back(word);
		}
	}
	table->Words("options", &recorder.options);
	if (recorder.targets.empty())
		table->Refuse("a recorder needs to know whom to record: `port`, `pid`, `name-of`, `unix`, "
			      "`container` or `cgroup`");
	plan->recorders.push_back(recorder);
}

void ReadLoad(Table *table, Plan *plan)
{
	PlanLoad load;
	table->Known({"host", "name", "to", "options"});
	ReadPlace(table, *plan, "load", "load", &load.host, &load.name);
	table->Words("to", &load.to);
	table->Words("options", &load.options);
	plan->loads.push_back(load);
}

void ReadAll(Table *table, Plan *plan)
{
	std::string on_death = "end";
	table->Known(
	    {"duration", "settle", "scratch", "on_death", "clocks", "mpirun", "hosts", "record", "load"});
	table->Time("duration", &plan->duration_ns);
	table->Time("settle", &plan->settle_ns);
	table->Text("scratch", &plan->scratch);
	table->Text("on_death", &on_death);
	table->Flag("clocks", &plan->clocks);
	table->Words("mpirun", &plan->mpirun);
	plan->go_on = on_death == "continue";
	if (on_death != "end" && on_death != "continue")
		table->Refuse("`on_death` is \"end\" or \"continue\", not \"" + on_death + "\"");
	if (plan->scratch.empty() || plan->scratch[0] != '/')
		table->Refuse("`scratch` is an absolute path, not \"" + plan->scratch + "\"");
	table->Tables("hosts", "a host", [&](Table *one) { ReadHost(one, plan); });
	table->Tables("record", "a recorder", [&](Table *one) { ReadRecorder(one, plan); });
	table->Tables("load", "a load", [&](Table *one) { ReadLoad(one, plan); });
	if (plan->hosts.empty())
		table->Refuse("there are no [[hosts]]");
	if (plan->recorders.empty() && plan->loads.empty())
		table->Refuse("there is neither a [[record]] nor a [[load]]");
	if (!plan->duration_ns)
		table->Refuse("`duration` is missing: how long the run takes, such as \"30s\"");
}

} // namespace

bool ParsePlan(const std::string &text, const std::string &path, Plan *plan, std::string *error)
{
	error->clear();
	try {
		const toml::table all = toml::parse(text, path);
		Table table(all, "a plan", path, error);
		ReadAll(&table, plan);
	} catch (const toml::parse_error &e) {
		*error =
		    path + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description());
	}
	return error->empty();
}

const PlanHost *FindHost(const Plan &plan, const std::string &name)
{
	for (const PlanHost &host : plan.hosts)
		if (host.name == name)
			return &host;
	return nullptr;
}

} // namespace forktail::hosts

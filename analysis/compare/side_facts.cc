// SPDX-License-Identifier: MIT
// See side_facts.h. Random seeds differ in any two runs. They are a difference between sides only if the runs
// of each side share one seed.
#include "side_facts.h"

#include <algorithm>
#include <map>
#include <set>

namespace forktail::analysis::compare
{

namespace
{

using Name = std::pair<std::string, std::string>; // group, name
using Values = std::map<Name, std::set<std::string>>;

Values FactValuesOf(const ComparedSide &side)
{
	Values values;
	for (const RunSample &run : side.runs)
		for (const RunFact &fact : run.facts)
			values[{fact.group, fact.name}].insert(fact.value);
	return values;
}

std::string Joined(const std::set<std::string> &values)
{
	std::string text;
	for (const std::string &value : values)
		text += (text.empty() ? "" : ", ") + value;
	return text;
}

// The order of the list: facts that make the comparison doubtful come first.
int OrderOf(const std::string &group)
{
	static const char *const order[] = {"host", "load host", "load", "server", "configuration"};
	return static_cast<int>(std::find(std::begin(order), std::end(order), group) - std::begin(order));
}

} // namespace

std::vector<FactChange> FactChanges(const ComparedSide &a, const ComparedSide &b)
{
	Values in_a = FactValuesOf(a), in_b = FactValuesOf(b);
	std::set<Name> names;
	for (const Values *values : {&in_a, &in_b})
		for (const auto &[name, set] : *values)
			names.insert(name);
	std::vector<FactChange> changes;
	for (const Name &name : names) {
		const std::set<std::string> &of_a = in_a[name], &of_b = in_b[name];
		if (of_a == of_b ||
		    (name.second == "seed" && (of_a.size() > 1 || of_b.size() > 1 || a.runs.size() == 1)))
			continue;
		// A fact that only one side's recorder knows is no difference.
		if (of_a.empty() != of_b.empty() && name.first != "configuration" && name.first != "load")
			continue;
		bool matters = name.first == "host" || name.first == "load host" || name.first == "load";
		changes.push_back({name.first, name.second, Joined(of_a), Joined(of_b), matters});
	}
	std::stable_sort(changes.begin(), changes.end(), [](const FactChange &one, const FactChange &other) {
		return OrderOf(one.group) < OrderOf(other.group);
	});
	return changes;
}

} // namespace forktail::analysis::compare

// SPDX-License-Identifier: MIT
// See rule.h. An error names the first mistake and the accepted values.
#include "rule.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "common/text/parse.h"

namespace forktail::live::guard
{
namespace
{

constexpr char kFigures[] = "iteration, stall, stall(CAUSE), rate(CAUSE) or drops";

std::string WithoutSpaces(const std::string &text)
{
	std::string out;
	for (const char c : text)
		if (!isspace(static_cast<unsigned char>(c)))
			out += c;
	return out;
}

// "softirq" means all of its vectors, "softirq/net_rx" one of them.
bool FindCauses(const std::string &name, std::bitset<analysis::kTimelineCauses> *causes)
{
	for (int i = 0; i < analysis::kTimelineCauses; i++) {
		const std::string one = analysis::kCauseTable[i].name;
		if (analysis::kCauseTable[i].kind == analysis::Kind::Stall &&
		    (one == name || one.compare(0, name.size() + 1, name + "/") == 0))
			causes->set(i);
	}
	return causes->any();
}

bool ReadFigure(const std::string &figure, Rule *rule, std::string *error)
{
	const size_t open = figure.find('(');
	const std::string typed = figure.substr(0, open);
	const std::string word = typed == "turn" ? "iteration" : typed; // an alias for older configurations
	static const struct {
		const char *word;
		What what;
		bool may_have, must_have;
	} words[] = {{"iteration", What::Iteration, false, false},
		     {"stall", What::Stall, true, false},
		     {"rate", What::Rate, true, true},
		     {"drops", What::Drops, false, false}};
	const auto w =
	    std::find_if(std::begin(words), std::end(words), [&](const auto &x) { return word == x.word; });
	if (w == std::end(words)) {
		*error = "unknown figure \"" + figure + "\": use " + kFigures;
		return false;
	}
	rule->what = w->what;
	rule->name = word;
	rule->text = word;
	if (open == std::string::npos) {
		for (int i = 0; w->may_have && i < analysis::kStallCauses; i++)
			rule->causes.set(i);
		if (w->must_have)
			*error = word + " needs a cause: " + word + "(page-in)";
		return !w->must_have;
	}
	if (!w->may_have || figure.back() != ')') {
		*error = w->may_have ? "the closing bracket is missing: write " + word + "(CAUSE)"
				     : word + " takes no cause: write " + word + " without brackets";
		return false;
	}
	const std::string cause = figure.substr(open + 1, figure.size() - open - 2);
	if (!FindCauses(cause, &rule->causes)) {
		*error = "unknown stall \"" + cause + "\": docs/reference/causes.md lists all causes";
		return false;
	}
	rule->name += "-" + cause;
	rule->text = word + "(" + cause + ")";
	return true;
}

bool ReadLimit(const std::string &value, Rule *rule, std::string *error)
{
	const char *rest = value.c_str();
	switch (rule->what) {
	case What::Iteration:
	case What::Stall:
		if (parse_duration(value.c_str(), TIME_ANY, 0, &rule->limit_ns) && rule->limit_ns)
			return true;
		*error = "the limit of " + rule->text + " must be a time such as 50ms, not \"" + value + "\"";
		return false;
	case What::Rate:
		if (parse_number(&rest, &rule->limit) && strcmp(rest, "/s") == 0)
			return true;
		*error =
		    "the limit of " + rule->text + " must be a rate such as 100/s, not \"" + value + "\"";
		return false;
	case What::Drops:
	case What::Named:
		break;
	}
	if (parse_number(&rest, &rule->limit) && !*rest)
		return true;
	*error = "the limit of drops must be a number such as 0, not \"" + value + "\"";
	return false;
}

} // namespace

bool ParseRule(const std::string &text, Rule *rule, std::string *error)
{
	const std::string words = WithoutSpaces(text);
	const size_t sign = words.find_first_of("<>=");
	std::string why;
	*rule = {};
	if (words.empty()) {
		*error = "the rule is empty: write one such as \"iteration > 50ms\"";
		return false;
	}
	if (sign == std::string::npos || words[sign] != '>' || words.compare(sign, 2, ">=") == 0) {
		*error =
		    "the rule \"" + text + "\" is invalid: write FIGURE > LIMIT, where FIGURE is " + kFigures;
		return false;
	}
	const std::string figure = words.substr(0, sign), value = words.substr(sign + 1);
	if (!ReadFigure(figure, rule, &why) || !ReadLimit(value, rule, &why)) {
		*error = "the rule \"" + text + "\" is invalid: " + why;
		return false;
	}
	rule->text += " > " + value;
	std::replace(rule->name.begin(), rule->name.end(), '/', '-');
	return true;
}

} // namespace forktail::live::guard

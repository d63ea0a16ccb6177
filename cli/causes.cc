// SPDX-License-Identifier: MIT
// forktail causes: the causes' meanings from the table of causes, and the section of docs/reference/causes.md
// about one of them, as text for a terminal.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "analysis/text.h"
#include "analysis/timeline.h"
#include "command.h"
#include "common/json.h"
#include "schemas.h"

extern "C" const char ft_causes_page[];

namespace forktail::cli
{
namespace
{

// The section of a cause, without its heading; "" if the page has no section of it.
std::string Section(const std::string &heading)
{
	const std::string page = ft_causes_page, begin = "\n## " + heading + "\n";
	const size_t at = page.find(begin);
	if (at == std::string::npos)
		return "";
	const size_t from = at + begin.size(), to = page.find("\n## ", from);
	return page.substr(from, to == std::string::npos ? to : to - from);
}

// A line of Markdown as plain text: without links, emphasis and the bars of a table.
std::string Plain(const std::string &line)
{
	std::string text = std::regex_replace(line, std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1");
	text = std::regex_replace(text, std::regex(R"(\*\*|`)"), "");
	text = std::regex_replace(text, std::regex(R"(\*(\w+)\*)"), "$1");
	text = std::regex_replace(text, std::regex(R"(^\| (.*?) \| (.*) \|$)"), "  $1: $2");
	return std::regex_replace(text, std::regex(R"( \| )"), "; ");
}

std::string AboutCause(const analysis::CauseInfo &cause, size_t columns)
{
	const std::string name = cause.name;
	std::string text = name + ": " + cause.meaning + "\n\n";
	std::string section = Section(name.substr(0, name.find('/')));
	for (const std::string &line : analysis::Lines(section))
		if (!line.starts_with("|---"))
			text += analysis::Wrap(Plain(line), 0, line.starts_with("|") ? 4 : 0, columns);
	if (*cause.seen_by)
		text += "\n" + analysis::Wrap("Seen by: " + Plain(cause.seen_by), 0, 2, columns);
	return text;
}

nlohmann::ordered_json CausesJson()
{
	using Out = nlohmann::ordered_json;
	Out causes = Out::array(), remedies = Out::array();
	for (const analysis::CauseInfo &info : analysis::kCauseTable)
		if (info.kind != analysis::Kind::Timeline)
			causes.push_back({{"cause", info.name}, {"meaning", info.meaning}});
	for (const analysis::RemedyInfo &info : analysis::kRemedyTable) {
		Out of = Out::array();
		std::istringstream names(info.causes);
		for (std::string name; names >> name;)
			of.push_back(name);
		remedies.push_back({{"id", info.id},
				    {"causes", of},
				    {"when", info.when},
				    {"text", info.text},
				    {"command", info.command},
				    {"change", analysis::RemedyChange(info)},
				    {"loses", info.loses},
				    {"measured", analysis::RemedyMeasured(info)}});
	}
	return {{"causes", causes}, {"remedies", remedies}};
}

} // namespace

int CausesCommand(int argc, char **argv)
{
	CLI::App app("List the causes that forktail explain names, or print what one of them is, how "
		     "forktail knows it, and "
		     "what to do about it.",
		     "forktail causes");
	app.footer("  forktail causes\n  forktail causes fork\n");
	std::string name;
	app.add_option("NAME", name, "Print this cause");
	bool json = false;
	app.add_flag("--json", json, "Print all causes and remedies as JSON");
	AddJsonSchema(&app, ft_causes_schema);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	const size_t columns = Columns();
	std::string text;
	analysis::Cause cause = analysis::Cause::Unknown;
	if (!name.empty() && !analysis::CauseByName(name.c_str(), &cause))
		return Refuse(UnknownCause(name), kUsage);
	if (json && !name.empty())
		return Refuse("--json is of all causes: leave out NAME", kUsage);
	if (json)
		text = CausesJson().dump(2) + "\n";
	else if (!name.empty())
		text = AboutCause(analysis::InfoOf(cause), columns);
	else
		for (const analysis::CauseInfo &info : analysis::kCauseTable) {
			constexpr size_t name_columns = 18;
			if (info.kind != analysis::Kind::Timeline)
				text += analysis::PadRight(info.name, name_columns) +
					analysis::Wrap(info.meaning, name_columns, name_columns, columns);
		}
	if (fputs(text.c_str(), stdout) == EOF || fflush(stdout))
		return Refuse(std::string("cannot write the causes: ") + strerror(errno), kCant);
	return kDone;
}

} // namespace forktail::cli

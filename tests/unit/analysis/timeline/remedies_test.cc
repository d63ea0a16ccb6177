// SPDX-License-Identifier: MIT
// The lists "What to do" of docs/reference/causes.md are those of the table of remedies.
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "analysis/timeline.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;

namespace
{

std::string Section(const std::string &name)
{
	std::ifstream in(FORKTAIL_SOURCE_DIR "/docs/reference/causes.md");
	std::ostringstream text;
	text << in.rdbuf();
	const std::string page = text.str(), heading = "\n## " + name + "\n";
	const size_t from = page.find(heading);
	REQUIRE(from != std::string::npos);
	return page.substr(from, page.find("\n## ", from + heading.size()) - from);
}

std::string Item(const RemedyInfo &remedy)
{
	static const char *const measured[] = {"", "lowers the cause",
					       "nothing that it lowers happened there"};
	std::string text = std::string("- ") + remedy.text;
	if (*remedy.command)
		text += std::string(" (") + remedy.command + ")";
	text += ".\n";
	if (*remedy.when)
		text += std::string("  Fits if ") + remedy.when + ".\n";
	if (*remedy.loses)
		text += std::string("  May lose ") + remedy.loses + " in a crash.\n";
	if (remedy.measured)
		text +=
		    std::string("  [Measured](../results/settings.md): ") + measured[remedy.measured] + ".\n";
	return text;
}

} // namespace

TEST_CASE("docs/reference/causes.md has the remedies of each cause")
{
	std::set<std::string> sections;
	for (const CauseInfo &cause : kCauseTable)
		if (cause.kind != Kind::Timeline)
			sections.insert(std::string(cause.name).substr(0, std::string(cause.name).find('/')));
	for (const std::string &section : sections) {
		std::string list;
		for (const RemedyInfo &remedy : kRemedyTable) {
			bool is_for = false;
			for (const CauseInfo &cause : kCauseTable)
				is_for |= (cause.name == section ||
					   std::string(cause.name).starts_with(section + "/")) &&
					  remedy.IsFor(cause.name);
			list += is_for ? Item(remedy) : "";
		}
		const std::string text = Section(section) + "\n\n";
		INFO("the list of " << section << ":\n**What to do**\n" << list);
		const size_t from = text.find("**What to do**\n");
		CHECK((from == std::string::npos) == list.empty());
		if (from != std::string::npos)
			CHECK(text.substr(from + 15, list.size() + 1) == list + "\n");
	}
}

TEST_CASE("remedies have their own ids, and causes that exist")
{
	std::set<std::string> ids;
	for (const RemedyInfo &remedy : kRemedyTable) {
		INFO(remedy.id);
		CHECK(ids.insert(remedy.id).second);
		std::istringstream names(remedy.causes);
		Cause cause;
		for (std::string name; names >> name;)
			CHECK(CauseByName(name.c_str(), &cause));
		CHECK((remedy.change == RemedyInfo::Live || remedy.change == RemedyInfo::Config) ==
		      std::string(remedy.command).starts_with("CONFIG SET "));
	}
}

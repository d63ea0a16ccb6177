// SPDX-License-Identifier: MIT
// The table of causes is complete and equals the one in docs/reference/causes.md.
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "analysis/timeline.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;

namespace
{

std::string Document()
{
	std::ifstream in(FORKTAIL_SOURCE_DIR "/docs/reference/causes.md");
	std::ostringstream text;
	text << in.rdbuf();
	return text.str();
}

// A paragraph's name. All of softirq/... share one.
std::string Paragraph(const CauseInfo &info)
{
	std::string name = info.name;
	return name.substr(0, name.find('/'));
}

// The table of docs/reference/causes.md, generated from the table of causes.
std::string Table()
{
	std::string table = "| cause | the server's thread | seen by |\n|---|---|---|\n";
	for (int c = 0; c < kCauses; c++) {
		const CauseInfo &info = kCauseTable[c];
		if (!*info.thread)
			continue; // same as in the line before
		bool several = c + 1 < kCauses && !*kCauseTable[c + 1].thread;
		std::string seen_by = info.seen_by;
		table += "| [" + (several ? Paragraph(info) + "/..." : info.name) + "](#" + Paragraph(info) +
			 ") | " + info.thread + " | " + seen_by + (seen_by.empty() ? "|\n" : " |\n");
	}
	return table;
}

} // namespace

TEST_CASE("docs/reference/causes.md has the table of causes")
{
	std::string document = Document();
	size_t from = document.find("| cause | the server's thread |");
	REQUIRE(from != std::string::npos);
	size_t to = document.find("\n\n", from) + 1;
	INFO("copy this table into docs/reference/causes.md:\n" << Table());
	CHECK(document.substr(from, to - from) == Table());
}

TEST_CASE("docs/reference/causes.md has a paragraph for every cause")
{
	std::string document = Document();
	for (int c = 0; c < kCauses; c++) {
		INFO(kCauseTable[c].name);
		CHECK(document.find("\n## " + Paragraph(kCauseTable[c]) + "\n") != std::string::npos);
	}
}

TEST_CASE("names and owners of causes are unique")
{
	std::set<std::string> names;
	std::set<uint32_t> owners;
	for (int c = 0; c < kTimelineCauses; c++) {
		const CauseInfo &info = kCauseTable[c];
		INFO(info.name);
		CHECK(names.insert(info.name).second);
		CHECK(*info.meaning);
		if (info.owner == kNoOwner)
			continue;
		CHECK(info.owner < FT_OWNER_LIMIT);
		CHECK(owners.insert(info.owner).second);
		CHECK(CauseOfOwner(info.owner) == static_cast<Cause>(c));
	}
	for (uint32_t owner = FT_OWN_CODE; owner <= FT_CPU_QUOTA; owner++) {
		INFO(owner);
		CHECK(owners.count(owner) == 1);
	}
}

TEST_CASE("a cause's words fit the kind of its record")
{
	for (const CauseInfo &info : kCauseTable) {
		INFO(info.name);
		std::string words = info.words;
		switch (info.telling) {
		case SentenceKind::Faults:
			CHECK(words.find('|') != std::string::npos);
			break;
		case SentenceKind::File:
			CHECK(!words.empty());
			break;
		case SentenceKind::Blocked:
			CHECK((words.empty() || words.find('%') != std::string::npos));
			break;
		default:
			CHECK(words.empty());
		}
	}
}

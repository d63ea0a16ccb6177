// SPDX-License-Identifier: MIT
// Files of earlier versions are read as those versions read them. Each directory here is a version: a run of
// its recorder and its load generator on a real server, and the output of its `forktail explain --json
// --requests`. Members may have been added since. None may be missing or different.
//
// A change that improves the explanation of the same recording also changes the stored text in the same
// commit, and is listed in the changelog.
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "analysis/explain/explain.h"
#include "analysis/text/json.h"

using namespace forktail::analysis;
using forktail::test::read_file;

namespace
{

using nlohmann::json;

// The places where `now` lacks something of `stored`, or differs. The words of sentences may change.
void Compare(const json &stored, const json &now, const std::string &place, std::vector<std::string> *differ)
{
	if (stored.is_object() && now.is_object()) {
		for (const auto &[key, value] : stored.items())
			if (!now.contains(key))
				differ->push_back(place + "." + key + " is gone");
			else if (key == "evidence" || key == "warnings")
				Compare(value.size(), now[key].size(), place + "." + key + " (number)",
					differ);
			else
				Compare(value, now[key], place + "." + key, differ);
		return;
	}
	if (stored.is_array() && now.is_array() && stored.size() == now.size()) {
		for (size_t i = 0; i < stored.size(); i++)
			Compare(stored[i], now[i], place + "[" + std::to_string(i) + "]", differ);
		return;
	}
	if (stored != now)
		differ->push_back(place + " was " + stored.dump().substr(0, 200) + " and is " +
				  now.dump().substr(0, 200));
}

std::vector<std::string> Versions()
{
	std::vector<std::string> versions;
	for (const auto &entry : std::filesystem::directory_iterator(FORKTAIL_SOURCE_DIR "/tests/compat"))
		if (entry.is_directory())
			versions.push_back(entry.path().string());
	return versions;
}

} // namespace

TEST_CASE("recordings of earlier versions have the same explanation as then")
{
	REQUIRE(!Versions().empty());
	for (const std::string &version : Versions()) {
		INFO(version);
		REQUIRE(chdir(version.c_str()) == 0); // the path on the command line is a member, too
		Explanation e;
		std::string error;
		int status = 0;
		REQUIRE(ExplainRun("run", {}, &e, &error, &status));
		json stored = forktail::test::parse_json(read_file("explain.json"));
		REQUIRE(stored["requests"]["count"] > 100);
		CHECK(stored["forktail"].is_string());
		stored.erase("forktail");
		std::vector<std::string> differ;
		Compare(stored, forktail::test::parse_json(ExplainJson(e, true)), "", &differ);
		for (const std::string &what : differ)
			UNSCOPED_INFO(what);
		CHECK(differ.empty());
	}
}

TEST_CASE("a missing or different member is found")
{
	const json stored = forktail::test::parse_json(R"({"a":{"b":[1,{"c":"x"}]}})");
	std::vector<std::string> differ;
	Compare(stored, forktail::test::parse_json(R"({"a":{"b":[1,{"c":"x","d":1}]},"e":2})"), "", &differ);
	CHECK(differ.empty());
	Compare(stored, forktail::test::parse_json(R"({"a":{"b":[1,{"d":"x"}]}})"), "", &differ);
	Compare(stored, forktail::test::parse_json(R"({"a":{"b":[2,{"c":"x"}]}})"), "", &differ);
	Compare(stored, forktail::test::parse_json(R"({"a":{"b":[1]}})"), "", &differ);
	REQUIRE(differ.size() == 3);
	CHECK(differ[0] == ".a.b[1].c is gone");
	CHECK(differ[1] == ".a.b[0] was 1 and is 2");
}

// SPDX-License-Identifier: MIT
// What versions before have written is read as they read it. Each directory beside this file is a version: a
// run of its recorder and its load generator on a real server, and what its `forktail explain --json
// --requests` said of it. Members may have been added since; none may be gone, or say something else.
//
// Whoever changes what an explanation says of the same recording, because it has become better, changes the
// kept text in the same commit, and says so in the changelog.
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

// Where `now` lacks something of `kept`, or has another value. The words of sentences may change.
void Compare(const json &kept, const json &now, const std::string &place, std::vector<std::string> *differ)
{
	if (kept.is_object() && now.is_object()) {
		for (const auto &[key, value] : kept.items())
			if (!now.contains(key))
				differ->push_back(place + "." + key + " is gone");
			else if (key == "evidence" || key == "warnings")
				Compare(value.size(), now[key].size(), place + "." + key + " (number)",
					differ);
			else
				Compare(value, now[key], place + "." + key, differ);
		return;
	}
	if (kept.is_array() && now.is_array() && kept.size() == now.size()) {
		for (size_t i = 0; i < kept.size(); i++)
			Compare(kept[i], now[i], place + "[" + std::to_string(i) + "]", differ);
		return;
	}
	if (kept != now)
		differ->push_back(place + " was " + kept.dump().substr(0, 200) + " and is " +
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

TEST_CASE("what was recorded by versions before is explained as it was by them")
{
	REQUIRE(!Versions().empty());
	for (const std::string &version : Versions()) {
		INFO(version);
		REQUIRE(chdir(version.c_str()) == 0); // the path that was given is a member, too
		Explanation e;
		std::string error;
		int status = 0;
		REQUIRE(ExplainRun("run", {}, &e, &error, &status));
		json kept = forktail::test::parse_json(read_file("explain.json"));
		REQUIRE(kept["requests"]["count"] > 100);
		CHECK(kept["forktail"].is_string());
		kept.erase("forktail");
		std::vector<std::string> differ;
		Compare(kept, forktail::test::parse_json(ExplainJson(e, true)), "", &differ);
		for (const std::string &what : differ)
			UNSCOPED_INFO(what);
		CHECK(differ.empty());
	}
}

TEST_CASE("a member that is gone or different is found")
{
	const json kept = forktail::test::parse_json(R"({"a":{"b":[1,{"c":"x"}]}})");
	std::vector<std::string> differ;
	Compare(kept, forktail::test::parse_json(R"({"a":{"b":[1,{"c":"x","d":1}]},"e":2})"), "", &differ);
	CHECK(differ.empty());
	Compare(kept, forktail::test::parse_json(R"({"a":{"b":[1,{"d":"x"}]}})"), "", &differ);
	Compare(kept, forktail::test::parse_json(R"({"a":{"b":[2,{"c":"x"}]}})"), "", &differ);
	Compare(kept, forktail::test::parse_json(R"({"a":{"b":[1]}})"), "", &differ);
	REQUIRE(differ.size() == 3);
	CHECK(differ[0] == ".a.b[1].c is gone");
	CHECK(differ[1] == ".a.b[0] was 1 and is 2");
}

// SPDX-License-Identifier: MIT
// Files of earlier versions are read as those versions read them. Each directory here is a version, of which
// one was recorded on arm64: a run of its recorder and its load generator on a real server, and the output of
// its `forktail explain --json --requests`. Members may have been added since. None may be missing or
// different. In the sentences of `evidence` and `warnings` the words may differ, but not the numbers.
//
// A change that improves the explanation of the same recording also changes the stored text in the same
// commit, and is listed in the changelog.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <unistd.h>

#include "analysis/explain.h"
#include "analysis/text.h"

using namespace forktail::analysis;
using forktail::test::parse_json;
using forktail::test::read_file;

namespace
{

using nlohmann::json;

// The numbers of a sentence: "cpu 0 for 4.01 ms" has 0 and 4.01.
std::string NumbersOf(const std::string &sentence)
{
	static const std::regex number("[0-9]+([.,][0-9]+)*");
	std::string numbers;
	for (std::sregex_iterator at(sentence.begin(), sentence.end(), number), end; at != end; ++at)
		numbers += (numbers.empty() ? "" : " ") + at->str();
	return numbers;
}

// Sentences without their words, which may change.
json NumbersOfEach(const json &sentences)
{
	json numbers = json::array();
	for (const json &sentence : sentences)
		numbers.push_back(NumbersOf(sentence.get<std::string>()));
	return numbers;
}

// The places where `now` lacks something of `stored`, or differs. Of sentences only the numbers are compared.
void Compare(const json &stored, const json &now, const std::string &place, std::vector<std::string> *differ)
{
	if (stored.is_object() && now.is_object()) {
		for (const auto &[key, value] : stored.items())
			if (!now.contains(key))
				differ->push_back(place + "." + key + " is gone");
			else if (key == "evidence" || key == "warnings")
				Compare(NumbersOfEach(value), NumbersOfEach(now[key]), place + "." + key,
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
		Explained e;
		std::string error;
		int status = 0;
		REQUIRE(ExplainRun("run", {}, &e, &error, &status));
		json stored = parse_json(read_file("explain.json"));
		REQUIRE(stored["requests"]["count"] > 100);
		CHECK(stored["forktail"].is_string());
		stored.erase("forktail");
		std::vector<std::string> differ;
		Compare(stored, parse_json(ExplainJson(e, true)), "", &differ);
		for (const std::string &what : differ)
			UNSCOPED_INFO(what);
		CHECK(differ.empty());
	}
}

TEST_CASE("a recording of arm64 names causes, system calls and functions on any machine")
{
	REQUIRE(chdir(FORKTAIL_SOURCE_DIR "/tests/compat/1.0-arm64") == 0);
	Explained e;
	std::string error;
	int status = 0;
	ExplainOptions options;
	options.slow.ns = 30'000'000;
	REQUIRE(ExplainRun("run", options, &e, &error, &status));
	const json all = parse_json(ExplainJson(e, true));
	const auto named = [](const json &list, const char *key, const std::string &name) {
		return std::any_of(list.begin(), list.end(),
				   [&](const json &entry) { return entry[key] == name; });
	};
	for (const char *cause : {"fork", "cow-copy", "fsync", "stopped", "server-busy"}) {
		INFO(cause);
		CHECK(named(all["causes"], "cause", cause));
	}
	const json &activities = all["own_code"]["activities"];
	CHECK(named(activities, "stack", "lua_pcall < luaCallFunction < evalGenericCommand"));
	CHECK(named(activities, "stack", "epoll_pwait()"));
	CHECK(
	    named(activities, "stack", "processMultibulkBuffer < processInputBuffer < readQueryFromClient"));
	CHECK(all["episodes"].dump().find("fdatasync() of appendonly.aof.1.incr.aof on the serving thread") !=
	      std::string::npos);
}

TEST_CASE("a missing or different member is found")
{
	const json stored = parse_json(R"({"a":{"b":[1,{"c":"x"}]}})");
	std::vector<std::string> differ;
	Compare(stored, parse_json(R"({"a":{"b":[1,{"c":"x","d":1}]},"e":2})"), "", &differ);
	CHECK(differ.empty());
	Compare(stored, parse_json(R"({"a":{"b":[1,{"d":"x"}]}})"), "", &differ);
	Compare(stored, parse_json(R"({"a":{"b":[2,{"c":"x"}]}})"), "", &differ);
	Compare(stored, parse_json(R"({"a":{"b":[1]}})"), "", &differ);
	REQUIRE(differ.size() == 3);
	CHECK(differ[0] == ".a.b[1].c is gone");
	CHECK(differ[1] == ".a.b[0] was 1 and is 2");
}

TEST_CASE("sentences may change their words, but not their numbers or their count")
{
	const json stored =
	    parse_json(R"({"evidence":["held by cc1plus (12693) for 4.01 ms","1,204 waits"]})");
	auto differences = [&](const char *now) {
		std::vector<std::string> differ;
		Compare(stored, parse_json(now), "", &differ);
		return differ;
	};
	CHECK(
	    differences(R"({"evidence":["cc1plus (12693) had it: 4.01 ms.","waited 1,204 times"]})").empty());
	const auto other =
	    differences(R"({"evidence":["held by cc1plus (12693) for 4.02 ms","1,204 waits"]})");
	REQUIRE(other.size() == 1);
	CHECK(other[0] == R"(.evidence[0] was "1 12693 4.01" and is "1 12693 4.02")");
	CHECK(differences(R"({"evidence":["held by cc1plus (12693) for 4.01 ms"]})").size() == 1);
	CHECK(differences(R"({"evidence":["1,204 waits","held by cc1plus (12693) for 4.01 ms"]})").size() ==
	      2);
}

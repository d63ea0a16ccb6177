// SPDX-License-Identifier: MIT
// Files of commands on a real server: weights, key patterns, data sets and cursors as the server saw them,
// each example of contrib/workloads, and what is refused before any request.
#include <filesystem>
#include <map>
#include <set>

#include "tests/support/catch.h"
#include "tests/system/load/monitor.h"

using namespace forktail::test;

namespace
{

namespace fs = std::filesystem;

const fs::path kExamples = fs::path(FORKTAIL_SOURCE_DIR) / "contrib/workloads";

} // namespace

TEST_CASE("weights, key patterns, key spaces and rows of a data set arrive as written")
{
	Redis redis;
	TempDir dir;
	write_file(dir.file("data.csv"), "id,name\n1,one\n2,two\n3,three\n");
	write_file(dir.file("file"), "# a comment\n\ndata data.csv\n"
				     "3 key-space=5 key-pattern=sequential GET __key__\n"
				     "  HSET h:__field:id__ name __field:name__ n __int:7:9__\n");
	Monitor monitor(redis);
	const Result r = load({"-s", redis.socket(), "--commands", dir.file("file"), "-n", "8000", "-c", "1",
			       "-r", "1000", "--seed", "5", "-q", "--no-observer"});
	CAPTURE(r.err);
	REQUIRE(r.status == 0);
	std::map<std::string, int> keys, rows;
	int gets = 0, sets = 0;
	for (const Seen &s : monitor.commands({"GET", "HSET"})) {
		if (s.words[0] == "GET") {
			CHECK(s.words[1] == "key:00000000000" + std::to_string(gets++ % 5));
			continue;
		}
		sets++;
		rows[s.words[1] + " " + s.words[3]]++;
		CHECK((s.words[5] == "7" || s.words[5] == "8" || s.words[5] == "9"));
	}
	CHECK(gets + sets == 8000);
	CHECK(gets > 5700); // of 6000, 8 standard deviations
	CHECK(gets < 6300);
	REQUIRE(rows.size() == 3);
	CHECK(rows.count("h:2 two") == 1);
	for (const auto &[row, count] : rows)
		CHECK(count > sets / 4);
}

TEST_CASE("a scan continues at its cursor, sees every key, and begins again")
{
	Redis redis;
	TempDir dir;
	REQUIRE(load({"-s", redis.socket(), "--fill", "1000", "-q"}).status == 0);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 600; k++) // more than a listpack, which HSCAN would return as a whole
			redis.command(
			    {"HSET", "h:00000000000" + std::to_string(i), "f" + std::to_string(k), "v"});
	write_file(dir.file("file"), "SCAN __cursor__ COUNT 50\n");
	{
		Monitor monitor(redis);
		REQUIRE(load({"-s", redis.socket(), "--commands", dir.file("file"), "-n", "200", "-c", "1",
			      "-q", "--no-observer"})
			    .status == 0);
		std::vector<std::string> cursors;
		for (const Seen &s : monitor.commands({"SCAN"}))
			cursors.push_back(s.words[1]);
		REQUIRE(cursors.size() == 200);
		CHECK(cursors[0] == "0");
		const size_t length = static_cast<size_t>(std::find(cursors.begin() + 1, cursors.end(), "0") -
							  cursors.begin()); // of a whole scan
		CHECK(length > 10);
		CHECK(length < 60);
		CHECK(std::set<std::string>(cursors.begin(), cursors.end()).size() == length);
		CHECK(cursors[length + 1] == cursors[1]);
	}
	// Of a key's scan, the key remains until its end, though keys are drawn.
	write_file(dir.file("file"), "key-space=3 HSCAN h:__key_number__ __cursor__ COUNT 50\n");
	Monitor monitor(redis);
	REQUIRE(load({"-s", redis.socket(), "--commands", dir.file("file"), "-n", "300", "-c", "1", "-q",
		      "--seed", "3", "--no-observer"})
		    .status == 0);
	std::string key;
	std::set<std::string> all;
	for (const Seen &s : monitor.commands({"HSCAN"})) {
		if (s.words[2] != "0")
			CHECK(s.words[1] == key);
		key = s.words[1];
		all.insert(key);
	}
	CHECK(all.size() == 3);
}

TEST_CASE("the examples are accepted by servers that have their commands")
{
	const std::string newest = newer_server("redis-server");
	if (newest.empty())
		WARN("SKIPPED: vectors.commands needs Redis 8 (script/servers)");
	size_t ran = 0;
	for (const fs::directory_entry &file : fs::directory_iterator(kExamples)) {
		if (file.path().extension() != ".commands")
			continue;
		RedisOptions options;
		if (!newest.empty())
			options.program = newest;
		Redis redis(options);
		TempDir dir;
		const Result r = load({"-s", redis.socket(), "--commands", file.path().string(), "-n", "2000",
				       "-r", "1000", "-q", "--no-observer", "--json", dir.file("json")});
		CAPTURE(file.path().string(), r.out, r.err);
		const Json total = parse_json(read_file(dir.file("json")))["runs"][0]["total"];
		CHECK(r.status == (total["errors"] == 2000 ? 3 : 0));
		CHECK(total["requests"] == 2000);
		if (total["errors"] == 2000) {
			WARN("SKIPPED: the server has not the commands of " << file.path().filename());
			continue;
		}
		CHECK(total["errors"] == 0);
		ran++;
	}
	CHECK(ran >= 6);
}

TEST_CASE("a file that cannot be used is refused with its line, before any request")
{
	Redis redis;
	TempDir dir;
	write_file(dir.file("data.csv"), "id\n1\n");
	const auto refused = [&](const std::string &text, const std::string &sentence,
				 const Arguments &more = {}) {
		write_file(dir.file("file"), text);
		Arguments all = {"-s", redis.socket(), "--commands", dir.file("file")};
		all.insert(all.end(), more.begin(), more.end());
		const Result r = load(all);
		CAPTURE(text, r.err);
		CHECK(r.status == 2);
		CHECK(contains(r.err, sentence));
	};
	CHECK(load({"-s", redis.socket(), "--commands", dir.file("none")}).status == 2);
	refused("# only a comment\n", "has no commands");
	refused("GET __key__\nGET __kee__\n", "file:2: there is no placeholder __kee__");
	refused("0 GET a\n", "file:1: expected a weight from 1 to 1000000");
	refused("7\n", "file:1: there is no command in this line");
	refused("key-pattern=zapf GET __key__\n", "file:1: ");
	refused("key-space=0 GET __key__\n", "key-space: expected a number of keys");
	refused("data none.csv\nGET __field:id__\n", "cannot read " + dir.file("none.csv"));
	refused("data data.csv\nGET __field:name__\n", "the data set has no column \"name\"");
	refused("data data.csv\ndata data.csv\nGET a\n", "file:2: there are two data sets");
	refused("GET __cursor__\n", "would never end");
	refused("SCAN __cursor__\n", "__cursor__ needs -P 1", {"-P", "4"});
	CHECK(redis.command({"INFO", "commandstats"}).find("cmdstat_get") == std::string::npos);
}

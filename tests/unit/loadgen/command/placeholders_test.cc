// SPDX-License-Identifier: MIT
// Placeholders with a value: ranges, vectors, numbers drawn once per request, columns of a data set, the
// cursor. Written as RESP, from which the words are read back.
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

namespace
{

struct Source {
	key_names names = {};
	fill f = {};
	data_set data = {};
	random_stream random = {11};
	char error[256] = "";
	forktail::test::TempDir dir;

	Source()
	{
		REQUIRE(key_names_prepare(&names, "k", "4", 1000, error, sizeof(error)) == 0);
		f.names = &names;
		f.keys = 1000;
		f.fields = 10;
		f.fixed_value = "VAL";
	}
	~Source()
	{
		key_names_free(&names);
		data_set_free(&data);
	}
	Source(const Source &) = delete;
	Source &operator=(const Source &) = delete;

	int read(const std::string &name, const std::string &text)
	{
		std::ofstream(dir.file(name)) << text;
		data_set_free(&data);
		const int rc = data_set_read(&data, dir.file(name).c_str(), error, sizeof(error));
		f.data = rc ? nullptr : &data;
		return rc;
	}

	// The words of a request; a new `seed` is a new request.
	std::vector<std::string> words(const std::string &text, uint64_t seed, const std::string &cursor = "")
	{
		command c = {};
		bytes to = {};
		const request_values v = {7, 0, 0, 0, 0, seed};
		request_values with = v;
		with.captured = cursor.data();
		with.captured_length = static_cast<uint32_t>(cursor.size());
		INFO(text << ": " << error);
		REQUIRE(command_parse(&c, text.c_str(), error, sizeof(error)));
		REQUIRE(command_bind(&c, f.data, error, sizeof(error)));
		CHECK(!command_fixed(&c, &f));
		REQUIRE(protocol_of(PROTOCOL_REDIS)->write(&c, &f, &with, &random, &to, nullptr));
		const std::string all(to.at, to.length);
		free(to.at);
		command_free(&c);
		std::vector<std::string> words;
		for (size_t at = all.find('$'); at < all.size();) {
			const size_t length = std::stoul(all.substr(at + 1)), from = all.find("\r\n", at) + 2;
			words.push_back(all.substr(from, length));
			at = from + length + 2;
		}
		return words;
	}

	std::string refused(const std::string &text)
	{
		command c = {};
		if (command_parse(&c, text.c_str(), error, sizeof(error))) {
			CHECK(!command_bind(&c, f.data, error, sizeof(error)));
			command_free(&c);
		}
		return error;
	}
};

TEST_CASE("ranges include both ends and nothing else")
{
	Source s;
	std::set<std::string> seen;
	for (uint64_t i = 0; i < 300; i++)
		seen.insert(s.words("X __int:-2:2__", i).at(1));
	CHECK(seen == std::set<std::string>{"-2", "-1", "0", "1", "2"});
	double least = 1e9, most = -1e9;
	for (uint64_t i = 0; i < 300; i++) {
		const std::string text = s.words("X __float:-180:180__", i).at(1);
		CHECK(text.find('.') + 7 == text.size());
		least = std::min(least, std::stod(text));
		most = std::max(most, std::stod(text));
	}
	CHECK(least >= -180);
	CHECK(most <= 180);
	CHECK(most - least > 300);
	CHECK(s.words("X a__int:5:5__b", 1).at(1) == "a5b");
}

TEST_CASE("a vector is 32-bit floats between -1 and 1")
{
	Source s;
	const std::vector<std::string> words = s.words("VADD set FP32 __vector:16__ item", 1);
	REQUIRE(words.size() == 5);
	REQUIRE(words[3].size() == 64);
	std::set<float> values;
	for (size_t i = 0; i < 16; i++) {
		float value;
		memcpy(&value, words[3].data() + 4 * i, 4);
		CHECK(value >= -1);
		CHECK(value <= 1);
		values.insert(value);
	}
	CHECK(values.size() == 16);
	CHECK(s.words("X __vector:16__", 1).at(1) != words[3]); // another draw
}

TEST_CASE("numbered keys and numbers are drawn once per request")
{
	Source s;
	std::set<std::string> keys, numbers;
	for (uint64_t seed = 0; seed < 50; seed++) {
		const auto w =
		    s.words("COPY __key1__ x:__key1__ __key2__ __int1__ __int1__ __int2__", seed * 977);
		CHECK(w.at(2) == "x:" + w.at(1));
		CHECK(w.at(4) == w.at(5));
		keys.insert(w.at(1));
		numbers.insert(w.at(4));
		CHECK(w.at(4).size() == 12);
	}
	CHECK(keys.size() > 40);
	CHECK(numbers.size() > 40);
	size_t equal = 0;
	for (uint64_t seed = 0; seed < 50; seed++) {
		const auto w = s.words("X __key1__ __key2__", seed * 977);
		equal += w.at(1) == w.at(2);
	}
	CHECK(equal < 5);
}

TEST_CASE("the fields of a request are from one row, and JSON has its escapes")
{
	Source s;
	REQUIRE(s.read("a.csv", "id,my name,text\n1,ada,\"say \"\"hi\"\"\"\n2,bob,\"a\\b\nc\"\n") == 0);
	CHECK(s.data.rows == 2);
	std::set<std::string> seen;
	for (uint64_t seed = 0; seed < 40; seed++) {
		const auto w =
		    s.words("X __field:id__ \"n:__field:my name__\" '{\"t\":\"__json:text__\"}'", seed * 977);
		seen.insert(w.at(1));
		CHECK(w.at(2) == (w.at(1) == "1" ? "n:ada" : "n:bob"));
		CHECK(w.at(3) == (w.at(1) == "1" ? R"({"t":"say \"hi\""})" : R"({"t":"a\\b\u000ac"})"));
	}
	CHECK(seen.size() == 2);
	REQUIRE(s.read("b.tsv", "a\tb\r\nx,y\tz\r\n") == 0);
	CHECK(s.words("X __field:a__ __field:b__", 1) == std::vector<std::string>{"X", "x,y", "z"});
}

TEST_CASE("a cursor is 0 at first, then what was captured")
{
	Source s;
	CHECK(s.words("SCAN __cursor__ COUNT 5", 1).at(1) == "0");
	CHECK(s.words("SCAN __cursor__ COUNT 5", 1, "1234567890123456789").at(1) == "1234567890123456789");
}

TEST_CASE("placeholders that do not exist are refused, and plain underscores are not")
{
	Source s;
	for (const char *text :
	     {"__nothing__", "__int:5:1__", "__int:1__", "__int:1.5:2__", "__int:a:b__", "__key0__",
	      "__key10__", "__int0__", "__vector:0__", "__vector:x__", "__float:1:2:3__", "__keys__"})
		CHECK(s.refused("GET " + std::string(text)) ==
		      "there is no placeholder " + std::string(text));
	CHECK(s.refused("GET __field:a__").find("needs a data set") != std::string::npos);
	REQUIRE(s.read("a.csv", "a,b\n1,2\n") == 0);
	CHECK(s.refused("GET __field:c__") == "the data set has no column \"c\"");
	command c = {};
	for (const char *text : {"GET a__b", "GET __A__", "GET __", "GET ____", "PUBLISH __keyspace@0__:a b",
				 "EVAL 'return \\'__\\'' 0"}) {
		CAPTURE(text);
		REQUIRE(command_parse(&c, text, s.error, sizeof(s.error)));
		CHECK(c.part_count == c.word_count); // no word was split
		command_free(&c);
	}
	CHECK(!command_parse(&c, "SET a 'open", s.error, sizeof(s.error)));
}

TEST_CASE("a data set that cannot be used is refused with its line")
{
	Source s;
	const auto why = [&](const std::string &text) {
		CHECK(s.read("d.csv", text) == -EINVAL);
		return std::string(s.error).substr(s.dir.file("d.csv").size());
	};
	CHECK(why("") == ":2: there are no rows after the names of columns");
	CHECK(why("a,b\n") == ":2: there are no rows after the names of columns");
	CHECK(why("a,b\n1,2\n1\n") == ":3: the row has fewer fields than the first row");
	CHECK(why("a,b\n1,2,3\n") == ":2: the row has more fields than the first row");
	CHECK(why("a,b\n1,\"x\n") == ":2: a quoted field has no closing quote");
	CHECK(why("a,b\n1,\"x\"y\n") == ":2: unexpected text after a closing quote");
	CHECK(data_set_read(&s.data, s.dir.file("none").c_str(), s.error, sizeof(s.error)) == -EINVAL);
	CHECK(std::string(s.error).find("No such file") != std::string::npos);
	REQUIRE(s.read("d.csv", "a,b\n1,2\n\n3,4") == 0); // an empty line
	CHECK(s.data.rows == 2);
}

} // namespace

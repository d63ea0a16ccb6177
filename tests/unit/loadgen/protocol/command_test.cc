// SPDX-License-Identifier: MIT
// Commands as users write them: accepted and refused ones, and the exact bytes in each protocol. Expected
// bytes are written by hand from the protocols' specifications, not made by the tested code.
#include <cstdlib>
#include <map>
#include <string>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"

using namespace std::string_literals;

namespace
{

// Values for placeholders: keys "k" and three digits, constant values of three bytes.
struct Source {
	key_names names = {};
	values made = {};
	fill f = {};
	random_stream random = {11};
	char error[256] = "";

	Source()
	{
		REQUIRE(key_names_prepare(&names, "k", "4", 1000, error, sizeof(error)) == 0);
		REQUIRE(value_sizes_parse("3", &made.sizes, error, sizeof(error)));
		REQUIRE(values_prepare(&made, 0, 5) == 0);
		f.names = &names;
		f.values = &made;
		f.keys = 1000;
		f.fields = 10;
		f.fixed_value = "VAL";
	}
	~Source()
	{
		key_names_free(&names);
		values_free(&made);
	}
	Source(const Source &) = delete;
	Source &operator=(const Source &) = delete;

	std::string write(const std::string &text, protocol_id wire = PROTOCOL_REDIS, uint64_t key = 7,
			  const std::string &captured = "")
	{
		command c = {};
		bytes to = {};
		const request_values v = {key, captured.data(), static_cast<uint32_t>(captured.size()), 0, 0,
					  0};
		const bool good = command_parse(&c, text.c_str(), error, sizeof(error)) &&
				  protocol_of(wire)->fits(&c, error, sizeof(error));
		INFO(text << ": " << error);
		REQUIRE(good);
		REQUIRE(protocol_of(wire)->write(&c, &f, &v, &random, &to, nullptr));
		std::string all(to.at, to.length);
		free(to.at);
		command_free(&c);
		return all;
	}
};

std::string refused(const std::string &text, protocol_id wire = PROTOCOL_REDIS)
{
	command c = {};
	char error[256] = "";
	const bool good = command_parse(&c, text.c_str(), error, sizeof(error)) &&
			  protocol_of(wire)->fits(&c, error, sizeof(error));
	command_free(&c);
	return good ? "" : error;
}

// The words of a Redis array of bulk strings.
std::vector<std::string> words(const std::string &request)
{
	std::vector<std::string> all;
	REQUIRE(request[0] == '*');
	size_t at = request.find("\r\n") + 2;
	while (at < request.size()) {
		REQUIRE(request[at] == '$');
		const size_t end = request.find("\r\n", at), length = std::stoul(request.substr(at + 1));
		all.push_back(request.substr(end + 2, length));
		REQUIRE(request.compare(end + 2 + length, 2, "\r\n") == 0);
		at = end + length + 4;
	}
	CHECK(all.size() == std::stoul(request.substr(1)));
	return all;
}

} // namespace

TEST_CASE("a command's exact bytes for Redis")
{
	Source s;
	CHECK(s.write("PING") == "*1\r\n$4\r\nPING\r\n");
	CHECK(s.write("GET __key__") == "*2\r\n$3\r\nGET\r\n$4\r\nk007\r\n");
	CHECK(s.write("  SET\t__key__   __data__ ") == "*3\r\n$3\r\nSET\r\n$4\r\nk007\r\n$3\r\nVAL\r\n");
	CHECK(s.write("SET a:__key__:b x__data__y") ==
	      "*3\r\n$3\r\nSET\r\n$8\r\na:k007:b\r\n$5\r\nxVALy\r\n");
	CHECK(s.write("SET __new_key__ 1", PROTOCOL_REDIS, 42) ==
	      "*3\r\n$3\r\nSET\r\n$4\r\nk042\r\n$1\r\n1\r\n");
	CHECK(s.write("HGETALL __captured__", PROTOCOL_REDIS, 0, "any name") ==
	      "*2\r\n$7\r\nHGETALL\r\n$8\r\nany name\r\n");
	s.f.expiry_low = s.f.expiry_high = 300;
	CHECK(s.write("SET k v EX __expiry__") ==
	      "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nEX\r\n$3\r\n300\r\n");
	// Ten words or more: the head has two digits.
	CHECK(s.write("RPUSH 1 2 3 4 5 6 7 8 9").substr(0, 5) == "*10\r\n");
}

TEST_CASE("valkey-benchmark's numbered numbers are drawn once per request")
{
	Source s;
	const std::vector<std::string> w =
	    words(s.write("A __rand_1st__ __int1__ __rand_9th__ __rand_int__ __rand_1st__"));
	CHECK(w[1] == w[2]);
	CHECK(w[1] == w[5]);
	CHECK(w[1] != w[3]);
	CHECK(w[1] != w[4]);
	for (const char *name : {"__rand_0th__", "__rand_2st__", "__rand_10th__", "__rand_1st_x__"})
		CHECK(refused(name).find("there is no placeholder") != std::string::npos);
}

TEST_CASE("the inline form is words and CRLF")
{
	Source s;
	command c = {};
	bytes to = {};
	const request_values v = {7, nullptr, 0, 0, 0, 0};
	REQUIRE(command_parse(&c, "SET __key__ __data__", s.error, sizeof(s.error)));
	c.inlined = true;
	REQUIRE(protocol_of(PROTOCOL_REDIS)->write(&c, &s.f, &v, &s.random, &to, nullptr));
	CHECK(std::string(to.at, to.length) == "SET k007 VAL\r\n");
	free(to.at);
	command_free(&c);
}

TEST_CASE("quotes and escapes")
{
	Source s;
	const std::map<std::string, std::string> cases = {
	    {R"("two words")", "two words"},
	    {R"("")", ""},
	    {R"("a\nb\r\tc")", "a\nb\r\tc"},
	    {R"("\"\\")", "\"\\"},
	    {R"("\x00\xff\x4A\x4a")", "\0\xff\x4a\x4a"s},
	    {R"("\0x")", "\0x"s},
	    {R"(a"b)", "a\"b"},
	    {R"(\n)", "\\n"},
	    {R"("pre __key__ post")", "pre k007 post"},
	};
	for (const auto &[written, meant] : cases) {
		INFO(written);
		const auto got = words(s.write("ECHO " + written + " end"));
		REQUIRE(got.size() == 3);
		CHECK(got[1] == meant);
		CHECK(got[2] == "end");
	}
}

TEST_CASE("an invalid command is refused in one sentence")
{
	for (const std::string text : {"", "   ", "SET \"x", R"(SET "x\")", R"(SET "\q")", R"(SET "\x4")",
				       R"(SET "\xzz")", R"(SET "a"b)", R"("\)"}) {
		INFO(text);
		CHECK(refused(text).find("invalid command") == 0);
	}
	std::string many = "MSET";
	for (int i = 1; i < COMMAND_WORDS_MAX; i++)
		many += " x";
	CHECK(refused(many).empty());
	CHECK(refused(many + " x").find("too many words") != std::string::npos);
	std::string parts = "ECHO ";
	for (int i = 0; i < WORD_PARTS_MAX; i++)
		parts += "__int__";
	CHECK(refused(parts).empty());
	CHECK(refused(parts + "x").find("too many words or placeholders") != std::string::npos);
}

TEST_CASE("placeholders stay in their ranges and use them fully")
{
	Source s;
	s.f.keys = 5;
	s.f.fields = 12;
	s.f.expiry_low = 98;
	s.f.expiry_high = 101;
	std::map<std::string, std::map<std::string, int>> seen;
	for (int i = 0; i < 4000; i++) {
		const auto got = words(
		    s.write("X __int__ __rand_int__ __other_key__ __field__ __expiry__ __scan_length__"));
		for (size_t k = 1; k < got.size(); k++)
			seen[std::to_string(k)][got[k]]++;
	}
	for (const char *number : {"1", "2"}) {
		CHECK(seen[number].size() == 5);
		CHECK(seen[number].count("000000000000") == 1);
		CHECK(seen[number].count("000000000004") == 1);
	}
	CHECK(seen["3"].size() == 5);
	CHECK(seen["3"].begin()->first == "k000");
	CHECK(seen["3"].rbegin()->first == "k004");
	CHECK(seen["4"].size() == 12);
	CHECK(seen["4"].begin()->first == "field00");
	CHECK(seen["4"].rbegin()->first == "field11");
	CHECK(seen["5"].size() == 4);
	for (const char *seconds : {"98", "99", "100", "101"})
		CHECK(seen["5"][seconds] == Approx(1000).epsilon(0.15));
	CHECK(seen["6"].size() == 100);
	CHECK(seen["6"].count("1") == 1);
	CHECK(seen["6"].count("100") == 1);
	s.f.fields = 10;
	CHECK(words(s.write("X __field__"))[1].size() == 6);
	for (int i = 0; i < 1000; i++) {
		const std::string score = words(s.write("X __score__"))[1];
		REQUIRE((score.size() == 8 && score.compare(0, 2, "0.") == 0));
		REQUIRE(std::stod(score) < 1);
	}
	const std::string name = "user6284781860667377211"; // record 0
	CHECK(words(s.write("X __index_score__", PROTOCOL_REDIS, 0))[1] ==
	      std::to_string(ycsb_name_hash(name.data(), name.size())));
}

TEST_CASE("only commands of constant width have templates")
{
	Source s;
	const auto fixed = [&](const char *text) {
		command c = {};
		REQUIRE(command_parse(&c, text, s.error, sizeof(s.error)));
		const bool is = command_fixed(&c, &s.f);
		command_free(&c);
		return is;
	};
	CHECK(fixed("SET __key__ __data__"));
	CHECK(fixed("X __int__ __score__ __field__ __other_key__"));
	CHECK_FALSE(fixed("X __index_score__"));
	CHECK_FALSE(fixed("X __scan_length__"));
	CHECK_FALSE(fixed("X __captured__"));
	s.f.expiry_low = s.f.expiry_high = 9;
	CHECK(fixed("SET k v EX __expiry__"));
	s.f.expiry_high = 10;
	CHECK_FALSE(fixed("SET k v EX __expiry__"));
	s.f.fixed_value = nullptr;
	CHECK_FALSE(fixed("SET __key__ __data__"));
	s.names.high++;
	CHECK_FALSE(fixed("GET __key__"));
	std::string many = "X";
	for (int i = 0; i < COMMAND_PATCHES_MAX; i++)
		many += " __int__";
	CHECK(fixed(many.c_str()));
	CHECK_FALSE(fixed((many + " __int__").c_str()));
}

TEST_CASE("memcached's text: a command's exact bytes")
{
	Source s;
	const protocol_id text = PROTOCOL_MEMCACHE_TEXT;
	s.f.expiry_low = s.f.expiry_high = 60;
	CHECK(s.write("get __key__", text) == "get k007\r\n");
	CHECK(s.write("gets __key__", text) == "gets k007\r\n");
	CHECK(s.write("set __key__ __data__", text) == "set k007 0 0 3\r\nVAL\r\n");
	CHECK(s.write("set __key__ __data__ __expiry__", text) == "set k007 0 60 3\r\nVAL\r\n");
	CHECK(s.write("append __key__ x__data__", text) == "append k007 0 0 4\r\nxVAL\r\n");
	CHECK(s.write("add k \"a b\"", text) == "add k 0 0 3\r\na b\r\n");
	CHECK(s.write("incr __key__ 5", text) == "incr k007 5\r\n");
	CHECK(s.write("touch __key__ 3600", text) == "touch k007 3600\r\n");
	CHECK(s.write("delete __key__", text) == "delete k007\r\n");
	CHECK(s.write("version", text) == "version\r\n");
	// memcached accepts lower case only.
	CHECK(s.write("GET __key__", text) == "get k007\r\n");
	CHECK(s.write("Set __key__ V", text) == "set k007 0 0 1\r\nV\r\n");
}

TEST_CASE("memcached's binary: a command's exact bytes")
{
	Source s;
	const protocol_id binary = PROTOCOL_MEMCACHE_BINARY;
	const std::string zeros(12, 0); // opaque, cas
	CHECK(s.write("get __key__", binary) == "\x80\0\0\4\0\0\0\0\0\0\0\4"s + zeros + "k007");
	CHECK(s.write("set __key__ __data__", binary) ==
	      "\x80\1\0\4\x08\0\0\0\0\0\0\x0f"s + zeros + std::string(8, 0) + "k007VAL");
	CHECK(s.write("set __key__ __data__ 3600", binary) ==
	      "\x80\1\0\4\x08\0\0\0\0\0\0\x0f"s + zeros + "\0\0\0\0\0\0\x0e\x10"s + "k007VAL");
	CHECK(s.write("append __key__ __data__", binary) ==
	      "\x80\x0e\0\4\0\0\0\0\0\0\0\7"s + zeros + "k007VAL");
	CHECK(s.write("incr __key__ 258", binary) == "\x80\5\0\4\x14\0\0\0\0\0\0\x18"s + zeros +
							 "\0\0\0\0\0\0\1\2"s + std::string(8, 0) +
							 "\xff\xff\xff\xff" + "k007");
	CHECK(s.write("touch __key__ 16", binary) ==
	      "\x80\x1c\0\4\4\0\0\0\0\0\0\x08"s + zeros + "\0\0\0\x10"s + "k007");
	CHECK(s.write("delete __key__", binary) == "\x80\4\0\4\0\0\0\0\0\0\0\4"s + zeros + "k007");
	CHECK(s.write("noop", binary) == "\x80\x0a\0\0\0\0\0\0\0\0\0\0"s + zeros);
	s.f.expiry_low = s.f.expiry_high = 60;
	CHECK(s.write("set __key__ __data__ __expiry__", binary).substr(24, 8) == "\0\0\0\0\0\0\0\x3c"s);
	CHECK(s.write("touch __key__ __expiry__", binary).substr(24, 4) == "\0\0\0\x3c"s);
}

TEST_CASE("commands unknown to memcached, and wrong numbers of words")
{
	for (protocol_id wire : {PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY}) {
		CHECK(refused("LPUSH a b", wire)
			  .find("LPUSH is not a memcached command that forktail can send") == 0);
		CHECK(refused("set k", wire) == "memcached's SET has the form SET KEY DATA [EXPIRY]");
		CHECK(refused("set k v 1 2", wire) == "memcached's SET has the form SET KEY DATA [EXPIRY]");
		CHECK(refused("get", wire) == "memcached's GET has the form GET KEY");
		CHECK(refused("get a b", wire) == "memcached's GET has the form GET KEY");
		CHECK(refused("incr a", wire) == "memcached's INCR has the form INCR KEY NUMBER");
		CHECK(refused("touch a", wire) == "memcached's TOUCH has the form TOUCH KEY EXPIRY");
		CHECK(refused("version 1", wire) == "memcached's VERSION has the form VERSION");
	}
	CHECK(refused("noop", PROTOCOL_MEMCACHE_BINARY).empty());
	CHECK_FALSE(refused("noop", PROTOCOL_MEMCACHE_TEXT).empty());
	CHECK(refused("anything goes", PROTOCOL_REDIS).empty());
}

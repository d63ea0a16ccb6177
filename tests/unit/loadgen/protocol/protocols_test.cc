// SPDX-License-Identifier: MIT
// The table of protocols: every row is complete, and what an answer means for its command. Answers are
// written from the protocols' specifications.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"

using namespace std::string_literals;

namespace
{

// The result of a command with this answer: its status, and the class of an error.
struct Fate {
	unsigned status;
	std::string word;
};

bool operator==(const Fate &a, const Fate &b)
{
	return a.status == b.status && a.word == b.word;
}

Fate fate(protocol_id wire, const std::string &text, const std::string &answer)
{
	const protocol *p = protocol_of(wire);
	reply_scanner s = {};
	expected e = {};
	command c;
	char error[512];
	const char *word = nullptr, *at = answer.data();
	REQUIRE(command_parse(&c, text.c_str(), error, sizeof(error)));
	REQUIRE(p->fits(&c, error, sizeof(error)));
	p->expect(&c, &e);
	command_free(&c);
	REQUIRE(reply_scan(wire, &s, &at, answer.data() + answer.size()) == 1);
	REQUIRE(at == answer.data() + answer.size());
	const unsigned status = reply_status(wire, &s, &e, &word);
	// The hot path's inlined function and the table's function give the same answer.
	const char *again = nullptr;
	CHECK(p->status(&s, &e, &again) == status);
	CHECK(again == word);
	return {status, word ? word : ""};
}

std::string binary(uint8_t opcode, uint16_t code = 0)
{
	std::string all(24, 0);
	all[0] = '\x81';
	all[1] = static_cast<char>(opcode);
	all[6] = static_cast<char>(code >> 8);
	all[7] = static_cast<char>(code & 0xff);
	return all;
}

bool accepts(protocol_id wire, const std::string &answer)
{
	reply_scanner s = {};
	const char *at = answer.data();
	REQUIRE(reply_scan(wire, &s, &at, answer.data() + answer.size()) == 1);
	return protocol_of(wire)->accepted(&s);
}

std::string login(protocol_id wire, const char *user, const char *password)
{
	bytes to = {};
	REQUIRE(protocol_of(wire)->login(user, password, &to));
	std::string all(to.at, to.length);
	free(to.at);
	return all;
}

// The text of an error that arrives at once, or byte by byte.
std::string error_text(protocol_id wire, const std::string &answer, size_t step)
{
	reply_scanner s = {};
	char text[200];
	int done = 0;
	for (size_t from = 0; from < answer.size(); from += step) {
		const char *at = answer.data() + from,
			   *end = std::min(at + step, answer.data() + answer.size());
		while (at < end && done == 0)
			done = reply_scan(wire, &s, &at, end);
	}
	REQUIRE(done == 1);
	protocol_of(wire)->error_text(&s, text, sizeof(text));
	return text;
}

const Fate kDone = {FT_STATUS_OK, ""}, kMiss = {FT_STATUS_MISS, ""}, kWrong = {FT_STATUS_WRONG, ""};

} // namespace

TEST_CASE("every protocol has a complete row in the table and a unique name")
{
	std::set<std::string> names;
	for (int i = 0; i < PROTOCOLS; i++) {
		const protocol *p = protocol_of(static_cast<protocol_id>(i));
		REQUIRE(p);
		INFO(p->name);
		CHECK(names.insert(p->name).second);
		REQUIRE(p->product);
		CHECK((p->product->port > 0 && p->product->program && p->product->expiry));
		CHECK((p->fits && p->expect && p->write && p->login));
		CHECK((p->scan && p->status && p->error_text && p->accepted && p->find_value));
		command c;
		char error[256];
		REQUIRE(command_parse(&c, p->ping, error, sizeof(error)));
		CHECK(p->fits(&c, error, sizeof(error)));
		command_free(&c);
	}
	CHECK(product_protocol(&redis_product) == PROTOCOL_REDIS);
	CHECK(product_protocol(&memcached_product) == PROTOCOL_MEMCACHE_TEXT);
}

TEST_CASE("a Redis reply answers its command, or does not")
{
	const protocol_id wire = PROTOCOL_REDIS;
	CHECK(fate(wire, "GET k", "$1\r\nv\r\n") == kDone);
	CHECK(fate(wire, "GET k", "$-1\r\n") == kMiss);
	CHECK(fate(wire, "GET k", ":1\r\n") == kWrong);
	CHECK(fate(wire, "SET k v", "$-1\r\n") == kWrong);
	CHECK(fate(wire, "SET k v NX", "$-1\r\n") == kMiss);
	CHECK(fate(wire, "LPOP k 2", "*1\r\n$1\r\nv\r\n") == kDone);
	CHECK(fate(wire, "SET k v", "-OOM command not allowed\r\n") == Fate{FT_STATUS_ERROR_REPLY, "OOM"});
	CHECK(fate(wire, "ANYTHING", ":1\r\n") == kDone);
}

TEST_CASE("the text of an error is kept from its first word on, and its length is bounded")
{
	for (const size_t step : {size_t(1), size_t(7), size_t(1000)}) {
		INFO(step);
		CHECK(error_text(PROTOCOL_REDIS, "-MOVED 3999 127.0.0.1:7001\r\n", step) ==
		      "MOVED 3999 127.0.0.1:7001");
		CHECK(error_text(PROTOCOL_REDIS, "-ERR unknown command 'FROB'\r\n", step) ==
		      "ERR unknown command 'FROB'");
		CHECK(error_text(PROTOCOL_REDIS, "-OOM\r\n", step) == "OOM");
		CHECK(error_text(PROTOCOL_REDIS, "-AVERYLONGFIRSTWORD x\r\n", step) ==
		      "AVERYLONGFIRSTWORD x");
		CHECK(error_text(PROTOCOL_REDIS, "!13\r\nERR two words\r\n", step) == "ERR two words");
		CHECK(error_text(PROTOCOL_REDIS, "-ERR " + std::string(500, 'x') + "\r\n", step) ==
		      "ERR " + std::string(RESP_REST - 1, 'x') + "...");
		for (const protocol_id wire : {PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_META}) {
			CHECK(error_text(wire, "SERVER_ERROR object too large for cache\r\n", step) ==
			      "SERVER_ERROR object too large for cache");
			CHECK(error_text(wire, "ERROR\r\n", step) == "ERROR");
			CHECK(error_text(wire, "CLIENT_ERROR " + std::string(500, 'x') + "\r\n", step) ==
			      "CLIENT_ERROR " + std::string(MEMCACHED_EXPLANATION - 1, 'x') + "...");
		}
	}
	CHECK(error_text(PROTOCOL_MEMCACHE_BINARY, binary(1, 0x81), 24).empty());
}

TEST_CASE("a memcached text reply answers its command, or does not")
{
	const protocol_id wire = PROTOCOL_MEMCACHE_TEXT;
	CHECK(fate(wire, "get k", "VALUE k 0 1\r\nv\r\nEND\r\n") == kDone);
	CHECK(fate(wire, "get k", "END\r\n") == kMiss);
	CHECK(fate(wire, "get k", "STORED\r\n") == kWrong);
	CHECK(fate(wire, "get k", "NOT_FOUND\r\n") == kWrong);
	CHECK(fate(wire, "set k v", "STORED\r\n") == kDone);
	CHECK(fate(wire, "add k v", "NOT_STORED\r\n") == kMiss);
	CHECK(fate(wire, "set k v", "END\r\n") == kWrong);
	CHECK(fate(wire, "incr k 1", "5\r\n") == kDone);
	CHECK(fate(wire, "incr k 1", "NOT_FOUND\r\n") == kMiss);
	CHECK(fate(wire, "delete k", "DELETED\r\n") == kDone);
	CHECK(fate(wire, "delete k", "TOUCHED\r\n") == kWrong);
	CHECK(fate(wire, "touch k 10", "TOUCHED\r\n") == kDone);
	CHECK(fate(wire, "version", "VERSION 1.6\r\n") == kDone);
	CHECK(fate(wire, "version", "NOT_FOUND\r\n") == kWrong);
	CHECK(fate(wire, "set k v", "SERVER_ERROR out of memory storing object\r\n") ==
	      Fate{FT_STATUS_ERROR_REPLY, "OOM"});
}

TEST_CASE("a memcached binary reply answers the command it names")
{
	const protocol_id wire = PROTOCOL_MEMCACHE_BINARY;
	CHECK(fate(wire, "get k", binary(0x00)) == kDone);
	CHECK(fate(wire, "get k", binary(0x00, 1)) == kMiss);
	CHECK(fate(wire, "get k", binary(0x01)) == kWrong);
	std::string of_another = binary(0x00);
	of_another[12] = 1; // the opaque number
	CHECK(fate(wire, "get k", of_another) == kWrong);
	CHECK(fate(wire, "noop", binary(0x0a)) == kDone);
	CHECK(fate(wire, "set k v", binary(0x01, 0x82)) == Fate{FT_STATUS_ERROR_REPLY, "OOM"});
}

TEST_CASE("a memcached meta reply answers its command, or does not")
{
	const protocol_id wire = PROTOCOL_MEMCACHE_META;
	CHECK(fate(wire, "get k", "VA 1\r\nv\r\n") == kDone);
	CHECK(fate(wire, "get k", "EN\r\n") == kMiss);
	CHECK(fate(wire, "get k", "HD\r\n") == kWrong);
	CHECK(fate(wire, "mg k t", "HD t-1\r\n") == kDone);
	CHECK(fate(wire, "set k v", "HD\r\n") == kDone);
	CHECK(fate(wire, "set k v", "NS\r\n") == kMiss);
	CHECK(fate(wire, "incr k 1", "VA 1\r\n5\r\n") == kDone);
	CHECK(fate(wire, "incr k 1", "NF\r\n") == kMiss);
	CHECK(fate(wire, "touch k 9", "EN\r\n") == kMiss);
	CHECK(fate(wire, "me k", "ME k size=1\r\n") == kDone);
	CHECK(fate(wire, "mn", "MN\r\n") == kDone);
	CHECK(fate(wire, "mn", "HD\r\n") == kWrong);
	CHECK(fate(wire, "get k", "STORED\r\n") == kWrong);
}

TEST_CASE("logins have the servers' format, and their answers are understood")
{
	CHECK(login(PROTOCOL_REDIS, nullptr, "pw") == "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n");
	CHECK(login(PROTOCOL_REDIS, "me", "p w") == "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$3\r\np w\r\n");
	CHECK(login(PROTOCOL_MEMCACHE_TEXT, "me", "pw") == "set forktail 0 0 5\r\nme pw\r\n");
	CHECK(login(PROTOCOL_MEMCACHE_META, "me", "pw") == "set forktail 0 0 5\r\nme pw\r\n");
	CHECK(login(PROTOCOL_MEMCACHE_BINARY, "me", "pw") ==
	      "\x80\x21\0\5\0\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0\0\0\0\0\0PLAIN\0me\0pw"s);
	CHECK(accepts(PROTOCOL_REDIS, "+OK\r\n"));
	CHECK_FALSE(accepts(PROTOCOL_REDIS, "-WRONGPASS no\r\n"));
	CHECK(accepts(PROTOCOL_MEMCACHE_TEXT, "STORED\r\n"));
	CHECK_FALSE(accepts(PROTOCOL_MEMCACHE_TEXT, "CLIENT_ERROR authentication failure\r\n"));
	CHECK(accepts(PROTOCOL_MEMCACHE_BINARY, binary(0x21)));
	CHECK_FALSE(accepts(PROTOCOL_MEMCACHE_BINARY, binary(0x21, 0x20)));
	CHECK(accepts(PROTOCOL_MEMCACHE_META, "STORED\r\n"));
}

TEST_CASE("a command's only key and whether it only reads, as proxies see it")
{
	struct Case {
		const product *kind;
		const char *text;
		bool one_key;
	};
	for (const Case &x :
	     {Case{&redis_product, "GET k", true}, Case{&redis_product, "MGET k", true},
	      Case{&redis_product, "MGET k l", false}, Case{&redis_product, "PING", false},
	      Case{&redis_product, "EVAL k 0", false}, Case{&redis_product, "BITOP NOT k l", false},
	      Case{&redis_product, "MODULES.OWN k l", true}, Case{&memcached_product, "get k", true},
	      Case{&memcached_product, "get k l", false}, Case{&memcached_product, "version", false}}) {
		INFO(x.text);
		command c;
		char error[256];
		REQUIRE(command_parse(&c, x.text, error, sizeof(error)));
		CHECK(product_one_key(x.kind, &c) == x.one_key);
		if (x.kind == &memcached_product)
			CHECK((c.row->flags & COMMAND_READS) ==
			      (std::strncmp(x.text, "get", 3) == 0 ? COMMAND_READS : 0));
		command_free(&c);
	}
}

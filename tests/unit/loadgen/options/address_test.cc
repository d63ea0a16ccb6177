// SPDX-License-Identifier: MIT
// Addresses as users write them: their meaning, how they are printed, and texts that must be refused.
#include <string>

#include "loadgen/options.h"
#include "tests/support/catch.h"

namespace
{

struct Parsed {
	address a = {};
	bool good;
	std::string error;

	explicit Parsed(const std::string &text)
	{
		char sentence[512] = "";
		good = address_parse(&a, text.c_str(), sentence, sizeof(sentence));
		error = sentence;
	}
	~Parsed() { address_free(&a); }
	Parsed(const Parsed &) = delete;
	Parsed &operator=(const Parsed &) = delete;
};

std::string or_none(const char *text)
{
	return text ? text : "(none)";
}

} // namespace

TEST_CASE("an address has the server, the user and the database")
{
	const struct {
		const char *text, *host, *socket;
		uint32_t port;
		bool tls;
		address_scheme scheme;
		const char *user, *password;
		int database; // -1: not named
	} cases[] = {
	    {"db1", "db1", nullptr, 0, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"db1:7000", "db1", nullptr, 7000, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"10.0.0.1:1", "10.0.0.1", nullptr, 1, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"::1", "::1", nullptr, 0, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"[::1]", "::1", nullptr, 0, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"[fe80::1%25eth0]:65535", "fe80::1%25eth0", nullptr, 65535, false, ADDRESS_PLAIN, nullptr,
	     nullptr, -1},
	    {"/run/redis.sock", nullptr, "/run/redis.sock", 0, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"/run/a://b", nullptr, "/run/a://b", 0, false, ADDRESS_PLAIN, nullptr, nullptr, -1},
	    {"redis://db1", "db1", nullptr, 0, false, ADDRESS_REDIS, nullptr, nullptr, -1},
	    {"redis://db1/", "db1", nullptr, 0, false, ADDRESS_REDIS, nullptr, nullptr, -1},
	    {"REDIS://db1:7000/3", "db1", nullptr, 7000, false, ADDRESS_REDIS, nullptr, nullptr, 3},
	    {"redis://db1?db=4", "db1", nullptr, 0, false, ADDRESS_REDIS, nullptr, nullptr, 4},
	    {"rediss://alice@[::1]:7000/0", "::1", nullptr, 7000, true, ADDRESS_REDIS, "alice", nullptr, 0},
	    {"redis://alice:s%40cret%2f@db1", "db1", nullptr, 0, false, ADDRESS_REDIS, "alice", "s@cret/",
	     -1},
	    {"redis://:p@ss@db1", "db1", nullptr, 0, false, ADDRESS_REDIS, nullptr, "p@ss", -1},
	    {"redis://:@db1", "db1", nullptr, 0, false, ADDRESS_REDIS, nullptr, nullptr, -1},
	    {"redis://a%3Ab:c:d@db1", "db1", nullptr, 0, false, ADDRESS_REDIS, "a:b", "c:d", -1},
	    {"redis://[fe80::1%25eth0]", "fe80::1%eth0", nullptr, 0, false, ADDRESS_REDIS, nullptr, nullptr,
	     -1},
	    {"unix:///run/redis.sock", nullptr, "/run/redis.sock", 0, false, ADDRESS_PLAIN, nullptr, nullptr,
	     -1},
	    {"unix://run/redis%20one.sock?db=2", nullptr, "run/redis one.sock", 0, false, ADDRESS_PLAIN,
	     nullptr, nullptr, 2},
	    {"redis+unix://alice:x@/run/a@b", nullptr, "/run/a@b", 0, false, ADDRESS_REDIS, "alice", "x", -1},
	    {"memcached://alice:x@cache", "cache", nullptr, 0, false, ADDRESS_MEMCACHED, "alice", "x", -1},
	    {"memcached://cache:11212", "cache", nullptr, 11212, false, ADDRESS_MEMCACHED, nullptr, nullptr,
	     -1},
	};
	for (const auto &c : cases) {
		const Parsed p(c.text);
		INFO(c.text << ": " << p.error);
		REQUIRE(p.good);
		CHECK(or_none(p.a.server.host) == or_none(c.host));
		CHECK(or_none(p.a.server.socket) == or_none(c.socket));
		CHECK(p.a.server.port == c.port);
		CHECK(p.a.server.tls == c.tls);
		CHECK(p.a.scheme == c.scheme);
		CHECK(or_none(p.a.user) == or_none(c.user));
		CHECK(or_none(p.a.password) == or_none(c.password));
		CHECK((p.a.has_database ? static_cast<int>(p.a.database) : -1) == c.database);
	}
}

TEST_CASE("an invalid address is refused with one sentence")
{
	const std::string long_path = "/" + std::string(107, 'x');
	const struct {
		std::string text;
		const char *says;
	} cases[] = {
	    {"", "has no host"},
	    {":6379", "has no host"},
	    {"[]:6379", "has no host"},
	    {"db1:", "a port that is not a number"},
	    {"db1:0", "a port that is not a number"},
	    {"db1:65536", "a port that is not a number"},
	    {"db1:redis", "a port that is not a number"},
	    {"[::1", "a [ without ]"},
	    {"[::1]6379", "a [ without ]"},
	    {long_path, "a Unix socket path longer than 107 bytes"},
	    {"unix://" + long_path, "a Unix socket path longer than 107 bytes"},
	    {"http://db1", "does not begin with"},
	    {"://db1", "does not begin with"},
	    {"redis://", "has no host"},
	    {"redis:///1", "has no host"},
	    {"redis://alice@", "has no host"},
	    {"unix://", "has no socket path"},
	    {"unix://?db=1", "has no socket path"},
	    {"redis://db1/first", "a database that is not a number"},
	    {"redis://db1/1/2", "a database that is not a number"},
	    {"redis://db1/-1", "a database that is not a number"},
	    {"redis://db1/1000001", "a database that is not a number"},
	    {"redis://db1?db=", "a database that is not a number"},
	    {"redis://db1?timeout=5s", "other than ?db=NUMBER"},
	    {"redis://db1#1", "a # part"},
	    {"redis://db%1", "a % without two"},
	    {"redis://db%00", "a % without two"},
	    {"redis://al%ice@db1", "a % without two"},
	    {"redis://alice:%@db1", "a % without two"},
	    {"memcached://db1/1", "memcached has none"},
	};
	for (const auto &c : cases) {
		const Parsed p(c.text);
		INFO(c.text << ": " << p.error);
		CHECK_FALSE(p.good);
		CHECK(p.error.find(c.says) != std::string::npos);
	}
}

TEST_CASE("a message about a bad URI does not contain its password")
{
	for (const char *text : {"redis://alice:hunter2@db1/x", "redis://:hunter2@db1:x",
				 "redi://:hunter2@db1", "unix://a:hunter2@", "redis://:hunter2%@db1"}) {
		const Parsed p(text);
		INFO(p.error);
		CHECK_FALSE(p.good);
		CHECK(p.error.find("hunter2") == std::string::npos);
	}
}

TEST_CASE("an address is printed as users write it")
{
	char text[64];
	server_address a = {"::1", nullptr, 7000, false};
	address_text(&a, text, sizeof(text));
	CHECK(std::string(text) == "[::1]:7000");
	a.host = "db1";
	address_text(&a, text, sizeof(text));
	CHECK(std::string(text) == "db1:7000");
	a.socket = "/run/redis.sock";
	address_text(&a, text, sizeof(text));
	CHECK(std::string(text) == "unix:/run/redis.sock");
}

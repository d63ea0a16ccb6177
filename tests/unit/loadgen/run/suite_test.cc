// SPDX-License-Identifier: MIT
// From options to tests: every name of -t is built, in redis-benchmark's order, and mixes have the requested
// shares.
#include <map>
#include <string>
#include <vector>

#include "loadgen/run/suite.h"
#include "tests/support/catch.h"

namespace
{

const std::vector<std::string> kRedis = {
    "PING_INLINE", "PING_MBULK", "SET",	       "GET",	     "INCR", "LPUSH", "RPUSH",
    "LPOP",	   "RPOP",	 "SADD",       "HSET",	     "SPOP", "ZADD",  "ZPOPMIN",
    "LRANGE_100",  "LRANGE_300", "LRANGE_500", "LRANGE_600", "MSET", "XADD",  "SMEMBERS"};
const std::vector<std::string> kMemcached = {"SET",	"GET",	"ADD",	"REPLACE", "APPEND",
					     "PREPEND", "INCR", "DECR", "TOUCH",   "DELETE"};
const std::vector<std::string> kBase = {"INSERT", "SELECT", "UPDATE"};

options plain_options(protocol_id wire = PROTOCOL_REDIS)
{
	options o = {};
	char error[256];
	o.protocol = wire;
	o.key_prefix = "key:";
	o.fields = 10;
	o.keys = 1000;
	o.seed = 1;
	REQUIRE(value_sizes_parse("3", &o.sizes, error, sizeof(error)));
	return o;
}

struct Built {
	workload w = {};
	suite s = {};
	char error[256] = "";
	int result;
	explicit Built(const options &o) { result = suite_build(&o, &w, &s, error, sizeof(error)); }
	~Built() { workload_free(&w); }
	Built(const Built &) = delete;
	Built &operator=(const Built &) = delete;

	std::vector<std::string> names() const
	{
		std::vector<std::string> all;
		for (uint32_t i = 0; i < s.count; i++)
			all.push_back(s.tests[i].name);
		return all;
	}
	// Share of each operation in a test, by name.
	std::map<std::string, double> shares(uint32_t test = 0) const
	{
		const mix &m = s.tests[test].mix;
		std::map<std::string, double> all;
		double before = -1;
		for (uint32_t i = 0; i < m.count; i++) {
			all[w.operations[m.operations[i]].name] =
			    (static_cast<double>(m.below[i]) - before) * 0x1p-64;
			before = static_cast<double>(m.below[i]);
		}
		return all;
	}
	std::string request(uint32_t operation, uint32_t step, uint64_t key) const
	{
		bytes to = {};
		random_stream random = {1};
		const request_values v = {key, "CAPTURED", 8, 0, 0, 0};
		REQUIRE(protocol_of(w.protocol)
			    ->write(&w.operations[operation].steps[step].command, &w.fill, &v, &random, &to,
				    nullptr));
		std::string all(to.at, to.length);
		free(to.at);
		return all;
	}
};

} // namespace

TEST_CASE("every name of -t is a test, in any case, alone and in a list")
{
	for (protocol_id wire : {PROTOCOL_REDIS, PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY}) {
		std::vector<std::string> known = wire == PROTOCOL_REDIS ? kRedis : kMemcached;
		known.insert(known.end(), kBase.begin(), kBase.end());
		for (const std::string &name : known) {
			std::string lower = name;
			for (char &c : lower)
				c = static_cast<char>(tolower(c));
			char error[256];
			INFO(name);
			REQUIRE(catalogue_check(lower.c_str(), wire, error, sizeof(error)));
			options o = plain_options(wire);
			o.tests = lower.c_str();
			Built one(o);
			INFO(one.error);
			REQUIRE(one.result == 0);
			REQUIRE(one.names() == std::vector<std::string>{name});
			CHECK(one.shares() == std::map<std::string, double>{{name, 1.0}});
			CHECK(std::string(one.w.operations[0].name) == name);
			CHECK(one.w.growing == (name == "INSERT"));
			CHECK_FALSE(one.request(0, 0, 7).empty());
		}
	}
}

TEST_CASE("all is every test but the growing base's; lists follow the suite's order, groups stay whole")
{
	options o = plain_options();
	o.tests = "all";
	Built all(o);
	REQUIRE(all.result == 0);
	CHECK(all.names() == kRedis);
	o.tests = "update,lrange,ping,get,set,SET";
	Built some(o);
	REQUIRE(some.result == 0);
	CHECK(some.names() == std::vector<std::string>{"PING_INLINE", "PING_MBULK", "SET", "GET",
						       "LRANGE_100", "LRANGE_300", "LRANGE_500", "LRANGE_600",
						       "UPDATE"});
	CHECK(some.request(0, 0, 0) == "PING\r\n");
	CHECK(some.request(1, 0, 0) == "*1\r\n$4\r\nPING\r\n");
	CHECK(some.s.tests[4].preparation == PREPARE_LIST);
	CHECK(some.s.tests[2].preparation == PREPARE_NOTHING);
	options m = plain_options(PROTOCOL_MEMCACHE_BINARY);
	m.tests = "all";
	Built memcached(m);
	REQUIRE(memcached.result == 0);
	CHECK(memcached.names() == kMemcached);
}

TEST_CASE("unknown test names are reported")
{
	char error[256];
	for (const char *list : {"", "sets", "get,", ",get", "get,,set", "get;set", "se", "lrange_1"}) {
		INFO(list);
		CHECK_FALSE(catalogue_check(list, PROTOCOL_REDIS, error, sizeof(error)));
		CHECK(std::string(error).find("unknown test") == 0);
	}
	CHECK_FALSE(catalogue_check("get,lpush", PROTOCOL_MEMCACHE_TEXT, error, sizeof(error)));
	CHECK(std::string(error).find("\"lpush\" for memcached") != std::string::npos);
	CHECK_FALSE(catalogue_check("touch", PROTOCOL_REDIS, error, sizeof(error)));
}

TEST_CASE("a ratio of SET and GET, and a fill")
{
	options o = plain_options();
	o.mixed = true;
	o.sets = 1;
	o.gets = 10;
	Built both(o);
	REQUIRE(both.result == 0);
	CHECK(both.shares()["SET"] == Approx(1.0 / 11));
	CHECK(both.shares()["GET"] == Approx(10.0 / 11));
	CHECK(std::string(both.w.operations[0].name) == "GET");
	o.gets = 0;
	Built sets(o);
	CHECK(sets.shares() == std::map<std::string, double>{{"SET", 1.0}});
	o.fill = 77;
	Built fill(o);
	CHECK(fill.names() == std::vector<std::string>{"fill"});
	CHECK(fill.s.tests[0].mix.sequential);
	CHECK(fill.w.keys == 77);
}

TEST_CASE("custom commands by weight, those of one verb numbered")
{
	options o = plain_options();
	o.command_count = 5;
	o.commands[0] = {"SET __key__ __data__", 3, false, {}, 0};
	o.commands[1] = {"get __key__", 4, false, {}, 0};
	o.commands[2] = {"SET b __data__", 2, false, {}, 0};
	o.commands[3] = {"SETEX c 5 __data__", 1, false, {}, 0};
	o.commands[4] = {"set d __data__", 10, false, {}, 0};
	Built x(o);
	REQUIRE(x.result == 0);
	const auto shares = x.shares();
	CHECK(shares.size() == 5);
	CHECK(shares.at("SET") == Approx(0.15));
	CHECK(shares.at("GET") == Approx(0.2));
	CHECK(shares.at("SET#2") == Approx(0.1));
	CHECK(shares.at("SETEX") == Approx(0.05));
	CHECK(shares.at("SET#3") == Approx(0.5));
	o.protocol = PROTOCOL_MEMCACHE_TEXT;
	Built refused(o);
	CHECK(refused.result < 0);
	CHECK(std::string(refused.error).find("SETEX is not a memcached command") == 0);
}

TEST_CASE("expiry is added to commands that set, at each protocol's place")
{
	options o = plain_options();
	o.expiry_low = o.expiry_high = 90;
	o.tests = "set,get,mset,insert";
	Built redis(o);
	REQUIRE(redis.result == 0);
	CHECK(redis.request(0, 0, 1).find("$2\r\nEX\r\n$2\r\n90\r\n") != std::string::npos);
	CHECK(redis.request(1, 0, 1).find("EX") == std::string::npos);
	CHECK(redis.request(3, 0, 1).find("$2\r\nEX\r\n$2\r\n90\r\n") != std::string::npos);
	options m = plain_options(PROTOCOL_MEMCACHE_TEXT);
	m.expiry_low = m.expiry_high = 90;
	m.tests = "set,update";
	Built memcached(m);
	REQUIRE(memcached.result == 0);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(memcached.request(i, 0, 1).find("set key:000000000001 0 90 3\r\n") == 0);
}

TEST_CASE("names that are too short for the growing base are refused")
{
	options o = plain_options();
	o.tests = "insert";
	o.key_prefix = "";
	o.key_length = "3";
	o.requests = 500;
	o.keys = 500;
	CHECK(Built(o).result == 0);
	o.keys = 501;
	Built one_more(o);
	CHECK(one_more.result < 0);
	CHECK(std::string(one_more.error).find("3 bytes are too short for the prefix and the 4 digits") !=
	      std::string::npos);
	o.keys = 1;
	o.requests = 0; // for a time: it may run for long
	CHECK(Built(o).result < 0);
	o.key_length = "3-5";
	CHECK(Built(o).result == 0);
	o.key_length = nullptr;
	CHECK(Built(o).result == 0);
}

TEST_CASE("YCSB's workloads: operations, shares, commands")
{
	const std::map<char, std::map<std::string, double>> mixes = {
	    {'A', {{"READ", 0.5}, {"UPDATE", 0.5}}},
	    {'B', {{"READ", 0.95}, {"UPDATE", 0.05}}},
	    {'C', {{"READ", 1}}},
	    {'D', {{"READ", 0.95}, {"INSERT", 0.05}}},
	    {'E', {{"SCAN", 0.95}, {"INSERT", 0.05}}},
	    {'F', {{"READ", 0.5}, {"READ-MODIFY-WRITE", 0.5}}},
	    {'L', {{"INSERT", 1}}}};
	for (const auto &[letter, expected] : mixes) {
		options o = plain_options();
		o.ycsb = letter;
		o.requests = 10000;
		Built y(o);
		INFO(letter << y.error);
		REQUIRE(y.result == 0);
		const auto shares = y.shares();
		REQUIRE(shares.size() == expected.size());
		for (const auto &[name, share] : expected)
			CHECK(shares.at(name) == Approx(share));
		CHECK(y.w.names.ycsb);
		CHECK(y.w.growing == (expected.count("INSERT") == 1));
		if (y.w.growing)
			CHECK(key_base_count(y.w.base) == (letter == 'L' ? 0 : 1000));
	}
	options o = plain_options();
	o.ycsb = 'E';
	Built e(o);
	REQUIRE(e.result == 0);
	const std::string name = "user6284781860667377211";
	CHECK(e.request(1, 0, 0).find("$8\r\n_indices") != std::string::npos);
	CHECK(e.request(1, 1, 0).find("*2\r\n$7\r\nHGETALL\r\n$8\r\nCAPTURED\r\n") == 0);
	const std::string insert = e.request(0, 0, 0);
	CHECK(insert.find("*22\r\n$5\r\nHMSET\r\n$23\r\n" + name) == 0);
	for (int i = 0; i < 10; i++)
		CHECK(insert.find("$6\r\nfield" + std::to_string(i) + "\r\n") != std::string::npos);
	CHECK(e.request(0, 1, 0).find("*4\r\n$4\r\nZADD\r\n$8\r\n_indices\r\n") == 0);
	CHECK(e.w.operations[1].scan);
	CHECK(e.w.operations[0].step_count == 2);
}

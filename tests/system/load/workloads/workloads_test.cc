// SPDX-License-Identifier: MIT
// forktail-load's requests to a real redis-server: every test of -t, custom commands, the growing base, and
// the keys and values used. Counted by the server itself (INFO commandstats) and read with MONITOR.
#include <cmath>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/chi_squared.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/system/load/monitor.h"

using namespace forktail::test;

namespace
{

uint64_t number_of(const std::string &key)
{
	return std::stoull(key.substr(key.rfind(':') + 1));
}

std::string key_name(uint64_t n)
{
	const std::string digits = std::to_string(n);
	return "key:" + std::string(12 - digits.size(), '0') + digits;
}

std::vector<std::string> split(const std::string &text)
{
	std::vector<std::string> all;
	for (size_t at = 0; at < text.size();) {
		const size_t end = std::min(text.find('\n', at), text.size());
		all.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	return all;
}

// Keys of 20,000 GETs, in the order of their arrival.
std::vector<uint64_t> keys_asked(const Arguments &more, uint64_t keys = 1000)
{
	Redis redis;
	Monitor monitor(redis);
	Arguments arguments = {"-s", redis.socket(),	   "-t",     "get", "-n", "20000", "-P", "16",
			       "-r", std::to_string(keys), "--seed", "3"};
	arguments.insert(arguments.end(), more.begin(), more.end());
	Ran run(arguments);
	std::vector<uint64_t> all;
	for (const Seen &s : monitor.commands({"GET"}))
		all.push_back(number_of(s.words.at(1)));
	REQUIRE(all.size() == 20000);
	return all;
}

std::vector<uint64_t> counted(const std::vector<uint64_t> &keys, size_t space = 1000)
{
	std::vector<uint64_t> counts(space);
	for (uint64_t key : keys)
		counts.at(key)++;
	return counts;
}

// Probabilities in proportion to `weight` of 0 .. 999.
std::vector<double> in_proportion(const std::function<double(double)> &weight)
{
	std::vector<double> p(1000);
	double sum = 0;
	for (size_t i = 0; i < p.size(); i++)
		sum += p[i] = weight(static_cast<double>(i));
	for (double &x : p)
		x /= sum;
	return p;
}

// Lengths of the values of keys 0 .. n-1.
std::vector<uint64_t> lengths(Redis &redis, uint64_t n)
{
	std::vector<uint64_t> all;
	for (uint64_t i = 0; i < n; i++)
		all.push_back(std::stoull(redis.command({"STRLEN", key_name(i)})));
	return all;
}

} // namespace

TEST_CASE("every test of -t by its name, and all in one call with its table")
{
	const std::vector<std::pair<std::string, std::string>> tests = {
	    {"SET", "set"},	      {"GET", "get"},		{"INCR", "incr"},
	    {"LPUSH", "lpush"},	      {"RPUSH", "rpush"},	{"LPOP", "lpop"},
	    {"RPOP", "rpop"},	      {"SADD", "sadd"},		{"HSET", "hset"},
	    {"SPOP", "spop"},	      {"ZADD", "zadd"},		{"ZPOPMIN", "zpopmin"},
	    {"LRANGE_100", "lrange"}, {"LRANGE_300", "lrange"}, {"LRANGE_500", "lrange"},
	    {"LRANGE_600", "lrange"}, {"MSET", "mset"},		{"XADD", "xadd"},
	    {"SMEMBERS", "smembers"}};
	for (const auto &[name, command] : tests) {
		Redis redis;
		INFO(name);
		Ran run({"-s", redis.socket(), "-t", name, "-n", "500", "-c", "5", "-r", "20"});
		REQUIRE(run.runs.size() == 1);
		CHECK(run.runs[0]["name"] == name);
		CHECK(run.total()["requests"] == 500);
		CHECK(run.total()["errors"] == 0);
		CHECK(calls(redis, command) == 500);
	}
	Redis redis;
	Ran all({"-s", redis.socket(), "-t", "all", "-n", "400", "-c", "5", "-r", "20"});
	std::map<std::string, uint64_t> expected = {{"lpush", 4 * 600}, {"sadd", 20 * 20}}; // what tests need
	REQUIRE(all.runs.size() == 2 + tests.size());
	CHECK(all.runs[0]["name"] == "PING_INLINE");
	CHECK(all.runs[1]["name"] == "PING_MBULK");
	for (size_t i = 0; i < tests.size(); i++) {
		INFO(tests[i].first);
		CHECK(all.runs[2 + i]["name"] == tests[i].first);
		CHECK(all.total(2 + i)["requests"] == 400);
		CHECK(all.total(2 + i)["errors"] == 0);
		expected[tests[i].second] += 400;
		CHECK(contains(all.result.out, "\n" + tests[i].first + " "));
	}
	for (const auto &[command, n] : expected) {
		INFO(command);
		CHECK(calls(redis, command) == n);
	}
	CHECK(contains(all.result.out, "requests/s"));
	// The requested parts of a list or a set were returned: 600 elements of 20 bytes, 20 members of 9.
	CHECK(redis.command({"SCARD", "set:000000000019"}) == "20");
	CHECK(all.total(2 + 15)["bytes"].get<uint64_t>() > 400 * 600 * 5);
}

TEST_CASE("PING, inline and as an array")
{
	for (const char *name : {"ping_inline", "ping_mbulk"}) {
		// Connecting takes the same in both.
		Redis few, many;
		Ran a({"-s", few.socket(), "-t", name, "-n", "1000"}),
		    b({"-s", many.socket(), "-t", name, "-n", "3000"});
		CHECK(b.total()["errors"] == 0);
		CHECK(calls(many, "ping") - calls(few, "ping") == 2000);
	}
	Redis redis;
	Ran both({"-s", redis.socket(), "-t", "ping", "-n", "100"});
	REQUIRE(both.runs.size() == 2);
	CHECK(both.total(0)["bytes"] == 100 * (6 + 7));
	CHECK(both.total(1)["bytes"] == 100 * (14 + 7));
}

TEST_CASE("the growing base: inserts are new keys, selects and updates use existing keys")
{
	Redis redis;
	const Arguments names = {"-s", redis.socket(), "--key-prefix", "", "--key-length", "2-100"};
	const auto with = [&](Arguments more) {
		more.insert(more.end(), names.begin(), names.end());
		return more;
	};
	Ran fill(with({"--fill", "3000"}));
	CHECK(redis.command({"DBSIZE"}) == "3000");
	std::set<size_t> all;
	for (const std::string &key : split(redis.command({"KEYS", "*"})))
		all.insert(key.size());
	CHECK(*all.begin() >= 2);
	CHECK(*all.rbegin() == 100);
	CHECK(all.size() >= 97);
	Ran run(
	    with({"-t", "insert,select,update", "-r", "3000", "-n", "2000", "-P", "4", "--threads", "2"}));
	REQUIRE(run.runs.size() == 3);
	CHECK(redis.command({"DBSIZE"}) == "5000");
	for (size_t i = 0; i < 3; i++) {
		CHECK(run.total(i)["requests"] == 2000);
		CHECK(run.total(i)["errors"] == 0);
		CHECK(run.total(i)["misses"] == 0);
	}
	CHECK(calls(redis, "get") == 2000);
	CHECK(calls(redis, "set") == 3000 + 2 * 2000);
	CHECK(redis.info("keyspace_misses") == "0");
	// Mixed, as commands: reads may use this run's own keys.
	Ran mixed(with({"-r", "5000", "-n", "4000", "--command", "SET __new_key__ __data__", "--command",
			"GET __key__", "--command-ratio", "3"}));
	CHECK(mixed.total()["misses"] == 0);
	CHECK(redis.command({"DBSIZE"}) == std::to_string(5000 + mixed.requests("SET")));
	CHECK(mixed.requests("SET") + mixed.requests("GET") == 4000);
}

TEST_CASE("custom commands: every placeholder as it arrives, and shares by --command-ratio")
{
	Redis redis;
	Monitor monitor(redis);
	Ran run({"-s",	      redis.socket(),
		 "-n",	      "2000",
		 "-r",	      "50",
		 "-d",	      "4",
		 "--fields",  "25",
		 "--expiry",  "7-9",
		 "--command", "HSET h:__key__ __field__ __data__",
		 "--command", "ZADD z __score__ \"a b\\x00\\n\\\"\"",
		 "--command", "SET n:__int__:__rand_int__ __data__ EX __expiry__",
		 "--command", "MSET __other_key__ 1 __key__ 2"});
	CHECK(run.total()["errors"] == 0);
	std::map<std::string, int> seen;
	std::set<std::string> fields, scores, first, second, expiries, other;
	const std::regex key("key:0000000000[0-4][0-9]"), number("0000000000[0-4][0-9]"),
	    score("0\\.[0-9]{6}"), field("field(0[0-9]|1[0-9]|2[0-4])"),
	    named("n:(0000000000[0-4][0-9]):(0000000000[0-4][0-9])");
	for (const Seen &s : monitor.commands({"HSET", "ZADD", "SET", "MSET"})) {
		const auto &w = s.words;
		std::smatch match;
		seen[w[0]]++;
		if (w[0] == "HSET") {
			REQUIRE((w.size() == 4 && w[1].rfind("h:", 0) == 0 &&
				 std::regex_match(w[1].substr(2), key)));
			REQUIRE((std::regex_match(w[2], field) && w[3].size() == 4));
			fields.insert(w[2]);
		} else if (w[0] == "ZADD") {
			REQUIRE((w.size() == 4 && std::regex_match(w[2], score)));
			REQUIRE(w[3] == std::string("a b\0\n\"", 6));
			scores.insert(w[2]);
		} else if (w[0] == "SET") {
			REQUIRE((w.size() == 5 && std::regex_match(w[1], match, named)));
			first.insert(match[1]);
			second.insert(match[2]);
			expiries.insert(w[4]);
		} else {
			REQUIRE(
			    (w.size() == 5 && std::regex_match(w[1], key) && std::regex_match(w[3], key)));
			other.insert(w[1]);
		}
	}
	CHECK(fields.size() == 25);
	CHECK(scores.size() > 400);
	// 500 draws from 50 omit one every few hundred times, and never five.
	CHECK((first.size() > 45 && second.size() > 45 && other.size() > 45));
	CHECK(expiries == std::set<std::string>{"7", "8", "9"});
	CHECK(seen.size() == 4);
	for (const auto &[name, n] : seen)
		CHECK(n == Approx(500).epsilon(0.2));
	Ran shares({"-s", redis.socket(), "-n", "20000", "-P", "8", "--seed", "1", "--command", "INCR a",
		    "--command-ratio", "6", "--command", "INCR b", "--command-ratio", "3", "--command",
		    "INCR c"});
	std::vector<uint64_t> counts;
	uint64_t sum = 0;
	for (const char *name : {"a", "b", "c"})
		sum += counts.emplace_back(std::stoull(redis.command({"GET", name})));
	CHECK(sum == 20000);
	CHECK(chi_squared_test(counts, {0.6, 0.3, 0.1}).fits());
	CHECK(shares.requests("INCR#2") == counts[1]);
}

TEST_CASE("key patterns arrive at the server with the distributions of their names")
{
	const auto gaussian = [](double deviation) {
		return in_proportion([=](double k) {
			const double s = deviation * 1000 * std::sqrt(2.0);
			return std::erf((k + 1 - 500) / s) - std::erf((k - 500) / s);
		});
	};
	const std::vector<std::pair<std::string, std::vector<double>>> patterns = {
	    {"uniform", in_proportion([](double) { return 1; })},
	    {"zipf", in_proportion([](double k) { return std::pow(k + 1, -0.99); })},
	    {"zipf:1.5", in_proportion([](double k) { return std::pow(k + 1, -1.5); })},
	    {"latest:0.8", in_proportion([](double k) { return std::pow(1000 - k, -0.8); })},
	    {"gaussian", gaussian(1.0 / 6)},
	    {"gaussian:0.05", gaussian(0.05)},
	    {"hot:90:10", in_proportion([](double k) { return k < 100 ? 0.9 / 100 : 0.1 / 900; })},
	};
	for (const auto &[name, probabilities] : patterns) {
		INFO(name);
		CHECK(chi_squared_test(counted(keys_asked({"--key-pattern", name})), probabilities).fits());
	}
	// Scattered: equally popular, at another place, each key at most once.
	std::vector<uint64_t> counts = counted(keys_asked({"--key-pattern", "zipf-scattered"}));
	uint64_t at_start = 0, top = 0;
	for (size_t i = 0; i < 10; i++)
		at_start += counts[i];
	std::sort(counts.rbegin(), counts.rend());
	for (size_t i = 0; i < 10; i++)
		top += counts[i];
	double expected = 0;
	for (size_t i = 0; i < 10; i++)
		expected += patterns[1].second[i] * 20000;
	CHECK(static_cast<double>(top) == Approx(expected).epsilon(0.05));
	CHECK(at_start < top / 2);
}

TEST_CASE("sequential keys arrive in order, and split keys stay on their connection")
{
	const auto keys = keys_asked({"--key-pattern", "sequential", "-c", "1"}, 999);
	for (size_t i = 0; i < keys.size(); i++)
		REQUIRE(keys[i] == i % 999);
	for (const char *pattern : {"uniform", "sequential", "zipf"}) {
		Redis redis({.tcp = true, .config = {}});
		Monitor monitor(redis);
		Ran run({"-p", std::to_string(redis.port()), "-t", "set", "-n", "4000", "-c", "4", "-r",
			 "100", "--key-split", "--key-pattern", pattern, "--threads", "2"});
		std::map<std::string, std::set<uint64_t>> of;
		for (const Seen &s : monitor.commands({"SET"}))
			of[s.client].insert(number_of(s.words[1]));
		INFO(pattern);
		REQUIRE(of.size() == 4);
		std::set<uint64_t> all, parts;
		for (const auto &[client, mine] : of) {
			CHECK(*mine.rbegin() - *mine.begin() < 25);
			parts.insert(*mine.begin() / 25);
			all.insert(mine.begin(), mine.end());
		}
		CHECK(parts.size() == 4);
		if (std::string(pattern) != "zipf")
			CHECK(all.size() == 100);
	}
}

TEST_CASE("a seed repeats the order of keys, another one does not")
{
	for (const char *pattern : {"uniform", "zipf", "hot:80:20"}) {
		const Arguments one = {"-c", "1", "--key-pattern", pattern};
		const auto keys = keys_asked(one);
		CHECK(keys == keys_asked(one));
		CHECK(keys != keys_asked({"-c", "1", "--key-pattern", pattern, "--seed", "4"}));
	}
}

TEST_CASE("names: prefix, and lengths up to 64 KiB")
{
	Redis redis;
	Ran prefix({"-s", redis.socket(), "--fill", "10", "--key-prefix", "a {b}:"});
	CHECK(redis.command({"EXISTS", "a {b}:000000000009"}) == "1");
	redis.command({"FLUSHALL"});
	for (const char *length : {"5", "17", "1000", "65536"}) {
		redis.command({"FLUSHALL"});
		Ran fill({"-s", redis.socket(), "--fill", "10", "--key-length", length});
		const auto keys = split(redis.command({"KEYS", "*"}));
		REQUIRE(keys.size() == 10);
		for (const std::string &key : keys) {
			CHECK(key.size() == std::stoul(length));
			CHECK(key.rfind("key:", 0) == 0);
		}
		Ran read({"-s", redis.socket(), "-t", "get", "-r", "10", "-n", "300", "-P", "3",
			  "--key-length", length});
		CHECK(read.total()["misses"] == 0);
	}
}

TEST_CASE("sizes of values: fixed, range, list, lognormal")
{
	Redis redis;
	const auto filled = [&](const std::string &sizes) {
		Ran fill({"-s", redis.socket(), "--fill", "4000", "-d", sizes, "--seed", "5"});
		return lengths(redis, 4000);
	};
	for (uint64_t n : filled("123"))
		REQUIRE(n == 123);
	std::vector<uint64_t> counts(20);
	for (uint64_t n : filled("10-29"))
		counts.at(n - 10)++;
	CHECK(chi_squared_test(counts, std::vector<double>(20, 0.05)).fits());
	std::map<uint64_t, uint64_t> listed;
	for (uint64_t n : filled("100:80,1000:15,10000:5"))
		listed[n]++;
	REQUIRE(listed.size() == 3);
	CHECK(chi_squared_test({listed[100], listed[1000], listed[10000]}, {0.8, 0.15, 0.05}).fits());
	auto drawn = filled("lognormal:300,1,5000");
	std::sort(drawn.begin(), drawn.end());
	CHECK(static_cast<double>(drawn[2000]) == Approx(300).epsilon(0.08)); // five deviations of the median
	CHECK(static_cast<double>(drawn[3364]) == Approx(300 * std::exp(1.0)).epsilon(0.12));
	CHECK(drawn.back() <= 5000);
}

TEST_CASE("a compressible share of a value is one repeated letter")
{
	Redis redis;
	for (const auto &[percent, share] :
	     std::map<std::string, double>{{"0", 0}, {"50", 0.5}, {"100", 1}}) {
		Ran fill({"-s", redis.socket(), "--fill", "1", "-d", "64000", "--compressible", percent});
		const std::string value = redis.command({"GET", key_name(0)});
		REQUIRE(value.size() == 64000);
		CHECK(static_cast<double>(std::count(value.begin(), value.end(), 'x')) / 64000 ==
		      Approx(share + (1 - share) / 94).margin(0.01));
	}
}

TEST_CASE("expiry: every SET has one within the range")
{
	Redis redis;
	Monitor monitor(redis);
	Ran run({"-s", redis.socket(), "-t", "set", "-n", "2000", "-r", "500", "--expiry", "1000-1100"});
	CHECK(run.total()["errors"] == 0);
	std::set<int> used;
	for (const Seen &s : monitor.commands({"SET"})) {
		REQUIRE((s.words.size() == 5 && s.words[3] == "EX"));
		used.insert(std::stoi(s.words[4]));
	}
	CHECK(*used.begin() == 1000);
	CHECK(*used.rbegin() == 1100);
	CHECK(used.size() == 101);
	for (const std::string &key : split(redis.command({"KEYS", "*"}))) {
		const int ttl = std::stoi(redis.command({"TTL", key}));
		REQUIRE((ttl > 0 && ttl <= 1100));
	}
}

TEST_CASE("verified values: a good run, and a byte changed by another client")
{
	Redis redis;
	for (const char *sizes : {"1", "16", "50-200", "200000"}) {
		redis.command({"FLUSHALL"});
		Ran fill({"-s", redis.socket(), "--fill", "100", "-d", sizes, "--verify", "--seed", "1"});
		Ran good({"-s", redis.socket(), "-t", "get", "-r", "100", "-n", "2000", "-P", "4", "-d",
			  sizes, "--verify", "--seed", "2"});
		CHECK(good.total()["errors"] == 0);
		CHECK(good.total()["misses"] == 0);
		Ran both({"-s", redis.socket(), "--ratio", "1:3", "-r", "100", "-n", "2000", "-d", sizes,
			  "--verify"});
		CHECK(both.total()["errors"] == 0);
	}
	const std::string was = redis.command({"GETRANGE", key_name(42), "170017", "170017"});
	redis.command({"SETRANGE", key_name(42), "170017", was == "!" ? "?" : "!"});
	const Arguments read = {"-s", redis.socket(), "-t", "get",    "-r",	 "100",
				"-n", "2000",	      "-d", "200000", "--verify"};
	Ran wrong(read, 1);
	CHECK(contains(wrong.result.err, "key number 42 "));
	CHECK(contains(wrong.result.err, "offset 170017"));
	const uint64_t errors = wrong.total()["errors"];
	CHECK(errors > 0);
	CHECK(wrong.total()["errors_by_kind"]["wrong reply"] == errors);
	redis.command({"SETRANGE", key_name(42), "170017", was});
	redis.command({"APPEND", key_name(7), "x"});
	Ran longer(read, 1);
	CHECK(contains(longer.result.err, "key number 7 "));
	CHECK(contains(longer.result.err, "offset 200000"));
}

TEST_CASE("through a proxy: the same counts at the server behind it")
{
	Redis redis({.tcp = true, .config = {}});
	Nutcracker proxy({.servers = {"127.0.0.1:" + std::to_string(redis.port())}});
	Ran run({"-s", proxy.socket(), "-t", "set,get,incr,lpush,mset", "-n", "1000", "-r", "1", "-c", "5",
		 "-P", "4"});
	REQUIRE(run.runs.size() == 5);
	for (size_t i = 0; i < 5; i++) {
		CHECK(run.total(i)["requests"] == 1000);
		CHECK(run.total(i)["errors"] == 0);
	}
	CHECK(run.total(1)["misses"] == 0);
	CHECK(calls(redis, "get") == 1000);
	CHECK(calls(redis, "incr") == 1000);
	CHECK(calls(redis, "lpush") == 1000);
}

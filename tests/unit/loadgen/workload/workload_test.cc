// SPDX-License-Identifier: MIT
// The bytes of requests. A request buffer that is patched repeatedly always equals the separately formatted
// requests. Also the choice of operations and keys.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"

namespace
{

struct Workload {
	workload w = {};
	mix m = {};
	char error[256] = "";

	explicit Workload(const std::vector<const char *> &texts, const char *sizes = "3",
			  uint64_t keys = 1000, protocol_id wire = PROTOCOL_REDIS)
	{
		w.protocol = wire;
		w.keys = keys;
		w.fill.fields = 10;
		REQUIRE(key_names_prepare(&w.names, "key:", nullptr, keys, error, sizeof(error)) == 0);
		REQUIRE(value_sizes_parse(sizes, &w.values.sizes, error, sizeof(error)));
		for (const char *text : texts) {
			const int n = workload_add(&w, nullptr, &text, 1, error, sizeof(error));
			INFO(error);
			REQUIRE(n >= 0);
			mix_add(&m, static_cast<uint32_t>(n), 1);
		}
		mix_close(&m);
		REQUIRE(workload_prepare(&w, 0, 1) == 0);
	}
	~Workload() { workload_free(&w); }
	Workload(const Workload &) = delete;
	Workload &operator=(const Workload &) = delete;
};

// The same request formatted by the protocol. `random` advances as request_put's does.
std::string formatted(const workload &w, uint32_t operation, uint64_t key, random_stream &random)
{
	bytes to = {};
	const request_values v = {key, nullptr, 0, 0, 0, 0};
	REQUIRE(protocol_of(w.protocol)
		    ->write(&w.operations[operation].steps[0].command, &w.fill, &v, &random, &to, nullptr));
	std::string all(to.at, to.length);
	free(to.at);
	return all;
}

std::string digits(uint64_t key)
{
	std::string text = std::to_string(key);
	return std::string(12 - text.size(), '0') + text;
}

// Batches of random lengths, operations and keys through one buffer.
void check_batches(const Workload &x, int rounds)
{
	request_buffer b = {};
	const random_stream start = {99};
	REQUIRE(request_buffer_init(&b, &x.w, 12, start) == 0);
	random_stream random = {7}, same = start;
	for (int round = 0; round < rounds; round++) {
		const uint32_t count = 1 + static_cast<uint32_t>(random_below(&random, 12));
		std::string want;
		size_t size = 0;
		for (uint32_t i = 0; i < count; i++) {
			const auto op = static_cast<uint32_t>(random_below(&random, x.w.operation_count));
			const request_values v = {random_below(&random, x.w.keys), nullptr, 0, 0, 0, 0};
			want += formatted(x.w, op, v.key, same);
			size =
			    request_put(&b, &x.w, i, size, &x.w.operations[op].steps[0], op * STEPS_MAX, &v);
			REQUIRE(size == want.size());
		}
		REQUIRE(std::string(b.bytes.at, size) == want);
	}
	request_buffer_free(&b);
}

} // namespace

TEST_CASE("keys have twelve digits, whatever their size")
{
	Workload get({"GET __key__"}, "3", KEY_SPACE_MAX);
	request_buffer b = {};
	REQUIRE(request_buffer_init(&b, &get.w, 1, {1}) == 0);
	for (uint64_t key :
	     {0ull, 1ull, 9ull, 10ull, 99999999ull, 100000000ull, 123456789012ull, 999999999999ull}) {
		const request_values v = {key, nullptr, 0, 0, 0, 0};
		const size_t size = request_put(&b, &get.w, 0, 0, &get.w.operations[0].steps[0], 0, &v);
		CHECK(std::string(b.bytes.at, size) ==
		      "*2\r\n$3\r\nGET\r\n$16\r\nkey:" + digits(key) + "\r\n");
	}
	request_buffer_free(&b);
}

TEST_CASE("patched templates equal separately formatted requests")
{
	for (const char *sizes : {"1", "3", "50", "200"}) {
		Workload both({"GET __key__", "SET __key__ __data__"}, sizes, KEY_SPACE_MAX);
		for (uint32_t i = 0; i < 2; i++)
			CHECK(both.w.operations[i].steps[0].bytes != nullptr);
		check_batches(both, 5000);
	}
	Workload many({"MSET __other_key__ __data__ a__int__b__int__ __data__",
		       "ZADD z __score__ m:__rand_int__", "HSET __key__ __field__ __data__", "PING",
		       "INCR __key__:__key__"},
		      "20", 5000);
	for (uint32_t i = 0; i < many.w.operation_count; i++)
		CHECK(many.w.operations[i].steps[0].bytes != nullptr);
	check_batches(many, 5000);
}

TEST_CASE("commands of changing width between templates disturb neither")
{
	Workload mixed({"GET __key__", "SET __key__ __data__", "LPUSH list __data__ __index_score__", "PING"},
		       "1-300");
	CHECK(mixed.w.operations[0].steps[0].bytes != nullptr);
	CHECK(mixed.w.operations[1].steps[0].bytes == nullptr);
	check_batches(mixed, 5000);
}

TEST_CASE("memcached's templates too; numbers that are no digits on the wire are drawn again")
{
	const std::vector<const char *> commands = {"get __key__",	     "set __key__ __data__",
						    "incr __key__ __int__",  "set __key__ __data__ __int__",
						    "touch __key__ __int__", "delete k"};
	for (protocol_id wire : {PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY}) {
		Workload x(commands, "30", 100000, wire);
		CHECK(x.w.operations[1].steps[0].bytes != nullptr);
		check_batches(x, 5000);
		random_stream random = {3};
		CHECK(formatted(x.w, 2, 5, random) != formatted(x.w, 2, 5, random));
	}
}

TEST_CASE("values derived from their keys are formatted per request")
{
	Workload x({"SET __key__ __data__", "GET __key__"}, "40");
	workload verified = {};
	char error[256];
	const char *text = "SET __key__ __data__";
	verified.verify = true;
	verified.keys = 1000;
	REQUIRE(key_names_prepare(&verified.names, "key:", nullptr, 1000, error, sizeof(error)) == 0);
	REQUIRE(value_sizes_parse("40", &verified.values.sizes, error, sizeof(error)));
	REQUIRE(workload_add(&verified, nullptr, &text, 1, error, sizeof(error)) == 0);
	REQUIRE(workload_prepare(&verified, 0, 1) == 0);
	CHECK(verified.operations[0].steps[0].bytes == nullptr);
	random_stream random = {1};
	std::string value(40, 0);
	for (uint64_t key : {0u, 17u, 999u}) {
		const std::string request = formatted(verified, 0, key, random);
		value_copy(&verified.values, value_seed_of_key(key), 0, &value[0], 40);
		CHECK(request ==
		      "*3\r\n$3\r\nSET\r\n$16\r\nkey:" + digits(key) + "\r\n$40\r\n" + value + "\r\n");
	}
	CHECK(random.state == 1);
	workload_free(&verified);
}

TEST_CASE("an operation's name, its answers, and whether its reply can be checked")
{
	Workload x({"get __key__", "SET __key__ __data__", "GET __key__:x", "LPOP list", "LPOP list 2",
		    "EVAL x 0", "GET __new_key__", "mget __key__ __key__"});
	const operation *o = x.w.operations;
	CHECK(std::string(o[0].name) == "GET");
	CHECK(std::string(o[7].name) == "MGET");
	CHECK((o[0].steps[0].expected.kind == REPLY_VALUE && o[0].steps[0].expected.miss == REPLY_NIL));
	CHECK((o[1].steps[0].expected.kind == REPLY_LINE && o[1].steps[0].expected.miss == REPLY_ANY));
	CHECK((o[3].steps[0].expected.kind == REPLY_VALUE && o[3].steps[0].expected.miss == REPLY_NIL));
	CHECK(o[4].steps[0].expected.kind == REPLY_ANY);
	CHECK(o[5].steps[0].expected.kind == REPLY_ANY);
	CHECK(o[0].verifies);
	CHECK_FALSE(o[1].verifies);
	CHECK_FALSE(o[2].verifies);
	CHECK_FALSE(o[7].verifies);
	CHECK(o[6].inserts);
	CHECK_FALSE(o[0].inserts);
	CHECK(x.w.growing);
	REQUIRE(x.w.base != nullptr);
	CHECK(key_base_count(x.w.base) == 1000);
}

TEST_CASE("a run has the requested number of operations and no more")
{
	workload w = {};
	char error[256] = "";
	const char *text = "PING";
	for (int i = 0; i < OPERATIONS_MAX; i++)
		REQUIRE(workload_add(&w, nullptr, &text, 1, error, sizeof(error)) == i);
	CHECK(workload_add(&w, nullptr, &text, 1, error, sizeof(error)) < 0);
	CHECK(std::string(error).find("more than 64") != std::string::npos);
	workload_free(&w);
}

TEST_CASE("the choice of keys and operations follows weights, key space and seed")
{
	Workload both({"GET __key__", "SET __key__ __data__", "PING"});
	mix m = {};
	mix_add(&m, 0, 7);
	mix_add(&m, 1, 2);
	mix_add(&m, 2, 1);
	mix_close(&m);
	CHECK(m.below[2] == UINT64_MAX);
	chooser c, same;
	REQUIRE(chooser_init(&c, &both.w, &m, 1, 0, 0, 1, 1, 0, 1) == 0);
	same = c;
	std::map<uint32_t, int> seen;
	std::vector<int> keys(1000);
	for (int i = 0; i < 100000; i++) {
		const uint32_t op = choose_operation(&m, &c);
		const uint64_t key = choose_key(&both.w, &m, &c, op, 0);
		seen[op]++;
		REQUIRE(key < 1000);
		keys[key]++;
		REQUIRE(op == choose_operation(&m, &same));
		REQUIRE(key == choose_key(&both.w, &m, &same, op, 0));
	}
	CHECK(seen[0] == Approx(70000).epsilon(0.02));
	CHECK(seen[1] == Approx(20000).epsilon(0.03));
	CHECK(seen[2] == Approx(10000).epsilon(0.05));
	for (int n : keys)
		CHECK(n > 40);
	chooser_free(&c);
}

TEST_CASE("shares of a mix are exact to the last bit")
{
	mix m = {};
	for (uint32_t i = 0; i < 4; i++)
		mix_add(&m, i, 1);
	mix_close(&m);
	const uint64_t quarter = (UINT64_MAX >> 2) + 1;
	for (uint32_t i = 0; i < 3; i++)
		CHECK(m.below[i] == (i + 1) * quarter - 1);
	mix huge = {};
	mix_add(&huge, 0, 1000000);
	mix_add(&huge, 1, 1);
	mix_close(&huge);
	CHECK(static_cast<double>(huge.below[0]) == Approx(0x1p64 * 1000000 / 1000001));
}

TEST_CASE("a fill takes each key once over all threads, in order, ignoring the distribution")
{
	Workload x({"SET __key__ __data__"});
	x.m.sequential = true;
	for (key_pattern pattern : {KEYS_UNIFORM, KEYS_ZIPF}) {
		x.w.distribution.pattern = pattern;
		x.w.distribution.exponent = 1;
		chooser a, b;
		REQUIRE(chooser_init(&a, &x.w, &x.m, 1, 0, 0, 2, 1, 0, 2) == 0);
		REQUIRE(chooser_init(&b, &x.w, &x.m, 1, 1, 1, 2, 1, 1, 2) == 0);
		for (uint64_t i = 0; i < 100; i++) {
			CHECK(choose_key(&x.w, &x.m, &a, 0, 0) == 2 * i);
			CHECK(choose_key(&x.w, &x.m, &b, 0, 0) == 2 * i + 1);
		}
	}
}

TEST_CASE("split keys: every connection has its own part, together they have all keys")
{
	Workload x({"SET __key__ __data__"}, "3", 1003);
	x.w.split = true;
	for (key_pattern pattern : {KEYS_UNIFORM, KEYS_SEQUENTIAL}) {
		x.w.distribution.pattern = pattern;
		std::vector<int> owner(1003, -1);
		for (uint32_t thread = 0; thread < 2; thread++) {
			chooser c;
			REQUIRE(chooser_init(&c, &x.w, &x.m, 1, thread, thread, 2, 5, thread * 5, 10) == 0);
			for (uint32_t i = 0; i < 10000; i++) {
				const uint32_t connection = i % 5;
				const uint64_t key = choose_key(&x.w, &x.m, &c, 0, connection);
				const int who = static_cast<int>(thread * 5 + connection);
				REQUIRE(key < 1003);
				REQUIRE((owner[key] == -1 || owner[key] == who));
				owner[key] = who;
			}
			chooser_free(&c);
		}
		for (int who : owner)
			REQUIRE(who >= 0);
	}
	// More connections than keys: each has one.
	x.w.keys = 3;
	chooser c;
	REQUIRE(chooser_init(&c, &x.w, &x.m, 1, 0, 0, 1, 10, 0, 10) == 0);
	for (uint32_t i = 0; i < 10; i++)
		CHECK(choose_key(&x.w, &x.m, &c, 0, i) < 3);
	chooser_free(&c);
}

TEST_CASE("inserts take the base's next keys, reads use acknowledged ones")
{
	Workload x({"SET __new_key__ __data__", "GET __key__"}, "3", 10);
	chooser c;
	REQUIRE(chooser_init(&c, &x.w, &x.m, 1, 0, 0, 1, 1, 0, 1) == 0);
	CHECK(choose_key(&x.w, &x.m, &c, 0, 0) == 10);
	CHECK(choose_key(&x.w, &x.m, &c, 0, 0) == 11);
	uint64_t highest = 0;
	for (int i = 0; i < 1000; i++)
		highest = std::max(highest, choose_key(&x.w, &x.m, &c, 1, 0));
	CHECK(highest == 9);
	key_base_ack(x.w.base, 11);
	key_base_ack(x.w.base, 10);
	for (int i = 0; i < 1000; i++)
		highest = std::max(highest, choose_key(&x.w, &x.m, &c, 1, 0));
	CHECK(highest == 11);
}

TEST_CASE("the key of a request that was sent: by its number, and no more than is known of it")
{
	const struct {
		const char *command;
		size_t most;
		std::string key; // "": none
		bool whole;
		protocol_id protocol = PROTOCOL_REDIS;
	} rows[] = {
	    {"GET __key__", 32, "key:" + digits(7), true},
	    {"GET __key__", 16, "key:" + digits(7), true},
	    {"GET __key__", 15, ("key:" + digits(7)).substr(0, 15), false},
	    {"GET __key__", 4, "key:", false},
	    {"sort cart:__key_number__:items ALPHA", 32, "cart:" + digits(7) + ":items", true},
	    {"MGET first __key__", 32, "first", true},
	    {"MSET a:__int__ 1 b 2", 32, "a:", false}, // drawn at random when it was sent
	    {"GET __other_key__", 32, "", false},
	    {"GET __int1__", 32, "", false},
	    {"EVAL 'return 1' 1 __key__", 32, "", false}, // options precede it
	    {"PING", 32, "", false},
	    {"NO.SUCH __key__", 32, "", false},
	    {"get __key__", 6, "key:00", false, PROTOCOL_MEMCACHE_TEXT},
	    {"set __key__ __data__", 6, "key:00", false, PROTOCOL_MEMCACHE_BINARY},
	    {"get __key__", 16, "key:" + digits(7), true, PROTOCOL_MEMCACHE_META},
	    {"version", 6, "", false, PROTOCOL_MEMCACHE_TEXT},
	};
	for (const auto &row : rows) {
		INFO(row.command);
		const Workload x({row.command}, "3", 1000, row.protocol);
		bytes to = {};
		bool whole = false;
		const bool known = request_key(&x.w, 0, 7, row.most, &to, &whole);
		CHECK(known == !row.key.empty());
		CHECK(std::string(to.at ? to.at : "", to.length) == row.key);
		if (known)
			CHECK(whole == row.whole);
		free(to.at);
	}
}

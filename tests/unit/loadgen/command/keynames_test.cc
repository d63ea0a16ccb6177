// SPDX-License-Identifier: MIT
// Names of keys: the requested lengths, a unique name for each number, and YCSB's names.
#include <set>
#include <string>
#include <vector>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"

namespace
{

struct Names {
	key_names k = {};
	char error[256] = "";
	int result;
	Names(const std::string &prefix, const char *length, uint64_t keys)
	{
		result = key_names_prepare(&k, prefix.c_str(), length, keys, error, sizeof(error));
	}
	~Names() { key_names_free(&k); }
	Names(const Names &) = delete;
	Names &operator=(const Names &) = delete;

	// Returns the name, and checks that nothing outside the buffer is written.
	std::string of(uint64_t key) const
	{
		const uint32_t length = key_name_length(&k, key);
		std::string room(length + 2, '#');
		key_name_write(&k, key, &room[1], length);
		CHECK(room.front() == '#');
		CHECK(room.back() == '#');
		return room.substr(1, length);
	}
};

} // namespace

TEST_CASE("prefix and twelve digits by default")
{
	Names plain("key:", nullptr, 1000), bare("", nullptr, KEY_SPACE_MAX);
	REQUIRE(plain.result == 0);
	CHECK(key_names_fixed(&plain.k));
	CHECK(plain.of(0) == "key:000000000000");
	CHECK(plain.of(987654321012) == "key:987654321012");
	CHECK(bare.of(999999999999) == "999999999999");
	Names prefix("a long prefix: ", nullptr, 10);
	CHECK(prefix.of(3) == "a long prefix: 000000000003");
}

TEST_CASE("a fixed length includes prefix and number exactly")
{
	for (const auto &[length, name] : std::vector<std::pair<const char *, std::string>>{
		 {"7", "key:042"},
		 {"6", "key:42"},
		 {"15", "key:00000000042"},
		 {"16", "key:000000000042"},
		 {"17", "key:0000000000042"},
		 {"100", "key:" + std::string(94, '0') + "42"},
		 {"65536", "key:" + std::string(65530, '0') + "42"}}) {
		INFO(length);
		Names n("key:", length, 100);
		REQUIRE(n.result == 0);
		CHECK(key_names_fixed(&n.k));
		CHECK(n.of(42) == name);
	}
}

TEST_CASE("a range of lengths is fully used, and no two keys share a name")
{
	Names n("", "2-100", 200000);
	REQUIRE(n.result == 0);
	CHECK_FALSE(key_names_fixed(&n.k));
	std::set<std::string> all;
	std::set<size_t> lengths;
	for (uint64_t key = 0; key < 200000; key++) {
		const std::string name = n.of(key);
		REQUIRE((name.size() >= 2 && name.size() <= 100));
		REQUIRE(name.find_first_not_of("0123456789") == std::string::npos);
		REQUIRE(std::stod(name) == static_cast<double>(key));
		lengths.insert(name.size());
		all.insert(name);
	}
	CHECK(all.size() == 200000);
	// Of the hundred numbers with two digits, few or none get just two.
	for (size_t length = 3; length <= 100; length++)
		CHECK(lengths.count(length) == 1);
	CHECK(n.of(5) == n.of(5));
	// It grows to the number's length.
	Names tight("p", "1-3", 100000);
	REQUIRE(tight.result == 0);
	CHECK(tight.of(98765) == "p98765");
	CHECK(tight.of(7).size() <= 3);
}

TEST_CASE("impossible lengths are refused")
{
	CHECK(Names("key:", "5", 10).result == 0);
	const struct {
		std::string prefix;
		const char *length;
		uint64_t keys;
		const char *says;
	} cases[] = {
	    {"key:", "5", 11, "5 bytes are too short for the prefix and the 2 digits of 11 keys"},
	    {"key:", "0", 1, "--key-length: expected BYTES or LOW-HIGH"},
	    {"key:", "65537", 1, "--key-length: expected"},
	    {"key:", "10-", 1, "--key-length: expected"},
	    {"key:", "9-8", 1, "--key-length: expected"},
	    {"key:", "ten", 1, "--key-length: expected"},
	    {"key:", "2-", 1, "--key-length: expected"},
	    {std::string(65525, 'x'), nullptr, 1, "--key-prefix is longer"},
	};
	for (const auto &c : cases) {
		Names n(c.prefix, c.length, c.keys);
		INFO(c.says);
		CHECK(n.result < 0);
		CHECK(std::string(n.error).find(c.says) != std::string::npos);
	}
	Names longest(std::string(65524, 'x'), nullptr, 1);
	REQUIRE(longest.result == 0);
	CHECK(longest.of(9).size() == 65536);
}

TEST_CASE("YCSB's names")
{
	Names n("key:", nullptr, 1000);
	n.k.ycsb = true;
	CHECK_FALSE(key_names_fixed(&n.k));
	CHECK(n.of(0) == "user6284781860667377211");
	CHECK(n.of(1) == "user8517097267634966620");
	CHECK(n.of(2) == "user1820151046732198393");
	CHECK(n.of(999) == "user2071219101098386137");
}

TEST_CASE("digits of every width")
{
	for (uint64_t value : {0ull, 9ull, 10ull, 123456ull, 999999999999ull, 18446744073709551615ull}) {
		const std::string text = std::to_string(value);
		CHECK(digits_count(value) == text.size());
		for (uint32_t width = 1; width <= 25; width++) {
			std::string room(width, '#');
			digits_write(&room[0], width, value);
			// As many of the last digits as fit.
			const std::string padded = std::string(25, '0') + text;
			CHECK(room == padded.substr(padded.size() - width));
		}
	}
}

// SPDX-License-Identifier: MIT
// The bytes of requests, above all that a request buffer patched over and over always holds what was asked.
#include <string>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"

namespace
{

struct Buffer {
	workload w = {};
	request_buffer b = {};
	Buffer(bool get, bool set, uint32_t value_bytes, uint32_t pipeline)
	{
		w.used[OPERATION_GET] = get;
		w.used[OPERATION_SET] = set;
		w.mixed = get && set;
		w.keys = 1000;
		REQUIRE(workload_prepare(&w, value_bytes, 1) == 0);
		REQUIRE(request_buffer_init(&b, &w, pipeline) == 0);
	}
	~Buffer()
	{
		request_buffer_free(&b);
		workload_free(&w);
	}
};

std::string digits(uint64_t key)
{
	std::string text = std::to_string(key);
	return std::string(12 - text.size(), '0') + text;
}

std::string expected(operation op, uint64_t key, const std::string &value)
{
	if (op == OPERATION_GET)
		return "*2\r\n$3\r\nGET\r\n$16\r\nkey:" + digits(key) + "\r\n";
	return "*3\r\n$3\r\nSET\r\n$16\r\nkey:" + digits(key) + "\r\n$" + std::to_string(value.size()) +
	       "\r\n" + value + "\r\n";
}

} // namespace

TEST_CASE("keys have twelve digits, whatever their size")
{
	Buffer get(true, false, 3, 1);
	for (uint64_t key :
	     {0ull, 1ull, 9ull, 10ull, 99999999ull, 100000000ull, 123456789012ull, 999999999999ull}) {
		const uint32_t size = request_put(&get.b, &get.w, 0, 0, OPERATION_GET, key);
		CHECK(std::string(get.b.bytes, size) == expected(OPERATION_GET, key, ""));
	}
}

TEST_CASE("batches of any mix and length hold exactly what was asked")
{
	for (uint32_t value_bytes : {1u, 3u, 50u, 200u}) {
		Buffer both(true, true, value_bytes, 12);
		uint32_t size = request_put(&both.b, &both.w, 0, 0, OPERATION_SET, 0);
		const std::string value(both.b.bytes + size - 2 - value_bytes, value_bytes);
		random_stream random = {value_bytes};
		for (int round = 0; round < 20000; round++) {
			const uint32_t count = 1 + static_cast<uint32_t>(random_below(&random, 12));
			std::string want;
			size = 0;
			for (uint32_t i = 0; i < count; i++) {
				const auto op = static_cast<operation>(random_below(&random, 2));
				const uint64_t key = random_below(&random, KEY_SPACE_MAX);
				want += expected(op, key, value);
				size = request_put(&both.b, &both.w, i, size, op, key);
			}
			REQUIRE(std::string(both.b.bytes, size) == want);
		}
	}
}

TEST_CASE("the choice of keys and operations follows ratio, key space and seed")
{
	Buffer both(true, true, 3, 1);
	both.w.set_share = UINT64_MAX / 5;
	chooser c = {random_begin(1, 0, 1), random_begin(1, 0, 2), 0}, same = c;
	int sets = 0;
	for (int i = 0; i < 100000; i++) {
		const operation op = choose_operation(&both.w, &c);
		const uint64_t key = choose_key(&both.w, &c);
		sets += op == OPERATION_SET;
		REQUIRE(key < 1000);
		REQUIRE(op == choose_operation(&both.w, &same));
		REQUIRE(key == choose_key(&both.w, &same));
	}
	CHECK(sets == Approx(20000).epsilon(0.03));
	both.w.sequential = true;
	c.next_key = 41;
	CHECK(choose_key(&both.w, &c) == 41);
	CHECK(choose_key(&both.w, &c) == 42);
}

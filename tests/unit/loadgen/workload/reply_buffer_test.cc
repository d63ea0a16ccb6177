// SPDX-License-Identifier: MIT
// Replies that are checked: every byte of a value in each protocol, however the reply was cut, and a scan's
// keys.
#include <memory>
#include <string>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"

using namespace std::string_literals;

namespace
{

using ReplyBufferPtr = std::unique_ptr<reply_buffer, decltype(&reply_buffer_free)>;

ReplyBufferPtr filled(const std::string &reply, size_t cut = 0)
{
	const auto w = std::make_unique<workload>();
	ReplyBufferPtr i(reply_buffer_new(w.get()), reply_buffer_free);
	reply_buffer_add(i.get(), reply.data(), reply.data() + cut);
	reply_buffer_add(i.get(), reply.data() + cut, reply.data() + reply.size());
	return i;
}

struct Verified {
	workload w = {};
	explicit Verified(protocol_id wire, const char *sizes = "50-90")
	{
		char error[256];
		w.protocol = wire;
		w.verify = true;
		REQUIRE(value_sizes_parse(sizes, &w.values.sizes, error, sizeof(error)));
		REQUIRE(values_prepare(&w.values, 0, 1) == 0);
	}
	~Verified() { workload_free(&w); }
	Verified(const Verified &) = delete;
	Verified &operator=(const Verified &) = delete;

	std::string value(uint64_t key) const
	{
		const uint64_t seed = value_seed_of_key(key);
		std::string all(value_size(&w.values, seed), 0);
		value_copy(&w.values, seed, 0, &all[0], static_cast<uint32_t>(all.size()));
		return all;
	}
	// A GET's reply with this value.
	std::string reply(const std::string &value) const
	{
		const std::string length = std::to_string(value.size());
		if (w.protocol == PROTOCOL_REDIS)
			return "$" + length + "\r\n" + value + "\r\n";
		if (w.protocol == PROTOCOL_MEMCACHE_TEXT)
			return "VALUE key:000000000009 0 " + length + "\r\n" + value + "\r\nEND\r\n";
		const size_t body = value.size() + 4;
		std::string all = "\x81\0\0\0\4\0\0\0"s;
		for (int shift = 24; shift >= 0; shift -= 8)
			all += static_cast<char>(body >> shift & 0xff);
		return all + std::string(12, 0) + std::string(4, 0) + value;
	}
};

} // namespace

TEST_CASE("the right value passes, wherever the reply was cut; a wrong byte is found")
{
	for (protocol_id wire : {PROTOCOL_REDIS, PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY}) {
		Verified x(wire);
		for (uint64_t key : {0u, 9u, 12345u}) {
			const std::string value = x.value(key), reply = x.reply(value);
			for (size_t cut = 0; cut <= reply.size(); cut++)
				REQUIRE(reply_buffer_check_value(filled(reply, cut).get(), &x.w, key) == -1);
			for (size_t at = 0; at < value.size(); at++) {
				std::string wrong = value;
				wrong[at] ^= 1;
				REQUIRE(reply_buffer_check_value(filled(x.reply(wrong)).get(), &x.w, key) ==
					static_cast<int64_t>(at));
			}
		}
	}
}

TEST_CASE("a value that is too short or too long is wrong where the shorter one ends")
{
	for (protocol_id wire : {PROTOCOL_REDIS, PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY}) {
		Verified x(wire, "60");
		const std::string value = x.value(3);
		CHECK(reply_buffer_check_value(filled(x.reply(value.substr(0, 59))).get(), &x.w, 3) == 59);
		CHECK(reply_buffer_check_value(filled(x.reply(value + "!")).get(), &x.w, 3) == 60);
		CHECK(reply_buffer_check_value(filled(x.reply("")).get(), &x.w, 3) == 0);
		CHECK(reply_buffer_check_value(filled(x.reply(x.value(4))).get(), &x.w, 3) >= 0);
	}
}

TEST_CASE("one reply after the other, and none of unlimited size")
{
	Verified x(PROTOCOL_REDIS, "2000000");
	ReplyBufferPtr i = filled(x.reply(x.value(1)));
	CHECK(reply_buffer_check_value(i.get(), &x.w, 1) == -1);
	reply_buffer_reset(i.get());
	const std::string other = x.reply(x.value(2));
	reply_buffer_add(i.get(), other.data(), other.data() + other.size());
	CHECK(reply_buffer_check_value(i.get(), &x.w, 2) == -1);
	const std::string endless(1 << 20, 'x');
	for (size_t n = 0; n <= REPLY_BUFFER_BYTES_MAX; n += endless.size())
		reply_buffer_add(i.get(), endless.data(), endless.data() + endless.size());
	CHECK(i->reply.length <= REPLY_BUFFER_BYTES_MAX);
	CHECK(reply_buffer_check_value(i.get(), &x.w, 2) == -2);
	reply_buffer_take_keys(i.get());
	CHECK(i->captured == 0);
}

TEST_CASE("a scan's keys are read, up to the maximum of a scan")
{
	const auto captured = [](const std::string &reply) {
		std::vector<std::string> all;
		ReplyBufferPtr i = filled(reply, reply.size() / 2);
		reply_buffer_take_keys(i.get());
		for (uint32_t k = 0; k < i->captured; k++)
			all.emplace_back(i->reply.at + i->captured_at[k], i->captured_length[k]);
		return all;
	};
	CHECK(captured("*3\r\n$5\r\nuser1\r\n$0\r\n\r\n$6\r\na\r\nb\0c\r\n"s) ==
	      std::vector<std::string>{"user1", "", "a\r\nb\0c"s});
	CHECK(captured("*0\r\n").empty());
	CHECK(captured("$3\r\nabc\r\n").empty());
	CHECK(captured("-ERR no\r\n").empty());
	CHECK(captured("*2\r\n$1\r\na\r\n:5\r\n").size() == 1);
	std::string many = "*150\r\n";
	for (int k = 0; k < 150; k++)
		many += "$4\r\n" + std::to_string(1000 + k) + "\r\n";
	const auto taken = captured(many);
	REQUIRE(taken.size() == YCSB_SCAN_MAX);
	CHECK(taken.back() == "1099");
}

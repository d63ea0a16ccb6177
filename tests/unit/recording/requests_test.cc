// SPDX-License-Identifier: MIT
// The request log's columns: any values survive, and no payload makes the decoder read other memory.
#include "tests/unit/recording/request_log.h"

using namespace forktail::test;

namespace
{

void round_trip(const std::vector<ft_request> &log, uint32_t flush_every = FT_REQUEST_BLOCK)
{
	TempDir dir;
	Guarded memory;
	std::vector<ft_request> got;
	for (const Block &b : write_requests(dir.file("r"), log, flush_every)) {
		REQUIRE(b.kind == FT_BLOCK_REQUEST);
		CHECK(b.count <= flush_every);
		CHECK(decode(memory, b.payload, b.count, &got) == static_cast<int>(b.count));
	}
	CHECK(got.size() == log.size());
	CHECK(std::equal(got.begin(), got.end(), log.begin(), log.end(), same_request));
}

} // namespace

TEST_CASE("typical requests of a run survive, in full and in short blocks")
{
	round_trip(typical(3 * FT_REQUEST_BLOCK + 17));
	round_trip(typical(1'000), 1);
	round_trip(typical(1'000), 7);
}

TEST_CASE("one request, and none")
{
	round_trip({{1, 2, 3, 4, 5, 6, 7, 2}});
	round_trip({{0, 0, 0, 0, 0, 0, 0, 0}});
	round_trip({});
}

TEST_CASE("every edge value survives in every field")
{
	std::vector<ft_request> log;
	for (const uint64_t v : edges()) {
		log.push_back({v, 0, 0, 0, 0, 0, 0, 0});
		log.push_back({0, v, 0, 0, 0, 0, 0, 0});
		log.push_back({0, 0, v, 0, 0, 0, 0, 0});
		log.push_back({v, v, v, static_cast<uint32_t>(v), static_cast<uint8_t>(v),
			       static_cast<uint8_t>(v), static_cast<uint8_t>(v), 0});
		log.push_back({1000, 1000, 1000 + v, 0, 0, 0, 0, 0});	  // a duration of v
		log.push_back({1000, 1000 + v, 1000 + v, 0, 0, 0, 0, 0}); // late by v
	}
	round_trip(log);
	round_trip(log, 3);
	std::mt19937_64 random(9);
	const std::vector<uint64_t> values = edges();
	log.clear();
	for (uint32_t i = 0; i < 2 * FT_REQUEST_BLOCK; i++)
		log.push_back(request_of(random, values));
	round_trip(log);
}

TEST_CASE("equal requests appended by one call are as those appended one by one")
{
	std::mt19937_64 random(10);
	const std::vector<uint64_t> values = edges();
	for (const bool edge : {true, false}) {
		std::vector<ft_request> log;
		while (log.size() < 2 * FT_REQUEST_BLOCK) {
			const ft_request q =
			    edge ? request_of(random, values) : typical(1 + random() % 9).back();
			log.insert(log.end(), 1 + random() % 20, q);
		}
		TempDir dir;
		for (const uint32_t flush_every : {static_cast<uint32_t>(FT_REQUEST_BLOCK), 17u}) {
			const auto one_by_one = write_requests(dir.file("a"), log, flush_every);
			CHECK(one_by_one == write_requests(dir.file("b"), log, flush_every, true));
		}
		round_trip(log);
	}
}

TEST_CASE("a full block of the longest values fits its columns")
{
	std::vector<ft_request> log;
	for (uint32_t i = 0; i < FT_REQUEST_BLOCK; i++) // all stored times are above 2^56
		log.push_back({0x7000000000000000, 0x3000000000000000,
			       i % 2 ? 0xe000000000000000 : 0x4000000000000000, UINT32_MAX, 255, 255, 255,
			       7});
	round_trip(log);
}

TEST_CASE("ends before starts, ends that go back, sent before due")
{
	round_trip({{100, 90, 80, 1, 0, 0, 0, 0},
		    {100, 90, 70, 1, 0, 0, 0, 0},
		    {0, 5, 3, 2, 1, 1, 0, 0},
		    {9, 0, 1'000'000, 2, 1, 1, 0, 0}});
}

TEST_CASE("a column of equal values takes the room of one value")
{
	TempDir dir;
	std::vector<ft_request> log;
	for (uint32_t i = 0; i < 1'000; i++) {
		const uint64_t start = 1'000'000 + i * 100;
		log.push_back({start, start, start + 50, 3, 1, 0, 0, 0});
	}
	round_trip(log);
	const auto blocks = write_requests(dir.file("r"), log);
	REQUIRE(blocks.size() == 1);
	// 32 bytes of lengths. Ends differ in the first one only: it takes 3 bytes and the others 2.
	CHECK(blocks[0].payload.size() == 32 + 3 + 999 * 2 + 5);
	log[999].op = 2;
	CHECK(write_requests(dir.file("r"), log)[0].payload.size() == 32 + 3 + 999 * 2 + 4 + 1'000);
	round_trip(log);
}

TEST_CASE("servers behind a proxy are a separate column, which is absent if none is known")
{
	TempDir dir;
	Guarded memory;
	std::vector<ft_request> log = typical(1'000);
	const std::string without = write_requests(dir.file("r"), log)[0].payload;
	CHECK_FALSE(ft_requests_have_behind(without.data(), without.size()));
	for (size_t i = 0; i < log.size(); i++)
		log[i].behind = static_cast<uint8_t>(i % 4);
	round_trip(log);
	round_trip(log, 7);
	const std::string with = write_requests(dir.file("r"), log)[0].payload;
	CHECK(ft_requests_have_behind(with.data(), with.size()));
	CHECK(with.size() == without.size() + 4 + 1'000);
	CHECK(with.compare(0, without.size(), without) == 0);
	// A newer writer's columns after those that are known here are skipped.
	std::string newer = with;
	for (int i = 0; i < 5; i++)
		newer += std::string("\x01\0\0\0\x01", 5);
	newer += std::string("\x03\0\0\0abc", 7);
	std::vector<ft_request> got;
	REQUIRE(decode(memory, newer, 1'000, &got) == 1'000);
	CHECK(same_request(got[999], log[999]));
	CHECK(decode(memory, with.substr(0, with.size() - 1), 1'000) == -EBADMSG);
	CHECK(decode(memory, with + std::string("\x03\0\0\0ab", 6), 1'000) == -EBADMSG);
	CHECK(decode(memory, with + std::string("\0\0\0\0", 4), 1'000) == -EBADMSG);
	// One server for all takes one byte.
	for (ft_request &q : log)
		q.behind = 2;
	round_trip(log);
	CHECK(write_requests(dir.file("r"), log)[0].payload.size() == without.size() + 4 + 1);
	// The block's version shows that an old reader would miss something.
	const std::string file = read_file(dir.file("r"));
	CHECK(static_cast<int>(file[walk(file)[1].begin + offsetof(ft_block_header, version)]) == 2);
	CHECK(static_cast<int>(file[offsetof(ft_block_header, version)]) == 1);
}

TEST_CASE("arrival times of answers are a separate column, which is absent if none is known")
{
	TempDir dir;
	Guarded memory;
	std::vector<ft_request> log = typical(1'000);
	const std::string without = write_requests(dir.file("r"), log)[0].payload;
	CHECK_FALSE(ft_requests_have_arrivals(without.data(), without.size()));
	std::vector<ft_request> got;
	REQUIRE(decode(memory, without, 1'000, &got) == 1'000);
	CHECK(got[0].arrival_ns == 0);
	// Unknown for the first ones and for every third. One waited unread for long, one not at all.
	for (size_t i = 500; i < log.size(); i++)
		log[i].arrival_ns = i % 3 ? log[i].end_ns - i : 0;
	log[998].arrival_ns = log[998].end_ns;
	log[997].arrival_ns = 1;
	round_trip(log);
	round_trip(log, 7);
	const std::string with = write_requests(dir.file("r"), log)[0].payload;
	CHECK(ft_requests_have_arrivals(with.data(), with.size()));
	CHECK_FALSE(ft_requests_have_behind(with.data(), with.size()));
	CHECK(with.compare(0, without.size(), without) == 0);
	CHECK(decode(memory, with.substr(0, with.size() - 1), 1'000) == -EBADMSG);
	// Together with the column of servers behind, too.
	for (size_t i = 0; i < log.size(); i++)
		log[i].behind = static_cast<uint8_t>(i % 4);
	round_trip(log);
	const std::string both = write_requests(dir.file("r"), log)[0].payload;
	CHECK(ft_requests_have_behind(both.data(), both.size()));
	CHECK(ft_requests_have_arrivals(both.data(), both.size()));
	// One short time for all takes one byte, and the next block must store its own.
	for (ft_request &q : log)
		q.arrival_ns = q.end_ns - 100;
	for (ft_request &q : log)
		q.behind = 0;
	round_trip(log);
	CHECK(write_requests(dir.file("r"), log)[0].payload.size() == without.size() + 2 * 4 + 1 + 1);
	std::vector<ft_request> mixed = typical(60);
	for (size_t i = 20; i < 40; i++)
		mixed[i].arrival_ns = mixed[i].end_ns;
	round_trip(mixed, 20);
}

TEST_CASE("unwanted columns are skipped")
{
	TempDir dir;
	const auto log = typical(1'000);
	const auto blocks = write_requests(dir.file("r"), log);
	REQUIRE(blocks.size() == 1);
	std::vector<uint64_t> one(1'000);
	for (int field = 0; field < 3; field++) {
		ft_request_columns out = {};
		(field == 0 ? out.intended_ns : field == 1 ? out.start_ns : out.end_ns) = one.data();
		REQUIRE(ft_requests_decode(blocks[0].payload.data(), blocks[0].payload.size(), 1'000, &out) ==
			1'000);
		bool right = true;
		for (size_t i = 0; i < 1'000; i++)
			right = right && one[i] == (field == 0	 ? log[i].intended_ns
						    : field == 1 ? log[i].start_ns
								 : log[i].end_ns);
		CHECK(right);
	}
	const ft_request_columns none = {};
	CHECK(ft_requests_decode(blocks[0].payload.data(), blocks[0].payload.size(), 1'000, &none) == 1'000);
}

TEST_CASE("invalid payloads are refused")
{
	TempDir dir;
	Guarded memory;
	const auto log = typical(40);
	const std::string payload = write_requests(dir.file("r"), log)[0].payload;
	std::vector<ft_request> got;
	REQUIRE(decode(memory, payload, 40, &got) == 40);
	CHECK(same_request(got[39], log[39]));
	CHECK(decode(memory, payload, 0) == -EBADMSG);
	CHECK(decode(memory, payload, 39) == -EBADMSG);
	CHECK(decode(memory, payload, 41) == -EBADMSG);
	CHECK(decode(memory, payload, FT_REQUEST_BLOCK) == -EBADMSG);
	CHECK(decode(memory, payload, FT_REQUEST_BLOCK + 1) == -EBADMSG);
	CHECK(decode(memory, payload + "x", 40) == -EBADMSG);
	for (size_t cut = 0; cut < payload.size(); cut++) {
		CAPTURE(cut);
		CHECK(decode(memory, payload.substr(0, cut), 40) == -EBADMSG);
	}
	// A connection number of more than 32 bits.
	const std::string head = payload.substr(0, 8);
	const auto lengths = [](std::initializer_list<uint32_t> all) {
		return std::string(reinterpret_cast<const char *>(all.begin()), all.size() * 4);
	};
	const std::string big = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	CHECK(decode(memory, head + lengths({1, 1, 1, 9, 1, 1}) + "\1\1\1" + big + "ab", 1) == -EBADMSG);
	CHECK(decode(memory, head + lengths({9, 9, 9, 1, 1, 1}) + big + big + big + "\1ab", 1) == 1);
	CHECK(decode(memory, head + lengths({9, 9, 9, 1, 1, 1}) + big + big + big + "\1ab", 1000) == 1000);
	// One value too many in a column, and too many requests in a block.
	const std::string ones(6, 1);
	CHECK(decode(memory, head + lengths({1, 1, 1, 1, 1, 1}) + ones, 1) == 1);
	CHECK(decode(memory, head + lengths({1, 1, 1, 2, 1, 1}) + ones + "\1", 1) == -EBADMSG);
	CHECK(decode(memory, head + lengths({1, 1, 1, 1, 1, 1}) + ones, FT_REQUEST_BLOCK) ==
	      FT_REQUEST_BLOCK);
	CHECK(decode(memory, head + lengths({1, 1, 1, 1, 1, 1}) + ones, FT_REQUEST_BLOCK + 1) == -EBADMSG);
	// Lengths whose sum overflows 32 bits to the right one.
	CHECK(decode(memory, head + lengths({0xffffffff, 2, 1, 1, 1, 1}) + "abcde", 1) == -EBADMSG);
}

TEST_CASE("corrupt payloads never make the decoder leave its payload")
{
	TempDir dir;
	Guarded memory;
	std::mt19937_64 random(10);
	std::vector<ft_request> log = typical(60);
	for (int i = 0; i < 20; i++)
		log.push_back(request_of(random, edges()));
	const std::string payload = write_requests(dir.file("r"), log)[0].payload;
	const auto count = static_cast<uint32_t>(log.size());
	for (size_t at = 0; at < payload.size(); at++)
		for (int bit = 0; bit < 8; bit++) {
			std::string changed = payload;
			changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
			const int rc = decode(memory, changed, count);
			CHECK((rc == -EBADMSG || rc == static_cast<int>(count)));
		}
	for (int round = 0; round < 20'000; round++) {
		// Lengths with the right sum, so that the columns themselves are read.
		uint32_t lengths[6], total = 0;
		for (uint32_t &n : lengths)
			total += n = static_cast<uint32_t>(random() % 40);
		const uint32_t wanted = 1 + static_cast<uint32_t>(random() % 30);
		if (random() % 2) {
			total += wanted + 1 - lengths[4] - lengths[5];
			lengths[4] = wanted;
			lengths[5] = 1;
		}
		std::string made(8, 0);
		made.append(reinterpret_cast<const char *>(lengths), sizeof(lengths));
		for (uint32_t i = 0; i < total; i++)
			made += static_cast<char>(random() % 4 ? 1 << (random() % 9) : random());
		const int rc = decode(memory, made, wanted);
		CHECK((rc == -EBADMSG || rc == static_cast<int>(wanted)));
	}
}

// SPDX-License-Identifier: MIT
// The request log's columns of what the server's kernel knows: any values survive, other logs do not have
// them, and damaged ones are refused.
#include "tests/unit/recording/request_log.h"

using namespace forktail::test;

namespace
{

struct Seen {
	ft_request request;
	ft_request_seen seen;
};

bool same_seen(const ft_request_seen &a, const ft_request_seen &b)
{
	return a.read_ns == b.read_ns && a.written_ns == b.written_ns && a.request_bytes == b.request_bytes &&
	       a.answer_bytes == b.answer_bytes;
}

std::vector<Block> write_seen(const std::string &path, const std::vector<Seen> &log,
			      uint32_t flush_every = FT_REQUEST_BLOCK)
{
	ft_writer *w = nullptr;
	ft_requests r;
	REQUIRE(ft_writer_open(&w, path.c_str(), "{}") == 0);
	REQUIRE(ft_requests_init(&r) == 0);
	for (const Seen &s : log) {
		if (ft_requests_full(&r) || r.count == flush_every)
			REQUIRE(ft_requests_flush(&r, w) == 0);
		ft_requests_append_seen(&r, &s.request, &s.seen);
	}
	REQUIRE(ft_requests_flush(&r, w) == 0);
	ft_requests_free(&r);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(path);
	REQUIRE(c.rc == 0);
	return {c.blocks.begin() + 1, c.blocks.end()};
}

// -EBADMSG, or the decoded values. Each array has room for exactly `count`.
int decode_seen(Guarded &memory, const std::string &payload, uint32_t count,
		std::vector<ft_request_seen> *to = nullptr)
{
	std::vector<uint64_t> start(count), end(count), read(count), written(count);
	std::vector<uint32_t> request_bytes(count), answer_bytes(count);
	ft_request_columns out = {};
	out.start_ns = start.data();
	out.end_ns = end.data();
	out.read_ns = read.data();
	out.written_ns = written.data();
	out.request_bytes = request_bytes.data();
	out.answer_bytes = answer_bytes.data();
	const int rc = ft_requests_decode(memory.place(payload), payload.size(), count, &out);
	for (int n = 0; to && n < rc; n++) {
		const auto i = static_cast<size_t>(n);
		to->push_back({read[i], written[i], request_bytes[i], answer_bytes[i]});
	}
	return rc;
}

void round_trip_seen(const std::vector<Seen> &log, uint32_t flush_every = FT_REQUEST_BLOCK)
{
	TempDir dir;
	Guarded memory;
	std::vector<ft_request> requests;
	std::vector<ft_request_seen> seen;
	for (const Block &b : write_seen(dir.file("r"), log, flush_every)) {
		CHECK(ft_requests_have_seen(b.payload.data(), b.payload.size()));
		REQUIRE(decode(memory, b.payload, b.count, &requests) == static_cast<int>(b.count));
		REQUIRE(decode_seen(memory, b.payload, b.count, &seen) == static_cast<int>(b.count));
	}
	REQUIRE(requests.size() == log.size());
	size_t differ = 0;
	for (size_t i = 0; i < log.size(); i++)
		differ += !same_request(requests[i], log[i].request) || !same_seen(seen[i], log[i].seen);
	CHECK(differ == 0);
}

std::vector<Seen> typical_seen(size_t count)
{
	std::mt19937_64 random(2);
	std::vector<Seen> log;
	for (ft_request q : typical(count)) {
		q.intended_ns = q.start_ns;
		log.push_back(
		    {q,
		     {q.start_ns + random() % 30'000, q.end_ns + random() % 6'000,
		      static_cast<uint32_t>(30 + random() % 10), static_cast<uint32_t>(5 + random() % 100)}});
	}
	return log;
}

} // namespace

TEST_CASE("what the server's kernel knows of requests survives, in full and in short blocks")
{
	round_trip_seen(typical_seen(2 * FT_REQUEST_BLOCK + 17));
	round_trip_seen(typical_seen(1'000), 1);
	round_trip_seen(typical_seen(1'000), 7);
}

TEST_CASE("any mix of known and unknown values of the server's kernel survives")
{
	std::vector<Seen> log = typical_seen(1'000);
	for (size_t i = 0; i < log.size(); i++) {
		ft_request_seen &s = log[i].seen;
		s.read_ns = i % 3 ? s.read_ns : 0;
		s.written_ns = i % 5 ? s.written_ns : 0;
		s.request_bytes = i % 7 ? s.request_bytes : UINT32_MAX;
		s.answer_bytes = i % 11 ? s.answer_bytes : 0;
		log[i].request.behind = static_cast<uint8_t>(i > 500 && i % 2);
	}
	round_trip_seen(log);
	round_trip_seen(log, 3);
	// Values of every length, and all columns at their largest.
	const std::vector<uint64_t> values = edges();
	std::mt19937_64 random(11);
	log.clear();
	for (uint32_t i = 0; i < FT_REQUEST_BLOCK; i++) {
		const ft_request q = request_of(random, values);
		// One value of each time would be stored as "unknown".
		const uint64_t read = values[random() % values.size()];
		const uint64_t written = values[random() % values.size()];
		log.push_back({q,
			       {read - q.start_ns + 1 ? read : 0, written - q.end_ns + 1 ? written : 0,
				static_cast<uint32_t>(values[random() % values.size()]),
				static_cast<uint32_t>(values[random() % values.size()])}});
	}
	round_trip_seen(log);
	for (Seen &s : log)
		s = {{0, 0x8000000000000000, 0x8000000000000000, UINT32_MAX, 255, 255, 255, 1},
		     {1, 1, UINT32_MAX, UINT32_MAX}};
	log[0].seen = {2, 2, 1, 1};
	round_trip_seen(log);
}

TEST_CASE("equal or unknown values of the server's kernel take one byte each")
{
	TempDir dir;
	std::vector<Seen> log = typical_seen(1'000);
	std::vector<ft_request> plain;
	for (Seen &s : log) {
		s.seen = {s.request.start_ns, 0, 30, 0};
		plain.push_back(s.request);
	}
	round_trip_seen(log);
	const std::string without = write_requests(dir.file("p"), plain)[0].payload;
	const std::string with = write_seen(dir.file("r"), log)[0].payload;
	CHECK(with.size() == without.size() + 6 * (4 + 1));
	CHECK(with.compare(0, without.size(), without) == 0);
	CHECK_FALSE(ft_requests_have_seen(without.data(), without.size()));
	const std::string file = read_file(dir.file("r"));
	CHECK(static_cast<int>(file[walk(file)[1].begin + offsetof(ft_block_header, version)]) == 3);
	// A log without them has zeros.
	Guarded memory;
	std::vector<ft_request_seen> none;
	REQUIRE(decode_seen(memory, without, 1'000, &none) == 1'000);
	CHECK(same_seen(none[999], ft_request_seen{}));
}

TEST_CASE("one log may have blocks with and without what the server's kernel knows")
{
	TempDir dir;
	ft_writer *w = nullptr;
	ft_requests r;
	const std::vector<Seen> log = typical_seen(20);
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_requests_init(&r) == 0);
	for (const Seen &s : log)
		ft_requests_append_seen(&r, &s.request, &s.seen);
	REQUIRE(ft_requests_flush(&r, w) == 0);
	for (const Seen &s : log)
		ft_requests_append(&r, &s.request);
	REQUIRE(ft_requests_flush(&r, w) == 0);
	ft_requests_free(&r);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(dir.file("r"));
	REQUIRE(c.blocks.size() == 3);
	const std::string &seen = c.blocks[1].payload, &plain = c.blocks[2].payload;
	CHECK(ft_requests_have_seen(seen.data(), seen.size()));
	CHECK_FALSE(ft_requests_have_seen(plain.data(), plain.size()));
	CHECK_FALSE(ft_requests_have_behind(plain.data(), plain.size()));
}

TEST_CASE("damaged columns of the server's kernel are refused, and never read beyond their payload")
{
	TempDir dir;
	Guarded memory;
	const std::string payload = write_seen(dir.file("r"), typical_seen(40))[0].payload;
	REQUIRE(decode_seen(memory, payload, 40) == 40);
	CHECK(decode_seen(memory, payload, 39) == -EBADMSG);
	CHECK(decode_seen(memory, payload, 41) == -EBADMSG);
	CHECK(decode_seen(memory, payload.substr(0, payload.size() - 1), 40) == -EBADMSG);
	CHECK(decode_seen(memory, payload + "x", 40) == -EBADMSG);
	for (size_t at = 0; at < payload.size(); at++)
		for (int bit = 0; bit < 8; bit++) {
			std::string changed = payload;
			changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
			const int rc = decode_seen(memory, changed, 40);
			CHECK((rc == -EBADMSG || rc == 40));
		}
	// A size of more than 32 bits.
	std::vector<Seen> one = typical_seen(1);
	one[0].seen.answer_bytes = UINT32_MAX;
	const std::string largest = write_seen(dir.file("r"), one)[0].payload;
	REQUIRE(decode_seen(memory, largest, 1) == 1);
	const std::string above = largest.substr(0, largest.size() - 5) + std::string("\x10\0\0\0\x20", 5);
	CHECK(decode_seen(memory, above, 1) == -EBADMSG);
}

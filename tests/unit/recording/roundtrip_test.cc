// SPDX-License-Identifier: MIT
// Data that is written is read back: every kind of record, records of other versions, order, sizes, threads.
#include <cerrno>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/unit/recording/places.h"

using namespace forktail::test;

namespace
{

const Block &only(const Contents &c, unsigned kind)
{
	const Block *found = nullptr;
	for (const Block &b : c.blocks)
		if (b.kind == kind) {
			REQUIRE(!found);
			found = &b;
		}
	REQUIRE(found);
	return *found;
}

template <class Record> Record record_of(const Block &b, uint32_t i = 0)
{
	const ft_block block = {b.kind, b.record_size, b.count, b.payload.data(), b.payload.size(), b.offset};
	Record r;
	ft_block_record(&block, i, &r, sizeof(r));
	return r;
}

// Records are compared as bytes, because format.h defines them without padding.
template <class Record> bool same(const Record &a, const Record &b)
{
	return !std::memcmp(&a, &b, sizeof(a));
}

void undamaged(const Contents &c)
{
	CHECK(c.rc == 0);
	CHECK(c.damage.bytes_skipped == 0);
	CHECK(c.damage.gaps == 0);
	CHECK(c.damage.blocks_missing == 0);
	CHECK_FALSE(c.damage.no_trailer);
}

} // namespace

TEST_CASE("every kind of block is read back as it was written")
{
	TempDir dir;
	small_recording(dir.file("r"));
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	CHECK(c.blocks.size() == 21);
	CHECK(c.blocks.front().kind == FT_BLOCK_MANIFEST);
	CHECK(c.blocks.front().payload == R"({"format":"forktail","kind":"test"})");
	CHECK(c.blocks.back().kind == FT_BLOCK_SUMMARY);
	CHECK(c.blocks.back().payload == R"({"ended":"signal"})");
	CHECK(only(c, FT_BLOCK_DETAIL).payload == R"({"id":1,"name":"kworker/1:2"})");
	CHECK(only(c, FT_BLOCK_SERIES).count == 1);
	CHECK(only(c, FT_BLOCK_COST).payload == R"({"bpf_ns":12})");
	CHECK(only(c, FT_BLOCK_NOTE).payload == R"({"t_ns":5,"kind":"target-found"})");
	CHECK(only(c, FT_BLOCK_HISTOGRAM).payload == R"({"count":0})");

	const auto thread = record_of<ft_thread>(only(c, FT_BLOCK_THREAD));
	CHECK(thread.tid == 7);
	CHECK(std::string(thread.role.raw) == "redis-server");
	const Block &spans = only(c, FT_BLOCK_SPAN);
	REQUIRE(spans.count == 40);
	for (uint32_t i = 0; i < 40; i++)
		CHECK(same(record_of<ft_span>(spans, i), span_number(i)));
	CHECK(same(record_of<ft_tally>(only(c, FT_BLOCK_TALLY)), ft_tally{1, 2, 3, 4, 5, 6, 7, 0}));
	CHECK(same(record_of<ft_io>(only(c, FT_BLOCK_IO)), ft_io{1, 2, 3, 4, 5, 6, 1, 0, 0, "kworker"}));
	CHECK(same(record_of<ft_writes>(only(c, FT_BLOCK_WRITES)), ft_writes{1, 2, 3, 4, 5, "dd"}));
	CHECK(same(record_of<ft_cpu_slice>(only(c, FT_BLOCK_CPU_SLICE)),
		   ft_cpu_slice{1, 2, 3, 4, 0, "ksoftirqd/4"}));
	CHECK(record_of<ft_sample>(only(c, FT_BLOCK_SAMPLE)).value == 2.5);
	CHECK(
	    same(record_of<ft_drop>(only(c, FT_BLOCK_DROP)), ft_drop{1, 2, 3, FT_DROP_RING, FT_DROP_TALLY}));
	CHECK(only(c, FT_BLOCK_STACK).payload ==
	      R"({"id":1,"program":"p","frames":[["f","p"]],"kernel":[]})");
	CHECK(same(record_of<ft_cpu_sample>(only(c, FT_BLOCK_CPU_SAMPLE)),
		   ft_cpu_sample{1, 2, 1, 3, 4, 5, 6, 1, 0}));
	CHECK(same(record_of<ft_counters>(only(c, FT_BLOCK_COUNTERS)),
		   ft_counters{1, 2, 3, 4, 5, 6, 7, FT_COUNTED_MISSES}));
	CHECK(same(record_of<ft_clock>(only(c, FT_BLOCK_CLOCK)), ft_clock{1, 2, 3, 4}));
	CHECK(same(record_of<ft_connection>(only(c, FT_BLOCK_CONNECTION)),
		   client_connection(1, 0, 3, 4, 5, 6, 7)));
	CHECK(only(c, FT_BLOCK_REQUEST).count == 20);
}

TEST_CASE("a span without a field for the CPU that it waited for has none")
{
	constexpr uint32_t old_size = 72;
	ft_span written[2] = {span_number(3), span_number(4)};
	std::string payload;
	for (ft_span &s : written) {
		payload.append(reinterpret_cast<const char *>(&s), old_size);
		s.queue_cpu = 0;
	}
	const Block old = {FT_BLOCK_SPAN, old_size, 2, 0, payload};
	for (uint32_t i = 0; i < 2; i++)
		CHECK(same(record_of<ft_span>(old, i), written[i]));
}

TEST_CASE("a connection without a field for inodes has none")
{
	constexpr uint32_t old_size = 32;
	ft_connection written = client_connection(1, 2, 3, 4, 5, 6, 7);
	const Block old = {FT_BLOCK_CONNECTION, old_size, 1, 0,
			   std::string(reinterpret_cast<const char *>(&written), old_size)};
	written.inode = 0;
	CHECK(same(record_of<ft_connection>(old), written));
}

TEST_CASE("a connection without fields for the client has none, and further fields are ignored")
{
	constexpr uint32_t old_size = 40;
	ft_connection written = client_connection(1, 2, 3, 4, 5, 6, 7);
	written.client_address[0] = 8;
	written.client_pid = 9;
	written.client_flags = 10;
	std::strcpy(written.client_comm.raw, "client");
	const std::string bytes(reinterpret_cast<const char *>(&written), sizeof(written));
	const Block newer = {FT_BLOCK_CONNECTION, sizeof(written) + 8, 1, 0, bytes + "12345678"};
	CHECK(same(record_of<ft_connection>(newer), written));
	const Block old = {FT_BLOCK_CONNECTION, old_size, 1, 0, bytes.substr(0, old_size)};
	CHECK(same(record_of<ft_connection>(old), client_connection(1, 2, 3, 4, 5, 6, 7)));
}

TEST_CASE("a JSON block comes after the records written before it")
{
	TempDir dir;
	small_recording(dir.file("r"));
	const Contents c = read_recording(dir.file("r"));
	CHECK(only(c, FT_BLOCK_SPAN).offset < only(c, FT_BLOCK_DETAIL).offset);
	CHECK(only(c, FT_BLOCK_IO).offset > only(c, FT_BLOCK_DETAIL).offset);
	CHECK(only(c, FT_BLOCK_IO).offset < only(c, FT_BLOCK_SERIES).offset);
}

TEST_CASE("a thread's record comes before a full block of others")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	ft_thread thread = {};
	thread.tid = 4711;
	for (uint32_t i = 0; i < 5000; i++) {
		const ft_span s = span_number(i);
		if (i == 500)
			ft_writer_record(w, FT_BLOCK_THREAD, &thread);
		ft_writer_record(w, FT_BLOCK_SPAN, &s);
	}
	ft_writer_close(w, nullptr);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	CHECK(all_records<ft_span>(c, FT_BLOCK_SPAN).size() == 5000);
	REQUIRE(c.blocks.size() > 3);
	CHECK(c.blocks[1].kind == FT_BLOCK_THREAD);
	CHECK(c.blocks[2].kind == FT_BLOCK_SPAN);
}

TEST_CASE("the index names every block before it, and the trailer the index")
{
	TempDir dir;
	const std::string bytes = small_recording(dir.file("r"));
	const std::vector<Extent> extents = walk(bytes);
	REQUIRE(extents.size() >= 2);
	const Extent &index = extents[extents.size() - 2], &trailer = extents.back();
	REQUIRE(index.kind == FT_BLOCK_INDEX);
	REQUIRE(trailer.kind == FT_BLOCK_TRAILER);
	ft_trailer t;
	REQUIRE(trailer.end - trailer.begin == sizeof(ft_block_header) + sizeof(t));
	std::memcpy(&t, &bytes[trailer.begin + sizeof(ft_block_header)], sizeof(t));
	CHECK(t.index_offset == index.begin);
	CHECK(t.blocks == extents.size() - 1);
	const std::vector<ft_index_entry> entries = index_at(bytes, index.begin);
	REQUIRE(entries.size() == extents.size() - 2);
	for (size_t i = 0; i < entries.size(); i++) {
		ft_block_header h;
		std::memcpy(&h, &bytes[extents[i].begin], sizeof(h));
		CHECK(entries[i].offset == extents[i].begin);
		CHECK(entries[i].kind == extents[i].kind);
		CHECK(entries[i].count == h.count);
		CHECK(entries[i].stored_bytes == h.stored_bytes);
		CHECK(entries[i].raw_bytes == h.raw_bytes);
	}
}

TEST_CASE("shorter records are zero-filled, longer ones cut, and missing ones are zero")
{
	struct Newer {
		ft_drop drop;
		uint64_t more;
	};
	TempDir dir;
	const Newer longer[2] = {{{1, 2, 3, 4, 5}, 6}, {{7, 8, 9, 10, 11}, 12}};
	const uint64_t shorter[2] = {21, 22}; // start_ns alone
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_block(w, FT_BLOCK_DROP, sizeof(Newer), 2, longer, sizeof(longer)) == 0);
	REQUIRE(ft_writer_block(w, FT_BLOCK_DROP, sizeof(uint64_t), 2, shorter, sizeof(shorter)) == 0);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	REQUIRE(c.blocks.size() == 3);
	CHECK(same(record_of<ft_drop>(c.blocks[1], 1), ft_drop{7, 8, 9, 10, 11}));
	CHECK(record_of<Newer>(c.blocks[1], 1).more == 12);
	CHECK(same(record_of<ft_drop>(c.blocks[2], 0), ft_drop{21, 0, 0, 0, 0}));
	CHECK(same(record_of<ft_drop>(c.blocks[2], 1), ft_drop{22, 0, 0, 0, 0}));
	CHECK(same(record_of<ft_drop>(c.blocks[2], 2), ft_drop{0, 0, 0, 0, 0}));
}

TEST_CASE("many records fill many blocks, in order, and compress")
{
	TempDir dir;
	constexpr uint32_t COUNT = 10'000;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		const ft_span s = span_number(i);
		REQUIRE(ft_writer_record(w, FT_BLOCK_SPAN, &s) == 0);
	}
	REQUIRE(ft_writer_flush(w) == 0);
	const uint64_t bytes = ft_writer_bytes(w);
	CHECK(bytes < COUNT * sizeof(ft_span) / 2);
	CHECK(read_file(dir.file("r")).size() == bytes);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	uint32_t seen = 0;
	for (const Block &b : c.blocks)
		for (uint32_t i = 0; b.kind == FT_BLOCK_SPAN && i < b.count; i++)
			if (same(record_of<ft_span>(b, i), span_number(seen)))
				seen++;
	CHECK(seen == COUNT);
}

TEST_CASE("payloads are 8-byte aligned, and JSON can be read as a string")
{
	TempDir dir;
	small_recording(dir.file("r"));
	ft_reader *r = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&r, dir.file("r").c_str(), error, sizeof(error)) == 0);
	ft_block b;
	while (ft_reader_next(r, &b) == 1) {
		CHECK(reinterpret_cast<uintptr_t>(b.payload) % 8 == 0);
		CHECK(static_cast<const char *>(b.payload)[b.bytes] == 0);
	}
	CHECK(ft_reader_next(r, &b) == 0);
	ft_reader_close(r);
}

TEST_CASE("invalid calls are refused and leave the recording unharmed")
{
	TempDir dir;
	ft_writer *w = nullptr;
	const ft_drop drop = {1, 2, 3, 4, 5};
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	CHECK(ft_writer_record(w, FT_BLOCK_NOTE, &drop) == -EINVAL);
	CHECK(ft_writer_record(w, FT_BLOCK_REQUEST, &drop) == -EINVAL);
	CHECK(ft_writer_record(w, FT_BLOCK_INDEX, &drop) == -EINVAL);
	CHECK(ft_writer_record(w, static_cast<ft_block_kind>(0), &drop) == -EINVAL);
	CHECK(ft_writer_block(w, FT_BLOCK_DROP, sizeof(drop), 2, &drop, sizeof(drop)) == -EINVAL);
	CHECK(ft_writer_block(w, FT_BLOCK_DROP, 0, 1, &drop, sizeof(drop)) == -EINVAL);
	const std::string huge(FT_BLOCK_LIMIT + 1, ' ');
	CHECK(ft_writer_block(w, FT_BLOCK_NOTE, 0, 1, huge.data(), huge.size()) == -EMSGSIZE);
	CHECK(ft_writer_json(w, FT_BLOCK_NOTE, huge.c_str()) == -EMSGSIZE);
	CHECK(ft_writer_error(w) == 0);
	CHECK(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	CHECK(c.blocks.size() == 1);
}

TEST_CASE("a payload of the maximum size is written and read")
{
	TempDir dir;
	ft_writer *w = nullptr;
	const std::string most(FT_BLOCK_LIMIT, 'x');
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	CHECK(ft_writer_json(w, FT_BLOCK_NOTE, most.c_str()) == 0);
	CHECK(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	REQUIRE(c.blocks.size() == 2);
	CHECK(c.blocks[1].payload == most);
}

TEST_CASE("an empty payload is a block")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "") == 0);
	REQUIRE(ft_writer_block(w, FT_BLOCK_DROP, sizeof(ft_drop), 0, nullptr, 0) == 0);
	REQUIRE(ft_writer_close(w, "") == 0);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	CHECK(c.blocks.size() == 3);
}

TEST_CASE("many threads may write concurrently")
{
	const bool background = GENERATE(false, true);
	TempDir dir;
	constexpr uint32_t THREADS = 4, EACH = 5'000;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	if (background)
		REQUIRE(ft_writer_background(w, 64 << 20) == 0);
	std::vector<std::thread> threads;
	for (uint32_t t = 0; t < THREADS; t++)
		threads.emplace_back([w, t] {
			ft_requests requests;
			if (ft_requests_init(&requests))
				return;
			for (uint32_t i = 0; i < EACH; i++) {
				const ft_sample s = {i, 1.0, t, 0};
				const ft_request q = {i, i, i, t, 0, 0, 0, 0};
				ft_writer_record(w, FT_BLOCK_SAMPLE, &s);
				ft_requests_append(&requests, &q);
				if (i % 100 == 99)
					ft_requests_flush(&requests, w);
				if (i % 250 == 249)
					ft_writer_json(w, FT_BLOCK_NOTE, "{}");
				if (i % 77 == 0)
					ft_writer_flush(w);
			}
			ft_requests_free(&requests);
		});
	for (std::thread &t : threads)
		t.join();
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(dir.file("r"));
	undamaged(c);
	uint32_t requests = 0, notes = 0;
	std::vector<uint32_t> next(THREADS, 0);
	for (const Block &b : c.blocks) {
		requests += b.kind == FT_BLOCK_REQUEST ? b.count : 0;
		notes += b.kind == FT_BLOCK_NOTE;
		for (uint32_t i = 0; b.kind == FT_BLOCK_SAMPLE && i < b.count; i++) {
			const auto s = record_of<ft_sample>(b, i);
			REQUIRE(s.series < THREADS);
			CHECK(s.t_ns == next[s.series]++); // each thread's own order is preserved
		}
	}
	CHECK(next == std::vector<uint32_t>(THREADS, EACH));
	CHECK(requests == THREADS * EACH);
	CHECK(notes == THREADS * EACH / 250);
}

TEST_CASE("clocks are read together, with their uncertainty")
{
	const uint64_t before = ft_now_ns();
	ft_clock c;
	ft_clock_read(&c);
	CHECK(c.monotonic_ns >= before);
	CHECK(c.monotonic_ns <= ft_now_ns() + c.error_ns);
	CHECK(c.error_ns > 0);
	CHECK(c.boottime_ns + 2 * c.error_ns >= c.monotonic_ns);
	CHECK(c.realtime_ns > 1'600'000'000'000'000'000ull);
	char id[40];
	ft_boot_id(id);
	CHECK(std::string(id) + "\n" == read_file("/proc/sys/kernel/random/boot_id"));
}

TEST_CASE("the bytes of a clock block and of a block of three requests")
{
	const std::string clock_block =
	    "46 54 42 4b 0b 00 00 01 20 00 00 00 01 00 00 00 20 00 00 00 20 00 00 00 "
	    "01 00 00 00 d6 32 09 f4 ee 08 c2 63 "
	    "00 50 39 27 8c 04 00 00 00 00 2a 36 fe 9c 97 17 "
	    "00 50 39 27 8c 04 00 00 28 00 00 00 00 00 00 00 ";
	const std::string request_payload =
	    "00 00 00 00 00 00 00 00 0c 00 00 00 09 00 00 00 06 00 00 00 03 00 00 00 03 00 00 00 01 00 00 00 "
	    "40 24 38 3c 27 8c 04 c4 15 0c 7e 3e 84 fc 0a b4 f4 0a b4 9b 04 d2 07 ea 03 ea 03 03 05 03 "
	    "00 01 00 00 ";
	const auto hex = [](const std::string &bytes) {
		std::string text;
		for (const char c : bytes) {
			char two[4];
			std::snprintf(two, sizeof(two), "%02x ", static_cast<unsigned char>(c));
			text += two;
		}
		return text;
	};
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	const ft_clock clock = {5'000'000'000'000, 1'700'000'000'000'000'000, 5'000'000'000'000, 40};
	REQUIRE(ft_writer_record(w, FT_BLOCK_CLOCK, &clock) == 0);
	REQUIRE(ft_writer_flush(w) == 0);
	const ft_request log[] = {
	    {5'000'000'100'000, 5'000'000'100'500, 5'000'000'190'500, 1, 0, 0, 0, 0},
	    {5'000'000'150'000, 5'000'000'150'250, 5'000'000'240'000, 2, 1, 0, 0, 0},
	    {5'000'000'200'000, 5'000'000'200'250, 5'000'000'238'000, 1, 0, 0, 0, 0},
	};
	ft_requests requests;
	REQUIRE(ft_requests_init(&requests) == 0);
	for (const ft_request &q : log)
		ft_requests_append(&requests, &q);
	REQUIRE(ft_requests_flush(&requests, w) == 0);
	ft_requests_free(&requests);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const std::string bytes = read_file(dir.file("r"));
	const std::vector<Extent> extents = walk(bytes);
	REQUIRE(extents.size() == 5);
	CHECK(hex(bytes.substr(extents[1].begin, extents[1].end - extents[1].begin)) == clock_block);
	const size_t payload = extents[2].begin + sizeof(ft_block_header);
	CHECK(hex(bytes.substr(payload, extents[2].end - payload)) == request_payload);
}

// SPDX-License-Identifier: MIT
// The table of a file's blocks: it lists each block of a walk over the file, with the time range of its
// records. Each block can be read from its place, whatever the file's damage.
#include <algorithm>
#include <cerrno>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/unit/recording/places.h"

using namespace forktail::test;

namespace
{

ft_place place_of_kind(const Places &p, unsigned kind)
{
	for (const ft_place &place : p.all)
		if (place.kind == kind)
			return place;
	throw std::runtime_error("no block of kind " + std::to_string(kind));
}

// The result of a scan of a file whose only records are these.
template <typename R> ft_place covered(unsigned kind, const std::vector<R> &records)
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	for (const R &record : records)
		REQUIRE(ft_writer_record(w, static_cast<ft_block_kind>(kind), &record) == 0);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const ft_place scanned = place_of_kind(places_of(dir.file("r"), true), kind);
	const ft_place indexed = place_of_kind(places_of(dir.file("r"), false), kind);
	CHECK(indexed == scanned);
	return scanned;
}

ft_span span_from(uint64_t start_ns, uint64_t duration_ns)
{
	ft_span s = {};
	s.start_ns = start_ns;
	s.duration_ns = duration_ns;
	return s;
}

} // namespace

TEST_CASE("a scan gives the blocks of a walk over the file, and each can be read from its place")
{
	TempDir dir;
	small_recording(dir.file("r"));
	const Contents c = read_recording(dir.file("r"));
	const Places p = places_of(dir.file("r"), true);
	CHECK_FALSE(p.indexed);
	CHECK(p.damage == c.damage);
	CHECK(blocks_at(dir.file("r"), p) == c.blocks);
}

TEST_CASE("making a table or reading a place does not move ft_reader_next")
{
	TempDir dir;
	small_recording(dir.file("r"));
	const Contents c = read_recording(dir.file("r"));
	const Places p = places_of(dir.file("r"), true);
	ft_reader *r = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&r, dir.file("r").c_str(), error, sizeof(error)) == 0);
	for (size_t i = 0; i < c.blocks.size(); i++) {
		ft_places again;
		ft_block block;
		REQUIRE(ft_reader_places(r, i % 2 != 0, &again, nullptr, nullptr) == 0);
		CHECK(again.count == p.all.size());
		ft_places_free(&again);
		REQUIRE(ft_reader_read(r, &p.all.back(), &block) == 1);
		REQUIRE(ft_reader_next(r, &block) == 1);
		CHECK(block_of(block) == c.blocks[i]);
	}
	ft_block block;
	CHECK(ft_reader_next(r, &block) == 0);
	ft_damage damage;
	ft_reader_damage(r, &damage);
	CHECK(damage == c.damage);
	ft_reader_close(r);
}

TEST_CASE("a place has the time from the earliest begin to the latest end of its records")
{
	ft_place p =
	    covered(FT_BLOCK_SPAN, std::vector{span_from(500, 10), span_from(300, 1000), span_from(700, 2)});
	CHECK(p.start_ns == 300);
	CHECK(p.end_ns == 1300);
	CHECK(p.count == 3);
	CHECK(p.raw_bytes == 3 * sizeof(ft_span));

	ft_thread open = {}, ended = {};
	open.start_ns = 900;
	ended.start_ns = 100, ended.end_ns = 200;
	p = covered(FT_BLOCK_THREAD, std::vector{open, ended});
	CHECK(p.start_ns == 100);
	CHECK(p.end_ns == 900);

	p = covered(FT_BLOCK_TALLY,
		    std::vector<ft_tally>{{5, 6, 0, 0, 0, 0, 0, 0}, {3, 4, 9, 9, 9, 9, 9, 0}});
	CHECK(p.start_ns == 3);
	CHECK(p.end_ns == 6);
	p = covered(FT_BLOCK_IO, std::vector<ft_io>{{10, 5, 0, 0, 0, 0, 0, 0, 0, ""}});
	CHECK(p.start_ns == 10);
	CHECK(p.end_ns == 15);
	p = covered(FT_BLOCK_WRITES, std::vector<ft_writes>{{10, 25, 0, 0, 0, ""}});
	CHECK(p.start_ns == 10);
	CHECK(p.end_ns == 25);
	p = covered(FT_BLOCK_CPU_SLICE, std::vector<ft_cpu_slice>{{10, 35, 0, 0, 0, ""}});
	CHECK(p.start_ns == 10);
	CHECK(p.end_ns == 35);
	p = covered(FT_BLOCK_DROP, std::vector<ft_drop>{{7, 45, 0, 0, 0}});
	CHECK(p.start_ns == 7);
	CHECK(p.end_ns == 45);
	p = covered(FT_BLOCK_SAMPLE, std::vector<ft_sample>{{50, 1.0, 1, 0}, {40, 1e300, 1, 0}});
	CHECK(p.start_ns == 40);
	CHECK(p.end_ns == 50);
	p = covered(FT_BLOCK_CPU_SAMPLE, std::vector<ft_cpu_sample>{{60, 1, 1, 1, 1, 1, 1, 1, 1}});
	CHECK(p.start_ns == 60);
	CHECK(p.end_ns == 60);
	p = covered(FT_BLOCK_COUNTERS, std::vector<ft_counters>{{65, 1, 1, 1, 1, 1, 1, 1}});
	CHECK(p.start_ns == 65);
	CHECK(p.end_ns == 65);
	p = covered(FT_BLOCK_CLOCK, std::vector<ft_clock>{{70, 1'700'000'000'000'000'000, 1, 1}});
	CHECK(p.start_ns == 70);
	CHECK(p.end_ns == 70);
	p = covered(FT_BLOCK_LOOP, std::vector<ft_loop>{{80, 1, 1, 1, 0}});
	CHECK(p.start_ns == 80);
	CHECK(p.end_ns == 80);
	p = covered(FT_BLOCK_SOCKET, std::vector<ft_socket>{{0, 90, 1, 1, 1, 1, 1, 1, 0, 0},
							    {85, 95, 1, 1, 1, 1, 1, 1, 0, 0}});
	CHECK(p.start_ns == 85); // the first reading of a kind has no begin: the time begins at the reading
	CHECK(p.end_ns == 95);
	p = covered(FT_BLOCK_CONNECTION,
		    std::vector<ft_connection>{client_connection(30, 0, 1, 1, 1, 1, 1),
					       client_connection(20, 25, 1, 1, 1, 1, 1)});
	CHECK(p.start_ns == 20);
	CHECK(p.end_ns == 30);
}

TEST_CASE("no kind of record is without a time")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	const std::string ones(1024, 1);
	size_t kinds = 0;
	for (int kind = 1; kind < FT_BLOCK_KINDS; kind++)
		kinds += ft_writer_record(w, static_cast<ft_block_kind>(kind), ones.data()) == 0;
	CHECK(kinds >= 13);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Places p = places_of(dir.file("r"), true);
	REQUIRE(p.all.size() == 1 + kinds);
	for (size_t i = 1; i < p.all.size(); i++) {
		CAPTURE(p.all[i].kind);
		CHECK(p.all[i].start_ns == 0x0101010101010101);
	}
}

TEST_CASE("the time of requests begins when the first is due and ends with the last answer")
{
	TempDir dir;
	ft_writer *w = nullptr;
	ft_requests log;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_requests_init(&log) == 0);
	std::vector<std::pair<uint64_t, uint64_t>> wanted;
	for (const uint32_t count : {1u, 2u, 300u, static_cast<uint32_t>(FT_REQUEST_BLOCK)}) {
		uint64_t first = UINT64_MAX, last = 0;
		for (uint32_t i = 0; i < count; i++) {
			const uint64_t end = 5'000'000'000 + (count == 2 ? 0 : i * 7919ull % 100'003);
			const uint64_t due = end - 1000 - i % 91;
			const ft_request q = {due, due + i % 3, end, i, 0, 0, 0, i % 2 ? end : 0};
			ft_requests_append(&log, &q);
			first = std::min(first, due);
			last = std::max(last, end);
		}
		REQUIRE(ft_requests_flush(&log, w) == 0);
		wanted.emplace_back(first, last);
	}
	ft_requests_free(&log);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	for (const bool scan : {true, false}) {
		const Places p = places_of(dir.file("r"), scan);
		REQUIRE(p.all.size() == 1 + wanted.size());
		for (size_t i = 0; i < wanted.size(); i++) {
			CHECK(p.all[i + 1].kind == FT_BLOCK_REQUEST);
			CHECK(p.all[i + 1].start_ns == wanted[i].first);
			CHECK(p.all[i + 1].end_ns == wanted[i].second);
		}
	}
}

TEST_CASE("blocks of text have no time, and neither has a block without records")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_block(w, FT_BLOCK_SPAN, sizeof(ft_span), 0, nullptr, 0) == 0);
	REQUIRE(ft_writer_json(w, FT_BLOCK_NOTE, R"({"t_ns":5})") == 0);
	REQUIRE(ft_writer_close(w, "{}") == 0);
	for (const bool scan : {true, false}) {
		const Places p = places_of(dir.file("r"), scan);
		REQUIRE(p.all.size() == 4);
		for (const ft_place &place : p.all)
			CHECK((place.start_ns == 0 && place.end_ns == 0));
	}
}

TEST_CASE("invalid times lose no block")
{
	constexpr uint64_t kLimit = 1ull << 62;
	// An end before the start, a sum that overflows, times beyond the clock's range.
	ft_place p = covered(FT_BLOCK_CPU_SLICE, std::vector<ft_cpu_slice>{{100, 50, 1, 1, 0, ""}});
	CHECK(p.start_ns == 100);
	CHECK(p.end_ns == 100);
	p = covered(FT_BLOCK_SPAN, std::vector{span_from(1000, UINT64_MAX), span_from(2000, 5)});
	CHECK(p.start_ns == 1000);
	CHECK(p.end_ns == kLimit);
	p = covered(FT_BLOCK_SAMPLE, std::vector<ft_sample>{{UINT64_MAX, 1.0, 1, 0}});
	CHECK(p.start_ns == kLimit);
	CHECK(p.end_ns == kLimit);

	TempDir dir;
	// Records too short for their second time, and invalid columns.
	const uint64_t start = 77;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_block(w, FT_BLOCK_SPAN, sizeof(start), 1, &start, sizeof(start)) == 0);
	REQUIRE(ft_writer_block(w, FT_BLOCK_REQUEST, 0, 3, "no columns", 10) == 0);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	for (const bool scan : {true, false}) {
		const Places places = places_of(dir.file("r"), scan);
		REQUIRE(places.all.size() == 3);
		CHECK(places.all[1].start_ns == 77);
		CHECK(places.all[1].end_ns == 77);
		CHECK(places.all[2].start_ns == 0);
		CHECK(places.all[2].end_ns == 0);
		CHECK(blocks_at(dir.file("r"), places) == read_recording(dir.file("r")).blocks);
	}
}

TEST_CASE("a scan of a damaged file gives the same as a walk")
{
	TempDir dir;
	const std::string path = dir.file("r"), bytes = small_recording(path);
	for (size_t cut = bytes.size() - 1; cut > 200; cut--) {
		CAPTURE(cut);
		write_file(path, bytes.substr(0, cut));
		const Contents c = read_recording(path);
		const Places p = places_of(path, false);
		CHECK_FALSE(p.indexed);
		CHECK(p.damage == c.damage);
		CHECK(blocks_at(path, p) == c.blocks);
	}
	for (size_t at = 0; at < bytes.size(); at++) {
		CAPTURE(at);
		std::string changed = bytes;
		changed[at] = static_cast<char>(changed[at] ^ 0x40);
		write_file(path, changed);
		const Contents c = read_recording(path);
		const Places scanned = places_of(path, true);
		CHECK(scanned.damage == c.damage);
		CHECK(blocks_at(path, scanned) == c.blocks);
		// By the index, if it is complete: the damaged block has its place there, and is not read.
		const Places p = places_of(path, false);
		CHECK(blocks_at(path, p) == c.blocks);
		CHECK(p.all.size() <= c.blocks.size() + p.indexed);
	}
}

TEST_CASE("a place with another block, an incomplete block or none gives nothing")
{
	TempDir dir;
	const std::string path = dir.file("r"), bytes = small_recording(path);
	const Places p = places_of(path, true);
	ft_reader *r = nullptr;
	char error[256];
	ft_block block;
	REQUIRE(ft_reader_open(&r, path.c_str(), error, sizeof(error)) == 0);
	for (const uint64_t offset : {uint64_t{1}, p.all[2].offset, bytes.size() - 10, bytes.size(),
				      bytes.size() + 1, UINT64_MAX - 3, UINT64_MAX}) {
		ft_place place = p.all[1];
		place.offset = offset;
		CHECK(ft_reader_read(r, &place, &block) == 0);
	}
	ft_place other = p.all[1];
	other.kind = FT_BLOCK_SPAN;
	CHECK(ft_reader_read(r, &other, &block) == 0);
	other = p.all[1], other.count++;
	CHECK(ft_reader_read(r, &other, &block) == 0);
	other = p.all[1], other.stored_bytes--;
	CHECK(ft_reader_read(r, &other, &block) == 0);
	other = p.all[1], other.raw_bytes = UINT32_MAX;
	CHECK(ft_reader_read(r, &other, &block) == 0);
	CHECK(ft_reader_read(r, &p.all[1], &block) == 1);
	REQUIRE(truncate(path.c_str(), static_cast<off_t>(p.all[5].offset)) == 0);
	CHECK(ft_reader_read(r, &p.all[1], &block) == 1);
	CHECK(ft_reader_read(r, &p.all[5], &block) == 0);
	ft_reader_close(r);
}

TEST_CASE("a scan reports its progress and can be stopped")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	const std::string text(3 << 20, '\0');
	for (int i = 0; i < 8; i++) // columns are stored uncompressed
		REQUIRE(ft_writer_block(w, FT_BLOCK_REQUEST, 0, 1, text.data(), text.size()) == 0);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	struct Progress {
		int calls = 0, stop_at = -1;
		uint64_t done = 0, all = 0;
	};
	const auto tell = [](void *arg, uint64_t done, uint64_t all) {
		Progress *t = static_cast<Progress *>(arg);
		CHECK(done > t->done);
		CHECK(done <= all);
		t->done = done, t->all = all;
		return ++t->calls == t->stop_at ? 1 : 0;
	};
	ft_reader *r = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&r, dir.file("r").c_str(), error, sizeof(error)) == 0);
	Progress progress;
	ft_places p;
	REQUIRE(ft_reader_places(r, true, &p, tell, &progress) == 0);
	CHECK(progress.calls >= 3);
	CHECK(progress.all == read_file(dir.file("r")).size());
	CHECK(p.count == 9);
	ft_places_free(&p);
	Progress stopped;
	stopped.stop_at = 2;
	CHECK(ft_reader_places(r, true, &p, tell, &stopped) == -ECANCELED);
	CHECK(stopped.calls == 2);
	CHECK((p.all == nullptr && p.count == 0));
	ft_reader_close(r);
}

TEST_CASE("a file that is still being written has the blocks that existed when it was opened")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	size_t before = 0;
	for (uint32_t i = 0; i < 20; i++) {
		const ft_span s = span_number(i);
		REQUIRE(ft_writer_record(w, FT_BLOCK_SPAN, &s) == 0);
		REQUIRE(ft_writer_flush(w) == 0);
		const Places p = places_of(dir.file("r"), false);
		CHECK_FALSE(p.indexed);
		CHECK(p.damage.no_trailer);
		CHECK(p.damage.gaps == 0);
		CHECK(p.all.size() == i + 2);
		CHECK(p.all.back().end_ns == s.start_ns + s.duration_ns);
		before = p.all.size();
	}
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	CHECK(places_of(dir.file("r"), false).all.size() == before);
}

TEST_CASE("threads read one file concurrently, each with its own reader")
{
	TempDir dir;
	small_recording(dir.file("r"));
	const Contents c = read_recording(dir.file("r"));
	const Places p = places_of(dir.file("r"), false);
	std::vector<std::vector<Block>> got(4);
	std::vector<std::thread> threads;
	for (std::vector<Block> &to : got)
		threads.emplace_back([&] { to = blocks_at(dir.file("r"), p); });
	for (std::thread &t : threads)
		t.join();
	for (const std::vector<Block> &blocks : got)
		CHECK(blocks == c.blocks);
}

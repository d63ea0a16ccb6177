// SPDX-License-Identifier: MIT
// The index at the end of a file and within it: it equals the result of a scan, its size is not limited, and
// an invalid index is ignored.
#include <cerrno>
#include <functional>
#include <sys/resource.h>

#include "tests/support/catch.h"
#include "tests/unit/recording/places.h"

using namespace forktail::test;

namespace
{

constexpr size_t kEach = 4096; // entries of an index block

// A file of `count` blocks before the summary, most of them with one sample.
std::string many_blocks(const std::string &path, size_t blocks)
{
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, path.c_str(), "{}") == 0);
	int rc = 0;
	for (size_t i = 1; i < blocks; i++) {
		const ft_sample s = {1'000'000 + i * 10, 1.0, 1, 0};
		rc |= i % 100 ? ft_writer_block(w, FT_BLOCK_SAMPLE, sizeof(s), 1, &s, sizeof(s))
			      : ft_writer_json(w, FT_BLOCK_NOTE, R"({"t_ns":1})");
	}
	CHECK(rc == 0);
	CHECK(ft_writer_close(w, "{}") == 0);
	return read_file(path);
}

size_t index_blocks(const std::vector<Extent> &extents)
{
	size_t n = 0;
	for (const Extent &e : extents)
		n += e.kind == FT_BLOCK_INDEX;
	return n;
}

// Rewrites the end of a file: its last index block with other entries, and the trailer.
struct End {
	std::string before; // the index block
	std::vector<ft_index_entry> entries;
	ft_trailer trailer;
	uint32_t sequence;

	explicit End(const std::string &bytes)
	{
		const std::vector<Extent> extents = walk(bytes);
		const Extent &index = extents.at(extents.size() - 2);
		before = bytes.substr(0, index.begin);
		entries = index_at(bytes, index.begin);
		std::memcpy(&trailer, &bytes[extents.back().begin + sizeof(ft_block_header)],
			    sizeof(trailer));
		sequence = static_cast<uint32_t>(extents.size() - 2);
	}
	// entry_bytes: of an older writer with fewer fields, or a newer one with more.
	std::string file(uint32_t entry_bytes = sizeof(ft_index_entry)) const
	{
		std::string payload;
		for (const ft_index_entry &e : entries) {
			std::string record(reinterpret_cast<const char *>(&e), sizeof(e));
			record.resize(entry_bytes);
			payload += record;
		}
		const auto count = static_cast<uint32_t>(entries.size());
		ft_block_header h =
		    header_of(FT_BLOCK_INDEX, entry_bytes, count, static_cast<uint32_t>(payload.size()));
		h.sequence = sequence;
		std::string all = before + forged(h, payload);
		h = header_of(FT_BLOCK_TRAILER, sizeof(trailer), 1, sizeof(trailer));
		h.sequence = sequence + 1;
		return all +
		       forged(h, std::string(reinterpret_cast<const char *>(&trailer), sizeof(trailer)));
	}
};

// Checks that the blocks alone decide what is read from a file: the index is ignored.
void check_scanned(const std::string &path, const std::string &bytes)
{
	write_file(path, bytes);
	const Contents c = read_recording(path);
	const Places p = places_of(path, false), scanned = places_of(path, true);
	CHECK_FALSE(p.indexed);
	CHECK(p.all == scanned.all);
	CHECK(p.damage == c.damage);
	CHECK(blocks_at(path, p) == c.blocks);
}

} // namespace

TEST_CASE("the index has the same data about every block as a scan")
{
	TempDir dir;
	const std::string path = dir.file("r");
	small_recording(path);
	const Places p = places_of(path, false), scanned = places_of(path, true);
	CHECK(p.indexed);
	CHECK_FALSE(scanned.indexed);
	CHECK(p.all == scanned.all);
	CHECK(p.damage == scanned.damage);
	CHECK(blocks_at(path, p) == read_recording(path).blocks);
}

TEST_CASE("index blocks are written at a fixed number of blocks, each with the place of the one before")
{
	// Around the counts at which an index block is due, and beyond the former maximum of an index.
	const size_t blocks = GENERATE(kEach - 2, kEach - 1, kEach, kEach + 1, 2 * kEach - 2, 2 * kEach - 1,
				       2 * kEach, 70'000u);
	CAPTURE(blocks);
	TempDir dir;
	const std::string path = dir.file("r"), bytes = many_blocks(path, blocks);
	const std::vector<Extent> extents = walk(bytes);
	CHECK(index_blocks(extents) == 1 + (blocks < kEach ? 0 : 1 + (blocks - kEach) / (kEach - 1)));
	uint64_t before = 0;
	for (const Extent &e : extents) {
		if (e.kind != FT_BLOCK_INDEX)
			continue;
		const std::vector<ft_index_entry> entries = index_at(bytes, e.begin);
		CHECK(entries.size() <= kEach);
		CHECK(entries.front().offset == before);
		CHECK(entries.front().kind == (before ? FT_BLOCK_INDEX : FT_BLOCK_MANIFEST));
		before = e.begin;
	}
	const Places p = places_of(path, false), scanned = places_of(path, true);
	CHECK(p.indexed);
	CHECK(p.all.size() == blocks + 1);
	CHECK(p.all == scanned.all);
	CHECK(p.damage == scanned.damage);
	const Contents c = read_recording(path);
	CHECK(c.damage.blocks_missing == 0);
	CHECK(c.blocks.size() == p.all.size());
}

TEST_CASE("a writer with a separate thread gives the index the times of requests, too")
{
	TempDir dir;
	const std::string path = dir.file("r");
	ft_writer *w = nullptr;
	ft_requests log;
	REQUIRE(ft_writer_open(&w, path.c_str(), "{}") == 0);
	REQUIRE(ft_writer_background(w, 16 << 20) == 0);
	REQUIRE(ft_requests_init(&log) == 0);
	for (uint64_t i = 0; i < 100'000; i++) {
		const uint64_t due = 9'000'000'000 + i * 5000, end = due + 100 + i * 7919 % 60'000;
		const ft_request q = {due, due + 9, end, 1, 0, 0, 0, 0};
		if (ft_requests_full(&log))
			REQUIRE(ft_requests_flush(&log, w) == 0);
		ft_requests_append(&log, &q);
		const ft_span s = span_number(static_cast<uint32_t>(i));
		ft_writer_record(w, FT_BLOCK_SPAN, &s);
	}
	REQUIRE(ft_requests_flush(&log, w) == 0);
	ft_requests_free(&log);
	REQUIRE(ft_writer_close(w, "{}") == 0);
	const Places p = places_of(path, false);
	CHECK(p.indexed);
	CHECK(p.all == places_of(path, true).all);
	size_t requests = 0;
	for (const ft_place &place : p.all)
		if (place.kind == FT_BLOCK_REQUEST) {
			CHECK(place.start_ns >= 9'000'000'000);
			CHECK(place.end_ns > place.start_ns);
			requests += place.count;
		}
	CHECK(requests == 100'000);
}

TEST_CASE("an index of an old writer has no times: the blocks are read")
{
	TempDir dir;
	const std::string path = dir.file("r");
	small_recording(path);
	const End end(read_file(path));
	check_scanned(path, end.file(16));
	write_file(path, end.file());
	CHECK(places_of(path, false).indexed);
	write_file(path, end.file(sizeof(ft_index_entry) + 8)); // a newer index's
	CHECK(places_of(path, false).indexed);
	CHECK(places_of(path, false).all == places_of(path, true).all);
}

TEST_CASE("an invalid index is ignored")
{
	TempDir dir;
	const std::string path = dir.file("r");
	small_recording(path);
	const End truth(read_file(path));
	const size_t last = truth.entries.size() - 1;
	const std::pair<const char *, std::function<void(End &)>> lies[] = {
	    {"a block is missing", [](End &e) { e.entries.erase(e.entries.begin() + 5); }},
	    {"and the trailer knows",
	     [](End &e) { e.entries.erase(e.entries.begin() + 5), e.trailer.blocks--; }},
	    {"the first is missing", [](End &e) { e.entries.erase(e.entries.begin()), e.trailer.blocks--; }},
	    {"the last is missing", [](End &e) { e.entries.pop_back(), e.trailer.blocks--; }},
	    {"a block is there twice",
	     [](End &e) { e.entries.insert(e.entries.begin() + 5, e.entries[5]), e.trailer.blocks++; }},
	    {"two change places", [](End &e) { std::swap(e.entries[4], e.entries[5]); }},
	    {"a wrong offset", [](End &e) { e.entries[5].offset++; }},
	    {"an offset beyond the file", [](End &e) { e.entries[5].offset = 1ull << 40; }},
	    {"the last beyond the file", [=](End &e) { e.entries[last].offset = UINT64_MAX - 40; }},
	    {"the first not at the beginning", [](End &e) { e.entries[0].offset = 1; }},
	    {"a block that reaches into the next", [](End &e) { e.entries[5].stored_bytes++; }},
	    {"a block of 4 GB", [](End &e) { e.entries[5].stored_bytes = UINT32_MAX; }},
	    {"two blocks as one",
	     [=](End &e) {
		     e.entries[last - 1].stored_bytes +=
			 e.entries[last].stored_bytes + sizeof(ft_block_header);
		     e.entries.pop_back(), e.trailer.blocks--;
	     }},
	    {"a wrong kind", [](End &e) { e.entries[0].kind = FT_BLOCK_NOTE; }},
	    {"a wrong count", [=](End &e) { e.entries[last].count++; }},
	    {"a wrong size", [=](End &e) { e.entries[last].raw_bytes++; }},
	    {"an end before the start", [](End &e) { e.entries[5].start_ns = e.entries[5].end_ns + 1; }},
	    {"times that no clock has", [](End &e) { e.entries[5].end_ns = (1ull << 62) + 1; }},
	    {"an index block in the middle", [](End &e) { e.entries[5].kind = FT_BLOCK_INDEX; }},
	    {"a trailer in the middle", [](End &e) { e.entries[5].kind = FT_BLOCK_TRAILER; }},
	    {"an index block before the first that is none",
	     [](End &e) { e.entries[0].kind = FT_BLOCK_INDEX; }},
	    {"no entries", [](End &e) { e.entries.clear(), e.trailer.blocks = 1; }},
	    {"the trailer counts more", [](End &e) { e.trailer.blocks++; }},
	    {"the trailer counts fewer", [](End &e) { e.trailer.blocks--; }},
	    {"the trailer counts none", [](End &e) { e.trailer.blocks = 0; }},
	    {"the trailer counts more than can be", [](End &e) { e.trailer.blocks = UINT64_MAX; }},
	    {"the trailer names no index", [](End &e) { e.trailer.index_offset = 0; }},
	    {"the trailer names another block", [](End &e) { e.trailer.index_offset = e.entries[5].offset; }},
	    {"the trailer names a place beyond the file",
	     [](End &e) { e.trailer.index_offset = UINT64_MAX; }},
	};
	for (const auto &[what, lie] : lies) {
		CAPTURE(what);
		End end = truth;
		lie(end);
		check_scanned(path, end.file());
	}
	check_scanned(path, truth.file() + "x");
	check_scanned(path, truth.file() + forged_json(FT_BLOCK_NOTE, 99, "{}"));
	write_file(path, truth.file());
	CHECK(places_of(path, false).indexed);
}

TEST_CASE("a broken or circular chain of index blocks is ignored")
{
	TempDir dir;
	const std::string path = dir.file("r"), bytes = many_blocks(path, 2 * kEach + 100);
	const End truth(bytes);
	REQUIRE(truth.entries[0].kind == FT_BLOCK_INDEX);
	const uint64_t index_offset = truth.trailer.index_offset, before = truth.entries[0].offset;
	const auto check_lie = [&](const std::function<void(End &)> &lie) {
		End end = truth;
		lie(end);
		check_scanned(path, end.file());
	};
	// Itself.
	check_lie([&](End &e) { e.entries[0].offset = index_offset; });
	check_lie([&](End &e) { e.entries = {e.entries[0]}, e.entries[0].offset = index_offset; });
	// One that skips the index block between, and one that omits everything before it.
	check_lie([&](End &e) { e.entries[0] = index_at(bytes, before)[0]; });
	check_lie([&](End &e) { e.entries.erase(e.entries.begin()); });
	// The trailer names the one before the last.
	check_lie([&](End &e) { e.trailer.index_offset = before; });
	check_lie([&](End &e) { e.trailer.blocks += 1; });
	// A bit within the middle one: all blocks are there, but the index is incomplete.
	std::string changed = truth.file();
	changed[before + 100] = static_cast<char>(changed[before + 100] ^ 1);
	check_scanned(path, changed);
	write_file(path, truth.file());
	CHECK(places_of(path, false).indexed);
}

TEST_CASE("a wrong entry that is not noticed at first gives no wrong block")
{
	TempDir dir;
	const std::string path = dir.file("r");
	const End truth(many_blocks(path, 1000));
	const Contents c = read_recording(path);
	for (const auto &lie :
	     {+[](ft_index_entry &e) { e.kind = FT_BLOCK_DROP; }, +[](ft_index_entry &e) { e.count = 2; },
	      +[](ft_index_entry &e) { e.raw_bytes = 7; }}) {
		End end = truth;
		lie(end.entries[501]); // not one of the checked ones
		write_file(path, end.file());
		const Places p = places_of(path, false);
		REQUIRE(p.indexed);
		std::vector<Block> left = c.blocks;
		left.erase(left.begin() + 501);
		CHECK(blocks_at(path, p) == left);
	}
}

TEST_CASE("wherever the file's size is limited, there is room for index and trailer")
{
	// The index block within the file becomes due near this size: 36 bytes of header and 24 of a sample.
	const uint64_t due = kEach * (sizeof(ft_block_header) + sizeof(ft_sample));
	const std::string summary(8000, 's');
	TempDir dir;
	const std::string path = dir.file("r");
	rlimit old;
	REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
	size_t with_one = 0, with_two = 0;
	for (uint64_t limit = due + 150'000; limit < due + 220'000; limit += 997) {
		CAPTURE(limit);
		const rlimit small = {limit, old.rlim_max};
		REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
		ft_writer *w = nullptr;
		const int opened = ft_writer_open(&w, path.c_str(), "{}");
		const ft_sample s = {5, 1.0, 1, 0};
		while (!opened && !ft_writer_block(w, FT_BLOCK_SAMPLE, sizeof(s), 1, &s, sizeof(s))) {
		}
		const int closed = opened ? 0 : ft_writer_close(w, summary.c_str());
		setrlimit(RLIMIT_FSIZE, &old);
		REQUIRE(opened == 0);
		CHECK(closed == -EFBIG);
		const Places p = places_of(path, false);
		CHECK(p.indexed);
		CHECK(p.all == places_of(path, true).all);
		const std::string bytes = read_file(path);
		CHECK(bytes.size() <= limit);
		const std::vector<Extent> extents = walk(bytes);
		CHECK(extents.at(extents.size() - 3).kind == FT_BLOCK_SUMMARY);
		(index_blocks(extents) == 1 ? with_one : with_two)++;
	}
	CHECK(with_one > 0);
	CHECK(with_two > 0);
}

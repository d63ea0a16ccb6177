// SPDX-License-Identifier: MIT
// Damaged recordings are read as far as possible: cut at every byte, every byte flipped, bytes lost and
// inserted, invalid headers. With AddressSanitizer these tests also show that the reader never crashes.
#include <cerrno>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/support/catch.h"
#include "tests/support/text.h"
#include "tests/unit/recording/support.h"

using namespace forktail::test;

namespace
{

struct Small {
	TempDir dir;
	std::string path = dir.file("r");
	std::string bytes = small_recording(path);
	std::vector<Extent> extents = walk(bytes);
	std::vector<Block> blocks = read_recording(path).blocks;

	Contents with(const std::string &changed)
	{
		write_file(path, changed);
		return read_recording(path);
	}
	// The blocks that remain in a file whose bytes [begin, end) are lost or wrong.
	std::vector<Block> without(uint64_t begin, uint64_t end) const
	{
		std::vector<Block> left;
		size_t i = 0;
		for (const Extent &e : extents) {
			if (!shown(e))
				continue;
			if (e.end <= begin || e.begin >= end)
				left.push_back(blocks.at(i));
			i++;
		}
		return left;
	}
};

// If the bytes around [begin, end) repeat, removing other bytes leaves the same file. Of all such ranges,
// this is the one that hits the fewest blocks, which a reader can be expected to find.
std::pair<uint64_t, uint64_t> least_harmful(const Small &f, uint64_t begin, uint64_t end)
{
	const uint64_t size = end - begin;
	while (begin > 0 && f.bytes[begin - 1] == f.bytes[begin + size - 1])
		begin--;
	uint64_t best = begin;
	for (;; begin++) {
		if (f.without(begin, begin + size).size() > f.without(best, best + size).size())
			best = begin;
		if (begin + size >= f.bytes.size() || f.bytes[begin] != f.bytes[begin + size])
			return {best, best + size};
	}
}

std::vector<Block> moved(std::vector<Block> blocks, uint64_t from, int64_t by)
{
	for (Block &b : blocks)
		if (b.offset >= from)
			b.offset += static_cast<uint64_t>(by);
	return blocks;
}

} // namespace

TEST_CASE("a recording cut at any byte gives every complete block before the cut")
{
	Small f;
	REQUIRE(f.bytes.size() < 8'000);
	for (size_t cut = 0; cut < f.bytes.size(); cut++) {
		CAPTURE(cut);
		uint64_t whole = 0;
		for (const Extent &e : f.extents)
			if (e.end <= cut)
				whole = e.end;
		const Contents c = f.with(f.bytes.substr(0, cut));
		if (whole == 0) {
			CHECK(c.rc < 0);
			CHECK(contains(c.error, cut == 0  ? "is empty"
						: cut < 4 ? "not a recording"
							  : "no complete block"));
			continue;
		}
		REQUIRE(c.rc == 0);
		CHECK(c.blocks == f.without(cut, f.bytes.size()));
		CHECK(c.damage.bytes_skipped == cut - whole);
		CHECK(c.damage.gaps == (cut > whole));
		CHECK(c.damage.blocks_missing == 0);
		CHECK(c.damage.no_trailer);
	}
}

TEST_CASE("with any byte flipped, every other block is returned and the loss is counted")
{
	Small f;
	for (size_t at = 0; at < f.bytes.size(); at++)
		for (const int flip : {0xff, 1 << (at % 8)}) {
			CAPTURE(at, flip);
			size_t hit = 0;
			while (f.extents[hit].end <= at)
				hit++;
			std::string changed = f.bytes;
			changed[at] = static_cast<char>(changed[at] ^ flip);
			const Contents c = f.with(changed);
			REQUIRE(c.rc == 0);
			CHECK(c.blocks == f.without(at, at + 1));
			CHECK(c.damage.bytes_skipped == f.extents[hit].end - f.extents[hit].begin);
			CHECK(c.damage.gaps == 1);
			const bool trailer = hit + 1 == f.extents.size();
			CHECK(c.damage.blocks_missing == !trailer);
			CHECK(c.damage.no_trailer == trailer);
		}
}

TEST_CASE("bytes lost in the middle lose their blocks, and none after them")
{
	Small f;
	std::mt19937 random(3);
	for (int round = 0; round < 500; round++) {
		const size_t from = 1 + random() % (f.bytes.size() - 2);
		const size_t to = from + 1 + random() % std::min<size_t>(600, f.bytes.size() - from - 1);
		const auto [begin, end] = least_harmful(f, from, to);
		CAPTURE(from, to, begin, end);
		const Contents c = f.with(f.bytes.substr(0, begin) + f.bytes.substr(end));
		const auto left = moved(f.without(begin, end), end, -static_cast<int64_t>(end - begin));
		if (left.empty() && c.rc)
			continue;
		REQUIRE(c.rc == 0);
		CHECK(c.blocks == left);
		uint32_t lost = 0;
		for (const Extent &e : f.extents)
			lost += e.begin < end && e.end > begin;
		if (!c.damage.no_trailer)
			CHECK(c.damage.blocks_missing == lost);
	}
}

TEST_CASE("foreign bytes between blocks are skipped")
{
	Small f;
	std::mt19937 random(4);
	for (const Extent &e : f.extents)
		for (const size_t size : {1, 3, 4, 35, 36, 5'000, 70'000}) {
			std::string junk(size, 0);
			for (char &c : junk)
				c = "FTBK"[random() % 4]; // many starts of the magic number
			CAPTURE(e.begin, size);
			const Contents c =
			    f.with(f.bytes.substr(0, e.begin) + junk + f.bytes.substr(e.begin));
			REQUIRE(c.rc == 0);
			CHECK(c.blocks == moved(f.blocks, e.begin, static_cast<int64_t>(size)));
			CHECK(c.damage.bytes_skipped == size);
			CHECK(c.damage.gaps == 1);
			CHECK(c.damage.blocks_missing == 0);
		}
}

TEST_CASE("a block is found wherever its magic number is in the search window")
{
	Small f;
	const uint64_t at = f.extents[3].begin;
	for (size_t size = (64 << 10) - 6; size < (64 << 10) + 6; size++) {
		CAPTURE(size);
		const Contents c = f.with(f.bytes.substr(0, at) + std::string(size, 0) + f.bytes.substr(at));
		CHECK(c.blocks == moved(f.blocks, at, static_cast<int64_t>(size)));
		CHECK(c.damage.bytes_skipped == size);
	}
}

TEST_CASE("any number of random changes gives no block that was not written")
{
	Small f;
	std::mt19937 random(5);
	for (int round = 0; round < 2'000; round++) {
		std::string changed = f.bytes;
		for (unsigned n = 1 + random() % 12; n; n--) {
			const size_t at = random() % changed.size();
			switch (random() % 4) {
			case 0:
				changed[at] = static_cast<char>(random());
				break;
			case 1:
				changed.erase(at, random() % 100);
				break;
			case 2:
				changed.insert(at, changed.substr(random() % changed.size(), random() % 100));
				break;
			default:
				changed.replace(at, std::min<size_t>(64, changed.size() - at), 64, 0);
			}
			if (changed.empty())
				changed = "x";
		}
		for (const Block &b : f.with(changed).blocks) {
			bool written = false;
			for (Block known : f.blocks) {
				known.offset = b.offset;
				written = written || known == b;
			}
			CHECK(written);
		}
	}
}

TEST_CASE("a large recording cut at its blocks' ends and within them")
{
	TempDir dir;
	const std::string path = dir.file("r");
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, path.c_str(), "{}") == 0);
	std::mt19937_64 random(6);
	for (uint32_t i = 0; i < 20'000; i++) {
		ft_span s = span_number(i);
		s.arg[1] = random(); // so that it is hardly compressed
		ft_writer_record(w, FT_BLOCK_SPAN, &s);
	}
	REQUIRE(ft_writer_close(w, "{}") == 0);
	const std::string bytes = read_file(path);
	const std::vector<Extent> extents = walk(bytes);
	REQUIRE(extents.size() > 20);
	for (size_t i = 1; i < extents.size(); i++) {
		const uint64_t begin = extents[i].begin, size = extents[i].end - begin;
		for (const uint64_t into :
		     {uint64_t{0}, uint64_t{1}, uint64_t{35}, uint64_t{36}, size / 2, size - 1}) {
			CAPTURE(i, into);
			write_file(path, bytes.substr(0, begin + into));
			const Contents c = read_recording(path);
			REQUIRE(c.rc == 0);
			CHECK(c.blocks.size() == std::min(i, extents.size() - 2));
			CHECK(c.damage.bytes_skipped == into);
			CHECK(c.damage.no_trailer);
		}
	}
}

TEST_CASE("a file that cannot be opened is reported in a sentence")
{
	TempDir dir;
	const std::string path = dir.file("r");
	Contents c = read_recording(path);
	CHECK(c.rc == -ENOENT);
	CHECK(contains(c.error, path));
	CHECK(contains(c.error, "No such file"));

	write_file(path, "");
	c = read_recording(path);
	CHECK(c.rc == -ENODATA);
	CHECK(contains(c.error, "is empty"));

	std::string text;
	while (text.size() < 200'000)
		text += "FTBK is not enough to be a recording\n";
	for (const std::string &other : {std::string("x"), std::string(300'000, 0), text.substr(1)}) {
		write_file(path, other);
		c = read_recording(path);
		CHECK(c.rc == -EINVAL);
		CHECK(contains(c.error, "is not a recording"));
	}

	c = read_recording(dir.path());
	CHECK(c.rc == -EINVAL);
	CHECK(contains(c.error, "is a directory"));

	REQUIRE(mkfifo(dir.file("fifo").c_str(), 0600) == 0);
	c = read_recording(dir.file("fifo")); // must not wait for a writer
	CHECK(c.rc == -EINVAL);
	CHECK(contains(c.error, "not a regular file"));
}

TEST_CASE("a newer format is distinguished from damage")
{
	TempDir dir;
	const std::string path = dir.file("r");
	ft_block_header newer = header_of(FT_BLOCK_MANIFEST, 0, 1, 2);
	newer.version = FT_FORMAT_VERSION + 1;
	newer.flags = 128; // with an unknown meaning
	write_file(path, forged(newer, "{}"));
	Contents c = read_recording(path);
	CHECK(c.rc == -EPROTONOSUPPORT);
	CHECK(contains(c.error, "newer"));
	CHECK(contains(c.error, "format " + std::to_string(FT_FORMAT_VERSION + 1)));

	// One among readable blocks is skipped and counted.
	newer.sequence = 1;
	write_file(path, forged_json(FT_BLOCK_MANIFEST, 0, "{}") + forged(newer, "{}") +
			     forged_json(FT_BLOCK_NOTE, 2, "{}"));
	c = read_recording(path);
	CHECK(c.rc == 0);
	CHECK(c.blocks.size() == 2);
	CHECK(c.damage.blocks_missing == 1);
}

TEST_CASE("block kinds unknown to this build are returned")
{
	TempDir dir;
	write_file(dir.file("r"), forged_json(FT_BLOCK_MANIFEST, 0, "{}") + forged_json(999, 1, "new"));
	const Contents c = read_recording(dir.file("r"));
	REQUIRE(c.blocks.size() == 2);
	CHECK(c.blocks[1].kind == 999);
	CHECK(c.damage.gaps == 0);
}

TEST_CASE("invalid headers are skipped, and the next block is found")
{
	const auto packed = [](const std::string &raw) {
		std::string to(ZSTD_compressBound(raw.size()), 0);
		to.resize(ZSTD_compress(to.data(), to.size(), raw.data(), raw.size(), 1));
		return to;
	};
	const auto zstd_block = [&](const std::string &stored, uint32_t raw_bytes) {
		ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, static_cast<uint32_t>(stored.size()));
		h.flags = FT_BLOCK_ZSTD;
		h.raw_bytes = raw_bytes;
		return forged(h, stored);
	};
	const std::string raw(10'000, 'x'), full(128, 0);
	std::string lie;
	SECTION("more records than the payload has")
	{
		lie = forged(header_of(FT_BLOCK_DROP, sizeof(ft_drop), 5, 128), full);
	}
	SECTION("a count that overflows 32 bits when multiplied")
	{
		lie = forged(header_of(FT_BLOCK_DROP, 0x80000000, 0x80000002, 0), "");
	}
	SECTION("records of size zero")
	{
		lie = forged(header_of(FT_BLOCK_DROP, 0, 0xffffffff, 128), full);
	}
	SECTION("raw and stored sizes differ without compression")
	{
		ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, 128);
		h.raw_bytes = 129;
		lie = forged(h, full);
	}
	SECTION("a payload that reaches beyond the file")
	{
		ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, 100'000);
		lie = forged(h, full);
	}
	SECTION("a payload of 4 GB")
	{
		ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, 0xffffffff);
		lie = forged(h, full);
	}
	SECTION("unpacks to 4 GB, by its header")
	{
		lie = zstd_block(packed(raw), 0xffffffff);
	}
	SECTION("unpacks to more than the limit")
	{
		lie = zstd_block(packed(std::string(FT_BLOCK_LIMIT + 1, 'x')), FT_BLOCK_LIMIT + 1);
	}
	SECTION("unpacks to less than its header states")
	{
		lie = zstd_block(packed(raw), 10'001);
	}
	SECTION("unpacks to more than its header states")
	{
		lie = zstd_block(packed(raw), 9'999);
	}
	SECTION("is no zstd frame")
	{
		lie = zstd_block(raw, 10'000);
	}
	SECTION("an unknown storage method")
	{
		ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, 128);
		h.flags = 2;
		lie = forged(h, full);
	}
	TempDir dir;
	write_file(dir.file("r"), forged_json(FT_BLOCK_MANIFEST, 0, "{}") + lie +
				      forged_json(FT_BLOCK_NOTE, 2, "{\"t_ns\":1}"));
	const Contents c = read_recording(dir.file("r"));
	REQUIRE(c.rc == 0);
	REQUIRE(c.blocks.size() == 2);
	CHECK(c.blocks[1].payload == "{\"t_ns\":1}");
	CHECK(c.damage.bytes_skipped == lie.size());
	CHECK(c.damage.gaps == 1);
	CHECK(c.damage.blocks_missing == 1);
}

TEST_CASE("a file that unpacks to far more than its size is read only up to there")
{
	constexpr size_t raw_bytes = 60'000'000; // two of these are above what is free
	const std::string raw(raw_bytes, 'x');
	std::string stored(ZSTD_compressBound(raw_bytes), 0);
	stored.resize(ZSTD_compress(stored.data(), stored.size(), raw.data(), raw_bytes, 1));
	ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, static_cast<uint32_t>(stored.size()));
	h.flags = FT_BLOCK_ZSTD;
	h.raw_bytes = raw_bytes;
	const std::string one = forged(h, stored), manifest = forged_json(FT_BLOCK_MANIFEST, 0, "{}");
	TempDir dir;
	write_file(dir.file("one"), manifest + one);
	CHECK_FALSE(read_recording(dir.file("one")).damage.bomb);
	write_file(dir.file("many"), manifest + one + one + one + one);
	const Contents c = read_recording(dir.file("many"));
	CHECK(c.rc == 0);
	CHECK(c.damage.bomb);
	CHECK(c.blocks.size() == 2);
	CHECK(c.damage.bytes_skipped == 2 * one.size());
}

TEST_CASE("sequence numbers that jump are counted without overflow")
{
	TempDir dir;
	write_file(dir.file("r"),
		   forged_json(FT_BLOCK_MANIFEST, 5, "{}") + forged_json(FT_BLOCK_NOTE, 0xffffffff, "") +
		       forged_json(FT_BLOCK_NOTE, 0, "") + forged_json(FT_BLOCK_NOTE, 0xfffffff0, ""));
	const Contents c = read_recording(dir.file("r"));
	CHECK(c.blocks.size() == 4);
	CHECK(c.damage.blocks_missing == 0xffffffff);
}

TEST_CASE("a file of headers that all claim its rest is abandoned, not hashed for hours")
{
	// 110,000 headers of 4 MB each: without a limit, 220 GB to hash. The test's time limit is the check.
	TempDir dir;
	constexpr size_t SIZE = 4'000'000;
	std::string hostile;
	while (hostile.size() < SIZE) {
		const size_t rest = SIZE + 4096 - hostile.size() - sizeof(ft_block_header);
		ft_block_header h = header_of(FT_BLOCK_NOTE, 0, 1, static_cast<uint32_t>(rest));
		hostile += forged(h, "");
	}
	hostile.resize(SIZE + 8192);
	write_file(dir.file("r"), hostile);
	const Contents c = read_recording(dir.file("r"));
	CHECK(c.rc == -ENODATA);
}

TEST_CASE("a recording that is cut while it is read ends like one cut before")
{
	Small f;
	ft_reader *r = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&r, f.path.c_str(), error, sizeof(error)) == 0);
	ft_block b;
	REQUIRE(ft_reader_next(r, &b) == 1);
	REQUIRE(truncate(f.path.c_str(), static_cast<off_t>(f.extents[1].begin + 20)) == 0);
	CHECK(ft_reader_next(r, &b) == 0);
	ft_damage damage;
	ft_reader_damage(r, &damage);
	CHECK(damage.bytes_skipped == f.bytes.size() - f.extents[0].end);
	CHECK(damage.no_trailer);
	ft_reader_close(r);
}

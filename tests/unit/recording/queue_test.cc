// SPDX-License-Identifier: MIT
// A writer with a separate thread, on a disk that hangs: the file system is frozen, so that a call that waits
// for it waits until the test's time limit.
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/standing_disk.h"
#include "tests/unit/recording/support.h"

using namespace forktail::test;

namespace
{

constexpr size_t kQueue = 256 << 10;

// A span of the present time that hardly compresses.
ft_span span_now(std::mt19937_64 *random)
{
	uint64_t words[sizeof(ft_span) / 8];
	for (uint64_t &word : words)
		word = (*random)();
	ft_span s;
	std::memcpy(&s, words, sizeof(s));
	s.start_ns = ft_now_ns();
	return s;
}

// When each span of a recording began, in the recording's order.
std::vector<uint64_t> starts_in(const Contents &c)
{
	std::vector<uint64_t> all;
	for (const ft_span &s : all_records<ft_span>(c, FT_BLOCK_SPAN))
		all.push_back(s.start_ns);
	return all;
}

size_t blocks_of(const Contents &c, unsigned kind)
{
	size_t n = 0;
	for (const Block &b : c.blocks)
		n += b.kind == kind;
	return n;
}

} // namespace

TEST_CASE("recording does not wait for a hung disk, and dropped records are reported")
{
	StandingDisk disk;
	if (!disk.mounted())
		return;
	std::mt19937_64 random(9);
	std::vector<uint64_t> written;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, disk.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_background(w, kQueue) == 0);
	const auto write_spans = [&](size_t count) {
		for (size_t i = 0; i < count; i++) {
			const ft_span s = span_now(&random);
			ft_writer_record(w, FT_BLOCK_SPAN, &s);
			written.push_back(s.start_ns);
		}
	};
	write_spans(2500); // the queue has room for all of them
	REQUIRE(ft_writer_drain(w) == 0);
	CHECK(ft_writer_lost(w) == 0);
	for (unsigned times = 0; times < 2; times++) {
		REQUIRE(disk.stand(true));
		write_spans(40'000); // 3 MB
		// Records that others refer to, among records without room.
		for (unsigned i = 0; i < 100; i++)
			CHECK(ft_writer_block(w, FT_BLOCK_DETAIL, 0, 1, R"({"id":1})", 8) == 0);
		CHECK(ft_writer_flush(w) == 0);
		CHECK(ft_writer_lost(w) > 30'000 * (times + 1));
		REQUIRE(disk.stand(false));
		REQUIRE(ft_writer_drain(w) == 0);
	}
	write_spans(1000);
	const uint64_t lost = ft_writer_lost(w);
	REQUIRE(ft_writer_close(w, "{}") == 0);

	const Contents c = read_recording(disk.file("r"));
	REQUIRE(c.rc == 0);
	CHECK(c.damage.bytes_skipped == 0);
	CHECK(c.damage.blocks_missing == 0);
	CHECK_FALSE(c.damage.no_trailer);
	CHECK(blocks_of(c, FT_BLOCK_DETAIL) == 200);
	const std::vector<uint64_t> kept = starts_in(c);
	CHECK(std::is_sorted(kept.begin(), kept.end()));
	const std::vector<ft_drop> drops = all_records<ft_drop>(c, FT_BLOCK_DROP);
	REQUIRE(drops.size() == 2);
	uint64_t told = 0;
	for (const ft_drop &d : drops) {
		CHECK(d.source == FT_DROP_DISK);
		CHECK(d.detail == FT_BLOCK_SPAN);
		told += d.count;
	}
	CHECK(drops[0].end_ns < drops[1].start_ns);
	CHECK(told == lost);
	CHECK(kept.size() + told == written.size());
	const std::multiset<uint64_t> there(kept.begin(), kept.end());
	size_t out_of_place = 0;
	for (const uint64_t start : written)
		if (!there.count(start))
			out_of_place += !std::any_of(drops.begin(), drops.end(), [&](const ft_drop &d) {
				return start >= d.start_ns && start <= d.end_ns;
			});
	CHECK(out_of_place == 0);
}

TEST_CASE("blocks that others refer to are limited too, and counted")
{
	StandingDisk disk;
	if (!disk.mounted())
		return;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, disk.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_background(w, kQueue) == 0);
	REQUIRE(disk.stand(true));
	const std::string text = "{\"id\":1,\"name\":\"" + std::string(1000, 'x') + "\"}";
	for (unsigned i = 0; i < 1000; i++)
		ft_writer_block(w, FT_BLOCK_DETAIL, 0, 1, text.c_str(), text.size());
	const uint64_t lost = ft_writer_lost(w);
	REQUIRE(disk.stand(false));
	REQUIRE(ft_writer_close(w, "{}") == 0);
	const Contents c = read_recording(disk.file("r"));
	REQUIRE(c.rc == 0);
	CHECK(lost > 500);
	CHECK(lost + blocks_of(c, FT_BLOCK_DETAIL) == 1000);
	const std::vector<ft_drop> drops = all_records<ft_drop>(c, FT_BLOCK_DROP);
	REQUIRE(drops.size() == 1);
	CHECK(drops[0].count == lost);
	CHECK(drops[0].detail == FT_BLOCK_DETAIL);
}

TEST_CASE("a patient writer waits for room and drops nothing")
{
	StandingDisk disk;
	if (!disk.mounted())
		return;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, disk.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_background(w, kQueue) == 0);
	REQUIRE(disk.stand(true));
	ft_writer_patient(w);
	std::atomic<bool> done = false;
	std::thread writes([&] {
		std::mt19937_64 random(10);
		for (unsigned i = 0; i < 20'000; i++) {
			const ft_span s = span_now(&random);
			ft_writer_record(w, FT_BLOCK_SPAN, &s);
		}
		done = true;
	});
	std::this_thread::sleep_for(std::chrono::milliseconds(300));
	CHECK_FALSE(done);
	REQUIRE(disk.stand(false));
	writes.join();
	CHECK(ft_writer_lost(w) == 0);
	REQUIRE(ft_writer_close(w, "{}") == 0);
	const Contents c = read_recording(disk.file("r"));
	REQUIRE(c.rc == 0);
	CHECK(starts_in(c).size() == 20'000);
	CHECK(all_records<ft_drop>(c, FT_BLOCK_DROP).empty());
}

TEST_CASE("a killed writer with a queue leaves everything that the disk had received")
{
	TempDir dir;
	const size_t all = kill_writer(
	    dir.file("r"), 200, [](ft_writer *w) { ft_writer_background(w, kQueue); }, ft_writer_drain);
	const Contents c = read_recording(dir.file("r"));
	REQUIRE(c.rc == 0);
	CHECK(starts_in(c).size() >= all * 50);
	CHECK(c.damage.blocks_missing == 0);
}

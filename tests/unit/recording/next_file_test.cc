// SPDX-License-Identifier: MIT
// A writer that continues in a next file: each file is complete, nothing is in two of them, and an error of
// one file ends with the next.
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/unit/recording/support.h"

using namespace forktail::test;

// How many attempts to lock a file for writing find a reader's lock.
static int refused_locks = 0;

// Replaces the C library's function in this program.
extern "C" int flock(int fd, int operation) noexcept
{
	if (refused_locks && operation == (LOCK_EX | LOCK_NB)) {
		refused_locks--;
		errno = EWOULDBLOCK;
		return -1;
	}
	return static_cast<int>(syscall(SYS_flock, fd, operation));
}

namespace
{

struct Directory {
	explicit Directory(const std::string &path)
	    : fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
	{
	}
	~Directory() { close(fd); }
	int fd;
};

ft_span span_at(uint64_t start_ns)
{
	ft_span s = {};
	s.start_ns = start_ns;
	s.duration_ns = 1;
	return s;
}

std::vector<uint64_t> starts_in(const Contents &c)
{
	std::vector<uint64_t> all;
	for (const ft_span &s : all_records<ft_span>(c, FT_BLOCK_SPAN))
		all.push_back(s.start_ns);
	return all;
}

} // namespace

TEST_CASE("a reader that has the lock of a new file for a moment does not cost the file")
{
	TempDir dir;
	Directory d(dir.path());
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open_first(&w, d.fd, "1", "{}") == 0);
	refused_locks = 3;
	CHECK(ft_writer_next(w, d.fd, "2", "{}", "{}") == 0);
	CHECK(refused_locks == 0);
	CHECK(ft_writer_error(w) == 0);
	const int reader = open(dir.file("2").c_str(), O_RDONLY | O_CLOEXEC);
	CHECK(flock(reader, LOCK_SH | LOCK_NB) == -1); // the writer has it now
	close(reader);
	CHECK(ft_writer_close(w, "{}") == 0);
}

TEST_CASE("each file has what was written into it, with manifest, summary and trailer")
{
	const bool background = GENERATE(false, true);
	TempDir dir;
	Directory d(dir.path());
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open_first(&w, d.fd, "1", "{\"n\":1}") == 0);
	if (background)
		REQUIRE(ft_writer_background(w, 1 << 20) == 0);
	std::atomic<int> jobs = 0;
	for (uint64_t n = 1; n <= 3; n++) {
		const ft_span s = span_at(n);
		REQUIRE(ft_writer_record(w, FT_BLOCK_SPAN, &s) == 0);
		REQUIRE(ft_writer_then(
			    w, [](void *count) { ++*static_cast<std::atomic<int> *>(count); }, &jobs) == 0);
		if (n < 3)
			REQUIRE(ft_writer_next(w, d.fd, std::to_string(n + 1).c_str(),
					       ("{\"n\":" + std::to_string(n + 1) + "}").c_str(),
					       "{\"reason\":\"segment\"}") == 0);
	}
	CHECK(ft_writer_drain(w) == 0);
	CHECK(jobs == 3);
	CHECK(ft_writer_files(w) == 3);
	CHECK(ft_writer_close(w, "{\"reason\":\"end\"}") == 0);
	for (uint64_t n = 1; n <= 3; n++) {
		const Contents c = read_recording(dir.file(std::to_string(n)));
		INFO(n << " " << c.error);
		REQUIRE(c.rc == 0);
		CHECK(!c.damage.no_trailer);
		CHECK(c.damage.blocks_missing == 0);
		CHECK(c.blocks.front().payload == "{\"n\":" + std::to_string(n) + "}");
		CHECK(c.blocks.back().payload ==
		      (n < 3 ? "{\"reason\":\"segment\"}" : "{\"reason\":\"end\"}"));
		CHECK(starts_in(c) == std::vector<uint64_t>{n});
	}
}

TEST_CASE("an existing next file is not touched, and the one after it is used")
{
	TempDir dir;
	Directory d(dir.path());
	ft_writer *w = nullptr;
	write_file(dir.file("2"), "precious");
	REQUIRE(ft_writer_open_first(&w, d.fd, "1", "{}") == 0);
	CHECK(ft_writer_open_first(&w, d.fd, "2", "{}") == -EEXIST);
	REQUIRE(w == nullptr);
	REQUIRE(ft_writer_open_first(&w, d.fd, "0", "{}") == 0);
	REQUIRE(ft_writer_background(w, 1 << 20) == 0);
	REQUIRE(ft_writer_next(w, d.fd, "2", "{}", "{}") == 0);
	CHECK(ft_writer_drain(w) == -EEXIST);
	CHECK(ft_writer_files(w) == 2);
	const ft_span lost = span_at(7), kept = span_at(8);
	ft_writer_record(w, FT_BLOCK_SPAN, &lost);
	REQUIRE(ft_writer_next(w, d.fd, "3", "{}", "{}") == 0);
	ft_writer_record(w, FT_BLOCK_SPAN, &kept);
	CHECK(ft_writer_drain(w) == 0);
	CHECK(ft_writer_lost(w) == 1);
	CHECK(ft_writer_close(w, "{}") == 0);
	CHECK(read_file(dir.file("2")) == "precious");
	const Contents c = read_recording(dir.file("3"));
	CHECK(starts_in(c) == std::vector<uint64_t>{8});
	const auto drops = all_records<ft_drop>(c, FT_BLOCK_DROP);
	REQUIRE(drops.size() == 1);
	CHECK(drops[0].source == FT_DROP_DISK);
	CHECK(drops[0].detail == FT_BLOCK_SPAN);
	CHECK(drops[0].count == 1);
}

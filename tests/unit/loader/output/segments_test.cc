// SPDX-License-Identifier: MIT
// The ring without a recorder: valid limits, accepted directories, and which segments are evicted.
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/output.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t kSecond = 1000000000;

ring_limits limits_of(const std::string &text)
{
	ring_limits limits = {};
	if (!ring_limits_parse(text.c_str(), &limits))
		limits = {};
	return limits;
}

std::string segment(int number)
{
	char name[64];
	snprintf(name, sizeof name, "segment-%010d.forktail", number);
	return name;
}

std::set<std::string> files_in(const std::string &path)
{
	std::set<std::string> all;
	for (const auto &e : std::filesystem::directory_iterator(path))
		all.insert(e.path().filename());
	return all;
}

// An older segment with this size and time of the last write.
void put(const std::string &directory, int number, size_t bytes, time_t written)
{
	const std::string path = directory + "/" + segment(number);
	write_file(path, std::string(bytes, 'x'));
	const timespec times[2] = {{written, 0}, {written, 0}};
	REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

struct Ring {
	Ring(const std::string &path, const std::string &limits)
	{
		const ring_limits l = limits_of(limits);
		const file_owner user = {geteuid(), getegid()};
		error = segments_open(&ring, path.c_str(), &l, &user, &why);
	}
	~Ring()
	{
		ft_writer_close(writer, "{}");
		segments_close(ring);
	}
	void begin(uint64_t now_ns) { REQUIRE(segments_begin(ring, &writer, "{}", now_ns) == 0); }
	void next(uint64_t now_ns) { REQUIRE(segments_next(ring, writer, "{}", "{}", now_ns) == 0); }
	struct segments *ring = nullptr;
	ft_writer *writer = nullptr;
	const char *why = nullptr;
	int error = 0;
};

} // namespace

TEST_CASE("limits are a time and a size, and nothing else")
{
	CHECK(limits_of("10m").age_ns == 600 * kSecond);
	CHECK(limits_of("10m").bytes == 1000000000);
	CHECK(limits_of("2h,2GB").bytes == 2000000000);
	CHECK(limits_of("7d").age_ns == 7 * 86400 * kSecond);
	CHECK(limits_of("10s,4MB").bytes == 4000000);
	for (const char *bad : {"", "10", "9s", "8d", "10m,", "10m,3MB", "10m,2", ",2GB", "10m 2GB", "-10m",
				"10m,2GB,", "1e9d", "10m,nanGB", "10m,999999999999TB"}) {
		INFO(bad);
		CHECK(limits_of(bad).age_ns == 0);
	}
}

TEST_CASE("a directory that others can enter, another user's directory and one in use are refused")
{
	TempDir dir;
	const std::string path = dir.file("ring");
	{
		Ring made(path, "10m");
		REQUIRE(made.error == 0);
		struct stat st = {};
		REQUIRE(stat(path.c_str(), &st) == 0);
		CHECK((st.st_mode & 07777) == 0700);
		Ring second(path, "10m");
		CHECK(second.error == -EWOULDBLOCK);
		CHECK(std::string(second.why) == "another recorder is writing to it");
	}
	CHECK(Ring(path, "10m").error == 0);
	REQUIRE(chmod(path.c_str(), 0750) == 0);
	CHECK(Ring(path, "10m").error == -EACCES);
	CHECK(Ring(dir.file("no/such"), "10m").error == -ENOENT);
	REQUIRE(symlink(path.c_str(), dir.file("link").c_str()) == 0);
	CHECK(Ring(dir.file("link"), "10m").error != 0);
	if (geteuid() == 0) {
		REQUIRE(chmod(path.c_str(), 0700) == 0);
		REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
		CHECK(Ring(path, "10m").error == -EACCES);
	}
}

TEST_CASE("it continues after existing segments and ignores other files")
{
	TempDir dir;
	put(dir.path(), 41, 10, 1000);
	write_file(dir.file("segment-43.forktail"), "");
	write_file(dir.file("notes"), "mine");
	REQUIRE(chmod(dir.path().c_str(), 0700) == 0);
	Ring ring(dir.path(), "10m,4MB");
	REQUIRE(ring.error == 0);
	ring.begin(0);
	CHECK(files_in(dir.path()) ==
	      std::set<std::string>{"notes", "segment-43.forktail", segment(41), segment(42)});
}

TEST_CASE("segments are evicted when newer ones cover the retained time, whatever the gap between recorders")
{
	TempDir dir;
	REQUIRE(chmod(dir.path().c_str(), 0700) == 0);
	// Three of a recorder that ended a year before. They last at most 1.25 s each (an eighth of 10 s).
	for (int i = 1; i <= 3; i++)
		put(dir.path(), i, 10, 1000 + i);
	Ring ring(dir.path(), "10s,1GB");
	REQUIRE(ring.error == 0);
	uint64_t now = 5000 * kSecond;
	ring.begin(now);
	CHECK(segments_count(ring.ring) == 3);
	for (int i = 0; i < 8; i++)
		ring.next(now += kSecond);
	// 1.25 + 1 + 1 s of old ones, and eight seconds since: the two that remain cover 10 s.
	CHECK(files_in(dir.path()).count(segment(1)) == 0);
	CHECK(files_in(dir.path()).count(segment(3)) == 1);
	for (int i = 0; i < 4; i++)
		ring.next(now += kSecond);
	CHECK(files_in(dir.path()).count(segment(3)) == 0);
	CHECK(segments_count(ring.ring) == 10);
}

TEST_CASE("the oldest are evicted when there are too many bytes, also at the beginning")
{
	TempDir dir;
	REQUIRE(chmod(dir.path().c_str(), 0700) == 0);
	for (int i = 1; i <= 6; i++)
		put(dir.path(), i, 1000000, 1000 + i);
	Ring ring(dir.path(), "1h,4MB");
	REQUIRE(ring.error == 0);
	ring.begin(0);
	// The current one has half a megabyte.
	CHECK(segments_bytes(ring.ring) == 3000000);
	CHECK(files_in(dir.path()) == std::set<std::string>{segment(4), segment(5), segment(6), segment(7)});
}

TEST_CASE("the next segment is due by time or size, but not before the writer has begun the last one")
{
	TempDir dir;
	REQUIRE(chmod(dir.path().c_str(), 0700) == 0);
	Ring ring(dir.path(), "10m,4MB");
	REQUIRE(ring.error == 0);
	ring.begin(kSecond);
	CHECK(!segments_due(ring.ring, ring.writer, 5 * kSecond));
	CHECK(segments_due(ring.ring, ring.writer, 6 * kSecond));
	const std::string half(600000, 'x'); // request columns are stored uncompressed
	REQUIRE(ft_writer_block(ring.writer, FT_BLOCK_REQUEST, 0, 1, half.data(), half.size()) == 0);
	CHECK(segments_due(ring.ring, ring.writer, 2 * kSecond));
	ring.next(2 * kSecond);
	CHECK(!segments_due(ring.ring, ring.writer, 3 * kSecond));
	// The writer began this one before segments_next() returned, as its thread may do too.
	CHECK(segments_due(ring.ring, ring.writer, 7 * kSecond));
}

TEST_CASE("rotation continues after a segment that could not be created")
{
	TempDir dir;
	REQUIRE(chmod(dir.path().c_str(), 0700) == 0);
	Ring ring(dir.path(), "10m,4MB");
	REQUIRE(ring.error == 0);
	ring.begin(kSecond);
	put(dir.path(), 2, 10, 1); // in the way
	ring.next(2 * kSecond);
	REQUIRE(ft_writer_error(ring.writer) == -EEXIST);
	REQUIRE(segments_recover(ring.ring, ring.writer, 3 * kSecond));
	ring.next(3 * kSecond);
	REQUIRE(ft_writer_error(ring.writer) == 0);
	CHECK(!segments_due(ring.ring, ring.writer, 7 * kSecond));
	CHECK(segments_due(ring.ring, ring.writer, 8 * kSecond));
}

// SPDX-License-Identifier: MIT
// Snapshots' names, and which snapshots are deleted.
#include "live/guard/jobs.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::live::guard;

namespace
{

constexpr uint64_t kSecond = 1'000'000'000;

// A directory with this many bytes in all; number 0: it has no marker.
void make(const forktail::test::TempDir &dir, const std::string &name, size_t bytes, int number)
{
	std::filesystem::create_directory(dir.file(name));
	const std::string marker =
	    number ? R"({"name": ")" + name + R"(", "number": )" + std::to_string(number) + "}" : "";
	if (number)
		std::ofstream(dir.file(name) + "/" + kMarker) << marker;
	std::ofstream(dir.file(name) + "/segment-0000000001.forktail")
	    << std::string(bytes - marker.size(), 'x');
}

std::string names(const std::string &directory)
{
	std::string all;
	for (const SavedSnapshot &k : SnapshotsIn(directory))
		all += k.name.substr(0, 8) + " ";
	return all;
}

} // namespace

TEST_CASE("a snapshot is named by time, server and trigger, whatever their names")
{
	const Firing fired{"stall-fork", "redis-server:6379", "", 0, 0};
	CHECK(SnapshotName(1795420503 * kSecond, fired) == "20261123T075503Z-redis-server-6379-stall-fork");
	const Firing odd{"iteration", "redis-server:/run/../x y\n\x1b[2J(container web)", "", 0, 0};
	const std::string name = SnapshotName(0, odd);
	CHECK(name == "19700101T000000Z-redis-server-run-..-x-y-2J-container-web-iteration");
	CHECK(SnapshotName(0, {"drops", "", "", 0, 0}) == "19700101T000000Z-drops");
	CHECK(SnapshotName(0, {"drops", std::string(5000, 'a'), "", 0, 0}).size() == 100);
}

TEST_CASE("the oldest snapshots are deleted when there are too many, or too many bytes; nothing else is")
{
	forktail::test::TempDir dir;
	// A clock that was wrong for a while: the newest has the oldest name.
	make(dir, "20260102T000000Z-b", 1000, 2);
	make(dir, "20990101T000000Z-a", 1000, 1);
	make(dir, "20260103T000000Z-c", 1000, 3);
	make(dir, "20200104T000000Z-d", 1000, 4);
	make(dir, "mine", 1000, 0);
	make(dir, "20250101T000000Z-no-marker", 1000, 0);
	std::filesystem::create_directory_symlink(dir.file("mine"), dir.file("20200101T000000Z-link"));
	CHECK(names(dir.path()) == "20990101 20260102 20260103 20200104 ");
	CHECK(NextNumber(dir.path()) == 5);
	CHECK(MakeRoom(dir.path(), 3, 1'000'000, "20200104T000000Z-d") == 1);
	CHECK(names(dir.path()) == "20260102 20260103 20200104 ");
	CHECK(MakeRoom(dir.path(), 3, 2000, "20200104T000000Z-d") == 1);
	CHECK(names(dir.path()) == "20260103 20200104 ");
	// The newest snapshot stays, however large.
	CHECK(MakeRoom(dir.path(), 3, 10, "20200104T000000Z-d") == 1);
	CHECK(names(dir.path()) == "20200104 ");
	CHECK(MakeRoom(dir.path(), 1, 10, "20200104T000000Z-d") == 0);
	for (const char *other : {"mine", "20250101T000000Z-no-marker", "20200101T000000Z-link"})
		CHECK(std::filesystem::exists(dir.file(other)));
}

TEST_CASE("a snapshot that an operator renamed, or put a file named keep into, stays and does not count")
{
	forktail::test::TempDir dir;
	for (int i = 1; i <= 4; i++)
		make(dir, "2026010" + std::to_string(i) + "T000000Z-x", 1000, i);
	std::filesystem::rename(dir.file("20260101T000000Z-x"), dir.file("20260101T000000Z-INCIDENT"));
	std::ofstream(dir.file("20260102T000000Z-x") + "/" + kKeepFile) << "";
	CHECK(MakeRoom(dir.path(), 1, 1'000'000, "20260104T000000Z-x") == 1);
	CHECK(std::filesystem::exists(dir.file("20260101T000000Z-INCIDENT")));
	CHECK(std::filesystem::exists(dir.file("20260102T000000Z-x")));
	CHECK_FALSE(std::filesystem::exists(dir.file("20260103T000000Z-x")));
}

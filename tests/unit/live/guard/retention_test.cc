// SPDX-License-Identifier: MIT
// Snapshots' names, and which snapshots are deleted.
#include "live/guard/retention.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::live::guard;

namespace
{

constexpr uint64_t kSecond = 1'000'000'000;

void make(const forktail::test::TempDir &dir, const std::string &name, size_t bytes)
{
	std::filesystem::create_directory(dir.file(name));
	std::ofstream(dir.file(name) + "/segment-0000000001.forktail") << std::string(bytes, 'x');
}

std::string names(const std::string &directory)
{
	std::string all;
	for (const Kept &k : SnapshotsIn(directory))
		all += k.name.substr(0, 8) + " ";
	return all;
}

} // namespace

TEST_CASE("a snapshot is named by time, server and trigger, whatever their names")
{
	const Fired fired{"stall-fork", "redis-server:6379", "", 0, 0};
	CHECK(SnapshotName(1795420503 * kSecond, fired) == "20261123T075503Z-redis-server-6379-stall-fork");
	const Fired odd{"iteration", "redis-server:/run/../x y\n\x1b[2J(container web)", "", 0, 0};
	const std::string name = SnapshotName(0, odd);
	CHECK(name == "19700101T000000Z-redis-server-run-..-x-y-2J-container-web-iteration");
	CHECK(SnapshotName(0, {"drops", "", "", 0, 0}) == "19700101T000000Z-drops");
	CHECK(SnapshotName(0, {"drops", std::string(5000, 'a'), "", 0, 0}).size() == 100);
}

TEST_CASE("the oldest snapshots are deleted when there are too many, or too many bytes; nothing else is")
{
	forktail::test::TempDir dir;
	for (const char *name :
	     {"20260101T000000Z-a", "20260102T000000Z-b", "20260103T000000Z-c", "20260104T000000Z-d", "mine"})
		make(dir, name, 1000);
	std::filesystem::create_directory_symlink(dir.file("mine"), dir.file("20200101T000000Z-link"));
	CHECK(names(dir.path()) == "20260101 20260102 20260103 20260104 ");
	CHECK(MakeRoom(dir.path(), 3, 1'000'000, "20260104T000000Z-d") == 1);
	CHECK(names(dir.path()) == "20260102 20260103 20260104 ");
	CHECK(MakeRoom(dir.path(), 3, 2000, "20260104T000000Z-d") == 1);
	CHECK(names(dir.path()) == "20260103 20260104 ");
	// The newest snapshot stays, however large.
	CHECK(MakeRoom(dir.path(), 3, 10, "20260104T000000Z-d") == 1);
	CHECK(names(dir.path()) == "20260104 ");
	CHECK(MakeRoom(dir.path(), 1, 10, "20260104T000000Z-d") == 0);
	CHECK(std::filesystem::exists(dir.file("mine")));
	CHECK(std::filesystem::exists(dir.file("20200101T000000Z-link")));
}

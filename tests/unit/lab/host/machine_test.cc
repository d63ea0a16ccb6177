// SPDX-License-Identifier: MIT
// How large a data set the lab chooses on this machine.
#include "lab/host/machine.h"

#include "tests/support/catch.h"

using namespace forktail::lab;

namespace
{
constexpr uint64_t kGib = uint64_t{1} << 30;
}

TEST_CASE("A data set has the requested size when there is room")
{
	std::string why = "something";
	CHECK(ChooseSizeMb(1024, 3 * kGib, {4 * kGib, false}, &why) == 1024);
	CHECK(why.empty());
}

TEST_CASE("Little memory makes it smaller, with a message")
{
	std::string why;
	CHECK(ChooseSizeMb(1024, 3 * kGib - 1, {100 * kGib, false}, &why) == 1023);
	CHECK(why == "only 3.22 GB of memory are available, but 3 times the size of the data set is needed");
	CHECK(ChooseSizeMb(1024, 0, {100 * kGib, false}, &why) == 0);
}

TEST_CASE("Little disk space makes it smaller, with a message")
{
	std::string why;
	CHECK(ChooseSizeMb(1024, 100 * kGib, {kGib, false}, &why) == 256);
	CHECK(
	    why ==
	    "only 1.07 GB of temporary disk space are free, but 4 times the size of the data set is needed");
}

TEST_CASE("Temporary files in memory count as memory")
{
	std::string why;
	CHECK(ChooseSizeMb(1024, 7 * kGib, {100 * kGib, true}, &why) == 1024);
	CHECK(ChooseSizeMb(1024, 3 * kGib, {100 * kGib, true}, &why) == 438);
}

TEST_CASE("A size too small to show anything is refused, unless requested")
{
	std::string why;
	CHECK(ChooseSizeMb(1024, 3 * 63 * (kGib / 1024), {100 * kGib, false}, &why) == 0);
	CHECK(ChooseSizeMb(1024, 3 * 64 * (kGib / 1024), {100 * kGib, false}, &why) == 64);
	CHECK(ChooseSizeMb(10, 3 * 63 * (kGib / 1024), {100 * kGib, false}, &why) == 10);
}

TEST_CASE("This machine has a name, a kernel, memory and disk space")
{
	CHECK_FALSE(HostName().empty());
	CHECK_FALSE(KernelRelease().empty());
	CHECK(AvailableMemoryBytes() > 1 << 20);
	CHECK(RoomIn("/").free_bytes > 0);
	CHECK(RoomIn("/nonexistent").free_bytes == 0);
}

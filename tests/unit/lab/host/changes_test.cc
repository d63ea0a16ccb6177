// SPDX-License-Identifier: MIT
// Changes to the host: sizes, and changes that cannot be made and are refused with a message.
#include <filesystem>

#include "lab/host/machine.h"
#include "lab/host/memory.h"
#include "lab/host/steering.h"
#include "lab/host/swap.h"
#include "lab/scenario/words.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::lab;
using forktail::test::TempDir;

TEST_CASE("Sizes are numbers with a unit, or bytes")
{
	uint64_t bytes = 0;
	CHECK((ParseBytes("4096", &bytes) && bytes == 4096));
	CHECK((ParseBytes("0", &bytes) && bytes == 0));
	CHECK((ParseBytes("64KiB", &bytes) && bytes == 64 << 10));
	CHECK((ParseBytes("256MiB", &bytes) && bytes == 256 << 20));
	CHECK((ParseBytes("1GiB", &bytes) && bytes == 1 << 30));
	CHECK((ParseBytes("3TiB", &bytes) && bytes == uint64_t(3) << 40));
	CHECK((ParseBytes("16777215TiB", &bytes) && bytes == uint64_t(16777215) << 40));
	CHECK((ParseBytes("18446744073709551615", &bytes) && bytes == UINT64_MAX));
	for (const char *wrong : {"", "MiB", "1.5GiB", "-1", "+1", "1 GiB", "1GB", "1gib", "1GiBs",
				  "16777216TiB", "18446744073709551616"}) {
		INFO(wrong);
		CHECK_FALSE(ParseBytes(wrong, &bytes));
	}
}

TEST_CASE("An impossible change is refused with a message and leaves nothing")
{
	Session session;
	std::string error;
	REQUIRE(OpenSession(&session, &error));
	TempDir dir;
	Swap swap;
	SECTION("swap of another kind")
	{
		CHECK_FALSE(MakeSwap(&session, "floppy", 1 << 20, dir.path(), &swap, &error));
		CHECK(error == "unknown kind of swap floppy: use zram or file");
	}
	SECTION("swap without a size")
	{
		CHECK_FALSE(MakeSwap(&session, "file", 0, dir.path(), &swap, &error));
		CHECK(error == "swap of 0 bytes is too little");
	}
	SECTION("swap larger than the disk")
	{
		CHECK_FALSE(MakeSwap(&session, "file", uint64_t(1) << 43, dir.path(), &swap, &error));
		CHECK(error.rfind("cannot create swap of 8796093022208 bytes in " + dir.path() + "/", 0) ==
		      0);
	}
	SECTION("swap in a file on a file system in memory")
	{
		CHECK_FALSE(MakeSwap(&session, "file", 1 << 20, "/dev/shm", &swap, &error));
		CHECK(error == "cannot swap to a file in /dev/shm: it is in memory. Set TMPDIR to a "
			       "directory on a disk.");
	}
	SECTION("steering without an interface")
	{
		CHECK_FALSE(SpreadSoftirqs(&session, "nonesuch0", true, &error));
		CHECK(error == "cannot spread the soft interrupts of nonesuch0: it has no receive queues");
	}
	CHECK(swap.device.empty());
	CHECK(CloseSession(&session, &error));
	CHECK(std::filesystem::is_empty(dir.path()));
}

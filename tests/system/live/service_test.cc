// SPDX-License-Identifier: MIT
// forktail record --config as a service of type notify, on a real redis-server: its messages to the manager,
// that a reload keeps the ring, that forktail trigger reaches it, that it is silent once its recorder hangs,
// and that it continues while its disk refuses to write.
#include <cstdint>

#include "tests/support/standing_disk.h"
#include "tests/system/live/service.h"

using namespace forktail::test;

TEST_CASE("a service reports when it is ready, its status, and its end; a reload and a trigger reach it")
{
	Service s;
	INFO(s.recorder->err());
	REQUIRE(eventually([&] { return s.manager->heard("READY=1") == 1; }, Seconds(30)));
	CHECK(eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(5)));
	CHECK(eventually([&] { return s.manager->heard("STATUS=recording; ") > 0; }, Seconds(15)));

	CHECK(s.trigger("later").status == 1);
	s.write_config("[[trigger]]\nname = \"later\"\n");
	const size_t before = std::distance(std::filesystem::directory_iterator(s.ring), {});
	s.recorder->signal(SIGHUP);
	Result asked;
	CHECK(eventually([&] { return (asked = s.trigger("later")).status == 0; }, Seconds(10)));
	INFO(asked.err);
	CHECK(eventually([&] { return s.snapshots() == 1; }, Seconds(120)));
	CHECK(s.recorder->running());
	CHECK(static_cast<size_t>(std::distance(std::filesystem::directory_iterator(s.ring), {})) >= before);

	s.manager->heard(""); // a socket holds ten messages
	s.recorder->signal(SIGTERM);
	CHECK(s.recorder->wait(Seconds(20)) == 0);
	CHECK(eventually([&] { return s.manager->heard("STOPPING=1") == 1; }, Seconds(10)));
}

TEST_CASE("the watchdog gets no message while the recorder hangs, and does again once it continues")
{
	Service s;
	INFO(s.recorder->err());
	REQUIRE(eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(30)));
	s.recorder->signal(SIGSTOP);
	sleep_for(Seconds(5)); // its last message may be three seconds old
	s.manager->heard("");
	sleep_for(Seconds(3));
	CHECK(s.manager->heard("WATCHDOG=1") == 0);
	s.recorder->signal(SIGCONT);
	CHECK(eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(10)));
}

TEST_CASE("the watchdog gets messages while the disk refuses to write, and the recorder continues")
{
	const int error = GENERATE(EROFS, EIO);
	StandingDisk disk;
	if (!disk.mounted())
		return;
	for (const char *directory : {"", ".."}) // for the guard
		REQUIRE(chmod(disk.file(directory).c_str(), 0711) == 0);
	Service s({}, disk.file("ring"));
	REQUIRE(s.ready());
	REQUIRE(disk.fail(error));
	CHECK(eventually(
	    [&] {
		    return s.recorder->err().find(std::string(strerror(error)) + ". Events are lost") !=
			   std::string::npos;
	    },
	    Seconds(20)));
	// The guard's last messages may be as late as its last records.
	const auto quiet = [&] {
		return !eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(3));
	};
	for (int periods = 0; periods < 5; periods++)
		CHECK_FALSE(quiet());
	CHECK(s.recorder->running());
	s.recorder->signal(SIGTERM);
	CHECK(s.recorder->wait(Seconds(20)).has_value());
}

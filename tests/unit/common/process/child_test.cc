// SPDX-License-Identifier: MIT
// What an idle child is to the scheduler, as the kernel says it.
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guard/children.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::guard;
using namespace ft::test;

namespace
{

std::string SaysOfItself(bool idle)
{
	TempDir dir;
	ChildWords words;
	words.name = "a child";
	words.argv = {"/bin/sh", "-c",
		      "chrt -p $$; ionice -p $$; nice; cat /proc/$$/autogroup 2>/dev/null || echo no group"};
	words.output = dir.file("said");
	words.idle = idle;
	Child child;
	std::string error;
	REQUIRE(StartChild(words, 0, 1, &child, &error));
	REQUIRE(eventually([&] { return HasEnded(&child, 0); }));
	CHECK(EndedWell(child));
	return read_file(words.output);
}

} // namespace

TEST_CASE("an idle child gives way to all others, in other sessions too, and any other to none")
{
	// As the guard is, whose files in /proc are then root's.
	prctl(PR_SET_DUMPABLE, 0);
	const std::string idle = SaysOfItself(true), usual = SaysOfItself(false);
	prctl(PR_SET_DUMPABLE, 1);
	INFO(idle << usual);
	CHECK(idle.find("SCHED_IDLE") != std::string::npos);
	CHECK(idle.find("\nidle\n19\n") != std::string::npos);
	CHECK(usual.find("SCHED_OTHER") != std::string::npos);
	if (access("/proc/self/autogroup", F_OK) == 0) {
		CHECK(idle.find(" nice 19\n") != std::string::npos);
		CHECK(usual.find(" nice 0\n") != std::string::npos);
	}
}

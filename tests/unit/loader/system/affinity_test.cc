// SPDX-License-Identifier: MIT
// The recorder asks for short time slices. How long it holds a CPU is measured by bench/cpu_pieces.
#include <fstream>
#include <regex>
#include <thread>

#include "tests/support/catch.h"

#include "loader/system.h"

TEST_CASE("slices are shortened where the kernel has them per thread")
{
	std::string text;
	int err = -1;
	std::thread([&] {
		err = slices_shorten();
		std::ifstream in("/proc/thread-self/sched");
		text.assign(std::istreambuf_iterator<char>(in), {});
	}).join();
	CHECK(err == 0);
	std::smatch slice;
	if (std::regex_search(text, slice, std::regex("se\\.slice +: +([0-9]+)")))
		CHECK(slice[1] == "100000");
	else
		WARN("SKIPPED: this kernel does not show slices");
}

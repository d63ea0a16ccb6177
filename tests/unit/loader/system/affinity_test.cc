// SPDX-License-Identifier: MIT
// The recorder holds a CPU for a short time only, while another thread waits for it.
#include <atomic>
#include <fstream>
#include <regex>
#include <sched.h>
#include <sys/resource.h>
#include <thread>

#include "tests/support/catch.h"

#include "loader/system/affinity.h"
#include "loader/system/cpu_time.h"

namespace
{

void pin_to(int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

} // namespace

TEST_CASE("a thread that offers its CPU in a loop holds it for shorter times")
{
	constexpr uint64_t kWork_ns = 100'000'000;
	const int cpu = sched_getcpu();
	std::atomic<bool> begun = false, ended = false;
	std::thread other([&] {
		pin_to(cpu);
		begun = true;
		while (!ended) {
		}
	});
	// How often a thread lost the CPU to another one in 100 ms of its own CPU time.
	const auto pieces = [&](void (*offer)()) {
		long count = 0;
		std::thread([&] {
			pin_to(cpu);
			while (!begun)
				sched_yield();
			rusage before = {}, after = {};
			getrusage(RUSAGE_THREAD, &before);
			for (const uint64_t end_ns = thread_cpu_ns() + kWork_ns; thread_cpu_ns() < end_ns;)
				offer();
			getrusage(RUSAGE_THREAD, &after);
			count = after.ru_nivcsw - before.ru_nivcsw;
		}).join();
		return count;
	};
	const long without = pieces([] {}), with = pieces(cpu_offer_in_loop);
	ended = true;
	other.join();
	INFO(without << " without");
	CHECK(with > without + without / 2);
}

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

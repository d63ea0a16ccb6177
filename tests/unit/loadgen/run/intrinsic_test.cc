// SPDX-License-Identifier: MIT
// The thread that measures this host's own lateness: every instant is reported once, in order, never early.
// How late they are depends on the host and is not tested.
#include <cerrno>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>
#include <vector>

#include "loadgen/run/intrinsic.h"
#include "recording/recording.h"
#include "tests/support/catch.h"

namespace
{

struct Woken {
	uint64_t intended_ns, woken_ns;
	int cpu;
};

void note(void *arg, uint64_t intended_ns, uint64_t woken_ns)
{
	static_cast<std::vector<Woken> *>(arg)->push_back({intended_ns, woken_ns, sched_getcpu()});
}

// Instants follow each other at the period; wake-ups are never early and never go back. A wake-up that
// reports several instants counts the missed ones.
void check(const std::vector<Woken> &all, const intrinsic_result &result, uint64_t period_ns)
{
	CHECK(result.instants == all.size());
	uint64_t due_ns = result.start_ns, last_ns = 0, repeated = 0;
	bool ok = true;
	for (const Woken &w : all) {
		due_ns += period_ns;
		ok = ok && w.intended_ns == due_ns && w.woken_ns >= w.intended_ns && w.woken_ns >= last_ns;
		repeated += w.woken_ns == last_ns;
		last_ns = w.woken_ns;
	}
	CHECK(ok);
	CHECK(result.missed == repeated);
}

} // namespace

TEST_CASE("the number of instants is the number of periods in the duration")
{
	for (const auto &[period_ns, duration_ns, count] :
	     {std::tuple<uint64_t, uint64_t, size_t>{0, 50000000, 50},
	      {100000, 20050000, 200},
	      {7000000, 7000000, 1}}) {
		std::vector<Woken> all;
		intrinsic_result result;
		const intrinsic_options options = {period_ns, duration_ns, -1, nullptr};
		REQUIRE(intrinsic_run(&options, note, &all, &result) == 0);
		CHECK(all.size() == count);
		check(all, result, period_ns ? period_ns : 1000000);
	}
}

TEST_CASE("instants that pass while the callback is busy are reported as missed")
{
	struct Slow {
		std::vector<Woken> all;
	} slow;
	intrinsic_result result;
	const intrinsic_options options = {1000000, 50000000, -1, nullptr};
	REQUIRE(intrinsic_run(
		    &options,
		    [](void *arg, uint64_t intended_ns, uint64_t woken_ns) {
			    auto *s = static_cast<Slow *>(arg);
			    note(&s->all, intended_ns, woken_ns);
			    if (s->all.size() == 1)
				    while (ft_now_ns() < intended_ns + 10500000) {
				    }
		    },
		    &slow, &result) == 0);
	CHECK(slow.all.size() == 50);
	check(slow.all, result, 1000000);
	// Ten instants passed in the first call: one wake-up reports all of them.
	CHECK(result.missed >= 9);
	CHECK(slow.all[10].woken_ns == slow.all[1].woken_ns);
}

TEST_CASE("a flag ends the thread")
{
	static volatile int stop;
	stop = 0;
	std::vector<Woken> all;
	intrinsic_result result = {};
	int rc = -1;
	std::thread thread([&] {
		const intrinsic_options options = {100000, 0, -1, &stop};
		rc = intrinsic_run(
		    &options,
		    [](void *arg, uint64_t intended_ns, uint64_t woken_ns) {
			    note(arg, intended_ns, woken_ns);
			    if (static_cast<std::vector<Woken> *>(arg)->size() >= 20)
				    stop = 1;
		    },
		    &all, &result);
	});
	thread.join();
	CHECK(rc == 0);
	CHECK(all.size() >= 20);
	check(all, result, 100000);

	const intrinsic_options set_before = {1000, 1000000000, -1, &stop};
	REQUIRE(intrinsic_run(&set_before, note, &all, &result) == 0);
	CHECK(result.instants == 0);
}

TEST_CASE("a pinned thread stays on its CPU, and gets its affinity and timer slack back")
{
	std::thread([] {
		cpu_set_t before, after;
		REQUIRE(pthread_getaffinity_np(pthread_self(), sizeof(before), &before) == 0);
		prctl(PR_SET_TIMERSLACK, 70000);
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
			if (!CPU_ISSET(cpu, &before))
				continue;
			std::vector<Woken> all;
			intrinsic_result result;
			const intrinsic_options options = {500000, 10000000, cpu, nullptr};
			REQUIRE(intrinsic_run(&options, note, &all, &result) == 0);
			CHECK(all.size() == 20);
			for (const Woken &w : all)
				CHECK(w.cpu == cpu);
		}
		REQUIRE(pthread_getaffinity_np(pthread_self(), sizeof(after), &after) == 0);
		CHECK(CPU_EQUAL(&before, &after));
		CHECK(prctl(PR_GET_TIMERSLACK) == 70000);
	}).join();
}

TEST_CASE("options out of range are refused before the measurement")
{
	static volatile int stop = 0;
	std::vector<Woken> all;
	intrinsic_result result;
	for (const intrinsic_options &options :
	     {intrinsic_options{1000000, 0, -1, nullptr}, intrinsic_options{1000000, 999999, -1, nullptr},
	      intrinsic_options{999, 1000000, -1, nullptr}, intrinsic_options{1000000001, 0, -1, &stop},
	      intrinsic_options{1000000, 1000000, 1 << 16, nullptr},
	      intrinsic_options{1000000, 1000000, (1 << 16) - 1, nullptr}}) {
		CHECK(intrinsic_run(&options, note, &all, &result) == -EINVAL);
		CHECK(all.empty());
		CHECK(result.instants == 0);
	}
}

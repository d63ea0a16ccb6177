// SPDX-License-Identifier: MIT
// When soft interrupts are timed and when they are sampled, and the kernel's code that samples look for.
#include "tests/support/catch.h"

#include "loader/attach.h"

namespace
{

constexpr uint64_t kMs = 1'000'000, kTick = 50 * kMs;

// A host, and a recorder that looks at it twenty times a second.
struct Softirqs {
	softirq_budget budget = {};
	softirq_look sums = {};
	uint64_t per_second = 0;	 // soft interrupts of the host
	uint64_t timed_ns = 0, hits = 0; // in each tick: by others on top of targets
	uint64_t changes = 0;

	explicit Softirqs(bool timed)
	{
		budget.timed = timed;
		sums.now_ns = 1000 * kMs;
	}

	// A host whose very many soft interrupts are sampled.
	static Softirqs Sampled()
	{
		Softirqs host(true);
		host.per_second = 160'000;
		host.Run(5'000);
		REQUIRE_FALSE(host.budget.timed);
		return host;
	}

	void Run(uint64_t ms)
	{
		for (uint64_t t = 0; t < ms * kMs; t += kTick) {
			sums.now_ns += kTick;
			sums.count += per_second / 20;
			(budget.timed ? sums.timed_ns : sums.hits) += budget.timed ? timed_ns : hits;
			changes += softirq_budget_look(&budget, &sums);
		}
	}
};

} // namespace

TEST_CASE("soft interrupts are timed while they are few")
{
	Softirqs host(true);
	host.per_second = 49'000;
	host.Run(60'000);
	CHECK(host.budget.timed);
	CHECK(host.changes == 0);
}

TEST_CASE("very many that delay no target are sampled from the second second on")
{
	Softirqs host(true);
	host.per_second = 160'000;
	host.timed_ns = kMs; // 2 %
	host.Run(1'000);
	CHECK(host.budget.timed);
	host.Run(200);
	CHECK_FALSE(host.budget.timed);
	CHECK(host.budget.per_second == 160'000);
	host.Run(60'000);
	CHECK(host.changes == 1);
}

TEST_CASE("very many that delay targets are timed")
{
	Softirqs host(true);
	host.per_second = 160'000;
	host.timed_ns = 3 * kMs; // 6 %
	host.Run(60'000);
	CHECK(host.changes == 0);
}

TEST_CASE("when samples meet them they are timed within two looks, and for ten seconds after the last delay")
{
	Softirqs host = Softirqs::Sampled();
	host.hits = 2; // in each look: the third is in the second look
	host.timed_ns = 10 * kMs;
	host.Run(100);
	CHECK(host.budget.timed);
	CHECK(host.budget.per_second == 0); // as few as before, so this is not why
	host.Run(20'000);
	CHECK(host.budget.timed);
	host.hits = host.timed_ns = 0;
	host.Run(9'000);
	CHECK(host.budget.timed);
	host.Run(3'000);
	CHECK_FALSE(host.budget.timed);
}

TEST_CASE("single hits far apart change nothing")
{
	Softirqs host = Softirqs::Sampled();
	for (int i = 0; i < 100; i++) {
		host.sums.hits += 2;
		host.Run(200);
	}
	CHECK(host.changes == 1);
}

TEST_CASE("when they become few they are timed again within ten seconds")
{
	Softirqs host = Softirqs::Sampled();
	host.per_second = 30'000;
	host.Run(20'100);
	CHECK(host.budget.timed);
	CHECK(host.changes == 2);
}

TEST_CASE("a rate near the limit does not switch back and forth")
{
	Softirqs host(true);
	host.per_second = 51'000;
	host.Run(5'000);
	host.per_second = 45'000;
	host.Run(60'000);
	CHECK_FALSE(host.budget.timed);
	CHECK(host.changes == 1);
}

TEST_CASE("the count is needed where a window ends")
{
	Softirqs host(false);
	CHECK(softirq_budget_count_due(&host.budget, host.sums.now_ns));
	host.per_second = 160'000;
	host.Run(50);
	CHECK_FALSE(softirq_budget_count_due(&host.budget, host.sums.now_ns + 9'900 * kMs));
	CHECK(softirq_budget_count_due(&host.budget, host.sums.now_ns + 10'000 * kMs));
}

TEST_CASE("the kernel's count of soft interrupts grows")
{
	const uint64_t before = softirqs_of_host();
	CHECK(before > 0);
	CHECK(softirqs_of_host() >= before);
}

TEST_CASE("the code of the kernel that runs soft interrupts is found by its names")
{
	ft_kernel_code_range code[FT_KERNEL_CODES];
	symbols_begin();
	const bool visible = symbols_wait() > 0;
	CHECK(softirq_code(code) == visible);
	const ft_kernel_code_range net_rx = code[FT_CODE_HANDLER + 3];
	CHECK((net_rx.bytes > 0) == visible);
	CHECK(net_rx.bytes < 100'000);
	char text[100];
	symbol_name(net_rx.begin + net_rx.bytes / 2, text, sizeof text);
	CHECK((std::string(text).rfind("net_rx_action+", 0) == 0) == visible);
	const char *const none[] = {"no function has this name", nullptr}, *const second[] = {none[0],
											      "net_rx_action",
											      nullptr};
	CHECK(symbol_code(none).bytes == 0);
	CHECK(symbol_code(second).begin == net_rx.begin);
}

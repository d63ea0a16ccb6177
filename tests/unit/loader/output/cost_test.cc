// SPDX-License-Identifier: MIT
// The cost of the recorder's programs: all runs, times the time of a run in windows over the whole recording.
#include "tests/support/catch.h"

#include <bpf/libbpf.h>
#include <set>
#include <string>

#include "bpf/programs.h"
#include "loader/output.h"

namespace
{

program_cost At(uint64_t runs, uint64_t sampled, uint64_t sampled_ns)
{
	return {"program", true, runs, sampled, sampled_ns, 0};
}

} // namespace

TEST_CASE("windows are often at first, then every five seconds, within each slice of requests")
{
	std::vector<uint64_t> begins = {0};
	while (begins.back() < 120'000)
		begins.push_back(cost_next_window_ms(begins.back() + 50));
	CHECK(begins[9] <= 1400); // the tenth
	for (size_t i = 1; i < begins.size(); i++) {
		INFO(begins[i]);
		const uint64_t gap_ms = begins[i] - begins[i - 1];
		CHECK((gap_ms >= 100 && gap_ms <= 10'000));
		CHECK(gap_ms <= 150 + begins[i] / 6);
		CHECK((begins[i] < 70'000 || begins[i] % 5'000 == 1'000));
	}
}

TEST_CASE("runs between two windows cost what the window after them measured")
{
	cost_account account = {};
	// 1,000 slow runs, then a million fast ones: windows see as many runs of both.
	const program_cost first = At(1'000, 100, 100 * 1'000), second = At(1'001'000, 200, 100 * 1'100);
	cost_window(&account, &first, 1, 50'000'000);
	cost_window(&account, &second, 1, 50'000'000);
	CHECK(cost_ns(&account, 0, &second) == 1'000.0 * 1'000 + 1'000'000.0 * 100);
	SECTION("those since the last window cost the mean")
	{
		const program_cost now = At(1'001'200, 200, 100 * 1'100);
		CHECK(cost_ns(&account, 0, &now) == 101'000'000 + 200 * 550.0);
	}
	SECTION("a window with few runs does not stand for those before it")
	{
		const program_cost third = At(2'001'000, 201, 100 * 1'100 + 90'000);
		cost_window(&account, &third, 1, 50'000'000);
		CHECK(cost_ns(&account, 0, &third) < 101'000'000 + 1'000'000 * 1'100.0);
	}
}

TEST_CASE("the time of a run is known from ten windows on")
{
	cost_account account = {};
	const program_cost none = At(5, 0, 0);
	for (int i = 0; i < 9; i++)
		cost_window(&account, &none, 1, 1);
	CHECK_FALSE(cost_known(&account));
	cost_window(&account, &none, 1, 1);
	CHECK(cost_known(&account));
	CHECK(account.measured_ns == 10);
	CHECK(cost_ns(&account, 0, &none) == 0);
}

TEST_CASE("each program that the kernel runs on its own counts its runs")
{
	static const struct {
		const char *object;
		std::set<std::string> counted;
	} objects[] = {{"forktail", {FT_PROGRAMS(FT_NAME_OF)}},
		       {"forktail_unpreempted", {FT_PROGRAMS(FT_NAME_OF)}},
		       {"requests", {FT_REQUEST_PROGRAMS(FT_NAME_OF)}},
		       {"readers", {FT_READER_PROGRAMS(FT_NAME_OF)}},
		       {"tcp", {FT_TCP_PROGRAMS(FT_NAME_OF)}}};
	for (const auto &o : objects) {
		INFO(o.object);
		bpf_object *object = bpf_object__open_file(
		    (std::string(FORKTAIL_BPF_OBJECTS "/") + o.object + ".linked.o").c_str(), nullptr);
		REQUIRE(object);
		std::set<std::string> own;
		bpf_program *p;
		bpf_object__for_each_program(
		    p, object) if (std::string(bpf_program__section_name(p)).rfind("iter/", 0) != 0)
		    own.insert(bpf_program__name(p));
		own.erase("adopt_current"); // the recorder runs it
		CHECK(own == o.counted);
		bpf_object__close(object);
	}
}

// SPDX-License-Identifier: MIT
// Tables of several tests, the spread of a repeated one, CSV and the text distribution, with figures computed
// by hand.
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "loadgen/output.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/text.h"

using forktail::test::printed;

namespace
{

std::vector<std::string> lines_of(const std::string &text)
{
	std::istringstream in(text);
	std::vector<std::string> all;
	for (std::string line; std::getline(in, line);)
		all.push_back(line);
	return all;
}

std::vector<std::string> cells(const std::string &line)
{
	std::istringstream in(line);
	std::vector<std::string> all;
	for (std::string cell; in >> cell;)
		all.push_back(cell);
	return all;
}

// 1000 requests of 1, 2, ... 1000 us on operation 0 in two seconds, ten of them errors.
struct Thousand {
	wanted_figures wanted = {};
	std::unique_ptr<stats, decltype(&stats_free)> s{nullptr, stats_free};
	std::unique_ptr<result_figures> f = std::make_unique<result_figures>();

	explicit Thousand(const char *percentiles)
	{
		mix m = {};
		mix_add(&m, 0, 1);
		mix_close(&m);
		s.reset(stats_new(&m));
		REQUIRE(percentiles_parse(percentiles, &wanted));
		for (uint64_t i = 1; i <= 1000; i++)
			stats_add(s.get(), 0, i % 100 ? FT_STATUS_OK : FT_STATUS_TIMEOUT, i * 1000, 10, 1);
		figures_from_stats(f.get(), s.get(), &wanted, 2);
	}
};

} // namespace

TEST_CASE("a test's summary, and its row in the suite's table")
{
	Thousand t("50,95,99,99.9");
	test_summary all[2];
	report_summarize(&all[0], "GET", t.f.get());
	CHECK(std::string(all[0].name) == "GET");
	CHECK(all[0].rps == Approx(495)); // the answered ones
	CHECK(all[0].requests == 1000);
	CHECK(all[0].errors == 10);
	CHECK(all[0].mean_ns == Approx(500500));
	CHECK(all[0].p50_ns == Approx(500000).epsilon(0.001));
	CHECK(all[0].p99_ns == Approx(990000).epsilon(0.001));
	CHECK(all[0].p999_ns == Approx(999000).epsilon(0.001));
	CHECK(all[0].max_ns == 1000000);
	Thousand fewer("50");
	report_summarize(&all[1], "LRANGE_600", fewer.f.get());
	CHECK(all[1].p99_ns == -1);
	const auto rows = lines_of(printed([&](FILE *to) { report_suite(to, all, 2); }));
	REQUIRE(rows.size() == 4); // an empty one first
	CHECK(cells(rows[2]).at(0) == "GET");
	CHECK(cells(rows[2]).at(1) == "495");
	CHECK(cells(rows[2]).at(2) == "0.500"); // 0.5005, which a double cannot represent
	CHECK(cells(rows[2]).back() == "10");
	CHECK(cells(rows[3]).at(0) == "LRANGE_600");
	CHECK(cells(rows[3]).at(4) == "-");
	for (const auto &row : rows)
		CHECK((row.empty() || row.size() == rows[1].size()));
}

TEST_CASE("repeats: best, worst, mean, and the sample standard deviation")
{
	test_summary all[4] = {};
	const double rps[] = {100, 200, 300, 400}, max_ms[] = {4, 2, 8, 6};
	for (int i = 0; i < 4; i++)
		all[i] = {"SET", rps[i], 5e6, 1e6, 2e6, -1, max_ms[i] * 1e6, 10, 0};
	json_t *tests = json_array();
	report_repeats_json(tests, all, 4);
	char *text = json_line(tests);
	const auto parsed = forktail::test::parse_json(text).at(0);
	free(text);
	CHECK(parsed["name"] == "SET");
	CHECK(parsed["runs"] == 4);
	const auto &high = parsed["requests_per_s"];
	CHECK(high["best"] == 400);
	CHECK(high["worst"] == 100);
	CHECK(high["mean"] == 250);
	CHECK(high["spread"].get<double>() == Approx(129.0994));
	const auto &low = parsed["max_ns"];
	CHECK(low["best"].get<double>() == Approx(2e6));
	CHECK(low["worst"].get<double>() == Approx(8e6));
	CHECK(low["mean"].get<double>() == Approx(5e6));
	CHECK(parsed["mean_ns"]["spread"] == 0);
	CHECK_FALSE(parsed.contains("p99.9_ns")); // not requested
	const std::string table = printed([&](FILE *to) { report_repeats(to, all, 4); });
	bool found = false;
	for (const auto &line : lines_of(table))
		if (line.find("maximum ms") != std::string::npos) {
			const auto c = cells(line);
			CHECK(std::vector<std::string>(c.begin() + 2, c.end()) ==
			      std::vector<std::string>{"2.000", "8.000", "5.000", "2.582"});
			found = true;
		}
	CHECK(found);
	CHECK(table.find("SET, 4 times") != std::string::npos);
	CHECK(table.find("p99.9") == std::string::npos);
}

TEST_CASE("redis-benchmark's CSV")
{
	Thousand t("50,95,99");
	const std::string csv = printed([&](FILE *to) {
		report_csv_header(to);
		report_csv_row(to, "GET", t.f.get());
	});
	const auto rows = lines_of(csv);
	REQUIRE(rows.size() == 2);
	CHECK(rows[0] ==
	      "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
	      "\"p99_latency_ms\",\"max_latency_ms\"");
	CHECK(rows[1].find("\"GET\",\"495.00\",\"0.50") == 0);
	CHECK(rows[1].find(",\"0.001\",\"0.500\",\"0.950\",\"0.990\",\"1.000\"") != std::string::npos);
}

TEST_CASE("the distribution halves the rest until less than one request would remain")
{
	Thousand t("50");
	const auto rows = lines_of(printed([&](FILE *to) { report_distribution(to, t.s.get()); }));
	REQUIRE(rows.size() > 10);
	double last_share = -1, last_ms = -1;
	for (size_t i = 2; i < rows.size(); i++) {
		const auto c = cells(rows[i]); // share % <= latency ms
		const double share = std::stod(c.at(0)), ms = std::stod(c.at(3));
		CHECK(share > last_share);
		CHECK(ms >= last_ms);
		// Requests took 1 to 1000 us, one each.
		CHECK(ms == Approx(std::max(share / 100, 0.001)).margin(0.0021));
		last_share = share;
		last_ms = ms;
	}
	CHECK(last_share == 100);
	CHECK(last_ms == 1);
	mix m = {};
	mix_add(&m, 0, 1);
	std::unique_ptr<stats, decltype(&stats_free)> none(stats_new(&m), stats_free);
	CHECK(printed([&](FILE *to) { report_distribution(to, none.get()); }).empty());
}

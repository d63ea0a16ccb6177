// SPDX-License-Identifier: MIT
// Percentiles: the histogram's within their stated error, the log's exact, both against sorting.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "loadgen/figures.h"
#include "loadgen/log.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

namespace
{

using StatsPtr = std::unique_ptr<stats, decltype(&stats_free)>;

StatsPtr new_stats()
{
	workload w = {};
	w.used[OPERATION_GET] = w.used[OPERATION_SET] = true;
	return {stats_new(&w), stats_free};
}

uint64_t sorted_percentile(std::vector<uint64_t> values, double p)
{
	std::sort(values.begin(), values.end());
	const double rank = std::ceil(p * static_cast<double>(values.size()) / 100 - 1e-9);
	return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

// A latency log as the program writes it, through the writer thread, and what was counted of it.
struct Logged {
	ft::test::TempDir dir;
	std::string path = dir.file("load.forktail");
	StatsPtr counted = new_stats();
	std::vector<uint64_t> all[OPERATIONS + 1];
	request_log *log = nullptr;
	log_lane lane;

	Logged()
	{
		REQUIRE(request_log_open(&log, path.c_str(), "{}", 1) == 0);
		log_lane_open(&lane, log);
		lane.patient = true;
	}
	void add(uint64_t latency, uint8_t op, uint8_t status = FT_STATUS_OK)
	{
		ft_request q = {};
		q.intended_ns = 1000000000 + all[TOTAL].size() * 100;
		q.start_ns = q.intended_ns + latency / 3;
		q.end_ns = q.intended_ns + latency;
		q.op = op;
		q.status = status;
		log_append(&lane, &q);
		counted->operations[op]->status[status]++;
		if (!status_has_latency(status))
			return;
		ft_histogram_add(&counted->operations[op]->latency, latency);
		all[op].push_back(latency);
		all[TOTAL].push_back(latency);
	}
	figures close()
	{
		log_lane_close(&lane, 5000000000);
		REQUIRE(request_log_close(log, "{}") == 0);
		figures f;
		figures_from_stats(&f, counted.get(), 1);
		return f;
	}
};

} // namespace

TEST_CASE("percentiles from the log are the sorted values', per operation and in total")
{
	Logged logged;
	random_stream random = {3};
	for (int i = 0; i < 200000; i++) {
		// A heavy tail over five orders of magnitude.
		const double u = random_unit(&random);
		logged.add(static_cast<uint64_t>(20000 / std::pow(u, 0.9)), random_next(&random) % 4 == 0);
	}
	figures f = logged.close();
	for (int op = 0; op <= TOTAL; op++)
		for (int i = 0; i < PERCENTILES; i++) {
			const auto truth =
			    static_cast<double>(sorted_percentile(logged.all[op], percentile_points[i]));
			const auto got = static_cast<double>(f.operations[op].percentile_ns[i]);
			CHECK(got >= truth);
			CHECK(got <= truth * 1.001);
		}
	CHECK_FALSE(f.exact);
	figures_from_log(&f, logged.counted.get(), logged.path.c_str(), 0, UINT64_MAX);
	REQUIRE(f.exact);
	for (int op = 0; op <= TOTAL; op++) {
		INFO(op);
		CHECK(f.operations[op].timed == logged.all[op].size());
		CHECK(f.operations[op].max_ns ==
		      *std::max_element(logged.all[op].begin(), logged.all[op].end()));
		CHECK(f.operations[op].min_ns ==
		      *std::min_element(logged.all[op].begin(), logged.all[op].end()));
		for (int i = 0; i < PERCENTILES; i++)
			CHECK(f.operations[op].percentile_ns[i] ==
			      sorted_percentile(logged.all[op], percentile_points[i]));
	}
}

TEST_CASE("few values, equal values and very long ones")
{
	for (const std::vector<uint64_t> &values : {std::vector<uint64_t>{7},
						    {1, 2},
						    {500, 500, 500},
						    {0, 0, 1},
						    {300000000, 70000000000, 100000000000, 100000000001}}) {
		Logged logged;
		for (uint64_t v : values)
			logged.add(v, OPERATION_GET);
		figures f = logged.close();
		figures_from_log(&f, logged.counted.get(), logged.path.c_str(), 0, UINT64_MAX);
		REQUIRE(f.exact);
		for (int i = 0; i < PERCENTILES; i++) {
			const auto truth =
			    static_cast<double>(sorted_percentile(values, percentile_points[i]));
			// Beyond a quarter of a second to 1 part in 2^27, as the manual says.
			CHECK(static_cast<double>(f.operations[TOTAL].percentile_ns[i]) ==
			      Approx(truth).epsilon(1e-8));
		}
	}
}

TEST_CASE("errors are counted by kind, and unanswered requests have a latency")
{
	Logged logged;
	logged.add(100, OPERATION_GET);
	logged.add(100, OPERATION_GET, FT_STATUS_MISS);
	logged.add(200, OPERATION_GET, FT_STATUS_ERROR_REPLY);
	logged.add(999999, OPERATION_SET, FT_STATUS_UNSENT);
	logged.add(5, OPERATION_SET, FT_STATUS_RESET);
	figures f = logged.close();
	CHECK(f.operations[TOTAL].requests == 5);
	CHECK(f.operations[TOTAL].errors == 3);
	CHECK(f.operations[TOTAL].timed == 4);
	CHECK(f.operations[TOTAL].max_ns == 999999);
	CHECK(f.operations[OPERATION_SET].min_ns == 999999);
}

TEST_CASE("a log that doesn't hold what was counted doesn't make figures exact")
{
	Logged logged;
	for (int i = 0; i < 1000; i++)
		logged.add(static_cast<uint64_t>(i) * 1000, OPERATION_GET);
	logged.counted->operations[OPERATION_GET]->status[FT_STATUS_OK]++;
	ft_histogram_add(&logged.counted->operations[OPERATION_GET]->latency, 5);
	figures f = logged.close();
	const figures before = f;
	figures_from_log(&f, logged.counted.get(), logged.path.c_str(), 0, UINT64_MAX);
	CHECK_FALSE(f.exact);
	CHECK(f.operations[TOTAL].percentile_ns[0] == before.operations[TOTAL].percentile_ns[0]);
	figures_from_log(&f, logged.counted.get(), "/nonexistent", 0, UINT64_MAX);
	CHECK_FALSE(f.exact);
}

TEST_CASE("merging counts keeps error words, and keeps them bounded")
{
	StatsPtr a = new_stats(), b = new_stats();
	for (int i = 0; i < 100; i++)
		stats_error_word(b.get(), ("E" + std::to_string(i)).c_str());
	stats_error_word(b.get(), "E0");
	stats_error_word(b.get(), "bad\x01\"");
	stats_merge(a.get(), b.get());
	stats_merge(a.get(), b.get());
	uint64_t sum = 0;
	for (const error_word &e : a->errors)
		sum += e.count;
	CHECK(sum == 204);
	CHECK(std::string(a->errors[0].word) == "E0");
	CHECK(a->errors[0].count == 4);
	CHECK(std::string(a->errors[ERROR_WORDS - 1].word) == "other");
	stats_reset(a.get());
	stats_error_word(a.get(), "bad\x01\"");
	CHECK(std::string(a->errors[0].word) == "bad??");
}

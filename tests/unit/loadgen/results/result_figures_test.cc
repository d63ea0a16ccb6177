// SPDX-License-Identifier: MIT
// Percentiles: the histogram's within their documented error, the log's exact, both compared with sorting.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "loadgen/results.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

namespace
{

using StatsPtr = std::unique_ptr<stats, decltype(&stats_free)>;

constexpr uint8_t kGet = 0, kSet = 1;
const std::vector<int> kAll = {kGet, kSet, TOTAL};

StatsPtr new_stats()
{
	mix m = {};
	mix_add(&m, kGet, 1);
	mix_add(&m, kSet, 1);
	mix_close(&m);
	return {stats_new(&m), stats_free};
}

wanted_figures wanted_of(const char *percentiles, const char *buckets = nullptr)
{
	wanted_figures w = {};
	REQUIRE(percentiles_parse(percentiles, &w));
	REQUIRE((!buckets || buckets_parse(buckets, &w)));
	return w;
}

uint64_t sorted_percentile(std::vector<uint64_t> values, double p)
{
	std::sort(values.begin(), values.end());
	const double rank = std::ceil(p * static_cast<double>(values.size()) / 100 - 1e-9);
	return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

// A latency log as the program writes it, through the writer thread, and its counts.
struct Logged {
	forktail::test::TempDir dir;
	std::string path = dir.file("load.forktail");
	StatsPtr counted = new_stats();
	std::map<int, std::vector<uint64_t>> all;
	wanted_figures wanted = wanted_of("50,90,95,99,99.9,99.99", "20us,100us,1ms,1s");
	request_log *log = nullptr;
	log_lane lane;

	Logged()
	{
		REQUIRE(request_log_open(&log, path.c_str(), "{}", 1) == 0);
		log_lane_open(&lane, log);
		lane.waits_for_spare = true;
	}
	void add(uint64_t latency, uint8_t op, uint8_t status = FT_STATUS_OK)
	{
		ft_request q = {};
		q.intended_ns = 1000000000 + all[TOTAL].size() * 100;
		q.start_ns = q.intended_ns + latency / 3;
		q.end_ns = q.intended_ns + latency;
		q.op = op;
		q.status = status;
		log_append(&lane, &q, 1);
		stats_add(counted.get(), op, status, latency, 0, 1);
		all[op].push_back(latency);
		all[TOTAL].push_back(latency);
	}
	result_figures close()
	{
		log_lane_close(&lane, 5000000000);
		REQUIRE(request_log_close(log, "{}") == 0);
		result_figures f;
		figures_from_stats(&f, counted.get(), &wanted, 1);
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
	result_figures f = logged.close();
	for (int op : kAll)
		for (uint32_t i = 0; i < logged.wanted.percentile_count; i++) {
			const auto truth =
			    static_cast<double>(sorted_percentile(logged.all[op], logged.wanted.points[i]));
			const auto got = static_cast<double>(f.operations[op].percentile_ns[i]);
			CHECK(got >= truth);
			CHECK(got <= truth * 1.001);
		}
	CHECK_FALSE(f.exact);
	figures_from_log(&f, logged.path.c_str(), 0, 0);
	REQUIRE(f.exact);
	for (int op : kAll) {
		INFO(op);
		CHECK(f.operations[op].requests == logged.all[op].size());
		CHECK(f.operations[op].max_ns ==
		      *std::max_element(logged.all[op].begin(), logged.all[op].end()));
		CHECK(f.operations[op].min_ns ==
		      *std::min_element(logged.all[op].begin(), logged.all[op].end()));
		for (uint32_t i = 0; i < logged.wanted.percentile_count; i++)
			CHECK(f.operations[op].percentile_ns[i] ==
			      sorted_percentile(logged.all[op], logged.wanted.points[i]));
	}
}

TEST_CASE("equal requests logged by one call continue in the next block")
{
	Logged logged;
	const ft_request q = {1000, 1100, 1600, 3, kGet, FT_STATUS_OK, 0, 0};
	log_append(&logged.lane, &q, 2 * FT_REQUEST_BLOCK + 5);
	stats_add(logged.counted.get(), kGet, FT_STATUS_OK, 600, 0, 2 * FT_REQUEST_BLOCK + 5);
	result_figures f = logged.close();
	CHECK(f.operations[kGet].requests == 2 * FT_REQUEST_BLOCK + 5);
	figures_from_log(&f, logged.path.c_str(), 0, 0);
	REQUIRE(f.exact);
	CHECK(f.operations[kGet].requests == 2 * FT_REQUEST_BLOCK + 5);
	CHECK(f.operations[kGet].min_ns == 600);
	CHECK(f.operations[kGet].max_ns == 600);
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
			logged.add(v, kGet);
		result_figures f = logged.close();
		figures_from_log(&f, logged.path.c_str(), 0, 0);
		REQUIRE(f.exact);
		for (uint32_t i = 0; i < logged.wanted.percentile_count; i++) {
			const auto truth =
			    static_cast<double>(sorted_percentile(values, logged.wanted.points[i]));
			// Beyond a quarter of a second to 1 part in 2^27, as the manual states.
			CHECK(static_cast<double>(f.operations[TOTAL].percentile_ns[i]) ==
			      Approx(truth).epsilon(1e-8));
		}
	}
}

TEST_CASE("errors are counted by kind, and unanswered requests have a latency")
{
	Logged logged;
	logged.add(100, kGet);
	logged.add(100, kGet, FT_STATUS_MISS);
	logged.add(200, kGet, FT_STATUS_ERROR_REPLY);
	logged.add(999999, kSet, FT_STATUS_UNSENT);
	logged.add(5, kSet, FT_STATUS_RESET);
	result_figures f = logged.close();
	CHECK(f.operations[TOTAL].requests == 5);
	CHECK(f.operations[TOTAL].errors == 3);
	CHECK(f.operations[TOTAL].max_ns == 999999);
	CHECK(f.operations[kSet].min_ns == 5);
	CHECK(figures_answers(&f.operations[TOTAL]) == 3);
}

TEST_CASE("a log without all counted requests does not make figures exact")
{
	Logged logged;
	for (int i = 0; i < 1000; i++)
		logged.add(static_cast<uint64_t>(i) * 1000, kGet);
	logged.counted->operations[kGet]->status[FT_STATUS_OK]++;
	ft_histogram_add(&logged.counted->operations[kGet]->latency, 5);
	result_figures f = logged.close();
	const result_figures before = f;
	figures_from_log(&f, logged.path.c_str(), 0, 0);
	CHECK_FALSE(f.exact);
	CHECK(f.operations[TOTAL].percentile_ns[0] == before.operations[TOTAL].percentile_ns[0]);
	figures_from_log(&f, "/nonexistent", 0, 0);
	CHECK_FALSE(f.exact);
}

TEST_CASE("merging counts keeps error words and limits their number")
{
	StatsPtr a = new_stats(), b = new_stats();
	for (int i = 0; i < 100; i++)
		stats_error_word(b.get(), ("E" + std::to_string(i)).c_str(), 1000 + static_cast<uint64_t>(i));
	stats_error_word(b.get(), "E0", 7);
	stats_error_word(b.get(), "bad\x01\"", 2000);
	stats_merge(a.get(), b.get());
	stats_merge(a.get(), b.get());
	uint64_t sum = 0;
	for (const error_word &e : a->errors)
		sum += e.times.count;
	CHECK(sum == 204);
	CHECK(std::string(a->errors[0].word) == "E0");
	CHECK(a->errors[0].times.count == 4);
	CHECK(a->errors[0].times.first_ns == 7);
	CHECK(a->errors[0].times.last_ns == 1000);
	CHECK(a->errors[ERROR_WORDS - 1].times.last_ns == 2000);
	CHECK(std::string(a->errors[ERROR_WORDS - 1].word) == "other");
	stats_reset(a.get());
	stats_error_word(a.get(), "bad\x01\"", 5);
	CHECK(std::string(a->errors[0].word) == "bad??");
}

TEST_CASE("the text of the first error of each kind is kept, and is printable")
{
	StatsPtr a = new_stats(), b = new_stats();
	auto note = [](stats *s, const char *word, const char *text, uint64_t now_ns) {
		error_word *e = stats_error_word(s, word, now_ns);
		if (!*e->text)
			error_word_set_text(e, text);
	};
	note(a.get(), "ERR", "ERR second", 20);
	note(a.get(), "ERR", "ERR third", 30);
	note(b.get(), "ERR", "ERR fi\x1b[2Jrst\xff ", 10);
	note(b.get(), "OOM", ("OOM " + std::string(500, 'x')).c_str(), 10);
	stats_error_word(b.get(), "NOREPLICAS", 10);
	stats_merge(a.get(), b.get());
	CHECK(std::string(a->errors[0].text) == "ERR fi?[2Jrst?");
	CHECK(std::string(a->errors[1].text).size() == ERROR_TEXT - 1);
	CHECK(std::string(a->errors[2].text).empty());
	note(b.get(), "ERR", "ERR later", 40);
	stats_merge(b.get(), a.get());
	CHECK(std::string(b->errors[0].text) == "ERR fi?[2Jrst?");
	stats_reset(a.get());
	note(a.get(), "ERR", "ERR fourth", 50);
	CHECK(std::string(a->errors[0].text) == "ERR fourth");
}

TEST_CASE("times of errors are stored by kind, for several threads together")
{
	StatsPtr a = new_stats(), b = new_stats();
	stats_note_error(a.get(), FT_STATUS_RESET, 500);
	stats_note_error(a.get(), FT_STATUS_RESET, 700);
	stats_note_error(b.get(), FT_STATUS_RESET, 400);
	stats_note_error(b.get(), FT_STATUS_TIMEOUT, 900);
	stats_merge(a.get(), b.get());
	CHECK(a->statuses[FT_STATUS_RESET].count == 3);
	CHECK(a->statuses[FT_STATUS_RESET].first_ns == 400);
	CHECK(a->statuses[FT_STATUS_RESET].last_ns == 700);
	CHECK(a->statuses[FT_STATUS_TIMEOUT].first_ns == 900);
	CHECK(a->statuses[FT_STATUS_OK].count == 0);
}

TEST_CASE("lists of percentiles are sorted, unique, and named")
{
	wanted_figures w = wanted_of("99.9,50,99,50,100,99.99999");
	REQUIRE(w.percentile_count == 5);
	const char *names[] = {"p50", "p99", "p99.9", "p99.99999", "p100"};
	for (uint32_t i = 0; i < 5; i++)
		CHECK(std::string(w.names[i]) == names[i]);
	for (const char *bad : {"", "0", "101", "50,", ",50", "p50", "50;99", "nan", "-1", "50 "}) {
		INFO(bad);
		CHECK_FALSE(percentiles_parse(bad, &w));
	}
	std::string many = "1";
	for (int i = 2; i <= PERCENTILES_MAX; i++)
		many += "," + std::to_string(i);
	CHECK(percentiles_parse(many.c_str(), &w));
	CHECK(percentiles_add(&w, 1));
	CHECK_FALSE(percentiles_add(&w, 99));
	CHECK_FALSE(percentiles_parse((many + ",99").c_str(), &w));
}

TEST_CASE("lists of buckets are increasing times, by default those of report E")
{
	wanted_figures w = {};
	REQUIRE(buckets_parse("default", &w));
	const uint64_t ms[] = {25, 50, 100, 200, 300, 400, 500};
	REQUIRE(w.bucket_count == 7);
	for (uint32_t i = 0; i < 7; i++)
		CHECK(w.bucket_ns[i] == ms[i] * 1000000);
	REQUIRE(buckets_parse("10us,1.5ms,2", &w));
	REQUIRE(w.bucket_count == 3);
	CHECK(w.bucket_ns[0] == 10000);
	CHECK(w.bucket_ns[1] == 1500000);
	CHECK(w.bucket_ns[2] == 2000000000);
	for (const char *bad : {"", "1ms,1ms", "2ms,1ms", "0", "1ms,", "fast", "-1ms"}) {
		INFO(bad);
		CHECK_FALSE(buckets_parse(bad, &w));
	}
	std::string many = "1ms";
	for (int i = 2; i <= BUCKETS_MAX; i++)
		many += "," + std::to_string(i) + "ms";
	CHECK(buckets_parse(many.c_str(), &w));
	CHECK_FALSE(buckets_parse((many + ",1h").c_str(), &w));
}

TEST_CASE("arrivals are counted if requested, merged, and reset each second")
{
	mix m = {};
	mix_add(&m, kGet, 1);
	mix_close(&m);
	StatsPtr all(stats_new_with(&m, true), stats_free), second(stats_new_with(&m, true), stats_free),
	    without(stats_new_with(&m, false), stats_free);
	REQUIRE(without->arrivals == nullptr);
	for (uint64_t i = 1; i <= 100; i++)
		stats_add_arrival(second.get(), i * 1000, i, 1);
	stats_merge(all.get(), second.get());
	stats_merge(all.get(), without.get());
	stats_merge(without.get(), second.get());
	stats_reset(second.get());
	stats_add_arrival(second.get(), 500'000, 7'000, 1);
	stats_merge(all.get(), second.get());
	const wanted_figures wanted = wanted_of("50,99.9");
	result_figures f;
	figures_from_stats(&f, all.get(), &wanted, 1);
	CHECK(f.arrivals.count == 101);
	CHECK(f.arrivals.min_ns == 1000);
	CHECK(f.arrivals.max_ns == 500'000);
	CHECK(std::abs(static_cast<double>(f.arrivals.percentile_ns[0]) / 51'000 - 1) <= 0.001);
	CHECK(f.arrivals.percentile_ns[1] == 500'000);
	CHECK(std::abs(f.arrivals.unread_mean_ns - (5050.0 + 7000.0) / 101) < 1e-6);
	CHECK(f.arrivals.unread_max_ns == 7'000);
	figures_from_stats(&f, without.get(), &wanted, 1);
	CHECK(f.arrivals.count == 0);
}

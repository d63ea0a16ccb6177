// SPDX-License-Identifier: MIT
// The histogram compared with the exact answer from the sorted values.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "recording/recording.h"
#include "tests/support/catch.h"

namespace
{

using Histogram = std::unique_ptr<ft_histogram>;

Histogram of(const std::vector<uint64_t> &values)
{
	auto h = std::make_unique<ft_histogram>();
	ft_histogram_reset(h.get());
	for (const uint64_t v : values)
		ft_histogram_add(h.get(), v);
	return h;
}

// Nearest rank, in whole numbers: percentiles are given in thousandths of a percent.
uint64_t exact(const std::vector<uint64_t> &sorted, uint64_t millipercent)
{
	const uint64_t rank = (sorted.size() * millipercent + 99'999) / 100'000;
	return sorted[std::max<uint64_t>(rank, 1) - 1];
}

constexpr uint64_t LARGEST = (1ull << 42) - 1;

std::vector<std::vector<uint64_t>> distributions()
{
	std::mt19937_64 random(11);
	std::vector<std::vector<uint64_t>> all(6);
	std::lognormal_distribution<double> latency(std::log(90'000.0), 1.0);
	for (int i = 0; i < 100'000; i++) {
		all[0].push_back(random() % 100);				     // exact slots
		all[1].push_back(random() % 4'000'000'000);			     // uniform
		all[2].push_back(static_cast<uint64_t>(latency(random)));	     // like latencies
		all[3].push_back(random() >> (22 + random() % 42));		     // every magnitude
		all[4].push_back(i % 1000 ? 100'000 : 60'000'000 + random() % 1000); // a tail
	}
	for (uint64_t bit = 0; bit < 42; bit++) // the edges of every slot width
		for (const uint64_t v : {(1ull << bit) - 1, 1ull << bit, (1ull << bit) + 1})
			all[5].push_back(std::min(v, LARGEST));
	return all;
}

} // namespace

TEST_CASE("a value added several times at once counts as often")
{
	for (const uint64_t v : {uint64_t{0}, uint64_t{77}, uint64_t{123'456}, 2 * LARGEST}) {
		Histogram at_once = of({5, 900'000});
		ft_histogram_add_equal(at_once.get(), v, 6);
		const Histogram one_by_one = of({5, 900'000, v, v, v, v, v, v});
		CHECK(at_once->count == 8);
		CHECK(at_once->min_ns == one_by_one->min_ns);
		CHECK(at_once->max_ns == one_by_one->max_ns);
		CHECK(ft_histogram_mean(at_once.get()) == Approx(ft_histogram_mean(one_by_one.get())));
		CHECK(ft_histogram_stddev(at_once.get()) == Approx(ft_histogram_stddev(one_by_one.get())));
		CHECK(std::equal(std::begin(at_once->slots), std::end(at_once->slots),
				 std::begin(one_by_one->slots)));
	}
}

TEST_CASE("percentiles are never below the exact one and at most 0.1 % above it")
{
	for (std::vector<uint64_t> values : distributions()) {
		const Histogram h = of(values);
		std::sort(values.begin(), values.end());
		CHECK(h->count == values.size());
		CHECK(h->min_ns == values.front());
		CHECK(h->max_ns == values.back());
		for (const uint64_t m : {1, 10, 100, 1'000, 25'000, 50'000, 75'000, 90'000, 95'000, 99'000,
					 99'900, 99'990, 99'999, 100'000}) {
			const uint64_t want = exact(values, m);
			const uint64_t got = ft_histogram_percentile(h.get(), static_cast<double>(m) / 1000);
			CAPTURE(m, want, got);
			CHECK(got >= want);
			CHECK(static_cast<double>(got - want) <= 0.001 * static_cast<double>(want));
		}
		CHECK(ft_histogram_percentile(h.get(), 100) == values.back());
	}
}

TEST_CASE("ranks are not off by one where binary fractions are")
{
	std::vector<uint64_t> values;
	for (uint64_t i = 1; i <= 1'000; i++)
		values.push_back(i); // value = rank, all in exact slots
	const Histogram h = of(values);
	for (uint64_t tenth = 1; tenth <= 1'000; tenth++)
		CHECK(ft_histogram_percentile(h.get(), static_cast<double>(tenth) / 10) == tenth);
	CHECK(ft_histogram_percentile(h.get(), 0.01) == 1);
	CHECK(ft_histogram_percentile(h.get(), 99.91) == 1'000);
}

TEST_CASE("mean and standard deviation are those of the values")
{
	for (const std::vector<uint64_t> &values : distributions()) {
		const Histogram h = of(values);
		double mean = 0, variance = 0;
		for (const uint64_t v : values)
			mean += static_cast<double>(v) / static_cast<double>(values.size());
		for (const uint64_t v : values)
			variance += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean) /
				    static_cast<double>(values.size());
		CHECK(ft_histogram_mean(h.get()) == Approx(mean).epsilon(1e-9));
		CHECK(ft_histogram_stddev(h.get()) == Approx(std::sqrt(variance)).epsilon(1e-6));
	}
	CHECK(ft_histogram_stddev(of({5'000'000'003, 5'000'000'003, 5'000'000'003}).get()) == 0);
}

TEST_CASE("a merged histogram equals one of all values")
{
	const auto parts = distributions();
	std::vector<uint64_t> together;
	const Histogram merged = of({}), empty = of({});
	ft_histogram_merge(merged.get(), empty.get());
	CHECK(merged->count == 0);
	for (const auto &part : parts) {
		ft_histogram_merge(merged.get(), of(part).get());
		ft_histogram_merge(merged.get(), empty.get());
		together.insert(together.end(), part.begin(), part.end());
	}
	const Histogram all = of(together);
	CHECK(merged->count == all->count);
	CHECK(merged->min_ns == all->min_ns);
	CHECK(merged->max_ns == all->max_ns);
	CHECK(std::equal(std::begin(merged->slots), std::end(merged->slots), std::begin(all->slots)));
	CHECK(ft_histogram_mean(merged.get()) == Approx(ft_histogram_mean(all.get())));
	CHECK(ft_histogram_stddev(merged.get()) == Approx(ft_histogram_stddev(all.get())));
}

TEST_CASE("an empty histogram returns zero, and a value that is too large counts as the largest")
{
	const Histogram h = of({});
	CHECK(ft_histogram_percentile(h.get(), 50) == 0);
	CHECK(ft_histogram_mean(h.get()) == 0);
	CHECK(ft_histogram_stddev(h.get()) == 0);
	CHECK(h->min_ns == 0);

	ft_histogram_add(h.get(), UINT64_MAX);
	ft_histogram_add(h.get(), LARGEST + 1);
	ft_histogram_add(h.get(), LARGEST);
	CHECK(h->slots[FT_HIST_SLOTS - 1] == 3);
	CHECK(h->max_ns == LARGEST);
	CHECK(ft_histogram_percentile(h.get(), 50) == LARGEST);

	ft_histogram_reset(h.get());
	CHECK(h->count == 0);
	ft_histogram_add(h.get(), 7);
	CHECK(h->min_ns == 7);
	CHECK(h->max_ns == 7);
	CHECK(ft_histogram_percentile(h.get(), 99) == 7);
}

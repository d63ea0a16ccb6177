// SPDX-License-Identifier: MIT
// Fitting lanes into limits while they arrive, compared with doing so when all of them are available.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "analysis/report/page_data.h"
#include "tests/support/catch.h"

using namespace forktail::analysis::report;

namespace
{

constexpr uint64_t kMs = 1'000'000;

struct Made {
	size_t lane;
	LaneSpan span;
	std::string text;
};

// Few different lengths, so that many of those at the limit are equal.
std::vector<Made> MakeSpans(size_t count, uint64_t gap_ns)
{
	std::mt19937_64 random(count);
	std::vector<Made> all;
	for (size_t i = 0; i < count; i++) {
		uint64_t start = 1 + i * gap_ns, ns = 1000 * (1 + random() % 40);
		all.push_back(
		    {i % 3, {start, start + ns, static_cast<uint8_t>(random() % 5)}, std::to_string(ns)});
	}
	return all;
}

ReportLanes Reduce(const std::vector<Made> &all, const ReportClock &clock, const LaneLimits &limits)
{
	LaneReducer reducer(clock, limits);
	std::vector<Lane> lanes(3);
	for (Lane &lane : lanes)
		lane.number = reducer.NewLane();
	for (const Made &m : all)
		reducer.Add(m.lane, m.span, [&] { return m.text; });
	return reducer.Finish(std::move(lanes));
}

// How many slices of that length contain a span shorter than that.
size_t SlicesOf(const std::vector<Made> &all, uint64_t shortest_ns, uint64_t slice_ns)
{
	std::set<std::tuple<size_t, uint64_t, uint8_t>> slices;
	for (const auto &[lane, s, text] : all)
		for (uint64_t at = (s.start_ns - 1) / slice_ns;
		     s.end_ns - s.start_ns < shortest_ns && at * slice_ns < s.end_ns - 1; at++)
			slices.insert({lane, at, s.cause});
	return slices.size();
}

} // namespace

TEST_CASE("the longest spans stay, whenever they arrive")
{
	std::vector<Made> all = MakeSpans(5000, 100'000);
	const size_t order = GENERATE(0u, 1u, 2u);
	auto shorter = [](const Made &a, const Made &b) {
		return a.span.end_ns - a.span.start_ns < b.span.end_ns - b.span.start_ns;
	};
	if (order)
		std::stable_sort(all.begin(), all.end(), shorter);
	if (order == 2)
		std::reverse(all.begin(), all.end());
	LaneLimits limits;
	limits.spans = GENERATE(1u, 100u, 999u, 4999u, 5000u);
	ReportClock clock(1, 1 + 600 * kMs, 1);
	ReportLanes r = Reduce(all, clock, limits);

	std::vector<uint64_t> lengths;
	for (const Made &m : all)
		lengths.push_back(m.span.end_ns - m.span.start_ns);
	std::sort(lengths.rbegin(), lengths.rend());
	uint64_t shortest = limits.spans < all.size() ? lengths[limits.spans] + 1 : 0;
	INFO(limits.spans << " of order " << order);
	CHECK(r.shortest_ns == shortest);
	CHECK(r.spans_total == all.size());
	CHECK(r.span_start.size() ==
	      static_cast<size_t>(std::count_if(lengths.begin(), lengths.end(),
						[&](uint64_t ns) { return ns >= shortest; })));
	// Each has its own text, from texts that appear and disappear.
	for (size_t i = 0; i < r.span_start.size(); i++)
		REQUIRE(r.details[r.span_detail[i]] == std::to_string(r.span_length[i]));
	CHECK(r.details.size() <= 41);
	// No time is lost.
	double before = 0, after = 0;
	for (uint64_t ns : lengths)
		before += static_cast<double>(ns);
	for (uint32_t ns : r.span_length)
		after += ns;
	for (uint16_t share : r.cell_share)
		after += share / 65535.0 * static_cast<double>(r.cell_ns);
	CHECK(after == Approx(before).epsilon(0.001));
}

TEST_CASE("slices are the shortest of 1, 2, 5, 10 ... that give few enough")
{
	const uint64_t length_ns =
	    GENERATE(500u, 20'000u, 150'000u, 300'000u) * kMs; // the last: 2, then at least 5
	std::vector<Made> all = MakeSpans(4000, length_ns / 4000);
	ReportClock clock(1, 1 + length_ns, 1);
	LaneLimits limits;
	limits.spans = 10;
	limits.cells = GENERATE(1u, 20u, 90u, 300u, 1000u, 3000u, 100'000u);
	INFO(length_ns / kMs << " ms in " << limits.cells << " slices");
	ReportLanes r = Reduce(all, clock, limits);
	uint64_t wanted = kMs;
	for (size_t i = 0; length_ns / wanted > 100'000 ||
			   (SlicesOf(all, r.shortest_ns, wanted) > limits.cells && wanted <= length_ns);
	     i++)
		wanted = i % 3 == 1 ? wanted / 2 * 5 : wanted * 2;
	CHECK(r.cell_ns == wanted);
}

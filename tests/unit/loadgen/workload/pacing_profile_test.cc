// SPDX-License-Identifier: MIT
// Arrival instants that follow a profile: counts per piece, closed forms, the spread of Poisson arrivals,
// shares and phases.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"

namespace
{

constexpr uint64_t kSecond = 1000000000;

profile parsed(const std::string &text)
{
	profile p;
	char error[512] = "";
	const bool ok = profile_parse(text.c_str(), &p, error, sizeof(error));
	INFO(text << ": " << error);
	REQUIRE(ok);
	return p;
}

struct asked {
	arrival kind = ARRIVAL_CONSTANT;
	double share = 1, phase = 0;
	uint64_t end_ns = PACING_NEVER, count = UINT64_MAX, seed = 1;
};

// Minus start_ns, which is one second.
std::vector<uint64_t> instants(const std::string &text, const asked &a)
{
	const profile shape = parsed(text);
	pacing p;
	std::vector<uint64_t> all;
	pacing_start_profile(&p, a.kind, &shape, a.share, a.phase, kSecond,
			     a.end_ns == PACING_NEVER ? a.end_ns : kSecond + a.end_ns, a.count,
			     random_begin(a.seed, 0, 3));
	for (; p.due_ns != PACING_NEVER; pacing_take(&p))
		all.push_back(p.due_ns - kSecond);
	CHECK(std::is_sorted(all.begin(), all.end()));
	return all;
}

size_t between(const std::vector<uint64_t> &all, double from, double to)
{
	const auto at = [&](double s) {
		return std::lower_bound(all.begin(), all.end(), static_cast<uint64_t>(std::llround(s * 1e9)));
	};
	return static_cast<size_t>(at(to) - at(from));
}

} // namespace

TEST_CASE("a flat profile paces like the fixed rate")
{
	for (double phase : {0.0, 0.3}) {
		pacing fixed;
		pacing_start(&fixed, ARRIVAL_CONSTANT, 3000, phase, 0, PACING_NEVER, 100000,
			     random_begin(1, 0, 3));
		for (uint64_t at : instants("steps:3000x1s", {.phase = phase, .count = 100000})) {
			if (at > fixed.due_ns + 1 || fixed.due_ns > at + 1)
				FAIL(at << " and " << fixed.due_ns);
			pacing_take(&fixed);
		}
		CHECK(fixed.due_ns == PACING_NEVER);
	}
}

TEST_CASE("each step has its number of requests, and pauses have none")
{
	const auto all = instants("steps:1000x10s,0x5s,2000x10s,300x1s,repeat", {.end_ns = 52 * kSecond});
	for (double cycle : {0, 26}) {
		CHECK(between(all, cycle, cycle + 10) == 10000);
		CHECK(between(all, cycle + 10, cycle + 15) == 0);
		CHECK(between(all, cycle + 15, cycle + 25) == 20000);
		CHECK(between(all, cycle + 25, cycle + 26) == 300);
	}
	CHECK(all.size() == 60600);
	// The first one after a pause is due at its end.
	CHECK(all[10000] == 15 * kSecond);

	// Boundaries that a double cannot represent exactly: the fourth request still belongs after the
	// pause.
	const auto thirds = instants("steps:30x100ms,0x200ms,repeat", {.end_ns = 3000 * kSecond});
	REQUIRE(thirds.size() == 30000);
	for (size_t i = 0; i < thirds.size(); i += 3)
		if (thirds[i] != i * 100000000)
			FAIL(i << " at " << thirds[i]);

	const auto square = instants("square:0,700,3s", {.end_ns = 3000 * kSecond});
	CHECK(square.size() == 1050 * 1000);
	CHECK(square.front() == 3 * kSecond / 2);
	for (double period = 0; period < 1000; period++)
		if (between(square, period * 3, period * 3 + 1.5) != 0)
			FAIL("a request without rate in period " << period);
}

TEST_CASE("instants on a ramp and a sine match their closed forms")
{
	const auto ramp = instants("ramp:1000-10000x60s", {.phase = 0.5, .end_ns = 60 * kSecond});
	REQUIRE(ramp.size() == 330000);
	for (size_t k = 0; k < ramp.size(); k++) {
		// 1000 t + 75 t^2 = k + 0.5
		const double t = (-1000 + std::sqrt(1e6 + 300 * (static_cast<double>(k) + 0.5))) / 150;
		if (std::fabs(static_cast<double>(ramp[k]) - t * 1e9) > 1)
			FAIL(k << " at " << ramp[k]);
	}
	const auto sine = instants("sine:0,2000,10s", {.end_ns = 100 * kSecond});
	CHECK(sine.size() == 100000);
	for (size_t k = 0; k < sine.size(); k++) {
		// 1000 t + 10000 / 2 pi (1 - cos(2 pi t / 10)) = k; a nanosecond is at most 2e-6 of a
		// request.
		const double t = static_cast<double>(sine[k]) / 1e9;
		const double reached = 1000 * t + 5000 / M_PI * (1 - std::cos(2 * M_PI * t / 10));
		if (std::fabs(reached - static_cast<double>(k)) > 3e-6)
			FAIL(k << " at " << sine[k] << ": " << reached);
	}
}

TEST_CASE("threads share a profile and interleave")
{
	const std::string text = "ramp:100-2000x10s,repeat";
	const auto whole = instants(text, {.end_ns = 30 * kSecond});
	std::vector<uint64_t> shared;
	for (int thread = 0; thread < 4; thread++) {
		const auto part =
		    instants(text, {.share = 0.25, .phase = thread / 4.0, .end_ns = 30 * kSecond});
		shared.insert(shared.end(), part.begin(), part.end());
	}
	std::sort(shared.begin(), shared.end());
	REQUIRE(shared.size() == whole.size());
	for (size_t i = 0; i < whole.size(); i++)
		if (shared[i] > whole[i] + 1 || whole[i] > shared[i] + 1)
			FAIL(i << ": " << shared[i] << " and " << whole[i]);
	CHECK(instants(text, {.share = 0, .end_ns = kSecond}).empty());
	CHECK(instants(text, {.kind = ARRIVAL_POISSON, .share = 0, .end_ns = kSecond}).empty());
}

TEST_CASE("Poisson arrivals follow the profile, with the spread of a Poisson process")
{
	for (const char *text : {"sine:100,1900,10s", "square:500,1500,10s", "ramp:100-1900x10s,repeat"}) {
		const profile shape = parsed(text);
		const auto all = instants(text, {.kind = ARRIVAL_POISSON, .end_ns = 1000 * kSecond});
		const double n = static_cast<double>(all.size());
		INFO(text);
		CHECK(n == Approx(1e6).margin(4 * 1000)); // four standard deviations of the count
		// Counts per 100 ms: for a Poisson process each has its own mean as variance.
		double dispersion = 0;
		std::vector<double> tenths(100);
		const int cells = 10000;
		for (int i = 0; i < cells; i++) {
			const double seen = static_cast<double>(between(all, i / 10.0, (i + 1) / 10.0));
			const double mean =
			    profile_integral(&shape, (i + 1) / 10.0) - profile_integral(&shape, i / 10.0);
			dispersion += (seen - mean) * (seen - mean) / mean;
			tenths[static_cast<size_t>(i % 100)] += seen;
		}
		CHECK(dispersion / cells == Approx(1).margin(4 * std::sqrt(2.0 / cells)));
		// Over the hundred periods, each tenth of a second has its share too.
		for (int i = 0; i < 100; i++) {
			const double mean = 100 * (profile_integral(&shape, (i + 1) / 10.0) -
						   profile_integral(&shape, i / 10.0));
			CHECK(tenths[static_cast<size_t>(i)] == Approx(mean).margin(4.5 * std::sqrt(mean)));
		}
		CHECK(all == instants(text, {.kind = ARRIVAL_POISSON, .end_ns = 1000 * kSecond}));
		CHECK(all != instants(text, {.kind = ARRIVAL_POISSON, .end_ns = 1000 * kSecond, .seed = 2}));
	}
}

TEST_CASE("a profile's sequence ends with its count, its end, its stop, or its rate")
{
	const std::string text = "steps:1000x10s";
	CHECK(instants(text, {.count = 0}).empty());
	CHECK(instants(text, {.count = 1}).size() == 1);
	CHECK(instants(text, {.count = 12345}).size() == 12345); // the last value continues
	CHECK(instants(text, {.end_ns = 2 * kSecond}).size() == 2000);
	for (arrival kind : {ARRIVAL_CONSTANT, ARRIVAL_POISSON}) {
		CHECK(instants("steps:0x1s", {.kind = kind}).empty());
		CHECK(instants("steps:0x1s,repeat", {.kind = kind}).empty());
		CHECK(instants("sine:0,0,1s", {.kind = kind}).empty());
	}
	CHECK(instants("steps:1000x2s,0x1s", {}).size() == 2000);
	CHECK(instants("ramp:1000-0x2s", {}).size() == 1000);

	const profile shape = parsed(text);
	pacing p;
	pacing_start_profile(&p, ARRIVAL_CONSTANT, &shape, 1, 0, kSecond, PACING_NEVER, UINT64_MAX,
			     random_begin(1, 0, 3));
	pacing_stop(&p, kSecond + 2000000);
	std::vector<uint64_t> left;
	for (; p.due_ns != PACING_NEVER; pacing_take(&p))
		left.push_back(p.due_ns);
	CHECK(left == std::vector<uint64_t>{kSecond, kSecond + 1000000, kSecond + 2000000});
}

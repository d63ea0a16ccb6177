// SPDX-License-Identifier: MIT
// Shapes over time: their values, their integrals compared with numeric ones, the inverse, and the parsing.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/protocol.h"
#include "loadgen/workload.h"
#include "tests/support/catch.h"

namespace
{

profile parsed(const std::string &text)
{
	profile p;
	char error[512] = "";
	const bool ok = profile_parse(text.c_str(), &p, error, sizeof(error));
	INFO(text << ": " << error);
	REQUIRE(ok);
	return p;
}

const char *const kShapes[] = {
    "steps:1000x10s,2000x10s",
    "steps:1000x10s,0x5s,2000x10s,repeat",
    "steps:0x1s,0.5x3s,0x1s,repeat",
    "ramp:1000-10000x60s",
    "ramp:0-100x3s,100-0x5s,repeat",
    "ramp:500-0x7s,0-0x1s,0-500x2s",
    "square:1000,5000,10s",
    "square:0,10,3s",
    "sine:1000,5000,60s",
    "sine:0,1000,7s",
    "sine:0,3,900ms",
    "sine:4,4,1s",
};

} // namespace

TEST_CASE("steps have each value for its time, then the last")
{
	const profile p = parsed("steps:1000x10s,2000x500ms");
	CHECK(p.subject == PROFILE_RATE);
	CHECK(profile_value(&p, 0) == 1000);
	CHECK(profile_value(&p, 9.999) == 1000);
	CHECK(profile_value(&p, 10) == 2000);
	CHECK(profile_value(&p, 1000) == 2000);
	CHECK(profile_length(&p) == 10.5);
	CHECK(profile_integral(&p, 10.25) == Approx(10500).epsilon(1e-12));
	CHECK(profile_integral(&p, 20.5) == Approx(31000).epsilon(1e-12));

	const profile again = parsed("connections:steps:10x10s,20x10s,repeat");
	CHECK(again.subject == PROFILE_CONNECTIONS);
	CHECK(profile_value(&again, 30) == 20);
	CHECK(profile_value(&again, 40) == 10);
	CHECK(std::isinf(profile_length(&again)));
}

TEST_CASE("ramps change evenly from one value to the other")
{
	const profile p = parsed("rate:ramp:1000-10000x60s,1e4-2e3x20s");
	CHECK(profile_value(&p, 0) == 1000);
	CHECK(profile_value(&p, 30) == Approx(5500));
	CHECK(profile_value(&p, 70) == Approx(6000));
	CHECK(profile_value(&p, 80) == 2000);
	CHECK(profile_value(&p, 81) == 2000);
	CHECK(profile_length(&p) == 80);
	CHECK(profile_integral(&p, 60) == Approx(330000).epsilon(1e-12));
	CHECK(profile_integral(&p, 90) == Approx(330000 + 120000 + 20000).epsilon(1e-12));
}

TEST_CASE("square waves and sines repeat")
{
	const profile square = parsed("square:1000,5000,10s");
	for (double t : {0.0, 4.9, 10.0, 994.9})
		CHECK(profile_value(&square, t) == 1000);
	for (double t : {5.0, 9.9, 15.0, 999.9})
		CHECK(profile_value(&square, t) == 5000);
	CHECK(profile_integral(&square, 100) == Approx(300000).epsilon(1e-12));

	const profile sine = parsed("sine:1000,5000,60s");
	for (double period : {0, 1, 1000}) {
		CHECK(profile_value(&sine, period * 60) == Approx(3000));
		CHECK(profile_value(&sine, period * 60 + 15) == Approx(5000));
		CHECK(profile_value(&sine, period * 60 + 45) == Approx(1000));
		CHECK(profile_integral(&sine, period * 60) == Approx(period * 180000).epsilon(1e-12));
	}
	CHECK(std::isinf(profile_length(&square)));
	CHECK(std::isinf(profile_length(&sine)));
}

TEST_CASE("the integral equals the sum of the values")
{
	for (const char *text : kShapes) {
		const profile p = parsed(text);
		// The midpoint rule over 100 s. None of its cells contains a jump of these shapes.
		const int cells = 2000000;
		const double width = 100.0 / cells;
		double sum = 0;
		INFO(text);
		for (int i = 0; i < cells; i++) {
			sum += profile_value(&p, (i + 0.5) * width) * width;
			if (i % 40000 == 39999)
				CHECK(profile_integral(&p, (i + 1) * width) ==
				      Approx(sum).epsilon(1e-8).margin(1e-9));
		}
	}
}

TEST_CASE("when the integral reaches a value, to a nanosecond")
{
	random_stream r = random_begin(1, 0, 1);
	for (const char *text : kShapes) {
		const profile p = parsed(text);
		for (double horizon : {10.0, 1000.0, 1e5})
			for (int i = 0; i < 3000; i++) {
				const double at = random_unit(&r) * horizon, value = profile_integral(&p, at);
				const double when = profile_when(&p, value, 0);
				INFO(text << " at " << at << " gives " << when);
				const double rate = profile_value(&p, at);
				if (rate > 1e-3 * p.area / p.length) {
					// At a low rate the last bit of a double's integral is more than
					// that.
					if (std::fabs(when - at) > std::max(1e-9, value * 0x1p-51 / rate))
						FAIL("off by " << when - at);
				} else {
					// Hardly any rate: the instant is ill-defined, the value is not.
					if (std::fabs(profile_integral(&p, when) - value) >
					    1e-9 * (1 + value))
						FAIL("value off by " << profile_integral(&p, when) - value);
				}
				// Searched from a near instant, as arrivals are, the result is the same.
				const double from = at * (1 - 1e-3 * random_unit(&r));
				const double again = profile_when(&p, value, from);
				if (std::fabs(profile_integral(&p, again) - value) > 1e-9 * (1 + value) ||
				    again < from)
					FAIL("from " << from << " it is " << again);
			}
	}
}

TEST_CASE("instants of ramps match the root of their quadratic")
{
	const profile p = parsed("ramp:1000-10000x60s");
	for (double k = 0; k <= 330000; k += 1000) {
		// 1000 t + 75 t^2 = k
		const double expected = (-1000 + std::sqrt(1e6 + 300 * k)) / 150;
		CHECK(profile_when(&p, k, 0) == Approx(expected).margin(1e-9));
	}
	CHECK(profile_when(&p, 340000, 0) == Approx(61).margin(1e-9));
	CHECK(profile_when(&p, 340000, 62) == 62);
}

TEST_CASE("a value is reached at the first such instant, or never")
{
	const profile pause = parsed("steps:10x1s,0x10s,10x1s,repeat");
	CHECK(profile_when(&pause, 10, 0) == Approx(1).margin(1e-9));
	CHECK(profile_when(&pause, 10, 5) == 5);
	CHECK(profile_when(&pause, 10.001, 0) == Approx(11.0001).margin(1e-9));
	CHECK(profile_when(&pause, 20, 0) == Approx(12).margin(1e-9));
	CHECK(profile_when(&pause, 2e6 + 5, 0) == Approx(1.2e6 + 0.5).margin(1e-6));
	CHECK(profile_when(&pause, 0, 0) == 0);

	// At a boundary of periods, the one before counts.
	const profile trailing = parsed("steps:10x1s,0x1s,repeat");
	CHECK(profile_when(&trailing, 20, 0) == Approx(3).margin(1e-9));

	const profile ending = parsed("steps:10x1s,0x1s");
	CHECK(profile_when(&ending, 10, 0) == Approx(1).margin(1e-9));
	CHECK(std::isinf(profile_when(&ending, 10.1, 0)));
	for (const char *text :
	     {"steps:0x1s", "steps:0x1s,repeat", "square:0,0,1s", "sine:0,0,1s", "ramp:0-0x5s"}) {
		const profile none = parsed(text);
		INFO(text);
		CHECK(std::isinf(profile_when(&none, 1e-9, 0)));
		CHECK(profile_resume_ns(&none, 0) == UINT64_MAX);
	}
}

TEST_CASE("load resumes after a time without any")
{
	const uint64_t second = 1000000000;
	const profile cycle = parsed("steps:0x1s,10x1s,0x10s,0x2s,repeat");
	CHECK(profile_resume_ns(&cycle, 0) == second);
	CHECK(profile_resume_ns(&cycle, second - 1) == second);
	CHECK(profile_resume_ns(&cycle, 2 * second - 1) == 2 * second - 1);
	CHECK(profile_resume_ns(&cycle, 2 * second) == 15 * second);
	CHECK(profile_resume_ns(&cycle, 14000000 * second) == 14000001 * second);
	const profile rising = parsed("steps:0x1s,5x1s");
	CHECK(profile_resume_ns(&rising, 7 * second) == 7 * second);
	const profile late = parsed("ramp:0-0x1s,0-5x1s,5-0x1s");
	CHECK(profile_resume_ns(&late, 0) == second);
	CHECK(profile_resume_ns(&late, 3 * second - 1) == 3 * second - 1);
	CHECK(profile_resume_ns(&late, 3 * second) == UINT64_MAX);
	const profile sine = parsed("sine:0,5,4s");
	CHECK(profile_resume_ns(&sine, 3 * second) == 3 * second);
}

TEST_CASE("impossible shapes, each with its reason")
{
	std::string many = "steps:1x1s";
	for (int i = 1; i < PROFILE_PIECES; i++)
		many += ",1x1s";
	CHECK(parsed(many).count == PROFILE_PIECES);
	CHECK(parsed(many + ",repeat").repeat);
	CHECK(parsed("ramp:1e-3-5x1s").pieces[0].first == 0.001);
	CHECK(parsed("steps:0.0x1s").pieces[0].first == 0);

	const std::pair<std::string, const char *> errors[] = {
	    {"", "expected steps:"},
	    {"1000", "expected steps:"},
	    {"rate:", "expected steps:"},
	    {"rate:connections:steps:1x1s", "expected steps:"},
	    {"Steps:1x1s", "expected steps:"},
	    {"steps", "expected steps:"},
	    {"steps:", "of the form VALUExTIME"},
	    {"steps:repeat", "of the form VALUExTIME"},
	    {"steps:1000", "of the form VALUExTIME"},
	    {"steps:1x1s,", "of the form VALUExTIME"},
	    {"steps:1x1s,repeat,1x1s", "of the form VALUExTIME"},
	    {"steps:1x1s,repeat,", "of the form VALUExTIME"},
	    {"steps:x1s", "\"\" is not a number from 0 to 1000000000"},
	    {"steps:-1x1s", "\"-1\" is not a number"},
	    {"steps:nanx1s", "\"nan\" is not a number"},
	    {"steps:1e10x1s", "\"1e10\" is not a number"},
	    {"steps:0.0.0x1s", "\"0.0.0\" is not a number"},
	    {"connections:steps:1000001x1s", "from 0 to 1000000"},
	    {"steps:1x", "\"\" is not a time"},
	    {"steps:1x0s", "\"0s\" is not a time"},
	    {"steps:1x1d", "\"1d\" is not a time"},
	    {"steps:1x1sx1s", "\"1sx1s\" is not a time"},
	    {many + ",1x1s", "more than 64 pieces"},
	    {"steps:" + std::string(5000, '1') + "x1s", "longer than"},
	    {"ramp:1000x1s", "of the form FROM-TOxTIME"},
	    {"ramp:1-2", "of the form FROM-TOxTIME"},
	    {"ramp:-2x1s", "of the form FROM-TOxTIME"},
	    {"ramp:1-x1s", "\"\" is not a number"},
	    {"ramp:1--2x1s", "\"-2\" is not a number"},
	    {"ramp:a-2x1s", "\"a\" is not a number"},
	    {"ramp:1-2x", "\"\" is not a time"},
	    {"square:", "lowest value, highest value"},
	    {"square:1,2", "lowest value, highest value"},
	    {"square:2,1,1s", "the lowest value, 2, is above the highest, 1"},
	    {"square:1,b,1s", "\"b\" is not a number"},
	    {"square:1,2,", "\"\" is not a time"},
	    {"square:1,2,1s,repeat", "\"1s,repeat\" is not a time"},
	    {"square:1,2,0.000001ms", "below 2 ns"},
	    {"sine:1000,5000", "lowest value, highest value"},
	    {"sine:,5000,1s", "\"\" is not a number"},
	    {"sine:5,4,1s", "is above the highest"},
	    {"sine:1,2,0", "\"0\" is not a time"},
	};
	for (const auto &[text, reason] : errors) {
		profile p;
		char error[512] = "";
		INFO(text);
		CHECK_FALSE(profile_parse(text.c_str(), &p, error, sizeof(error)));
		INFO(error);
		CHECK(std::string(error).find(reason) != std::string::npos);
	}
}

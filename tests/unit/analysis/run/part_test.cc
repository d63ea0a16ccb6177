// SPDX-License-Identifier: MIT
// Parts of runs as users write them: which texts are times, and which instant of a run they mean.
#include "analysis/run.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;

namespace
{

constexpr uint64_t s = 1'000'000'000, kBegin = 5000 * s, kEnd = 5060 * s;
// 2026-11-22T23:59:30 UTC
constexpr uint64_t kBeginReal = 1'795'391'970 * s;

Run RunWithClock()
{
	Run run;
	run.path = "monday";
	ft_clock clock = {};
	clock.monotonic_ns = kBegin - 10 * s;
	clock.realtime_ns = kBeginReal - 10 * s;
	run.clocks.push_back(clock);
	return run;
}

Instant Parsed(const std::string &text)
{
	INFO(text);
	Instant instant;
	REQUIRE(ParseInstant(text, &instant));
	return instant;
}

PartAsked Asked(const std::string &since, const std::string &until, const std::string &around = "")
{
	PartAsked asked;
	std::string error;
	INFO(error);
	REQUIRE(ParsePart(since, until, around, &asked, &error));
	return asked;
}

std::string WhyNot(const std::string &since, const std::string &until, const std::string &around)
{
	PartAsked asked;
	std::string error;
	CHECK(!ParsePart(since, until, around, &asked, &error));
	return error;
}

TimeSpan Found(const PartAsked &asked)
{
	TimeSpan part;
	std::string error;
	int why = FindPart(asked, RunWithClock(), kBegin, kEnd, &part, &error);
	INFO(error);
	REQUIRE(why == 0);
	return part;
}

} // namespace

TEST_CASE("a time is an offset, a time of day, a date with a time, or seconds since 1970")
{
	CHECK(Parsed("+12.5s").kind == Instant::FromBegin);
	CHECK(Parsed("+12.5s").ns == 12 * s + s / 2);
	CHECK(Parsed("-5m").kind == Instant::BeforeEnd);
	CHECK(Parsed("-5m").ns == 300 * s);
	CHECK(Parsed("20:15:03.25").kind == Instant::TimeOfDay);
	CHECK(Parsed("20:15:03.25").ns == (20 * 3600 + 15 * 60 + 3) * s + s / 4);
	for (const char *text : {"2026-11-22T23:59:30", "2026-11-22 23:59:30Z", "1795391970"}) {
		CHECK(Parsed(text).kind == Instant::Realtime);
		CHECK(Parsed(text).ns == kBeginReal);
	}
	// More digits than a double has.
	CHECK(Parsed("1795391970.123456789").ns == kBeginReal + 123'456'789);
}

TEST_CASE("invalid times are refused")
{
	Instant instant;
	for (const char *text : {"",
				 "+",
				 "+5",
				 "5m",
				 "-",
				 "+-5s",
				 "+5s ",
				 "yesterday",
				 "24:00:00",
				 "20:60:00",
				 "20:15:60",
				 "20:15",
				 "20:15:03.",
				 "2026-02-30T00:00:00",
				 "2026-13-01T00:00:00",
				 "2026-11-22",
				 "2026-11-22T",
				 "99999999999",
				 "1.2.3",
				 "0x10",
				 "nan"}) {
		INFO(text);
		CHECK(!ParseInstant(text, &instant));
	}
	CHECK(WhyNot("soon", "", "").find("--since takes a time") == 0);
	CHECK(WhyNot("", "soon", "").find("--until takes a time") == 0);
	CHECK(WhyNot("", "", "soon").find("--around takes a time") == 0);
	CHECK(WhyNot("", "", ",2s").find("--around takes a time") == 0);
	CHECK(WhyNot("", "", "+5s,wide").find("width") != std::string::npos);
	CHECK(WhyNot("", "", "+5s,0s").find("width") != std::string::npos);
	CHECK(WhyNot("+1s", "", "+5s").find("mutually exclusive") != std::string::npos);
}

TEST_CASE("a part is found by the run's clock")
{
	TimeSpan part = Found(Asked("+10s", "-20s"));
	CHECK(part.since_ns == kBegin + 10 * s);
	CHECK(part.until_ns == kEnd - 20 * s);
	part = Found(Asked("+10s", ""));
	CHECK(part.until_ns == UINT64_MAX);
	part = Found(Asked("", "+10s"));
	CHECK(part.since_ns == kBegin);
	part = Found(Asked("", "", "+30s,3s"));
	CHECK(part.since_ns == kBegin + 28 * s + s / 2);
	CHECK(part.until_ns == kBegin + 31 * s + s / 2);
	part = Found(Asked("", "", "+30s"));
	CHECK(part.until_ns - part.since_ns == 10 * s);
	part = Found(Asked("2026-11-22T23:59:40", "1795391990"));
	CHECK(part.since_ns == kBegin + 10 * s);
	CHECK(part.until_ns == kBegin + 20 * s);
	// Past midnight it is the next day.
	part = Found(Asked("23:59:50", "00:00:10"));
	CHECK(part.since_ns == kBegin + 20 * s);
	CHECK(part.until_ns == kBegin + 40 * s);
}

TEST_CASE("an impossible time is refused with the times that exist")
{
	TimeSpan part;
	std::string error;
	Run run = RunWithClock();
	CHECK(FindPart(Asked("+61s", ""), run, kBegin, kEnd, &part, &error) == 3);
	CHECK(error ==
	      "monday has no data at that time: the run lasts from +0 s to +60.000 s (2026-11-22T23:59:30 to "
	      "2026-11-23T00:00:30 UTC)");
	CHECK(FindPart(Asked("", "2026-11-22T20:00:00"), run, kBegin, kEnd, &part, &error) == 3);
	CHECK(FindPart(Asked("1999-01-01T00:00:00", "2000-01-01T00:00:00"), run, kBegin, kEnd, &part,
		       &error) == 3);
	CHECK(error.find("monday has no data at that time") == 0);
	CHECK(FindPart(Asked("+20s", "+20s"), run, kBegin, kEnd, &part, &error) == 2);
	CHECK(error.find("--since is not earlier than --until in monday") == 0);
	CHECK(FindPart(Asked("+60s", ""), run, kBegin, kEnd, &part, &error) == 0);
	run.clocks.clear();
	CHECK(FindPart(Asked("23:59:50", ""), run, kBegin, kEnd, &part, &error) == 3);
	CHECK(error.find("monday has no time of day") == 0);
	CHECK(FindPart(Asked("+1s", ""), run, kBegin, kEnd, &part, &error) == 0);
}

// SPDX-License-Identifier: MIT
// Converts times as users write them to the run's clock, by the recorded time of day.
#include "part.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <ctime>

#include "common/format/units.h"
#include "common/text/parse.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kAround = 10 * kSecond; // the default width

// "123" or "123.25", to the nanosecond: seconds since 1970 have more digits than a double.
bool ParseSeconds(const std::string &text, uint64_t *ns)
{
	constexpr uint64_t most = 4'000'000'000; // in 2096
	size_t point = text.find('.');
	uint64_t whole = 0, fraction = 0;
	if (!parse_count(text.substr(0, point).c_str(), 0, most, &whole))
		return false;
	if (point != std::string::npos) {
		std::string digits = text.substr(point + 1);
		if (digits.empty() || digits.size() > 9)
			return false;
		digits.resize(9, '0');
		if (!parse_count(digits.c_str(), 0, kSecond - 1, &fraction))
			return false;
	}
	*ns = whole * kSecond + fraction;
	return true;
}

// "20:15:03" or "20:15:03.5"
bool ParseTimeOfDay(const std::string &text, uint64_t *ns)
{
	uint64_t hours = 0, minutes = 0, seconds_ns = 0;
	if (text.size() < 8 || text[2] != ':' || text[5] != ':' || text[7] == '.' ||
	    !parse_count(text.substr(0, 2).c_str(), 0, 23, &hours) ||
	    !parse_count(text.substr(3, 2).c_str(), 0, 59, &minutes) ||
	    !ParseSeconds(text.substr(6), &seconds_ns) || seconds_ns >= 60 * kSecond)
		return false;
	*ns = (hours * 60 + minutes) * 60 * kSecond + seconds_ns;
	return true;
}

// "2026-11-22", in ns since 1970
bool ParseDay(const std::string &text, uint64_t *ns)
{
	uint64_t year = 0, month = 0, day = 0;
	if (text.size() != 10 || text[4] != '-' || text[7] != '-' ||
	    !parse_count(text.substr(0, 4).c_str(), 1970, 2096, &year) ||
	    !parse_count(text.substr(5, 2).c_str(), 1, 12, &month) ||
	    !parse_count(text.substr(8, 2).c_str(), 1, 31, &day))
		return false;
	tm t = {};
	t.tm_year = static_cast<int>(year) - 1900;
	t.tm_mon = static_cast<int>(month) - 1;
	t.tm_mday = static_cast<int>(day);
	time_t seconds = timegm(&t);
	*ns = static_cast<uint64_t>(seconds) * kSecond;
	return t.tm_mday == static_cast<int>(day); // else the month has no such day
}

bool ParseDayAndTime(std::string text, uint64_t *ns)
{
	uint64_t time_ns = 0;
	if (!text.empty() && text.back() == 'Z')
		text.pop_back();
	if (text.size() < 11 || (text[10] != 'T' && text[10] != ' ') || !ParseDay(text.substr(0, 10), ns) ||
	    !ParseTimeOfDay(text.substr(11), &time_ns))
		return false;
	*ns += time_ns;
	return true;
}

bool ParseOne(const char *option, const std::string &text, std::optional<Instant> *instant,
	      std::string *error)
{
	if (text.empty())
		return true;
	instant->emplace();
	if (ParseInstant(text, &**instant))
		return true;
	*error = std::string(option) + " takes a time, not '" + text +
		 "'. Give +12.5s (after the first request), -5m (before the end), 20:15:03 or "
		 "2026-11-22T20:15:03 (UTC), or seconds since 1970";
	return false;
}

std::string RealtimeText(uint64_t ns)
{
	time_t seconds = static_cast<time_t>(ns / kSecond);
	tm t;
	char text[32];
	gmtime_r(&seconds, &t);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t);
	return text;
}

// False: the recordings have no time of day.
bool Find(const Instant &instant, const Run &run, uint64_t begin_ns, uint64_t end_ns, int64_t *ns)
{
	const int64_t begin = static_cast<int64_t>(begin_ns), end = static_cast<int64_t>(end_ns);
	int64_t at = static_cast<int64_t>(instant.ns);
	if (instant.kind == Instant::FromBegin || instant.kind == Instant::BeforeEnd) {
		*ns = instant.kind == Instant::FromBegin ? begin + at : end - at;
		return true;
	}
	auto real = [&](int64_t ns_of_run) {
		return static_cast<int64_t>(RealtimeNs(run, static_cast<uint64_t>(ns_of_run)));
	};
	int64_t begin_real = real(begin), end_real = real(end);
	if (!begin_real || !end_real)
		return false;
	if (instant.kind == Instant::TimeOfDay) {
		constexpr int64_t day = 86400 * static_cast<int64_t>(kSecond);
		at += begin_real / day * day;
		if (at < begin_real && at + day <= end_real) // the run passed midnight
			at += day;
	}
	*ns = begin + (at - begin_real);
	// By the nearest reading, as for printed times: clocks are set while runs last.
	if (*ns > begin)
		*ns += at - real(*ns);
	return true;
}

} // namespace

bool ParseInstant(const std::string &text, Instant *instant)
{
	if (text.empty())
		return false;
	if (text[0] == '+' || text[0] == '-') {
		instant->kind = text[0] == '+' ? Instant::FromBegin : Instant::BeforeEnd;
		return parse_duration(text.c_str() + 1, TIME_ANY, 0, &instant->ns);
	}
	instant->kind = Instant::TimeOfDay;
	if (ParseTimeOfDay(text, &instant->ns))
		return true;
	instant->kind = Instant::Realtime;
	return ParseDayAndTime(text, &instant->ns) || ParseSeconds(text, &instant->ns);
}

bool ParsePart(const std::string &since, const std::string &until, const std::string &around, PartAsked *part,
	       std::string *error)
{
	if (around.empty())
		return ParseOne("--since", since, &part->since, error) &&
		       ParseOne("--until", until, &part->until, error);
	if (!since.empty() || !until.empty()) {
		*error = "--around and --since or --until are mutually exclusive";
		return false;
	}
	size_t comma = around.find(',');
	if (!ParseOne("--around", around.substr(0, comma), &part->since, error))
		return false;
	uint64_t width_ns = kAround;
	if (comma != std::string::npos &&
	    (!parse_duration(around.c_str() + comma + 1, TIME_ANY, 0, &width_ns) || !width_ns)) {
		*error = "--around takes a duration as its width (2s, 500ms), not '" +
			 around.substr(comma + 1) + "'";
		return false;
	}
	if (!part->since) {
		*error = "--around takes a time and an optional width (+12.5s,2s), not '" + around + "'";
		return false;
	}
	part->until = part->since;
	part->before_ns = width_ns / 2;
	part->after_ns = width_ns - part->before_ns;
	return true;
}

std::string SpanText(const Run &run, uint64_t begin_ns, uint64_t end_ns)
{
	std::string text = "the run lasts from +0 s to " + common::FormatOffset(end_ns, begin_ns);
	uint64_t from = RealtimeNs(run, begin_ns), to = RealtimeNs(run, end_ns);
	if (from && to)
		text += " (" + RealtimeText(from) + " to " + RealtimeText(to) + " UTC)";
	return text;
}

int FindPart(const PartAsked &asked, const Run &run, uint64_t begin_ns, uint64_t end_ns, TimeSpan *part,
	     std::string *error)
{
	int64_t since = static_cast<int64_t>(begin_ns), until = INT64_MAX;
	if ((asked.since && !Find(*asked.since, run, begin_ns, end_ns, &since)) ||
	    (asked.until && !Find(*asked.until, run, begin_ns, end_ns, &until))) {
		*error = run.path +
			 " has no time of day. Give +12.5s (after its first request) or -5m (before its end)";
		return 3;
	}
	since -= static_cast<int64_t>(asked.before_ns);
	if (asked.until)
		until += static_cast<int64_t>(asked.after_ns);
	if (since >= until && asked.since) {
		*error = "--since is not earlier than --until in " + run.path + ": " +
			 SpanText(run, begin_ns, end_ns);
		return 2;
	}
	if (since > static_cast<int64_t>(end_ns) || until <= static_cast<int64_t>(begin_ns)) {
		*error = run.path + " has no data at that time: " + SpanText(run, begin_ns, end_ns);
		return 3;
	}
	*part = {static_cast<uint64_t>(std::max<int64_t>(since, 0)),
		 asked.until ? static_cast<uint64_t>(until) : UINT64_MAX};
	return 0;
}

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Times in a Redis log and in a recording, both as seconds of the local day.
#pragma once
#include <ctime>
#include <stdexcept>
#include <string>

#include "recording/recording.h"

namespace forktail::test
{

// The time of the line around `at`: "1234:M 21 Nov 2026 06:31:02.123 * text".
inline double seconds_of_day(const std::string &log, size_t at)
{
	const size_t line = log.rfind('\n', at) + 1;
	const size_t clock = log.find(':', log.find(' ', line)) - 2;
	int hour = 0, minute = 0, second = 0, milli = 0;
	if (sscanf(log.c_str() + clock, "%d:%d:%d.%d", &hour, &minute, &second, &milli) != 4)
		throw std::runtime_error("no time in: " + log.substr(line, 80));
	return hour * 3600 + minute * 60 + second + milli * 1e-3;
}

// For a time of CLOCK_MONOTONIC, converted with a recording's clock record.
inline double seconds_of_day(const ft_clock &clock, uint64_t monotonic_ns)
{
	const uint64_t real_ns = clock.realtime_ns + monotonic_ns - clock.monotonic_ns;
	const auto whole = static_cast<time_t>(real_ns / 1000000000);
	struct tm local = {};
	localtime_r(&whole, &local);
	return local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec +
	       static_cast<double>(real_ns % 1000000000) * 1e-9;
}

} // namespace forktail::test

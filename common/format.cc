// SPDX-License-Identifier: MIT
// Numbers, times and addresses as text.
//
// Rounding happens before the unit is chosen, so that 999,999 ns reads "1.00 ms" and never "1000 us".
#include "common/format.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace forktail::common
{

namespace
{

// `value` in the first unit in which it is below 999.5, with three significant digits.
std::string Scaled(double value, const char *const *units, int unit_count, double step)
{
	int unit = 0;
	while (unit + 1 < unit_count && value >= 999.5) {
		value /= step;
		unit++;
	}
	char text[64];
	if (unit == 0)
		snprintf(text, sizeof text, "%.0f %s", value, units[0]); // whole ns, whole bytes
	else
		snprintf(text, sizeof text, "%.*f %s",
			 value < 9.995	 ? 2
			 : value < 99.95 ? 1
					 : 0,
			 value, units[unit]);
	return text;
}

} // namespace

std::string FormatDuration(uint64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double seconds = static_cast<double>(ns) / 1e9;
	if (seconds >= 999.5)
		return FormatCount(static_cast<uint64_t>(std::llround(seconds))) + " s";
	return Scaled(static_cast<double>(ns), units, 4, 1000);
}

std::string FormatCount(uint64_t n)
{
	std::string digits = std::to_string(n), text;
	for (size_t i = 0; i < digits.size(); i++) {
		if (i && (digits.size() - i) % 3 == 0)
			text += ',';
		text += digits[i];
	}
	return text;
}

std::string FormatBytes(uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	return Scaled(static_cast<double>(bytes), units, 5, 1000);
}

std::string FormatPercent(double fraction)
{
	double percent = fraction * 100;
	char text[32];
	if (percent == 0)
		return "0 %";
	if (percent < 0.005)
		return "< 0.01 %";
	int digits = percent < 0.995 ? 2 : percent < 99.95 ? 1 : 0;
	// 99.96 % is not everything: only exactly 1 prints "100 %".
	if (digits == 0 && fraction < 1)
		return "> 99.9 %";
	snprintf(text, sizeof text, "%.*f %%", digits, percent);
	return text;
}

std::string FormatShare(double fraction)
{
	if (fraction < 0.01)
		return FormatPercent(fraction);
	char text[32];
	snprintf(text, sizeof text, "%.0f %%", fraction < 1 ? std::min(fraction * 100, 99.4) : 100);
	return text;
}

std::string FormatOffset(uint64_t t_ns, uint64_t zero_ns)
{
	double seconds = t_ns >= zero_ns ? static_cast<double>(t_ns - zero_ns) / 1e9
					 : -static_cast<double>(zero_ns - t_ns) / 1e9;
	char text[64];
	snprintf(text, sizeof text, "%+.3f s", seconds);
	return text;
}

std::string Plural(uint64_t n, const char *one, const char *many)
{
	return FormatCount(n) + " " + (n == 1 ? one : many);
}

// A recording has IPv4 addresses in IPv6 form. The operator knows the IPv4 form.

std::string ClientAddress(const uint8_t (&address)[16], bool hashed)
{
	static constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	char text[INET6_ADDRSTRLEN] = "";
	uint64_t hash;
	if (std::count(std::begin(address), std::end(address), 0) == sizeof address)
		return "";
	if (hashed) {
		memcpy(&hash, address, sizeof hash);
		snprintf(text, sizeof text, "client-%016" PRIx64, hash);
	} else if (memcmp(address, mapped, sizeof mapped) == 0) {
		inet_ntop(AF_INET, address + sizeof mapped, text, sizeof text);
	} else {
		inet_ntop(AF_INET6, address, text, sizeof text);
	}
	return text;
}

std::string Cut(const std::string &text, size_t bytes)
{
	if (text.size() <= bytes)
		return text;
	size_t end = bytes - 3;
	while (end && (text[end] & 0xc0) == 0x80)
		end--;
	return text.substr(0, end) + "...";
}

} // namespace forktail::common

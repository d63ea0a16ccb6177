/* SPDX-License-Identifier: MIT */
/* strtoull and strtod accept more than a user means ("-1", " 7", "0x10", "nan"), so the first byte is
 * looked at too. */
#include "parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take_count(const char **text, uint64_t low, uint64_t high, uint64_t *out)
{
	char *end;

	if (!is_digit(**text))
		return false;
	errno = 0;
	*out = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0 && *out >= low && *out <= high;
}

static bool take_number(const char **text, double *out)
{
	char *end;

	if ((!is_digit(**text) && **text != '.') || strpbrk(*text, "xX"))
		return false;
	*out = strtod(*text, &end);
	if (end == *text)
		return false;
	*text = end;
	return isfinite(*out);
}

bool parse_count(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	return take_count(&text, low, high, out) && *text == 0;
}

bool parse_positive(const char *text, double high, double *out)
{
	return take_number(&text, out) && *text == 0 && *out > 0 && *out <= high;
}

bool parse_duration(const char *text, bool zero, uint64_t *ns)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"h", 3600}};
	double value;

	if (!take_number(&text, &value))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		value *= units[i].seconds;
		if (value > 1e9)
			return false;
		*ns = (uint64_t)(value * 1e9 + 0.5);
		return *ns > 0 || zero;
	}
	return false;
}

bool parse_ratio(const char *text, uint32_t *first, uint32_t *second)
{
	uint64_t a, b;

	if (!take_count(&text, 0, 1000000, &a) || *text++ != ':' || !take_count(&text, 0, 1000000, &b) ||
	    *text != 0 || a + b == 0)
		return false;
	*first = (uint32_t)a;
	*second = (uint32_t)b;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* Numbers, times and CSV from text.
 *
 * strtoull and strtod accept more than a user means ("-1", " 7", "0x10", "nan"), so the first byte is checked
 * too. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

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

bool parse_number(const char **text, double *out)
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
	return parse_number(&text, out) && *text == 0 && *out > 0 && *out <= high;
}

#define LONGEST_NS 1e18
#define LARGEST_SIZE 1e18 /* bytes */

static const struct time_unit time_units[] = {
    {"ns", TIME_NS, 1},	 {"us", TIME_US, 1e3},	{"ms", TIME_MS, 1e6},	{"s", TIME_S, 1e9},
    {"m", TIME_M, 60e9}, {"h", TIME_H, 3600e9}, {"d", TIME_D, 86400e9},
};
enum { TIME_UNITS = sizeof(time_units) / sizeof(*time_units) };

const struct time_unit *find_time_unit(const char *name, unsigned units)
{
	for (int i = 0; i < TIME_UNITS; i++)
		if ((time_units[i].unit & units) && (!name || strcmp(name, time_units[i].name) == 0))
			return &time_units[i];
	return NULL;
}

bool parse_duration(const char *text, unsigned units, unsigned bare, uint64_t *ns)
{
	const struct time_unit *unit;
	double value;

	if (!parse_number(&text, &value))
		return false;
	unit = *text ? find_time_unit(text, units) : find_time_unit(NULL, bare);
	if (!unit || value * unit->ns > LONGEST_NS)
		return false;
	*ns = (uint64_t)(value * unit->ns + 0.5);
	return true;
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

bool parse_sample(const char *text, uint32_t *one_in)
{
	uint64_t n;
	*one_in = 0;
	if (strcmp(text, "auto") == 0)
		return true;
	if (strncmp(text, "1/", 2) || !parse_count(text + 2, 1, 1024, &n) || n & (n - 1))
		return false;
	*one_in = (uint32_t)n;
	return true;
}

bool parse_bytes(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {{"", 1},	      {"B", 1},	       {"kB", 1e3},    {"KB", 1e3},
		     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
		     {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
	double number;

	if (!parse_number(&text, &number))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		*bytes = number * units[i].bytes <= LARGEST_SIZE ? (uint64_t)(number * units[i].bytes) : 0;
		return number * units[i].bytes <= LARGEST_SIZE;
	}
	return false;
}

#define SECOND_NS 1000000000ull
#define LEAST_AGE_NS (10 * SECOND_NS)
#define MOST_AGE_NS (7 * 86400 * SECOND_NS)
#define LEAST_BYTES 4000000ull
#define DEFAULT_BYTES 1000000000ull

bool ring_limits_parse(const char *text, struct ring_limits *limits)
{
	char age[32];
	const char *comma = strchr(text, ',');
	size_t length = comma ? (size_t)(comma - text) : strlen(text);

	if (length >= sizeof age)
		return false;
	memcpy(age, text, length);
	age[length] = 0;
	limits->bytes = DEFAULT_BYTES;
	return parse_duration(age, TIME_ANY | TIME_D, 0, &limits->age_ns) && limits->age_ns >= LEAST_AGE_NS &&
	       limits->age_ns <= MOST_AGE_NS && (!comma || parse_bytes(comma + 1, &limits->bytes)) &&
	       limits->bytes >= LEAST_BYTES;
}

/* Without quotes a field is copied as it is, so that a file of plain fields costs one pass. */

static enum csv_end read_quoted(const char **at, const char *end, char separator, char *out, size_t *length,
				uint64_t *lines)
{
	const char *p = *at + 1;
	uint64_t ends = 0;
	size_t n = 0;

	for (; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) {
		ends += *p == '\n';
		p += *p == '"';
		out[n++] = *p;
	}
	if (p == end)
		return CSV_OPEN_QUOTE;
	p++;
	if (p + 1 < end && *p == '\r' && p[1] == '\n')
		p++;
	if (p < end && *p != separator && *p != '\n')
		return CSV_AFTER_QUOTE;
	*length = n;
	*lines += ends;
	*at = p < end ? p + 1 : p;
	return p < end && *p == separator ? CSV_FIELD : CSV_ROW;
}

enum csv_end csv_read(const char **at, const char *end, char separator, char *out, size_t *length,
		      uint64_t *lines)
{
	const char *from = *at, *p = from, *last;

	if (p < end && *p == '"')
		return read_quoted(at, end, separator, out, length, lines);
	while (p < end && *p != separator && *p != '\n')
		p++;
	last = p;
	if (last > from && last[-1] == '\r' && (p == end || *p == '\n'))
		last--;
	*length = (size_t)(last - from);
	memcpy(out, from, *length);
	*at = p < end ? p + 1 : p;
	return p < end && *p == separator ? CSV_FIELD : CSV_ROW;
}

size_t csv_row_bytes(const char *at, const char *end, char separator)
{
	const char *p = at;

	while (p < end && *p != '\n') {
		if (*p == '"')
			for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++)
				p += *p == '"';
		while (p < end && *p != separator && *p != '\n')
			p++;
		p += p < end && *p == separator;
	}
	return (size_t)(p - at);
}

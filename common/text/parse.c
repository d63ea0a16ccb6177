/* SPDX-License-Identifier: MIT */
/* Numbers, times and CSV from text.
 *
 * strtoull and strtod accept more than a user means ("-1", " 7", "0x10", "nan"), so the first byte is checked
 * too. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* 10^3, 10^6 ... for "", "k", "M", "G" and "T", upper or lower case; 0: another word. */
static double thousands(const char *word)
{
	static const char letters[] = "kmgt";
	const char *letter = *word ? strchr(letters, *word | 0x20) : NULL;

	if (!*word)
		return 1;
	return letter && !word[1] ? pow(1000, (double)(letter - letters + 1)) : 0;
}

bool parse_amount(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	enum { EXACT = 1ull << 53 };
	double number, factor;

	if (parse_count(text, low, high, out))
		return true;
	if (!parse_number(&text, &number))
		return false;
	factor = thousands(text);
	number = round(number * factor * 1e6) / 1e6; /* 1.1k is 1100 */
	if (factor == 0 || number != floor(number) || number > (double)EXACT)
		return false;
	*out = (uint64_t)number;
	return *out >= low && *out <= high;
}

bool parse_rate(const char *text, double high, double *out)
{
	double factor;

	if (!parse_number(&text, out))
		return false;
	factor = thousands(text);
	*out *= factor;
	return *out > 0 && *out <= high;
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
	} units[] = {{"", 1},	      {"B", 1},	       {"k", 1e3},     {"kB", 1e3},	{"M", 1e6},
		     {"MB", 1e6},     {"G", 1e9},      {"GB", 1e9},    {"T", 1e12},	{"TB", 1e12},
		     {"Ki", 0x1p10},  {"KiB", 0x1p10}, {"Mi", 0x1p20}, {"MiB", 0x1p20}, {"Gi", 0x1p30},
		     {"GiB", 0x1p30}, {"Ti", 0x1p40},  {"TiB", 0x1p40}};
	double number;

	if (!parse_number(&text, &number))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcasecmp(text, units[i].name) != 0)
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

/* How many letters must be inserted, removed, replaced or exchanged with the next one to make b of a. */
static size_t distance(const char *a, const char *b)
{
	enum { MOST = 32 };
	size_t rows[3][MOST + 1], m = strlen(a), n = strlen(b);

	if (m > MOST || n > MOST)
		return MOST;
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t *now = rows[i % 3];
		const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t least = last[j - 1] + (a[i - 1] != b[j - 1]);

			least = last[j] + 1 < least ? last[j] + 1 : least;
			least = now[j - 1] + 1 < least ? now[j - 1] + 1 : least;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < least)
				least = before[j - 2] + 1;
			now[j] = least;
		}
	}
	return rows[m % 3][n];
}

const char *closest_name(const char *text, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t least = SIZE_MAX, most = strlen(text) < 4 ? 1 : strlen(text) < 8 ? 2 : 3;

	for (size_t i = 0; i < count; i++) {
		size_t d = distance(text, names[i]);

		if (d <= most && d < strlen(names[i]) && d < least) {
			best = names[i];
			least = d;
		}
	}
	return best;
}

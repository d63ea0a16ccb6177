/* SPDX-License-Identifier: MIT */
/* A limit's text is taken apart at its comparison sign; what stands before it is a figure, or an operation, a
 * dot and a figure. Operations may contain dots themselves (JSON.GET) and so do percentiles (p99.9): the
 * first dot whose right side is a figure is the one between. */
#include "limits.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "units/parse.h"

enum { TEXT_LIMIT = 160, MOST_DECIMALS = 12 };

static const struct {
	const char *name;
	enum limit_figure figure;
} figures[] = {{"avg", LIMIT_AVERAGE},	 {"min", LIMIT_MINIMUM},       {"max", LIMIT_MAXIMUM},
	       {"stddev", LIMIT_STDDEV}, {"errors", LIMIT_ERRORS},     {"misses", LIMIT_MISSES},
	       {"rps", LIMIT_RPS},	 {"requests", LIMIT_REQUESTS}, {"mb/s", LIMIT_MB_PER_S}};

static const char *const comparisons[] = {">", ">=", "<", "<="};

__attribute__((format(printf, 3, 4))) static bool refuse(char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return false;
}

static bool is_time(enum limit_figure figure)
{
	return figure <= LIMIT_STDDEV;
}

/* Copies text[0..length) without the spaces around it. False if it does not fit. */
static bool trimmed(const char *text, size_t length, char *out, size_t size)
{
	while (length && *text == ' ')
		text++, length--;
	while (length && text[length - 1] == ' ')
		length--;
	if (length >= size)
		return false;
	memcpy(out, text, length);
	out[length] = 0;
	return true;
}

static bool find_figure(const char *text, struct limit *limit)
{
	double p;

	if (strlen(text) >= sizeof(limit->figure_name))
		return false;
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		if (strcasecmp(text, figures[i].name) == 0) {
			limit->figure = figures[i].figure;
			strcpy(limit->figure_name, figures[i].name);
			return true;
		}
	/* Digits and dots only: "p1e1" is nobody's percentile. */
	if ((*text != 'p' && *text != 'P') || text[1 + strspn(text + 1, "0123456789.")] != 0 ||
	    !parse_positive(text + 1, 100, &p))
		return false;
	limit->figure = LIMIT_PERCENTILE;
	limit->percentile = p;
	snprintf(limit->figure_name, sizeof(limit->figure_name), "p%s", text + 1);
	return true;
}

static bool find_subject(const char *text, struct limit *limit, char *error, size_t size)
{
	if (find_figure(text, limit))
		return true;
	for (const char *dot = strchr(text, '.'); dot; dot = strchr(dot + 1, '.')) {
		if (!find_figure(dot + 1, limit))
			continue;
		if (dot == text)
			return refuse(error, size, "there is no operation before the dot of \"%s\"", text);
		if ((size_t)(dot - text) >= sizeof(limit->operation))
			return refuse(error, size, "the operation of \"%.40s...\" is longer than any", text);
		memcpy(limit->operation, text, (size_t)(dot - text));
		return true;
	}
	return refuse(
	    error, size,
	    "\"%s\" is no figure; there are p50, p99.9 and other percentiles above 0 up to 100, avg, min, "
	    "max, stddev, errors, misses, rps, requests and mb/s, after GET. or another operation if wanted",
	    text);
}

/* What the value is in. False: `name` is no unit for this figure. */
static bool take_unit(struct limit *limit, const char *name)
{
	limit->unit = "";
	limit->scale = 1;
	if (is_time(limit->figure)) {
		const struct time_unit *unit;
		char lower[TEXT_LIMIT] = "";

		for (size_t i = 0; name[i]; i++)
			lower[i] = (char)tolower((unsigned char)name[i]);
		unit = find_time_unit(*lower ? lower : "ms", TIME_US | TIME_MS | TIME_S);
		limit->unit = unit ? unit->name : "";
		limit->scale = unit ? unit->ns : 1;
		return unit;
	}
	if (!*name)
		return true;
	if (limit->figure != LIMIT_ERRORS || strcmp(name, "%") != 0)
		return false;
	limit->figure = LIMIT_ERROR_PERCENT;
	limit->unit = "%";
	return true;
}

static bool find_value(const char *text, struct limit *limit, char *error, size_t size)
{
	const char *rest = text;
	char unit_name[TEXT_LIMIT];
	double value;

	if (!*text)
		return refuse(error, size, "there is no value for %s", limit->figure_name);
	if (!parse_number(&rest, &value))
		return refuse(error, size, "the value \"%s\" of %s is no number from 0 up", text,
			      limit->figure_name);
	trimmed(rest, strlen(rest), unit_name, sizeof(unit_name));
	if (!take_unit(limit, unit_name))
		return refuse(error, size, "\"%s\" is no unit for %s; %s", unit_name, limit->figure_name,
			      is_time(limit->figure)	      ? "it is a time in us, ms or s"
			      : limit->figure == LIMIT_ERRORS ? "it is a count, or a share in %"
							      : "it is a plain number");
	if (limit->figure == LIMIT_ERROR_PERCENT && value > 100)
		return refuse(error, size, "no share is above 100 %%, so errors are never %s %s",
			      comparisons[limit->comparison], text);
	limit->value = value * limit->scale;
	return true;
}

bool limit_parse(const char *text, struct limit *limit, char *error, size_t size)
{
	size_t sign = strcspn(text, "<>=");
	char subject[TEXT_LIMIT], value[TEXT_LIMIT];

	memset(limit, 0, sizeof(*limit));
	if (strlen(text) >= TEXT_LIMIT)
		return refuse(error, size, "the limit \"%.40s...\" is longer than any", text);
	if (text[sign] != '<' && text[sign] != '>')
		return refuse(error, size, "the limit \"%s\" has no >, >=, < or <=, as p99>2ms has", text);
	limit->comparison = text[sign] == '>' ? LIMIT_OVER : LIMIT_UNDER;
	if (text[sign + 1] == '=')
		limit->comparison++;
	trimmed(text, sign, subject, sizeof(subject));
	text += sign + strlen(comparisons[limit->comparison]);
	trimmed(text, strlen(text), value, sizeof(value));
	if (!*subject)
		return refuse(error, size, "there is no figure before %s", comparisons[limit->comparison]);
	return find_subject(subject, limit, error, size) && find_value(value, limit, error, size);
}

bool limit_broken(const struct limit *limit, double value)
{
	switch (limit->comparison) {
	case LIMIT_OVER:
		return !(value <= limit->value); /* and a NAN is */
	case LIMIT_OVER_OR_AT:
		return !(value < limit->value);
	case LIMIT_UNDER:
		return !(value >= limit->value);
	case LIMIT_UNDER_OR_AT:
		return !(value > limit->value);
	}
	return true;
}

/* `decimals` digits behind the point, less the zeros at the end. */
static void put_number(char *out, size_t size, double number, int decimals)
{
	size_t length;

	snprintf(out, size, "%.*f", decimals, number);
	if (!strchr(out, '.'))
		return;
	for (length = strlen(out); out[length - 1] == '0'; length--)
		out[length - 1] = 0;
	if (out[length - 1] == '.')
		out[length - 1] = 0;
}

void limit_sentence(const struct limit *limit, double value, char *out, size_t size)
{
	static const char *const broken[] = {"over the limit of", "not below the limit of",
					     "under the limit of", "not above the limit of"};
	static const char *const fails[] = {"over", "from", "under", "up to"};
	const double number = value / limit->scale, bound = limit->value / limit->scale;
	const char *space = *limit->operation ? " " : "", *gap = *limit->unit ? " " : "";
	char is[400], limit_is[400];
	double shown;
	int decimals;

	if (isnan(value)) {
		snprintf(out, size, "%s%s%s has no value: nothing was measured", limit->operation, space,
			 limit->figure_name);
		return;
	}
	put_number(limit_is, sizeof(limit_is), bound, MOST_DECIMALS);
	/* Four significant digits; more if it would look as if it stood elsewhere to its limit than it does.
	 */
	decimals = number >= 1 ? 3 - (int)fmin(log10(number), 3) : 4;
	do {
		put_number(is, sizeof(is), number, decimals);
		shown = strtod(is, NULL);
	} while (((shown > bound) != (number > bound) || (shown < bound) != (number < bound)) &&
		 decimals++ < MOST_DECIMALS);
	if (limit_broken(limit, value))
		snprintf(out, size, "%s%s%s is %s%s%s, %s %s%s%s", limit->operation, space,
			 limit->figure_name, is, gap, limit->unit, broken[limit->comparison], limit_is, gap,
			 limit->unit);
	else
		snprintf(out, size, "%s%s%s is %s%s%s, within its limit (%s %s%s%s fails)", limit->operation,
			 space, limit->figure_name, is, gap, limit->unit, fails[limit->comparison], limit_is,
			 gap, limit->unit);
}

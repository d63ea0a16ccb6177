/* SPDX-License-Identifier: MIT */
/* Limits such as "p99 < 5ms": reading them, and the sentence of each.
 *
 * Splits a limit at its comparison. The left side is a figure, or an operation or cause, a dot and a figure.
 * Operations may contain dots (JSON.GET) and so may percentiles (p99.9): the first dot with a figure on its
 * right side is the separator. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"

enum { TEXT_LIMIT = 160 };

/* What a figure can belong to. */
enum { OF_ALL = 1, OF_OPERATION = 2, OF_CAUSE = 4 };

static const struct {
	const char *name;
	enum limit_figure figure;
	unsigned of;
} figures[] = {{"avg", LIMIT_AVERAGE, OF_ALL | OF_OPERATION},
	       {"min", LIMIT_MINIMUM, OF_ALL | OF_OPERATION},
	       {"max", LIMIT_MAXIMUM, OF_ALL | OF_OPERATION | OF_CAUSE},
	       {"stddev", LIMIT_STDDEV, OF_ALL | OF_OPERATION},
	       {"errors", LIMIT_ERRORS, OF_ALL | OF_OPERATION},
	       {"misses", LIMIT_MISSES, OF_ALL | OF_OPERATION},
	       {"rps", LIMIT_RPS, OF_ALL | OF_OPERATION},
	       {"requests", LIMIT_REQUESTS, OF_ALL | OF_OPERATION | OF_CAUSE},
	       {"mb/s", LIMIT_MB_PER_S, OF_ALL | OF_OPERATION},
	       {"total", LIMIT_TOTAL, OF_CAUSE},
	       {"share", LIMIT_SHARE, OF_CAUSE},
	       {"episodes", LIMIT_EPISODES, OF_ALL | OF_CAUSE},
	       {"drops", LIMIT_DROPS, OF_ALL}};

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
	return figure <= LIMIT_STDDEV || figure == LIMIT_TOTAL;
}

/* Copies text[0..length) without surrounding spaces. False if it does not fit. */
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

/* What follows `words` at the beginning of `text`, where several spaces count as one. NULL: it begins
 * otherwise. */
static const char *after(const char *text, const char *words)
{
	for (; *words; words++) {
		if (tolower((unsigned char)*text) != *words)
			return NULL;
		text++;
		while (*words == ' ' && *text == ' ')
			text++;
	}
	return text;
}

/* `of`: what it belongs to, OF_... The figure is set whenever it exists for any of them. */
static bool find_figure(const char *text, unsigned of, struct limit *limit)
{
	double p;

	if (strlen(text) >= sizeof(limit->figure_name))
		return false;
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		if ((figures[i].of & of) && strcasecmp(text, figures[i].name) == 0) {
			limit->figure = figures[i].figure;
			limit->cause =
			    figures[i].of == OF_CAUSE || (of & OF_CAUSE && !(figures[i].of & OF_OPERATION));
			strcpy(limit->figure_name, figures[i].name);
			return true;
		}
	/* Digits and dots only: "p1e1" is not a percentile. */
	if ((*text != 'p' && *text != 'P') || text[1 + strspn(text + 1, "0123456789.")] != 0 ||
	    !parse_positive(text + 1, 100, &p))
		return false;
	limit->figure = LIMIT_PERCENTILE;
	limit->percentile = p;
	snprintf(limit->figure_name, sizeof(limit->figure_name), "p%s", text + 1);
	return true;
}

/* The share of a cause in slow requests' time. */
static bool share_of(const char *cause, struct limit *limit, char *error, size_t size)
{
	if (!*cause)
		return refuse(error, size, "no cause after \"cause share of\"");
	if (strlen(cause) >= sizeof(limit->of))
		return refuse(error, size, "the cause \"%.40s...\" is too long", cause);
	strcpy(limit->of, cause);
	return find_figure("share", OF_CAUSE, limit);
}

static bool find_subject(const char *text, struct limit *limit, char *error, size_t size)
{
	const char *cause = after(text, "cause share of ");

	if (cause)
		return share_of(cause, limit, error, size);
	if (strcasecmp(text, "unknown") == 0)
		return share_of("unknown", limit, error, size);
	if (find_figure(text, OF_ALL, limit))
		return true;
	for (const char *dot = strchr(text, '.'); dot; dot = strchr(dot + 1, '.')) {
		if (!find_figure(dot + 1, OF_OPERATION | OF_CAUSE, limit))
			continue;
		if (dot == text)
			return refuse(error, size, "no operation before the dot of \"%s\"", text);
		if ((size_t)(dot - text) >= sizeof(limit->of))
			return refuse(error, size, "the operation of \"%.40s...\" is too long", text);
		memcpy(limit->of, text, (size_t)(dot - text));
		return true;
	}
	if (find_figure(text, OF_CAUSE, limit))
		return refuse(error, size, "%s applies to a cause, as in fork.%s", limit->figure_name,
			      limit->figure_name);
	return refuse(error, size,
		      "unknown figure \"%s\". Choose p50, p99.9 or another percentile above 0 up to 100, "
		      "avg, min, max, stddev, errors, misses, rps, requests or mb/s, optionally after an "
		      "operation such as GET.; for a recording also unknown, episodes or drops, and max, "
		      "total, share, requests or episodes after a cause such as fork.",
		      text);
}

/* The unit of the value. False: `name` is not a unit of this figure. */
static bool take_unit(struct limit *limit, const char *name)
{
	const bool percent = strcmp(name, "%") == 0;

	limit->unit = "";
	limit->scale = 1;
	if (percent && limit->comparison == LIMIT_NO_WORSE && limit->figure != LIMIT_SHARE) {
		limit->base_share = true;
		return true;
	}
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
	if (!percent)
		return !*name && limit->figure != LIMIT_SHARE;
	limit->unit = "%";
	if (limit->figure == LIMIT_ERRORS)
		limit->figure = LIMIT_ERROR_PERCENT;
	return limit->figure == LIMIT_ERROR_PERCENT || limit->figure == LIMIT_SHARE;
}

static const char *value_kind(const struct limit *limit)
{
	if (is_time(limit->figure))
		return "expected a time in us, ms or s";
	if (limit->figure == LIMIT_ERRORS)
		return "expected a count, or a share in %";
	if (limit->figure == LIMIT_SHARE)
		return "expected a share in %";
	return "expected a plain number";
}

static bool find_value(const char *text, struct limit *limit, char *error, size_t size)
{
	const char *rest = text;
	char unit_name[TEXT_LIMIT];
	double value;

	if (!*text)
		return refuse(error, size, "%s has no value", limit->figure_name);
	if (!parse_number(&rest, &value))
		return refuse(error, size, "the value \"%s\" of %s is not a number of at least 0", text,
			      limit->figure_name);
	trimmed(rest, strlen(rest), unit_name, sizeof(unit_name));
	if (!take_unit(limit, unit_name))
		return refuse(error, size, "\"%s\" is not a unit of %s: %s", unit_name, limit->figure_name,
			      value_kind(limit));
	if (limit->unit[0] == '%' && value > 100)
		return refuse(error, size, "a share is at most 100 %%, so %s cannot be %s",
			      limit->figure_name, text);
	limit->value = value * limit->scale;
	if (!isfinite(limit->value))
		return refuse(error, size, "%s of %s is too large", text, limit->figure_name);
	return true;
}

/* Finds the comparison and its kind; *length: its characters. NULL: none. */
static const char *find_comparison(const char *text, enum limit_comparison *comparison, size_t *length)
{
	static const char *const signs[] = {">=", "<=", "!=", "==", ">", "<", "="};
	static const enum limit_comparison are[] = {LIMIT_OVER_OR_AT, LIMIT_UNDER_OR_AT, LIMIT_UNEQUAL,
						    LIMIT_EQUAL,      LIMIT_OVER,	 LIMIT_UNDER,
						    LIMIT_EQUAL};
	const char *at = strpbrk(text, "<>=");

	if (!at)
		return NULL;
	if (*at == '=' && at > text && at[-1] == '!')
		at--;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (strncmp(at, signs[i], strlen(signs[i])) == 0) {
			*comparison = are[i];
			*length = strlen(signs[i]);
			return at;
		}
	return NULL;
}

/* "... no worse than BASE by more than 10%": where "no" begins, and the value's text. NULL: not present. */
static const char *find_base(const char *text, const char **value)
{
	for (const char *at = text; *at; at++) {
		const char *rest = at == text || at[-1] == ' ' ? after(at, "no worse than base") : NULL;

		if (!rest || (*rest && *rest != ' '))
			continue;
		while (*rest == ' ')
			rest++;
		*value = *rest ? after(rest, "by more than ") : "0%";
		return *value ? at : NULL;
	}
	return NULL;
}

bool limit_parse(const char *text, struct limit *limit, char *error, size_t size)
{
	char subject[TEXT_LIMIT], value[TEXT_LIMIT];
	const char *at, *value_at = NULL;
	size_t length = 0;

	memset(limit, 0, sizeof(*limit));
	if (strlen(text) >= TEXT_LIMIT)
		return refuse(error, size, "the limit \"%.40s...\" is too long", text);
	at = find_base(text, &value_at);
	if (at) {
		limit->comparison = LIMIT_NO_WORSE;
	} else {
		at = find_comparison(text, &limit->comparison, &length);
		if (!at)
			return refuse(error, size,
				      "the limit \"%s\" has no comparison: expected >, >=, <, <=, = or != as "
				      "in p99>2ms, or \"no worse than BASE by more than 10%%\"",
				      text);
		value_at = at + length;
	}
	trimmed(text, (size_t)(at - text), subject, sizeof(subject));
	trimmed(value_at, strlen(value_at), value, sizeof(value));
	if (!*subject)
		return refuse(error, size, "no figure before %.*s",
			      length ? (int)length : (int)strlen("no worse than BASE"), at);
	return find_subject(subject, limit, error, size) && find_value(value, limit, error, size);
}

bool limit_is_of_load(const struct limit *limit)
{
	return limit->figure <= LIMIT_MB_PER_S && limit->comparison != LIMIT_NO_WORSE;
}

bool limit_more_is_worse(enum limit_figure figure)
{
	return figure != LIMIT_RPS && figure != LIMIT_REQUESTS && figure != LIMIT_MB_PER_S;
}

bool limit_can_hold(const struct limit *limit, const char *text, char *error, size_t size)
{
	const bool errors = limit->figure == LIMIT_ERRORS || limit->figure == LIMIT_ERROR_PERCENT,
		   rate = limit->figure == LIMIT_RPS || limit->figure == LIMIT_MB_PER_S,
		   over = limit->comparison == LIMIT_OVER || limit->comparison == LIMIT_OVER_OR_AT,
		   under = limit->comparison == LIMIT_UNDER || limit->comparison == LIMIT_UNDER_OR_AT;
	const char *sign = strpbrk(text, "<>");

	if (!sign || !(rate ? under : over && (errors || is_time(limit->figure))))
		return true;
	/* "errors > 0" is meant to forbid any. */
	return refuse(error, size,
		      "\"%s\" holds only while %s, and a limit is what has to hold: write \"%.*s%s%s\"", text,
		      rate     ? "the rate is low"
		      : errors ? "requests fail"
			       : "requests are slow",
		      (int)(sign - text), text,
		      rate			    ? ">"
		      : errors && limit->value == 0 ? "="
						    : "<",
		      sign + (errors && limit->value == 0 && sign[1] == '=' ? 2 : 1));
}

static bool is_so(const struct limit *limit, double value)
{
	switch (limit->comparison) {
	case LIMIT_OVER:
		return value > limit->value;
	case LIMIT_OVER_OR_AT:
		return value >= limit->value;
	case LIMIT_UNDER:
		return value < limit->value;
	case LIMIT_UNDER_OR_AT:
		return value <= limit->value;
	case LIMIT_EQUAL:
		return value == limit->value;
	case LIMIT_UNEQUAL:
		return value != limit->value;
	case LIMIT_NO_WORSE:
		break;
	}
	return false;
}

bool limit_broken(const struct limit *limit, enum limit_reading reading, double value)
{
	if (isnan(value))
		return true;
	return is_so(limit, value) == (reading == LIMIT_FAILS_IF);
}

struct limit limit_against(const struct limit *limit, double base)
{
	const double by = limit->base_share ? base * limit->value / 100 : limit->value;
	struct limit against = *limit;

	/* For a cause, more requests are worse: they are the ones that it delayed. */
	if (limit->cause || limit_more_is_worse(limit->figure)) {
		against.comparison = LIMIT_UNDER_OR_AT;
		against.value = base + by;
	} else {
		against.comparison = LIMIT_OVER_OR_AT;
		against.value = base - by;
	}
	if (is_time(limit->figure) && limit->base_share) {
		const struct time_unit *unit = find_time_unit(against.value < 1e6   ? "us"
							      : against.value < 1e9 ? "ms"
										    : "s",
							      TIME_ANY);

		against.unit = unit->name;
		against.scale = unit->ns;
	}
	against.base_share = false;
	against.derived = true;
	return against;
}

/* The sentence about a limit and its figure. Readers see only the sentence, so the figure is printed with as
 * many digits as are needed to show on which side of the limit it is. */

enum { MOST_DECIMALS = 12, NUMBER_SIZE = 400 };

/* The two numbers of a sentence, as text. */
struct sentence_numbers {
	char value[NUMBER_SIZE], bound[NUMBER_SIZE];
	const char *gap;  /* between a number and its unit */
	const char *unit; /* of the value; the limit's unit may not suit it */
	double scale;
};

/* `decimals` digits after the point, without trailing zeros. */
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

static int decimals_of(double number)
{
	return number >= 1 ? 3 - (int)fmin(log10(number), 3) : 4;
}

/* Four significant digits, or more if the rounded figure would appear on the wrong side of its limit. The
 * limit is printed as written, or if it was computed, as precisely as the value. */
static void put_both(const struct limit *limit, double value, struct sentence_numbers *numbers)
{
	const double number = value / numbers->scale, bound = limit->value / limit->scale;
	const double scale = limit->scale / numbers->scale;
	int more = 0;
	double shown, limit_is;

	numbers->gap = *limit->unit ? " " : "";
	do {
		put_number(numbers->bound, sizeof(numbers->bound), bound,
			   limit->derived ? decimals_of(bound) + more : MOST_DECIMALS);
		put_number(numbers->value, sizeof(numbers->value), number, decimals_of(number) + more);
		shown = strtod(numbers->value, NULL);
		limit_is = (limit->derived ? strtod(numbers->bound, NULL) : bound) * scale;
	} while (
	    ((shown > limit_is) != (value > limit->value) || (shown < limit_is) != (value < limit->value)) &&
	    more++ < MOST_DECIMALS);
}

/* Times are printed in a suitable unit, because readers compare two of them. */
static void choose_unit(const struct limit *limit, double value, struct sentence_numbers *numbers)
{
	const struct time_unit *unit = NULL;

	if (value > 0 && (limit->figure <= LIMIT_STDDEV || limit->figure == LIMIT_TOTAL))
		unit = find_time_unit(value < 1e6 ? "us" : value < 1e9 ? "ms" : "s", TIME_ANY);
	numbers->unit = unit ? unit->name : limit->unit;
	numbers->scale = unit ? unit->ns : limit->scale;
}

/* The text after the value, for --fail-if. */
static void put_verdict(const struct limit *limit, double value, const struct sentence_numbers *t, char *out,
			size_t size)
{
	static const char *const broken[] = {"over the limit of",     "not below the limit of",
					     "under the limit of",    "not above the limit of",
					     "exactly the forbidden", "not the wanted"};
	static const char *const fails[] = {"over", "from", "under", "up to", "just", "other than"};

	if (limit_broken(limit, LIMIT_FAILS_IF, value))
		snprintf(out, size, ", %s %s%s%s", broken[limit->comparison], t->bound, t->gap, limit->unit);
	else
		snprintf(out, size, ", within its limit (%s %s%s%s fails)", fails[limit->comparison],
			 t->bound, t->gap, limit->unit);
}

/* The same for what has to hold: on which side of the limit the value is, which is enough unless they are
 * equal. */
static void put_place(const struct limit *limit, double value, const struct sentence_numbers *t, char *out,
		      size_t size)
{
	static const char *const asked[] = {"over", "at least", "under", "at most", "exactly", "other than"};

	if (value != limit->value)
		snprintf(out, size, ", %s %s%s%s", value > limit->value ? "over" : "under", t->bound, t->gap,
			 limit->unit);
	else if (limit_broken(limit, LIMIT_HAS_TO_HOLD, value))
		snprintf(out, size, ", which is not %s %s%s%s", asked[limit->comparison], t->bound, t->gap,
			 limit->unit);
	else
		*out = 0;
}

void limit_sentence(const struct limit *limit, enum limit_reading reading, double value, char *out,
		    size_t size)
{
	const char *space = *limit->of ? " " : "";
	char behind[NUMBER_SIZE + 80];
	struct sentence_numbers numbers;

	if (isnan(value)) {
		snprintf(out, size, "%s%s%s has no value: nothing was measured", limit->of, space,
			 limit->figure_name);
		return;
	}
	numbers.unit = limit->unit;
	numbers.scale = limit->scale;
	if (reading == LIMIT_HAS_TO_HOLD)
		choose_unit(limit, value, &numbers);
	put_both(limit, value, &numbers);
	if (reading == LIMIT_FAILS_IF)
		put_verdict(limit, value, &numbers, behind, sizeof(behind));
	else
		put_place(limit, value, &numbers, behind, sizeof(behind));
	snprintf(out, size, "%s%s%s is %s%s%s%s", limit->of, space, limit->figure_name, numbers.value,
		 numbers.gap, numbers.unit, behind);
}

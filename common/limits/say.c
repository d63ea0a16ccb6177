/* SPDX-License-Identifier: MIT */
/* The sentence about a limit and its figure. Readers see only the sentence, so the figure is printed with as
 * many digits as are needed to show on which side of the limit it is. */
#include "limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/parse.h"

enum { MOST_DECIMALS = 12, NUMBER_SIZE = 400 };

/* The two numbers of a sentence, as text. */
struct told {
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
static void put_both(const struct limit *limit, double value, struct told *told)
{
	const double number = value / told->scale, bound = limit->value / limit->scale;
	const double scale = limit->scale / told->scale;
	int more = 0;
	double shown, limit_is;

	told->gap = *limit->unit ? " " : "";
	do {
		put_number(told->bound, sizeof(told->bound), bound,
			   limit->derived ? decimals_of(bound) + more : MOST_DECIMALS);
		put_number(told->value, sizeof(told->value), number, decimals_of(number) + more);
		shown = strtod(told->value, NULL);
		limit_is = (limit->derived ? strtod(told->bound, NULL) : bound) * scale;
	} while (
	    ((shown > limit_is) != (value > limit->value) || (shown < limit_is) != (value < limit->value)) &&
	    more++ < MOST_DECIMALS);
}

/* Times are printed in a suitable unit, because readers compare two of them. */
static void choose_unit(const struct limit *limit, double value, struct told *told)
{
	const struct time_unit *unit = NULL;

	if (value > 0 && (limit->figure <= LIMIT_STDDEV || limit->figure == LIMIT_TOTAL))
		unit = find_time_unit(value < 1e6 ? "us" : value < 1e9 ? "ms" : "s", TIME_ANY);
	told->unit = unit ? unit->name : limit->unit;
	told->scale = unit ? unit->ns : limit->scale;
}

/* The text after the value, for --fail-if. */
static void put_verdict(const struct limit *limit, double value, const struct told *t, char *out, size_t size)
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
static void put_place(const struct limit *limit, double value, const struct told *t, char *out, size_t size)
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
	struct told told;

	if (isnan(value)) {
		snprintf(out, size, "%s%s%s has no value: nothing was measured", limit->of, space,
			 limit->figure_name);
		return;
	}
	told.unit = limit->unit;
	told.scale = limit->scale;
	if (reading == LIMIT_HAS_TO_HOLD)
		choose_unit(limit, value, &told);
	put_both(limit, value, &told);
	if (reading == LIMIT_FAILS_IF)
		put_verdict(limit, value, &told, behind, sizeof(behind));
	else
		put_place(limit, value, &told, behind, sizeof(behind));
	snprintf(out, size, "%s%s%s is %s%s%s%s", limit->of, space, limit->figure_name, told.value, told.gap,
		 told.unit, behind);
}

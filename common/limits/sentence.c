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

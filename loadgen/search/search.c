/* SPDX-License-Identifier: MIT */
/* Rates are compared by their ratio, so the middle of two is their geometric mean. */
#include "search.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define WIDEN_UP 1.3
#define WIDEN_DOWN 0.5
#define RATE_MAX 1e9

/* Rounds to four digits, so that a rate in the output can be given to --rate. */
static double rounded(double rate)
{
	double unit = pow(10, floor(log10(rate)) - 3);

	return round(rate / unit) * unit;
}

static bool holds(const struct search_rate *r)
{
	return 2 * r->held > r->runs;
}

/* A first failed run is repeated. */
static bool fails(const struct search_rate *r)
{
	uint32_t failed = r->runs - r->held;

	return r->far || (failed > 1 && failed > r->held);
}

const struct search_rate *search_beyond(const struct search *s)
{
	const struct search_rate *lowest = NULL;

	for (uint32_t i = 0; i < s->count; i++)
		if (fails(&s->rates[i]) && (!lowest || s->rates[i].rate < lowest->rate))
			lowest = &s->rates[i];
	return lowest;
}

const struct search_rate *search_highest(const struct search *s)
{
	const struct search_rate *beyond = search_beyond(s), *highest = NULL;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct search_rate *r = &s->rates[i];

		if (holds(r) && !fails(r) && (!beyond || r->rate < beyond->rate) &&
		    (!highest || r->rate > highest->rate))
			highest = r;
	}
	return highest;
}

void search_begin(struct search *s, double rate, uint32_t repeat)
{
	memset(s, 0, sizeof(*s));
	s->repeat = repeat;
	s->rates[0].rate = rounded(fmin(rate, RATE_MAX));
	s->count = 1;
}

/* Makes `rate` the current one. A rate that was rounded to one that was run already would not make progress.
 */
static double go_to(struct search *s, double rate)
{
	rate = rounded(fmin(rate, RATE_MAX));
	for (s->current = 0; s->current < s->count; s->current++)
		if (s->rates[s->current].rate == rate)
			return rate;
	if (s->count == SEARCH_RATES_MAX) {
		s->end = SEARCH_UNDECIDED;
		return 0;
	}
	s->rates[s->count++] = (struct search_rate){.rate = rate};
	return rate;
}

static double finish(struct search *s, enum search_end end)
{
	s->end = end;
	return 0;
}

/* Between a rate that held and one that failed. */
static double narrow(struct search *s, const struct search_rate *low, const struct search_rate *high)
{
	double ratio = high->rate / low->rate, middle = rounded(sqrt(low->rate * high->rate));

	if (high->client && ratio <= SEARCH_RATIO_CLIENT)
		return finish(s, SEARCH_CLIENT);
	if (ratio > SEARCH_RATIO && middle > low->rate && middle < high->rate)
		return go_to(s, middle);
	if (low->runs < s->repeat)
		return go_to(s, low->rate);
	if (!high->far && high->runs < s->repeat)
		return go_to(s, high->rate);
	return finish(s, SEARCH_FOUND);
}

double search_next(struct search *s)
{
	const struct search_rate *current = &s->rates[s->current], *high, *low;

	if (s->end != SEARCH_GOES_ON)
		return 0;
	if (s->runs == SEARCH_RUNS_MAX)
		return finish(s, SEARCH_UNDECIDED);
	if (!holds(current) && !fails(current))
		return current->rate;
	high = search_beyond(s);
	low = search_highest(s);
	if (low && high)
		return narrow(s, low, high);
	if (low)
		return low->rate < RATE_MAX ? go_to(s, low->rate * WIDEN_UP) : finish(s, SEARCH_UNDECIDED);
	if (high->rate * WIDEN_DOWN < s->rates[0].rate * SEARCH_LOWEST)
		return finish(s, SEARCH_NONE_HELD);
	return go_to(s, high->rate * WIDEN_DOWN);
}

void search_tell(struct search *s, enum search_verdict verdict, bool client)
{
	struct search_rate *r = &s->rates[s->current];

	s->runs++;
	r->runs++;
	r->held += verdict == SEARCH_HELD;
	r->far |= verdict == SEARCH_FAILED_FAR;
	r->client |= verdict != SEARCH_HELD && client;
}

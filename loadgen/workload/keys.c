/* SPDX-License-Identifier: MIT */
/* Key patterns: parsing, and drawing from each. Zipf is drawn by rejection-inversion (Hoermann, Derflinger:
 * "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996):
 * exact for any exponent above 0, without a table, and with few rejections. With h(x) = x^-exponent and H its
 * integral, ranks count from 1 as in the paper. */
#include "keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/parse.h"

#define EXPONENT_MAX 1000.0

struct pattern_name {
	const char *name;
	enum key_pattern pattern;
	bool scattered;
};

static const struct pattern_name names[] = {
    {"uniform", KEYS_UNIFORM, false},	{"sequential", KEYS_SEQUENTIAL, false},
    {"zipf", KEYS_ZIPF, false},		{"zipf-scattered", KEYS_ZIPF, true},
    {"gaussian", KEYS_GAUSSIAN, false}, {"latest", KEYS_LATEST, false},
    {"hot", KEYS_HOT, false},
};

static const struct pattern_name *find_name(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i].name) == length && memcmp(names[i].name, text, length) == 0)
			return &names[i];
	return NULL;
}

static bool parse_hot(const char *values, struct key_distribution *d)
{
	const char *colon = strchr(values, ':');
	char requests[32];

	if (!colon || (size_t)(colon - values) >= sizeof(requests))
		return false;
	memcpy(requests, values, (size_t)(colon - values));
	requests[colon - values] = 0;
	if (!parse_positive(requests, 100, &d->hot_requests) || !parse_positive(colon + 1, 100, &d->hot_keys))
		return false;
	d->hot_requests /= 100;
	d->hot_keys /= 100;
	return true;
}

bool key_distribution_parse(const char *text, struct key_distribution *d, char *error, size_t size)
{
	const size_t length = strcspn(text, ":");
	const struct pattern_name *name = find_name(text, length);
	const char *value = text[length] ? text + length + 1 : NULL;

	if (!name) {
		snprintf(
		    error, size,
		    "\"%s\" is not a key pattern. Choose uniform, sequential, zipf[:EXPONENT], "
		    "zipf-scattered[:EXPONENT], gaussian[:DEVIATION], latest[:EXPONENT] or hot:REQUESTS:KEYS",
		    text);
		return false;
	}
	*d = (struct key_distribution){
	    .pattern = name->pattern, .exponent = 0.99, .deviation = 1.0 / 6, .scattered = name->scattered};
	switch (d->pattern) {
	case KEYS_UNIFORM:
	case KEYS_SEQUENTIAL:
		if (!value)
			return true;
		snprintf(error, size, "\"%s\": the key pattern %s takes no number", text, name->name);
		return false;
	case KEYS_ZIPF:
	case KEYS_LATEST:
		if (!value || parse_positive(value, EXPONENT_MAX, &d->exponent))
			return true;
		snprintf(error, size, "\"%s\": the exponent of %s must be above 0 and at most %g", text,
			 name->name, EXPONENT_MAX);
		return false;
	case KEYS_GAUSSIAN:
		if (!value || parse_positive(value, 1, &d->deviation))
			return true;
		snprintf(error, size,
			 "\"%s\": the standard deviation is a share of the key space and must be above 0 and "
			 "at most 1",
			 text);
		return false;
	case KEYS_HOT:
		if (value && parse_hot(value, d))
			return true;
		snprintf(error, size,
			 "\"%s\": hot takes a percentage of requests and one of keys, each above 0 and at "
			 "most 100, e.g. hot:90:10",
			 text);
		return false;
	}
	return false;
}

/* H(x) = (x^(1-e) - 1) / (1-e), which is log x for e = 1; written so that exponents near 1 lose no
 * precision. */
static double integral(double x, double exponent)
{
	const double power = 1 - exponent, l = log(x);

	return power == 0 ? l : expm1(power * l) / power;
}

static double integral_inverse(double y, double exponent)
{
	const double power = 1 - exponent;
	/* Rounding must not make it negative; 0 is the far end of the distribution. */
	const double base = fmax(1 + y * power, 0);

	if (power == 0)
		return exp(y);
	/* The same function; a power is cheaper, and exact enough unless its exponent is huge. */
	if (fabs(power) > 1e-3)
		return pow(base, 1 / power);
	return exp(log1p(fmax(y * power, -1)) / power);
}

static double density(double x, double exponent)
{
	return exp(-exponent * log(x));
}

static void zipf_prepare(struct key_drawer *d, uint64_t items)
{
	const double e = d->distribution.exponent;

	if (d->items == 0) {
		d->low = integral(1.5, e) - 1;
		d->squeeze = 2 - integral_inverse(integral(2.5, e) - density(2, e), e);
	}
	d->high = integral((double)items + 0.5, e);
	d->items = items;
}

/* Rank 0 .. items-1. */
static uint64_t zipf_draw(struct key_drawer *d, struct random_stream *r, uint64_t items)
{
	const double e = d->distribution.exponent, n = (double)items;

	if (items != d->items)
		zipf_prepare(d, items);
	for (;;) {
		const double u = d->high + random_unit(r) * (d->low - d->high);
		double x, k;

		/* Up to H(1.5) it is the first rank, which is never rejected: low is H(1.5) - h(1). */
		if (u <= d->low + 1)
			return 0;
		x = integral_inverse(u, e);
		k = x >= n ? n : fmax(floor(x + 0.5), 2);
		/* Most draws end at the first condition, which needs no logarithm. */
		if (k - x <= d->squeeze || u >= integral(k + 0.5, e) - density(k, e))
			return (uint64_t)k - 1;
	}
}

/* Marsaglia's polar method gives two values at a time. */
static double normal_draw(struct key_drawer *d, struct random_stream *r)
{
	double a, b, square, scale;

	if (d->has_spare) {
		d->has_spare = false;
		return d->spare;
	}
	do {
		a = 2 * random_unit(r) - 1;
		b = 2 * random_unit(r) - 1;
		square = a * a + b * b;
	} while (square >= 1 || square == 0);
	scale = sqrt(-2 * log(square) / square);
	d->spare = b * scale;
	d->has_spare = true;
	return a * scale;
}

static uint64_t gaussian_draw(struct key_drawer *d, struct random_stream *r, uint64_t items)
{
	const double n = (double)items;
	double x;

	/* At most 1 for the deviation: in the worst case 38 % of draws are inside. */
	do
		x = (0.5 + d->distribution.deviation * normal_draw(d, r)) * n;
	while (x < 0 || x >= n);
	return (uint64_t)x;
}

static uint64_t hot_draw(const struct key_distribution *d, struct random_stream *r, uint64_t items)
{
	uint64_t hot = (uint64_t)(d->hot_keys * (double)items + 0.5);

	if (hot == 0)
		hot = 1;
	if (hot >= items)
		return random_below(r, items);
	if (random_unit(r) <= d->hot_requests)
		return random_below(r, hot);
	return hot + random_below(r, items - hot);
}

/* A permutation of the next power of two by odd multiplications and shifts, each of which is invertible. A
 * result outside the key space is permuted again until it is inside (less than twice on average), which makes
 * it a permutation of the key space: unlike with a hash, no two ranks share a key. */
uint64_t key_scatter(uint64_t rank, uint64_t items)
{
	unsigned bits, shift;
	uint64_t mask;

	if (items < 2)
		return 0;
	bits = 64 - (unsigned)__builtin_clzll(items - 1);
	shift = (bits + 1) / 2;
	mask = UINT64_MAX >> (64 - bits);
	do {
		rank = ((rank + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u) & mask;
		rank ^= rank >> shift;
		rank = (rank * 0xbf58476d1ce4e5b9u) & mask;
		rank ^= rank >> shift;
		rank = (rank * 0x94d049bb133111ebu) & mask;
		rank ^= rank >> shift;
	} while (rank >= items);
	return rank;
}

void key_drawer_init(struct key_drawer *d, const struct key_distribution *distribution)
{
	*d = (struct key_drawer){.distribution = *distribution};
}

uint64_t key_draw(struct key_drawer *d, struct random_stream *r, uint64_t items)
{
	uint64_t key;

	switch (d->distribution.pattern) {
	case KEYS_UNIFORM:
		break;
	case KEYS_SEQUENTIAL:
		key = d->next < items ? d->next : 0;
		d->next = key + 1;
		return key;
	case KEYS_ZIPF:
		key = zipf_draw(d, r, items);
		return d->distribution.scattered ? key_scatter(key, items) : key;
	case KEYS_LATEST:
		return items - 1 - zipf_draw(d, r, items);
	case KEYS_GAUSSIAN:
		return gaussian_draw(d, r, items);
	case KEYS_HOT:
		return hot_draw(&d->distribution, r, items);
	}
	return random_below(r, items);
}

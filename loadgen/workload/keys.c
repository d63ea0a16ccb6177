/* SPDX-License-Identifier: MIT */
/* Key patterns: parsing, and drawing from each. Zipf is drawn by rejection-inversion (Hoermann, Derflinger:
 * "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996):
 * exact for any exponent above 0, without a table, and with few rejections. With h(x) = x^-exponent and H its
 * integral, ranks count from 1 as in the paper. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "loadgen/workload.h"

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

/* YCSB's choices. Where YCSB is unexpected, a comment says so, and the code follows YCSB. */

#define THETA 0.99

/* Scrambled: ranks are drawn from 0 .. 10^10 whatever the number of records; zeta over that many is a
 * constant. */
#define SCRAMBLED_ITEMS 10000000001u
#define SCRAMBLED_ZETA 26.46902820178302

static const struct ycsb_workload workloads[] = {
    {'A', {[YCSB_READ] = 0.5, [YCSB_UPDATE] = 0.5}, YCSB_ZIPFIAN},
    {'B', {[YCSB_READ] = 0.95, [YCSB_UPDATE] = 0.05}, YCSB_ZIPFIAN},
    {'C', {[YCSB_READ] = 1}, YCSB_ZIPFIAN},
    {'D', {[YCSB_READ] = 0.95, [YCSB_INSERT] = 0.05}, YCSB_LATEST},
    {'E', {[YCSB_SCAN] = 0.95, [YCSB_INSERT] = 0.05}, YCSB_ZIPFIAN},
    {'F', {[YCSB_READ] = 0.5, [YCSB_READ_MODIFY_WRITE] = 0.5}, YCSB_ZIPFIAN},
};

const struct ycsb_workload *ycsb_find(char letter)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		if (workloads[i].letter == letter || workloads[i].letter + ('a' - 'A') == letter)
			return &workloads[i];
	return NULL;
}

enum ycsb_operation ycsb_draw_operation(const struct ycsb_workload *w, struct random_stream *r)
{
	double u = random_unit(r);
	int last = 0;

	for (int i = 0; i < YCSB_OPERATIONS; i++) {
		if (w->shares[i] <= 0)
			continue;
		if (u <= w->shares[i])
			return (enum ycsb_operation)i;
		u -= w->shares[i];
		last = i; /* receives the rounding error */
	}
	return (enum ycsb_operation)last;
}

/* Extends the sum from zeta_items to `items`. */
static void add_zeta(struct ycsb_zipfian *z, uint64_t items)
{
	for (uint64_t i = z->zeta_items; i < items; i++)
		z->zeta += 1 / pow((double)(i + 1), THETA);
	z->zeta_items = items;
}

/* From the initial items, even if zeta has grown since: YCSB's formula does this. */
static void set_eta(struct ycsb_zipfian *z)
{
	const double zeta2 = 1 + pow(0.5, THETA);

	z->eta = (1 - pow(2.0 / (double)z->items, 1 - THETA)) / (1 - zeta2 / z->zeta);
}

void ycsb_zipfian_init(struct ycsb_zipfian *z, uint64_t items)
{
	*z = (struct ycsb_zipfian){.items = items};
	add_zeta(z, items);
	set_eta(z);
}

uint64_t ycsb_zipfian_draw(struct ycsb_zipfian *z, struct random_stream *r, uint64_t items)
{
	double u, uz, x;

	if (items > z->zeta_items) {
		add_zeta(z, items);
		set_eta(z);
	}
	u = 1 - random_unit(r); /* Java's nextDouble() is in [0, 1) */
	uz = u * z->zeta;
	if (uz < 1)
		return 0;
	if (uz < 1 + pow(0.5, THETA))
		return 1;
	x = (double)items * pow(z->eta * u - z->eta + 1, 1 / (1 - THETA));
	/* With two or three records at the start it has no meaning, and the result may be NaN. */
	return x < (double)items ? (uint64_t)x : items;
}

void ycsb_keys_init(struct ycsb_keys *k, const struct ycsb_workload *w, uint64_t records, uint64_t operations)
{
	if (w->choice == YCSB_LATEST) {
		*k = (struct ycsb_keys){.hashed_items = 0};
		/* One item fewer than there are records: YCSB passes the last record's number. */
		ycsb_zipfian_init(&k->zipfian, records - 1);
		return;
	}
	*k = (struct ycsb_keys){
	    .zipfian = {.items = SCRAMBLED_ITEMS, .zeta_items = SCRAMBLED_ITEMS, .zeta = SCRAMBLED_ZETA},
	    .hashed_items = records + (uint64_t)((double)operations * w->shares[YCSB_INSERT] * 2) + 1,
	};
	set_eta(&k->zipfian);
}

uint64_t ycsb_draw_key(struct ycsb_keys *k, struct random_stream *r, uint64_t count)
{
	uint64_t key;

	if (k->hashed_items == 0) {
		/* The zipfian has the last record's number as its number of items, so record 0 is drawn
		 * almost never. */
		key = ycsb_zipfian_draw(&k->zipfian, r, count - 1);
		return key < count ? count - 1 - key : 0;
	}
	do
		key = ycsb_hash(ycsb_zipfian_draw(&k->zipfian, r, SCRAMBLED_ITEMS)) % k->hashed_items;
	while (key >= count);
	return key;
}

void key_base_init(struct key_base *b, uint64_t start)
{
	memset(b, 0, sizeof(*b));
	b->start = start;
}

uint64_t key_base_take(struct key_base *b)
{
	uint64_t n = __atomic_load_n(&b->next, __ATOMIC_RELAXED);

	/* Limited by the count, so that a bit never represents two outstanding numbers. */
	do {
		if (n - __atomic_load_n(&b->count, __ATOMIC_SEQ_CST) >= KEY_BASE_WINDOW)
			return KEY_BASE_FULL;
	} while (!__atomic_compare_exchange_n(&b->next, &n, n + 1, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return b->start + n;
}

static bool acknowledged(const struct key_base *b, uint64_t n)
{
	const uint64_t word =
	    __atomic_load_n(&b->turned[n % KEY_BASE_WINDOW / 64], __ATOMIC_SEQ_CST) >> (n % 64);

	return (word & 1) != (n / KEY_BASE_WINDOW & 1);
}

/* Sequentially consistent throughout: if two threads flip neighbouring bits, at least one must see both,
 * otherwise the count would lag behind. A count that is exchanged was valid all the time, and meanwhile no
 * bit of the run could belong to the next lap. If it had moved, the exchange fails and the run is read
 * again. */
void key_base_ack(struct key_base *b, uint64_t n)
{
	uint64_t count, end;

	n -= b->start;
	__atomic_fetch_xor(&b->turned[n % KEY_BASE_WINDOW / 64], (uint64_t)1 << (n % 64), __ATOMIC_SEQ_CST);
	do {
		count = __atomic_load_n(&b->count, __ATOMIC_SEQ_CST);
		for (end = count; end - count < KEY_BASE_WINDOW && acknowledged(b, end); end++)
			;
		if (end == count)
			return;
		__atomic_compare_exchange_n(&b->count, &count, end, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	} while (true);
}

/* SPDX-License-Identifier: MIT */
/* Bytes are copied from a pool made once, because drawing each would cost more than sending it. Sizes are
 * derived from their seed each time and not stored. */
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/parse.h"

#define LOGNORMAL_HIGH (1u << 20)

static bool parse_size(const char *text, uint32_t *out)
{
	uint64_t value;

	if (!parse_count(text, 1, VALUE_BYTES_MAX, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool parse_lognormal(char *text, struct value_sizes *s)
{
	char *sigma = strchr(text, ','), *high = sigma ? strchr(sigma + 1, ',') : NULL;

	if (!sigma)
		return false;
	*sigma++ = 0;
	if (high)
		*high++ = 0;
	s->kind = SIZE_LOGNORMAL;
	s->low = 1;
	s->high = LOGNORMAL_HIGH;
	return parse_positive(text, VALUE_BYTES_MAX, &s->median) && parse_positive(sigma, 10, &s->sigma) &&
	       (!high || parse_size(high, &s->high));
}

/* "SIZE:WEIGHT,..." */
static bool parse_list(char *text, struct value_sizes *s)
{
	uint64_t weights[VALUE_SIZES_MAX], sum = 0, seen = 0;
	char *part, *rest = text;

	s->kind = SIZE_LIST;
	s->low = UINT32_MAX;
	while ((part = strsep(&rest, ","))) {
		char *weight = strchr(part, ':');
		if (!weight || s->count == VALUE_SIZES_MAX)
			return false;
		*weight++ = 0;
		if (!parse_size(part, &s->list[s->count]) ||
		    !parse_count(weight, 1, 1000000, &weights[s->count]))
			return false;
		sum += weights[s->count];
		s->low = s->list[s->count] < s->low ? s->list[s->count] : s->low;
		s->high = s->list[s->count] > s->high ? s->list[s->count] : s->high;
		s->count++;
	}
	for (uint32_t i = 0; i < s->count; i++) {
		seen += weights[i];
		s->below[i] =
		    i + 1 == s->count ? UINT64_MAX : (uint64_t)(((unsigned __int128)seen << 64) / sum);
	}
	return s->count > 0;
}

bool value_sizes_parse(const char *text, struct value_sizes *s, char *error, size_t size)
{
	char *copy = strdup(text), *dash = copy ? strchr(copy, '-') : NULL;
	bool good = copy != NULL;

	memset(s, 0, sizeof(*s));
	if (good && strncmp(copy, "lognormal:", 10) == 0) {
		good = parse_lognormal(copy + 10, s);
	} else if (good && strchr(copy, ':')) {
		good = parse_list(copy, s);
	} else if (good && dash) {
		*dash++ = 0;
		s->kind = SIZE_RANGE;
		good = parse_size(copy, &s->low) && parse_size(dash, &s->high) && s->low <= s->high;
	} else if (good) {
		good = parse_size(copy, &s->low);
		s->high = s->low;
	}
	free(copy);
	if (!good)
		snprintf(error, size,
			 "value size: expected BYTES, LOW-HIGH, SIZE:WEIGHT,... or "
			 "lognormal:MEDIAN,SIGMA[,MAX], each 1 to %u bytes, got \"%s\"",
			 VALUE_BYTES_MAX, text);
	return good;
}

void value_sizes_describe(const struct value_sizes *s, char *out, size_t size)
{
	switch (s->kind) {
	case SIZE_FIXED:
		snprintf(out, size, "%u-byte values", s->low);
		return;
	case SIZE_RANGE:
		snprintf(out, size, "values of %u to %u bytes", s->low, s->high);
		return;
	case SIZE_LIST:
		snprintf(out, size, "values of %u sizes from %u to %u bytes", s->count, s->low, s->high);
		return;
	case SIZE_LOGNORMAL:
		snprintf(out, size, "lognormal values (median %.10g bytes, sigma %.10g)", s->median,
			 s->sigma);
		return;
	}
}

void values_text(char *to, uint32_t bytes, double compressible, struct random_stream *random)
{
	enum { RUN = 64 };
	uint32_t same = (uint32_t)(compressible * RUN + 0.5);

	for (uint32_t i = 0; i < bytes; i++)
		to[i] = i % RUN < same ? 'x' : (char)('!' + random_below(random, '~' - '!' + 1));
}

int values_prepare(struct values *v, double compressible, uint64_t seed)
{
	struct random_stream random = {seed};

	v->pool = malloc(2 * VALUE_POOL_BYTES);
	if (!v->pool)
		return -ENOMEM;
	values_text(v->pool, VALUE_POOL_BYTES, compressible, &random);
	memcpy(v->pool + VALUE_POOL_BYTES, v->pool, VALUE_POOL_BYTES);
	return 0;
}

void values_free(struct values *v)
{
	free(v->pool);
	v->pool = NULL;
}

/* Box-Muller, from two draws that follow from the seed. */
static double normal(struct random_stream *r)
{
	double radius = sqrt(-2 * log(random_unit(r)));

	return radius * cos(2 * M_PI * random_unit(r));
}

uint32_t value_size(const struct values *v, uint64_t seed)
{
	const struct value_sizes *s = &v->sizes;
	struct random_stream r = {seed};
	uint64_t draw;
	double size;
	uint32_t i = 0;

	switch (s->kind) {
	case SIZE_FIXED:
		break;
	case SIZE_RANGE:
		return s->low + (uint32_t)random_below(&r, (uint64_t)s->high - s->low + 1);
	case SIZE_LIST:
		draw = random_next(&r);
		while (draw > s->below[i])
			i++;
		return s->list[i];
	case SIZE_LOGNORMAL:
		size = s->median * exp(s->sigma * normal(&r));
		return size < s->low ? s->low : size > s->high ? s->high : (uint32_t)size;
	}
	return s->low;
}

static void stamp_of(uint64_t seed, char out[VALUE_STAMP_BYTES])
{
	for (int i = 0; i < VALUE_STAMP_BYTES; i++)
		out[i] = "0123456789abcdef"[seed >> (60 - 4 * i) & 15];
}

/* Offset of byte `from` of a value in the pool, and the number of consecutive bytes there. */
static const char *pool_at(const struct values *v, uint64_t seed, uint32_t from)
{
	return v->pool + (seed + from) % VALUE_POOL_BYTES;
}

void value_copy(const struct values *v, uint64_t seed, uint32_t from, char *to, uint32_t count)
{
	char stamp[VALUE_STAMP_BYTES];

	if (from < VALUE_STAMP_BYTES && count > 0) {
		uint32_t n = VALUE_STAMP_BYTES - from < count ? VALUE_STAMP_BYTES - from : count;
		stamp_of(seed, stamp);
		memcpy(to, stamp + from, n);
		from += n;
		to += n;
		count -= n;
	}
	while (count > 0) {
		uint32_t n = count < VALUE_POOL_BYTES ? count : VALUE_POOL_BYTES;
		memcpy(to, pool_at(v, seed, from), n);
		from += n;
		to += n;
		count -= n;
	}
}

int64_t value_check(const struct values *v, uint64_t seed, uint32_t from, const char *bytes, uint32_t count)
{
	enum { PIECE = 4096 };
	char expected[PIECE];

	while (count > 0) {
		uint32_t n = count < PIECE ? count : PIECE;
		value_copy(v, seed, from, expected, n);
		if (memcmp(expected, bytes, n) != 0) {
			uint32_t i = 0;
			while (expected[i] == bytes[i])
				i++;
			return (int64_t)from + i;
		}
		from += n;
		bytes += n;
		count -= n;
	}
	return -1;
}

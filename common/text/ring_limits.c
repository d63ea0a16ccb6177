/* SPDX-License-Identifier: MIT */
/* See ring_limits.h. */
#include "ring_limits.h"

#include <string.h>

#include "parse.h"

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

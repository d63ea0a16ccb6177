/* SPDX-License-Identifier: MIT */
/* How much a ring keeps, as its user says it: to the recorder in an option, and in the configuration, which
 * is checked where no recorder is. */
#ifndef FORKTAIL_COMMON_TEXT_RING_LIMITS_H
#define FORKTAIL_COMMON_TEXT_RING_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is kept: the one that is reached first. */
struct ring_limits {
	uint64_t age_ns; /* 10 s to 7 days */
	uint64_t bytes;	 /* from 4 MB on */
};

/* What can be said, for whoever said something else. */
#define RING_LIMITS_WANTED "a time from 10s to 7d and a size of at least 4MB, such as 10m or 10m,2GB"

/* "10m", "12h,2GB"; 1 GB if nothing is said. False: no such limits. */
bool ring_limits_parse(const char *text, struct ring_limits *limits);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The limits of a ring in user input: in the recorder's option, and in the configuration, which is checked
 * without a recorder. */
#ifndef FORKTAIL_COMMON_TEXT_RING_LIMITS_H
#define FORKTAIL_COMMON_TEXT_RING_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whichever limit is reached first applies. */
struct ring_limits {
	uint64_t age_ns; /* 10 s to 7 days */
	uint64_t bytes;	 /* at least 4 MB */
};

/* The valid forms, for error messages. */
#define RING_LIMITS_WANTED "a time from 10s to 7d and a size of at least 4MB, such as 10m or 10m,2GB"

/* "10m", "12h,2GB"; the size is 1 GB by default. False: not such limits. */
bool ring_limits_parse(const char *text, struct ring_limits *limits);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* What a server tells becomes series and notes of the recording. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_SERIES_H
#define FORKTAIL_LOADGEN_OBSERVER_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recording.h"

/* Series, and the recording they go to. */
struct observer_series {
	struct ft_writer *writer;
	void *tree; /* of struct series, by name */
	uint32_t ids;
};

/* A value of the series `prefix`.`name`, or `prefix`.`name`.`part` if part is not "". Announced when it is
 * new; written when it has changed, as the recorder's are. */
void observer_series_value(struct observer_series *to, const char *prefix, const char *name, const char *part,
			   double value, uint64_t t_ns);
/* A decimal number as servers write them: digits, perhaps a sign before and a fraction behind. */
bool observer_series_number(const char *text, double *value);
/* {"kind":"observer-refused"}: what was asked and the server's word on it. */
void note_refusal(struct observer_series *to, const char *asked, const char *answer);
void observer_series_free(struct observer_series *to);

#endif

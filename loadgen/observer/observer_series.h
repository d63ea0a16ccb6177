/* SPDX-License-Identifier: MIT */
/* Turns a server's statistics into series and notes of the recording. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_SERIES_H
#define FORKTAIL_LOADGEN_OBSERVER_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recording.h"

/* Series, and the recording they are written to. */
struct observer_series {
	struct ft_writer *writer;
	void *tree; /* of struct series, by name */
	uint32_t ids;
};

/* A value of the series `prefix`.`name`, or `prefix`.`name`.`part` if part is not "". Announced if it is new;
 * written if it has changed, like the recorder's series. */
void observer_series_value(struct observer_series *to, const char *prefix, const char *name, const char *part,
			   double value, uint64_t t_ns);
/* Parses a decimal number as servers write it: digits, optionally a sign before and a fraction after them. */
bool observer_series_number(const char *text, double *value);
/* Takes the next number of a list "calls=3,usec=17", which is modified: *name is "calls". Parts that are no
 * numbers are passed over. False: no more. */
bool observer_series_part(char **list, char **name, double *value);
/* {"kind":"observer-refused"}: the question and the server's reply. */
void note_refusal(struct observer_series *to, const char *asked, const char *answer);
void observer_series_free(struct observer_series *to);

#endif

/* SPDX-License-Identifier: MIT */
/* The tests that -t knows: their names and commands. */
#ifndef FORKTAIL_LOADGEN_CATALOGUE_H
#define FORKTAIL_LOADGEN_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "loadgen/protocol/protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Data that a test needs in the server before it can run. */
enum preparation { PREPARE_NOTHING, PREPARE_LIST, PREPARE_SETS };

struct catalogue_entry {
	const char *name;  /* in tables and -t */
	const char *group; /* alternative name for -t */
	const char *text;
	const struct product *product; /* the product it belongs to */
	enum preparation preparation;
	bool in_all; /* included in -t all; not so for the growing base's */
};

enum { CATALOGUE_ENTRIES = 37 };
extern const struct catalogue_entry catalogue[CATALOGUE_ENTRIES];

/* Whether a list of -t selects it. */
bool catalogue_wanted(const char *list, const struct catalogue_entry *e);
/* Whether every name in the list is a test for this protocol; else false, and a sentence. */
bool catalogue_check(const char *list, enum protocol_id protocol, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The options of a recording. */
#ifndef FORKTAIL_LOADER_RECORD_OPTIONS_H
#define FORKTAIL_LOADER_RECORD_OPTIONS_H

#include <stdint.h>

#include "loader/attach/programs.h"
#include "loader/guard_start.h"
#include "loader/output/segments.h"
#include "loader/requests/requests.h"
#include "loader/targets/selectors.h"

struct record_options {
	const char *output;	     /* a file, or with `keep` a directory */
	struct ring_limits keep;     /* age 0: keep everything in one file */
	const char *keep_text;	     /* as given by the user */
	const char *user;	     /* owner of a ring; NULL: chosen by file_owner_find */
	struct guard_args guard;     /* only for a ring */
	struct selectors *selectors; /* what matches targets; for a ring it is evaluated repeatedly */
	uint64_t duration_ns;	     /* 0: until a signal or until the last target exits */
	struct programs_wanted wanted;
	struct requests_wanted requests;
	int argc; /* the command line, for the manifest */
	char **argv;
};

#endif

/* SPDX-License-Identifier: MIT */
/* What a user asked to record. */
#ifndef FORKTAIL_LOADER_RECORD_OPTIONS_H
#define FORKTAIL_LOADER_RECORD_OPTIONS_H

#include <stdint.h>

#include "loader/attach/programs.h"
#include "loader/guard_start.h"
#include "loader/output/segments.h"
#include "loader/targets/selectors.h"

struct record_options {
	const char *output;	     /* a file, or with `keep` a directory */
	struct ring_limits keep;     /* age 0: all, in one file */
	const char *keep_text;	     /* as it was given */
	const char *user;	     /* whose a ring is to be; NULL: file_owner_find's choice */
	struct guard_args guard;     /* of a ring */
	struct selectors *selectors; /* what leads to targets, of a ring again and again */
	uint64_t duration_ns;	     /* 0: until a signal or the last target's end */
	struct programs_wanted wanted;
	int argc; /* the command line, for the manifest */
	char **argv;
};

#endif

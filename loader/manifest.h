/* SPDX-License-Identifier: MIT */
/* The first block of a recording: what records which processes, where, with which options, and what will be
 * missing. */
#ifndef FORKTAIL_LOADER_MANIFEST_H
#define FORKTAIL_LOADER_MANIFEST_H

#include <jansson.h>
#include <stdint.h>

#include "loader/attach/programs.h"
#include "loader/attach/support.h"
#include "loader/record_options.h"

/* `targets`: their descriptions, taken over. `missing` is [{"what": ..., "why": ...}, ...]; the manifest
 * takes its own reference. */
json_t *manifest(const struct record_options *options, json_t *targets, const struct support *support,
		 struct programs *p, uint64_t start_ns, json_t *missing);

#endif

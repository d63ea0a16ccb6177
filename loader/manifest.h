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
#include "loader/targets/targets.h"

/* `missing` is [{"what": ..., "why": ...}, ...]. The manifest takes its own reference. */
json_t *manifest(const struct record_options *options, const struct targets *targets,
		 const struct support *support, struct programs *p, uint64_t start_ns, json_t *missing);

/* The entry of one target. */
json_t *manifest_target(pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* Whether an answer is an error, by its first bytes. */
#ifndef FORKTAIL_LOADER_OUTCOME_H
#define FORKTAIL_LOADER_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/request_events.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether the bytes are the begin of an answer of Redis or memcached; then *status is FT_STATUS_OK,
 * FT_STATUS_MISS (no such key) or FT_STATUS_ERROR_REPLY. */
bool outcome_of(const uint8_t begin[FT_ANSWER_BEGIN], uint8_t *status);

#ifdef __cplusplus
}
#endif

#endif

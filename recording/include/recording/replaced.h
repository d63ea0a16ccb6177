/* SPDX-License-Identifier: MIT */
/* What ft_writer_open() (recording.h) did with a recording that had the name of the new one. */
#ifndef FORKTAIL_RECORDING_REPLACED_H
#define FORKTAIL_RECORDING_REPLACED_H

#include <stdbool.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether there was one: it is PATH.old now, and has replaced an earlier one of that name. */
bool ft_writer_moved(const struct ft_writer *w);

#ifdef __cplusplus
}
#endif
#endif

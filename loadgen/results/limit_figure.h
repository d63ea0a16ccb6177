/* SPDX-License-Identifier: MIT */
/* The figure of a finished run that a limit is about. */
#ifndef FORKTAIL_LOADGEN_LIMIT_FIGURE_H
#define FORKTAIL_LOADGEN_LIMIT_FIGURE_H

#include "common/limits/limits.h"
#include "loadgen/workload/workload.h"
#include "result_figures.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The figures of the operation that a limit names, or of all; NULL: the run has no such operation. */
const struct operation_figures *limit_operation(const struct result_figures *f, const struct workload *w,
						const struct limit *l);

/* The figure in the unit of limit.value (limits.h); NAN: `o` is NULL, or nothing was measured. */
double limit_figure(const struct result_figures *f, const struct operation_figures *o, const struct limit *l);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Limits use names of operations as the user wrote them, in any case. */
#include "limit_figure.h"

#include <math.h>
#include <strings.h>

const struct operation_figures *limit_operation(const struct result_figures *f, const struct workload *w,
						const struct limit *l)
{
	if (!l->of[0])
		return &f->operations[TOTAL];
	for (uint32_t i = 0; i < w->operation_count; i++)
		if (f->operations[i].used && strcasecmp(w->operations[i].name, l->of) == 0)
			return &f->operations[i];
	return NULL;
}

double limit_figure(const struct result_figures *f, const struct operation_figures *o, const struct limit *l)
{
	if (!o)
		return NAN;
	switch (l->figure) {
	case LIMIT_PERCENTILE:
		for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
			if (f->wanted->points[i] == l->percentile)
				return o->requests ? (double)o->percentile_ns[i] : NAN;
		return NAN;
	case LIMIT_AVERAGE:
		return o->requests ? o->mean_ns : NAN;
	case LIMIT_MINIMUM:
		return o->requests ? (double)o->min_ns : NAN;
	case LIMIT_MAXIMUM:
		return o->requests ? (double)o->max_ns : NAN;
	case LIMIT_STDDEV:
		return o->requests ? o->stddev_ns : NAN;
	case LIMIT_ERRORS:
		return (double)o->errors;
	case LIMIT_ERROR_PERCENT:
		return o->requests ? 100.0 * (double)o->errors / (double)o->requests : NAN;
	case LIMIT_MISSES:
		return (double)o->status[FT_STATUS_MISS];
	case LIMIT_RPS:
		return figures_per_second(f, (double)figures_answers(o));
	case LIMIT_REQUESTS:
		return (double)o->requests;
	case LIMIT_MB_PER_S:
		return figures_per_second(f, (double)o->bytes * 1e-6);
	case LIMIT_TOTAL:
	case LIMIT_SHARE:
	case LIMIT_EPISODES:
	case LIMIT_DROPS:
		break; /* limit_is_of_load */
	}
	return NAN;
}

/* SPDX-License-Identifier: MIT */
/* One run of a search: whether its rate held. */
#ifndef FORKTAIL_LOADGEN_FIND_RUN_H
#define FORKTAIL_LOADGEN_FIND_RUN_H

#include "loadgen/output/curve.h"
#include "loadgen/search/search.h"
#include "run_state.h"

struct find {
	struct search search;
	struct curve_run runs[SEARCH_RUNS_MAX + 8];
	uint32_t count;
	struct curve curve;  /* of all runs, when the search has ended */
	bool outside;	     /* the current run completes the curve only */
	double failed_below; /* a rate below the highest of which runs failed then; 0: none */
	bool told;	     /* the current run has ended with figures */
	double closed_rps;   /* of the first run */
	uint64_t begin_ns[SEARCH_RATES_MAX], end_ns[SEARCH_RATES_MAX]; /* of each rate's last run */
};

/* Takes the figures of a run of the search, and adds "rate" and "held" to the run's JSON. */
void find_take(struct run *r, const struct phase *p, const struct result_figures *f, json_t *figures);

#endif

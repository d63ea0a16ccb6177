/* SPDX-License-Identifier: MIT */
/* What a run has to say on stderr of what went wrong. */
#ifndef FORKTAIL_LOADGEN_COMPLAIN_H
#define FORKTAIL_LOADGEN_COMPLAIN_H

#include "run_state.h"

/* One sentence on stderr, below the line of progress; the run's exit status says it too. */
void complain(struct run *r, const char *text);
/* The same, when the run failed a limit (exit status 1, unless something worse was said). */
void complain_of_limit(struct run *r, const char *text);
/* Ends the line of progress, if one stands on the terminal. */
void end_progress(struct run *r);

#endif

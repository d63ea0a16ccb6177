/* SPDX-License-Identifier: MIT */
/* Error messages of a run on stderr. */
#ifndef FORKTAIL_LOADGEN_COMPLAIN_H
#define FORKTAIL_LOADGEN_COMPLAIN_H

#include "run_state.h"

/* Prints one sentence on stderr, below the progress line, and sets the run's exit status. */
void complain(struct run *r, const char *text);
/* The same for a run that exceeded a limit (exit status 1, unless a more severe error was reported). */
void complain_of_limit(struct run *r, const char *text);
/* Ends the progress line, if one is on the terminal. */
void end_progress(struct run *r);

#endif

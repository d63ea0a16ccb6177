/* SPDX-License-Identifier: MIT */
/* What the recorder says of itself: what was lost, what it costs, what its clocks show, and how it ended. */
#ifndef FORKTAIL_LOADER_SELF_REPORT_H
#define FORKTAIL_LOADER_SELF_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/recorder.h"

void report_drops(struct recorder *r);
/* A look is a system call a program, so these are rarer than those at drops. */
void report_misses(struct recorder *r);
/* Switches the kernel's statistics and keeps count of the time they were on. */
void measure_cost(struct recorder *r, bool on);
void report_cost(struct recorder *r);
void report_clock(struct recorder *r);

/* What is counted is counted from here on. */
void self_report_begin_segment(struct recorder *r);

/* The summary as text, to be freed; takes the reference to `ended`. NULL when memory is short. */
char *summary_text(struct recorder *r, const char *reason, uint64_t end_ns, json_t *ended);

#endif

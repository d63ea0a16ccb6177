/* SPDX-License-Identifier: MIT */
/* The recorder's reports about itself: losses, cost, clocks, and how it ended. */
#ifndef FORKTAIL_LOADER_SELF_REPORT_H
#define FORKTAIL_LOADER_SELF_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/recorder.h"

void report_drops(struct recorder *r);
/* A read takes one system call per program, so it happens less often than reading drops. */
void report_misses(struct recorder *r);
/* Switches the kernel's statistics and counts how long they were on. */
void measure_cost(struct recorder *r, bool on);
void report_cost(struct recorder *r);
void report_clock(struct recorder *r);
/* Follows CPUs that come online. */
void report_cpus(struct recorder *r);

/* Counting starts here. */
void self_report_begin_segment(struct recorder *r);

/* Returns the summary as text, which the caller frees. Takes the reference to `ended`. NULL: no memory. */
char *summary_text(struct recorder *r, const char *reason, uint64_t end_ns, json_t *ended);

#endif

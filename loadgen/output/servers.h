/* SPDX-License-Identifier: MIT */
/* What several servers add to a test's table and JSON: figures by server, redirects, and outages with their
 * gaps. */
#ifndef FORKTAIL_LOADGEN_REPORT_NODES_H
#define FORKTAIL_LOADGEN_REPORT_NODES_H

#include <stdio.h>

#include "json.h"
#include "nodes.h"
#include "outages.h"
#include "recording/recording.h"
#include "stats.h"

/* start_ns: what times count from. seconds: what rates are over. */
void report_nodes(FILE *to, const struct nodes *n, const struct stats *s, const struct outages *o,
		  uint64_t start_ns, double seconds);
/* As members of an object that is open: "nodes", "redirects", "outages". */
void report_nodes_json(struct json *j, const struct nodes *n, const struct stats *s, const struct outages *o);
/* Each outage as a note of kind "outage". */
void report_outages_notes(struct ft_writer *w, const struct nodes *n, const struct outages *o);

#endif

/* SPDX-License-Identifier: MIT */
/* Additions to a test's table and JSON for several servers: figures by server, redirects, and outages with
 * their gaps. */
#ifndef FORKTAIL_LOADGEN_NODE_REPORT_H
#define FORKTAIL_LOADGEN_NODE_REPORT_H

#include <stdio.h>

#include "loadgen/cluster/nodes.h"
#include "loadgen/cluster/outages.h"
#include "loadgen/results/stats.h"
#include "recording/json/json_block.h"
#include "recording/recording.h"

/* start_ns: origin of times. seconds: duration for rates. */
void node_report(FILE *to, const struct nodes *n, const struct stats *s, const struct outages *o,
		 uint64_t start_ns, double seconds);
/* As members of an open object: "nodes", "redirects", "outages". */
void node_report_json(json_t *j, const struct nodes *n, const struct stats *s, const struct outages *o);
/* Each outage as a note of kind "outage". */
void node_report_notes(struct ft_writer *w, const struct nodes *n, const struct outages *o);

#endif

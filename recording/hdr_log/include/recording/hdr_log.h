/* SPDX-License-Identifier: MIT */
/* HdrHistogram's interval log: a text file with a histogram per line, for the tools that read it
 * (HistogramLogAnalyzer, hdr-plot, HdrHistogram's own readers). The recording remains the exact log; this one
 * serves to compare a run with those of other load generators. */
#ifndef FORKTAIL_RECORDING_HDR_LOG_H
#define FORKTAIL_RECORDING_HDR_LOG_H

#include <stdint.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hdr_log;

/* Creates `path` (truncating it) and writes the header. start_ns is the CLOCK_MONOTONIC instant that the
 * file's times count from, start_realtime_ns the wall clock at that instant. Negative errno on failure. */
int hdr_log_open(struct hdr_log **out, const char *path, uint64_t start_realtime_ns, uint64_t start_ns);

/* Writes one line: the values of `length_ns` from start_ns (CLOCK_MONOTONIC, not before the log's). `tag`
 * names the operation ("GET"); NULL or "" for none. -EINVAL for a tag with a comma, a space or a control
 * character, which would split the line. After a failed write every later one returns the same error, so a
 * truncated line is the file's last. */
int hdr_log_write(struct hdr_log *log, const char *tag, uint64_t start_ns, uint64_t length_ns,
		  const struct ft_histogram *h);

/* Closes and frees. Returns the first error of any call, or 0. Accepts NULL. */
int hdr_log_close(struct hdr_log *log);

#ifdef __cplusplus
}
#endif
#endif

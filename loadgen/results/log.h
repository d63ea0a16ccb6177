/* SPDX-License-Identifier: MIT */
/* The request log: every request goes into a recording, and the disk never holds up a load thread.
 *
 * A load thread appends to a block of columns of its own. A full block (or one a second old) goes to the
 * writer thread, which hands it to the kernel; the load thread goes on with a spare. When the disk stalls
 * for so long that no spare is left, entries are counted as dropped and the recording says how many and
 * when; latencies stay true, which they wouldn't if the load waited.
 */
#ifndef FORKTAIL_LOADGEN_LOG_H
#define FORKTAIL_LOADGEN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct request_log;

enum { LOG_SOCKETS = 32 };

struct log_block {
	struct ft_requests requests;
	struct ft_connection sockets[LOG_SOCKETS]; /* of connections that were opened again, or closed */
	uint32_t socket_count;
	struct ft_drop drop; /* what was lost before it; count 0: nothing */
	struct log_block *next;
};

/* A load thread's end of the log. */
struct log_lane {
	struct request_log *log; /* NULL: no log is kept */
	struct log_block *open;	 /* NULL: dropping */
	uint64_t drop_start_ns, drops, all_drops;
	bool patient; /* nothing is measured any more: wait for a spare instead of dropping */
};

/* Creates the recording and starts the writer thread; room for `lanes` threads. Negative errno. */
int request_log_open(struct request_log **out, const char *path, const char *manifest, unsigned lanes);
/* The recording, for blocks other than requests. These calls may wait for the disk: the writer thread itself
 * sees to clock records and to a flush a second. */
struct ft_writer *request_log_writer(struct request_log *log);
/* The first error of writing (negative errno) or 0. Once there is one, entries go nowhere. */
int request_log_error(const struct request_log *log);
/* Waits until all blocks handed over are written. */
void request_log_drain(struct request_log *log);
/* Ends the thread and the recording, with `summary` as its last word. */
int request_log_close(struct request_log *log, const char *summary);

void log_lane_open(struct log_lane *lane, struct request_log *log);
/* Hands over what is there. */
void log_lane_flush(struct log_lane *lane, uint64_t now_ns);
/* Flushes, and reports drops. */
void log_lane_close(struct log_lane *lane, uint64_t now_ns);

/* A connection has another socket, or none any more: seldom beside requests, and like these it waits for
 * nobody. */
void log_socket(struct log_lane *lane, const struct ft_connection *c, uint64_t now_ns);

/* For log_append. */
void log_lane_next(struct log_lane *lane, uint64_t now_ns);

static inline void log_append(struct log_lane *lane, const struct ft_request *q)
{
	if (!lane->log)
		return;
	if (__builtin_expect(!lane->open, 0)) {
		log_lane_next(lane, q->end_ns);
		if (!lane->open) {
			lane->drops++;
			return;
		}
	}
	ft_requests_append(&lane->open->requests, q);
	if (__builtin_expect(ft_requests_full(&lane->open->requests), 0))
		log_lane_next(lane, q->end_ns);
}

#ifdef __cplusplus
}
#endif
#endif

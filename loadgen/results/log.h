/* SPDX-License-Identifier: MIT */
/* The request log: every request is written to a recording, and the disk never delays a load thread. A load
 * thread appends to its own block of columns. A full block (or one that is a second old) goes to the writer
 * thread, which writes it; the load thread continues with a spare block. If the disk stalls until no spare is
 * left, entries are counted as dropped, and the recording says how many and when. Latencies stay correct,
 * which they would not if the load waited. */
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
	struct ft_connection sockets[LOG_SOCKETS]; /* of connections that were reopened, or closed */
	uint32_t socket_count;
	struct ft_drop drop; /* losses before it; count 0: none */
	struct log_block *next;
};

/* A load thread's side of the log. */
struct log_lane {
	struct request_log *log; /* NULL: no log */
	struct log_block *open;	 /* NULL: dropping */
	uint64_t drop_start_ns, drops, all_drops;
	bool waits_for_spare; /* measuring has ended: wait for a spare instead of dropping */
};

/* Creates the recording and starts the writer thread, for up to `lanes` threads. Negative errno. */
int request_log_open(struct request_log **out, const char *path, const char *manifest, unsigned lanes);
/* The recording, for blocks other than requests. These calls may wait for the disk. The writer thread itself
 * writes clock records and flushes every second. */
struct ft_writer *request_log_writer(struct request_log *log);
/* The first write error (negative errno) or 0. After an error, entries are discarded. */
int request_log_error(const struct request_log *log);
/* Waits until all blocks handed over are written. */
void request_log_drain(struct request_log *log);
/* Ends the thread and the recording, with `summary` as its last block. */
int request_log_close(struct request_log *log, const char *summary);

void log_lane_open(struct log_lane *lane, struct request_log *log);
/* Hands over the open block. */
void log_lane_flush(struct log_lane *lane, uint64_t now_ns);
/* Flushes, and reports drops. */
void log_lane_close(struct log_lane *lane, uint64_t now_ns);

/* A connection has another socket, or was closed: rare compared to requests, and does not block either. */
void log_socket(struct log_lane *lane, const struct ft_connection *c, uint64_t now_ns);

/* For log_append. */
void log_lane_next(struct log_lane *lane, uint64_t now_ns);

/* Logs a request `times` times. */
static inline void log_append(struct log_lane *lane, const struct ft_request *q, uint32_t times)
{
	if (!lane->log)
		return;
	while (times > 0) {
		uint32_t some = times;

		if (__builtin_expect(!lane->open, 0)) {
			log_lane_next(lane, q->end_ns);
			if (!lane->open) {
				lane->drops += times;
				return;
			}
		}
		if (__builtin_expect(some > FT_REQUEST_BLOCK - lane->open->requests.count, 0))
			some = FT_REQUEST_BLOCK - lane->open->requests.count;
		ft_requests_append_equal(&lane->open->requests, q, some);
		times -= some;
		if (__builtin_expect(ft_requests_full(&lane->open->requests), 0))
			log_lane_next(lane, q->end_ns);
	}
}

#ifdef __cplusplus
}
#endif
#endif

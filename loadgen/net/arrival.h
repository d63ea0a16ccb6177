/* SPDX-License-Identifier: MIT */
/* When answers arrived: the kernel timestamps each segment of a TCP connection on arrival (SO_TIMESTAMPING,
 * software timestamp) and reports with each read the timestamp of the last segment read. The time between
 * that and the read is socket-buffer wait, which this program causes. A Unix socket has no timestamps, and
 * TLS hides which bytes were in which segment. */
#ifndef FORKTAIL_LOADGEN_ARRIVAL_H
#define FORKTAIL_LOADGEN_ARRIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Timestamps use CLOCK_REALTIME. Its difference to CLOCK_MONOTONIC is constant until the clock is set,
 * because both are slewed alike. So the difference is measured repeatedly. Zero-initialized. */
struct arrival_clock {
	uint64_t ahead_ns;  /* of CLOCK_MONOTONIC */
	uint64_t looked_ns; /* when it was last measured */
};

/* Makes the kernel timestamp what the socket receives. False: not supported for such a socket. */
bool arrival_ask(int fd);
/* Like read(), with the timestamp in *stamp_ns; 0: none. */
ssize_t arrival_read(int fd, void *to, size_t size, uint64_t *stamp_ns);
/* Converts the timestamp to CLOCK_MONOTONIC, whose current value is now_ns. The result is never later than
 * that. 0: the clock was set. */
uint64_t arrival_monotonic(struct arrival_clock *clock, uint64_t stamp_ns, uint64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif

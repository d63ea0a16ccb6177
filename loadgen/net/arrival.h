/* SPDX-License-Identifier: MIT */
/* When answers arrived: the kernel stamps each segment of a TCP connection as it comes (SO_TIMESTAMPING, its
 * software stamp), and says with each read the stamp of the last one that was read. What lies between that
 * and the read is time that an answer lay unread, and nobody's but this program's.
 *
 * A Unix socket has no such stamps, and TLS hides which bytes were of which segment.
 */
#ifndef FORKTAIL_LOADGEN_ARRIVAL_H
#define FORKTAIL_LOADGEN_ARRIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stamps are of CLOCK_REALTIME, which differs from CLOCK_MONOTONIC by the same until somebody sets it: both
 * are slewed alike. So the difference is looked up again and again. Zero-initialised. */
struct arrival_clock {
	uint64_t ahead_ns;  /* of CLOCK_MONOTONIC */
	uint64_t looked_ns; /* when that was seen last */
};

/* Has the kernel stamp what the socket receives. False: it doesn't for such a socket. */
bool arrival_ask(int fd);
/* As read(), and the stamp in *stamp_ns; 0: it has none. */
ssize_t arrival_read(int fd, void *to, size_t size, uint64_t *stamp_ns);
/* The stamp as CLOCK_MONOTONIC has it, which is now_ns, and never later than that. 0: the clock was set. */
uint64_t arrival_monotonic(struct arrival_clock *clock, uint64_t stamp_ns, uint64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif

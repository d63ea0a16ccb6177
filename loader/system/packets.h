/* SPDX-License-Identifier: MIT */
/* Packets that carry file descriptors. */
#ifndef FORKTAIL_LOADER_PACKETS_H
#define FORKTAIL_LOADER_PACKETS_H

#include <stddef.h>
#include <sys/types.h>

enum { PACKET_FDS = 12 }; /* descriptors of a packet at most */

/* Sends a packet, with `fd` unless it is negative. Returns 0 or a negative errno. */
int send_packet(int socket, const void *bytes, size_t size, int fd, int flags);
/* Receives a packet, and in *fd the descriptor that came with it, or -1. Returns its size, 0 if the peer has
 * closed, or a negative errno. */
ssize_t receive_packet(int socket, void *bytes, size_t size, int *fd, int flags);

/* The same with `count` descriptors, none of them negative. -E2BIG: more than PACKET_FDS. */
int send_packet_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count, int flags);
/* At most `most` descriptors; the kernel closes others. *count is how many came. */
ssize_t receive_packet_fds(int socket, void *bytes, size_t size, int *fds, size_t most, size_t *count,
			   int flags);

#endif

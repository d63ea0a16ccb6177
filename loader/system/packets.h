/* SPDX-License-Identifier: MIT */
/* Packets that carry a file descriptor. */
#ifndef FORKTAIL_LOADER_PACKETS_H
#define FORKTAIL_LOADER_PACKETS_H

#include <stddef.h>
#include <sys/types.h>

/* Sends a packet, with `fd` unless it is negative. Returns 0 or a negative errno. */
int send_packet(int socket, const void *bytes, size_t size, int fd, int flags);
/* Receives a packet, and in *fd the descriptor that came with it, or -1. Returns its size, 0 if the peer has
 * closed, or a negative errno. */
ssize_t receive_packet(int socket, void *bytes, size_t size, int *fd, int flags);

#endif

/* SPDX-License-Identifier: MIT */
/* Packets that carry a file descriptor. */
#ifndef FORKTAIL_LOADER_PACKETS_H
#define FORKTAIL_LOADER_PACKETS_H

#include <stddef.h>
#include <sys/types.h>

/* Sends a packet, with `fd` unless it is negative. 0, or a negative errno. */
int send_packet(int socket, const void *bytes, size_t size, int fd, int flags);
/* Receives one, and into *fd the descriptor that came with it, or -1. Its size, 0 when the other side has
 * gone, or a negative errno. */
ssize_t receive_packet(int socket, void *bytes, size_t size, int *fd, int flags);

#endif

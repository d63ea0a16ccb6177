/* SPDX-License-Identifier: MIT */
/* Receiving a packet, and when it came: by the kernel's stamp rather than by when this process got to run. */
#ifndef FORKTAIL_HOSTS_CLOCK_STAMP_H
#define FORKTAIL_HOSTS_CLOCK_STAMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Has the kernel stamp what the socket receives; where it can't, stamps are when the process read it. */
void stamp_ask(int fd);

/* Receives one packet of at most `size` bytes without waiting: its length, longer ones with `size` + 1, or a
 * negative errno. *at_ns is CLOCK_MONOTONIC, no earlier than the packet came. `from` may be NULL. */
int stamp_receive(int fd, void *packet, size_t size, uint64_t *at_ns, struct sockaddr_storage *from,
		  socklen_t *from_size);

#endif

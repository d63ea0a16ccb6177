/* SPDX-License-Identifier: MIT */
/* Receives packets with the kernel's arrival time, independent of when this process runs. */
#ifndef FORKTAIL_HOSTS_CLOCK_STAMP_H
#define FORKTAIL_HOSTS_CLOCK_STAMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Enables the kernel's timestamps; without them the time of reading is used. */
void stamp_ask(int fd);

/* Receives one packet without waiting. Returns its length, `size` + 1 for longer packets, or a negative
 * errno. *at_ns is CLOCK_MONOTONIC, not earlier than the arrival. `from` may be NULL. */
int stamp_receive(int fd, void *packet, size_t size, uint64_t *at_ns, struct sockaddr_storage *from,
		  socklen_t *from_size);

#endif

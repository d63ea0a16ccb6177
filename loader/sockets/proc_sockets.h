/* SPDX-License-Identifier: MIT */
/* Sockets in /proc: the links of a process' descriptors, and the tables of TCP sockets, which can be read for
 * the network namespace of any process. */
#ifndef FORKTAIL_LOADER_PROC_SOCKETS_H
#define FORKTAIL_LOADER_PROC_SOCKETS_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/* Calls `see` with the target of each descriptor's link ("socket:[1234]") until it returns true. Returns
 * whether it did. */
bool any_link(pid_t pid, bool (*see)(void *context, const char *link), void *context);

/* The sockets of a process by inode: {"1234": true}. Empty for most processes, for which no table of sockets
 * need be read. */
json_t *socket_inodes(pid_t pid);
bool has_inode(const json_t *inodes, unsigned long inode);

struct tcp_socket {
	unsigned long inode; /* 0: no process has it open any more */
	unsigned local_port, peer_port;
	unsigned state; /* the kernel's number */
	/* As in the table: hexadecimal, words in the host's byte order. */
	char local_address[33], peer_address[33];
};
/* Calls `see` with each socket of a table ("tcp", "tcp6"). `pid`: a process id, or "self". Returns 0 or a
 * negative errno. */
int each_tcp_socket(const char *pid, const char *table,
		    void (*see)(void *context, const struct tcp_socket *s), void *context);

#endif

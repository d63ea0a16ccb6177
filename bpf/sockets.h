/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections, for the programs that see how a target reads and writes them. */
#ifndef FORKTAIL_BPF_SOCKETS_H
#define FORKTAIL_BPF_SOCKETS_H

#include "ids.h"

enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, MSG_PEEK = 2 };
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_FIN_WAIT1 = 4, TCP_LAST_ACK = 9 };

static __always_inline bool is_tcp(u16 family)
{
	return family == AF_INET || family == AF_INET6;
}

static __always_inline u64 inode_of(const struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);
	return BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino);
}

/* The inode of the other end of a Unix socket. */
static __always_inline u64 peer_inode_of(const struct sock *sk)
{
	return inode_of(BPF_CORE_READ((const struct unix_sock *)sk, peer));
}

#endif

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

/* Whether the current task is a target's, and the id of its process. */
static __always_inline bool target_runs(u32 *tgid)
{
	u32 id = process_id_of(bpf_get_current_task_btf());
	u32 *as = bpf_map_lookup_elem(&targets, &id);
	*tgid = id;
	return as && *as == FT_TRACED_TARGET;
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

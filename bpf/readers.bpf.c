/* SPDX-License-Identifier: GPL-2.0-only */
/* Which thread of a target reads which connection, and which one closes it. A separate object, because one
 * program runs at every read of any socket of the host: it is attached for a part of the time only. */
#define PROGRAM_ROW FT_READER_PROGRAM_ROW
#include "program.h" /* first: libbpf's headers need the integer types */

#include "bpf/reader_events.h"
#include "sockets.h"

const volatile __u32 pid_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FT_READERS_RING);
} readers_ring SEC(".maps");

/* Shared with the main object. */
struct targets_map targets SEC(".maps");

struct known_reader {
	u64 inode;
	u32 tid;
	u32 changes;
	u32 epoch;
	u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FT_READERS_SOCKETS);
	__type(key, u64); /* the socket's address */
	__type(value, struct known_reader);
} known SEC(".maps");

__u64 reads;
__u64 program_runs[FT_MAX_CPUS][PROGRAM_ROW];
volatile __u32 epoch; /* changed by the recorder, so that all are reported again */

char gpl[] SEC("license") = "GPL";

/* What the current task, a target's, did with a socket. */
static __always_inline bool send(const struct sock *sk, u64 inode, u32 tgid, bool closed)
{
	struct ft_socket_reader *e = bpf_ringbuf_reserve(&readers_ring, sizeof *e, 0);
	if (!e)
		return false;
	*e = (struct ft_socket_reader){.t_ns = bpf_ktime_get_ns(),
				       .inode = inode,
				       .tgid = tgid,
				       .tid = id_of(bpf_get_current_task_btf()),
				       .closed = closed};
	if (sk->__sk_common.skc_family == AF_UNIX) {
		e->peer_inode = peer_inode_of(sk);
	} else {
		e->local_port = sk->__sk_common.skc_num;
		e->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return true;
}

SEC("tp_btf/sock_recv_length")
int COUNTED_PROG(socket_read, struct sock *sk, int ret, int flags)
{
	__sync_fetch_and_add(&reads, 1);
	const u16 family = sk->__sk_common.skc_family;
	u32 tgid;
	if (ret <= 0 || flags & MSG_PEEK || (family != AF_UNIX && !is_tcp(family)) || !target_runs(&tgid))
		return 0;
	const u64 key = (u64)sk;
	struct known_reader now = {
	    .inode = inode_of(sk), .tid = id_of(bpf_get_current_task_btf()), .epoch = epoch};
	const struct known_reader *before = bpf_map_lookup_elem(&known, &key);
	if (before && before->inode == now.inode && before->epoch == now.epoch) {
		if (before->tid == now.tid || before->changes == FT_READERS_CHANGES)
			return 0;
		now.changes = before->changes + 1;
	}
	if (send(sk, now.inode, tgid, false)) /* else the next read is another chance */
		bpf_map_update_elem(&known, &key, &now, BPF_ANY);
	return 0;
}

/* These two states are set by close() and shutdown() only, in the thread that calls them. */
SEC("tp_btf/inet_sock_set_state")
int COUNTED_PROG(socket_closes, const struct sock *sk, int before, int state)
{
	u32 tgid;
	if ((state == TCP_FIN_WAIT1 || state == TCP_LAST_ACK) && target_runs(&tgid))
		send(sk, inode_of(sk), tgid, true);
	return 0;
}

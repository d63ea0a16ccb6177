/* SPDX-License-Identifier: GPL-2.0-only */
/* What TCP did that delays a request: retransmissions, connections reset, packets dropped on this host.
 * A separate object, because a kernel may lack any of its tracepoints. All of them are rare, so the programs
 * are always attached; a flood is cut to a number of events per time, and the rest is counted. Only
 * connections with a port of a recorded server are seen. Which of them are the server's is for the recorder
 * to find out: the port is also known of the client's end on this host, and of other network namespaces. */
#define PROGRAM_ROW FT_TCP_PROGRAM_ROW
#include "program.h" /* first: libbpf's headers need the integer types */

#include "bpf/tcp_events.h"
#include "recording/owners.h"
#include "sockets.h"

#include <bpf/bpf_endian.h>

const volatile __u32 pid_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FT_TCP_RING);
} tcp_ring SEC(".maps");

/* Written by the recorder: 1 for a port that a server listens on, or that a server's connection leads to. */
__u8 ports[FT_TCP_PORTS];
/* Likewise: 1 for a reason that is no loss, such as the end of a connection. Many connections may end at
 * once. */
__u8 no_loss[FT_TCP_REASONS];
__u64 lost;   /* no space in the ring */
__u64 beyond; /* over the limit of events per time */
__u64 program_runs[FT_MAX_CPUS][PROGRAM_ROW];
__u64 window_ns;
__u32 window_events;

char gpl[] SEC("license") = "GPL";

/* Verifiers of older kernels do not know that a number with 16 swapped bits has 16 bits. */
static __always_inline bool has_port(u64 port)
{
	asm volatile("%0 &= 65535" : "+r"(port));
	return ports[port];
}

static __always_inline bool is_wanted(u16 port, u16 other)
{
	return has_port(port) || has_port(other);
}

/* CPUs may count in the same window at the same time, so the limit is approximate. (An addition that returns
 * the sum needs Linux 5.12.) */
static __always_inline bool has_room(u64 now_ns)
{
	if (now_ns - window_ns >= FT_TCP_WINDOW_NS) {
		window_ns = now_ns;
		window_events = 0;
	}
	return window_events++ < FT_TCP_WINDOW_EVENTS;
}

static __always_inline struct ft_tcp_seen *begin(u8 what, u16 local_port, u16 peer_port)
{
	const u64 now_ns = bpf_ktime_get_ns();
	if (!has_room(now_ns)) {
		__sync_fetch_and_add(&beyond, 1);
		return NULL;
	}
	struct ft_tcp_seen *e = bpf_ringbuf_reserve(&tcp_ring, sizeof *e, 0);
	if (!e) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	__builtin_memset(e, 0, sizeof *e);
	e->t_ns = now_ns;
	e->what = what;
	e->local_port = local_port;
	e->peer_port = peer_port;
	return e;
}

static __always_inline void put_ipv4(__u8 *to, u32 address)
{
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, sizeof address);
}

static __always_inline void send_of_socket(const struct sock *sk, u8 what)
{
	/* Since 6.10 also sockets without an inet_sock: of a new connection, and of one that waits after its
	 * end. */
	enum { TIME_WAIT = 6, NEW_SYN_RECV = 12 };
	const u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	const u16 local_port = state == TIME_WAIT || state == NEW_SYN_RECV
				   ? BPF_CORE_READ(sk, __sk_common.skc_num)
				   : bpf_ntohs(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport)),
		  peer_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (!is_wanted(local_port, peer_port))
		return;
	struct ft_tcp_seen *e = begin(what, local_port, peer_port);
	if (!e)
		return;
	e->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&e->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&e->peer, sk, __sk_common.skc_v6_daddr);
	} else {
		put_ipv4(e->local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		put_ipv4(e->peer, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/tcp_retransmit_skb")
int COUNTED_PROG(tcp_retransmits, const struct sock *sk)
{
	send_of_socket(sk, FT_TCP_RETRANSMITTED);
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int COUNTED_PROG(tcp_reset_received, const struct sock *sk)
{
	send_of_socket(sk, FT_TCP_RESET_RECEIVED);
	return 0;
}

/* Since 6.11 also for packets without a socket: then there is nothing to reset. */
SEC("tp_btf/tcp_send_reset")
int COUNTED_PROG(tcp_reset_sent, const struct sock *sk)
{
	if (sk)
		send_of_socket(sk, FT_TCP_RESET_SENT);
	return 0;
}

/* Higher numbers are of other subsystems. The verifier needs a limit that the compiler cannot leave out. */
static __always_inline bool is_no_loss(u32 reason)
{
	u64 at = reason;
	asm volatile("%0 &= 255" : "+r"(at));
	return reason < FT_TCP_REASONS && no_loss[at];
}

/* The kernel's packet headers. */
enum { IPV4_HEADER = 20, IPV6_HEADER = 40, IP_TCP = 6 };

SEC("tp_btf/kfree_skb")
int COUNTED_PROG(packet_dropped, struct sk_buff *skb, void *location, u32 reason)
{
	u8 header[IPV6_HEADER];
	u16 tcp[2];
	if (is_no_loss(reason))
		return 0;
	const unsigned char *at = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	const u16 protocol = BPF_CORE_READ(skb, protocol);
	u32 bytes = IPV6_HEADER;
	if (protocol == bpf_htons(0x0800)) {
		if (bpf_probe_read_kernel(header, IPV4_HEADER, at) || header[0] >> 4 != 4 ||
		    header[9] != IP_TCP)
			return 0;
		bytes = (header[0] & 0xf) * 4u;
	} else if (protocol != bpf_htons(0x86dd) || bpf_probe_read_kernel(header, IPV6_HEADER, at) ||
		   header[0] >> 4 != 6 || header[6] != IP_TCP) {
		return 0;
	}
	if (bpf_probe_read_kernel(tcp, sizeof tcp, at + bytes))
		return 0;
	const u16 from = bpf_ntohs(tcp[0]), to = bpf_ntohs(tcp[1]);
	if (!is_wanted(from, to))
		return 0;
	struct ft_tcp_seen *e = begin(FT_TCP_DROPPED, from, to);
	if (!e)
		return 0;
	e->reason = reason;
	e->location = (u64)location;
	struct sock *sk = BPF_CORE_READ(skb, sk);
	struct net_device *device = BPF_CORE_READ(skb, dev);
	if (sk)
		e->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	else if (device)
		e->netns = BPF_CORE_READ(device, nd_net.net, ns.inum);
	if (protocol == bpf_htons(0x0800)) {
		u32 address;
		__builtin_memcpy(&address, header + 12, sizeof address);
		put_ipv4(e->local, address);
		__builtin_memcpy(&address, header + 16, sizeof address);
		put_ipv4(e->peer, address);
	} else {
		__builtin_memcpy(e->local, header + 8, sizeof e->local);
		__builtin_memcpy(e->peer, header + 24, sizeof e->peer);
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

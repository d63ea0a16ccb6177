/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Data that tcp.bpf.c passes to the recorder. */
#ifndef FORKTAIL_BPF_TCP_EVENTS_H
#define FORKTAIL_BPF_TCP_EVENTS_H

#include <linux/types.h>

enum {
	FT_TCP_RING = 1 << 17,	    /* bytes */
	FT_TCP_PORTS = 1 << 16,	    /* one more than the highest port */
	FT_TCP_WINDOW_EVENTS = 100, /* in a window of the kernel's clock; of more only the number is known */
	FT_TCP_REASONS = 256,	    /* of the kernel's reasons for a drop: a power of two */
	FT_TCP_ADDRESS_BYTES = 16,  /* IPv6, or IPv4 mapped to it */
};
#define FT_TCP_WINDOW_NS 100000000ull

/* What happened to a connection with one of the ports. */
struct ft_tcp_seen {
	__u64 t_ns;
	__u64 location;		     /* of a dropped packet: the kernel's code that dropped it; else 0 */
	__u32 reason;		     /* likewise: the kernel's enum skb_drop_reason */
	__u32 netns;		     /* inode of the network namespace; 0: unknown */
	__u16 local_port, peer_port; /* of a dropped packet: from, to */
	__u8 what;		     /* enum ft_tcp_what */
	__u8 pad[3];
	__u8 local[FT_TCP_ADDRESS_BYTES], peer[FT_TCP_ADDRESS_BYTES];
};

#endif

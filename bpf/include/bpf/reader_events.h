/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Data that readers.bpf.c passes to the recorder. */
#ifndef FORKTAIL_BPF_READER_EVENTS_H
#define FORKTAIL_BPF_READER_EVENTS_H

#include <linux/types.h>

enum {
	FT_READERS_RING = 1 << 18,  /* bytes */
	FT_READERS_SOCKETS = 16384, /* that are remembered; of more, some are reported again */
	FT_READERS_CHANGES = 32,    /* of a socket; later ones are not reported */
};

/* A thread of a target read from a connection for the first time, or after another thread, or closed it. */
struct ft_socket_reader {
	__u64 t_ns;
	__u64 inode;
	__u64 peer_inode; /* of a Unix socket; 0: TCP */
	__u32 tgid, tid;
	__u32 local_port, peer_port; /* TCP, else 0 */
	__u32 closed, pad;
};

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Data that requests.bpf.c passes to the helper process that finds requests. The kernel programs know bytes
 * of streams and times, no requests: an event per read, with the bytes, and one per write. Offsets are
 * positions in the stream of a connection, modulo 2^32, so a gap is detected. */
#ifndef FORKTAIL_BPF_REQUEST_EVENTS_H
#define FORKTAIL_BPF_REQUEST_EVENTS_H

#include <linux/types.h>

enum {
	FT_ARRIVALS = 32,	    /* pieces of a connection's stream that arrived and were not read yet */
	FT_READ_ARRIVALS = 2,	    /* of those, sent with the read; more precede it */
	FT_READ_CHUNK = 16384,	    /* bytes of a read per event */
	FT_READ_CHUNKS = 4,	    /* per read */
	FT_READ_CAPTURED = 32768,   /* bytes captured between two writes; the rest is in a large value */
	FT_REQUESTS_RING = 1 << 24, /* bytes */
	FT_REQUESTS_SLOTS_MAX = 65536, /* connections that the helper follows at a time */
	FT_ANSWER_BEGIN = 8,	       /* bytes of a write */
};

enum ft_request_event_type {
	FT_REQUEST_CONNECTION = 1,
	FT_REQUEST_ARRIVALS = 2,
	FT_REQUEST_READ = 3,
	FT_REQUEST_WRITE = 4,
	FT_REQUEST_CLOSED = 5, /* struct ft_request_head */
};

struct ft_request_head {
	__u16 type;
	__u16
	    sequence; /* of the connection's reads, writes and arrivals: a gap means that some are missing */
	__u32 connection; /* its number, from 1 on */
	__u64 t_ns;
};

/* Precedes all other events of a connection. */
struct ft_request_connection {
	struct ft_request_head head;
	__u64 peer_inode; /* of a Unix socket's client, else 0 */
	__u32 tgid;	  /* the target's process; 0: it has not read yet */
	__u32 peer_pid;	  /* the client's process; 0: on another host, or not known */
	__u32 start;	  /* offset of the first byte that is seen */
	__u32 hash;	  /* a connection is followed if it has none of the bits of the sample's mask */
	__u32 pad;
	__u16 local_port, peer_port;
	__u8 peer_address[16]; /* IPv6, or IPv4-mapped */
	char peer_comm[16];    /* of a TCP client's process, when it connected; zeros: not known */
};

/* Bytes up to `end` arrived: the first ones (up to first_end) at first_ns, the last ones at last_ns.
 * Different only if there were more than FT_ARRIVALS pieces. */
struct ft_request_arrival {
	__u64 first_ns, last_ns;
	__u32 first_end, end;
};

/* The oldest pieces of the read that follows. */
struct ft_request_arrivals {
	struct ft_request_head head;
	__u32 count, pad;
	struct ft_request_arrival arrival[FT_ARRIVALS];
};

enum ft_read_flags {
	FT_READ_CONTINUES = 1,	/* not the first event of a read */
	FT_READ_UNREADABLE = 2, /* the bytes could not be copied; else `captured` ends at a limit */
};

/* The server read; `captured` bytes follow the struct. A read of more than a chunk is several events, of
 * which the first has the arrivals. */
struct ft_request_read {
	struct ft_request_head head; /* t_ns: the call returned */
	__u32 tid;
	__u32 end; /* offset after the read's last byte */
	__u32 bytes, captured;
	__u32 arrivals;
	__u32 flags; /* enum ft_read_flags */
	struct ft_request_arrival arrival[FT_READ_ARRIVALS];
};

/* The server wrote, or tried to: 0 bytes mean that the socket's buffer is full, so that more will follow. */
struct ft_request_write {
	struct ft_request_head head; /* t_ns: the call returned */
	__u64 left_ns;		     /* the first byte left for the device or the peer; 0: unknown */
	__u32 bytes;
	__u32 unsent;		     /* writes since the event before, which were not sent as events */
	__u8 begin[FT_ANSWER_BEGIN]; /* the first bytes; 0: not known, or fewer */
};

enum ft_request_counter {
	FT_REQUEST_DROPPED = 0, /* events: the ring was full */
	FT_REQUEST_MERGED = 1,	/* pieces whose arrival is interpolated */
	FT_REQUEST_NO_SLOT = 2, /* pieces of connections without memory */
	FT_REQUEST_COUNTERS = 3,
};

#endif

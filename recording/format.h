/* SPDX-License-Identifier: MIT */
/* The recording format: block header, block kinds and the records inside, byte for byte. A recording is one
 * append-only file of self-contained blocks, so that after a killed recorder, a full disk or a flipped bit it
 * can be read around the damage. docs/reference/recording-format.md explains the reasons and rules;
 * recording.h writes and reads it. All integers are little-endian, all times CLOCK_MONOTONIC nanoseconds of
 * the recording host, unless a name says otherwise. Rules: records only grow at their end (the block's
 * record_size shows the writer's version; a reader fills missing fields with zeros); enum values are explicit
 * and never renumbered; fields are laid out without implicit padding. */
#ifndef FORKTAIL_FORMAT_H
#define FORKTAIL_FORMAT_H

#include <stdint.h>

#include "owners.h"

/* "FTBK": the start of a block, and what a reader searches for after damage. */
#define FT_BLOCK_MAGIC 0x4b425446u
#define FT_FORMAT_VERSION 3 /* the highest version that is read; most blocks are written as 1 */
/* No payload is larger, stored or raw: this limits a reader's allocation whatever a header says. */
#define FT_BLOCK_LIMIT (64u << 20)

enum ft_block_kind {
	FT_BLOCK_MANIFEST = 1, /* JSON object; always the first block */
	FT_BLOCK_THREAD = 2,   /* struct ft_thread: a thread was seen, renamed or has exited */
	FT_BLOCK_SPAN = 3,     /* struct ft_span */
	FT_BLOCK_TALLY = 4,    /* struct ft_tally */
	FT_BLOCK_DETAIL = 5,   /* JSON object: {"id":n,"name":"...","stack":["sym+0x..",...]} */
	FT_BLOCK_IO = 6,       /* struct ft_io */
	FT_BLOCK_SERIES =
	    7, /* JSON object: {"id":n,"name":"host.cpu.user","unit":"percent","labels":{...}} */
	FT_BLOCK_SAMPLE = 8,	  /* struct ft_sample */
	FT_BLOCK_DROP = 9,	  /* struct ft_drop */
	FT_BLOCK_COST = 10,	  /* JSON object: the recorder's own cost so far; the last one applies */
	FT_BLOCK_CLOCK = 11,	  /* struct ft_clock */
	FT_BLOCK_NOTE = 12,	  /* JSON object: {"t_ns":n,"kind":"...", ...}; facts written once */
	FT_BLOCK_CONNECTION = 13, /* struct ft_connection */
	FT_BLOCK_REQUEST = 14,	  /* request columns, see recording.h's ft_requests_decode */
	FT_BLOCK_HISTOGRAM = 15,  /* JSON object: a latency histogram */
	FT_BLOCK_SUMMARY = 16,	  /* JSON object: why and how the recording ended */
	FT_BLOCK_INDEX = 17,	  /* struct ft_index_entry, one per block since the previous index block */
	FT_BLOCK_TRAILER = 18,	  /* struct ft_trailer; always the last block */
	FT_BLOCK_STACK = 19, /* JSON object: {"id":n,"program":"...","frames":[[function,module],...],...} */
	FT_BLOCK_CPU_SAMPLE = 20, /* struct ft_cpu_sample */
	FT_BLOCK_WRITES = 21,	  /* struct ft_writes */
	FT_BLOCK_CPU_SLICE = 22,  /* struct ft_cpu_slice */
	FT_BLOCK_LOOP = 23,	  /* struct ft_loop */
	FT_BLOCK_SOCKET = 24,	  /* struct ft_socket */
	FT_BLOCK_PROBE = 25,	  /* struct ft_probe */
	FT_BLOCK_OPEN = 26,	  /* struct ft_span: the state that a thread is in, so far */
	FT_BLOCK_COUNTERS = 27,	  /* struct ft_counters */
	FT_BLOCK_KINDS,		  /* not a kind: one more than the last */
};

enum ft_block_flags {
	FT_BLOCK_ZSTD = 1, /* the stored payload is one zstd frame */
};

/* Precedes every payload. header_xxh32 covers the bytes before it, so that a reader can trust lengths. */
struct ft_block_header {
	uint32_t magic;	      /* FT_BLOCK_MAGIC */
	uint16_t kind;	      /* enum ft_block_kind */
	uint8_t flags;	      /* enum ft_block_flags */
	uint8_t version;      /* 1; 2, 3: request columns that a reader of a lower version would not expect */
	uint32_t record_size; /* bytes of one record; 0 for JSON and columns */
	uint32_t count;	      /* records in the payload */
	uint32_t raw_bytes;   /* payload size when decompressed */
	uint32_t stored_bytes;	/* payload size in the file */
	uint32_t sequence;	/* 0, 1, 2 ... so that a gap is detected */
	uint32_t payload_xxh32; /* of the stored bytes, seed 0 */
	uint32_t header_xxh32;	/* of the 32 bytes before this field, seed 0 */
};

enum ft_thread_flags {
	FT_THREAD_MAIN = 1,   /* tid == tgid */
	FT_THREAD_CHILD = 2,  /* of a process that a target forked during the recording */
	FT_THREAD_ENDED = 4,  /* end_ns is its exit; otherwise, the last instant accounted */
	FT_THREAD_CLIENT = 8, /* of a load generator on the same host, not of a target */
};

/* Names that processes gave themselves: any bytes, up to a 0 or the end. Types of their own, so that they
 * become text only by common::VisibleName, json_text or put_visible, which make them printable. */
struct ft_comm {
	char raw[16];
};
struct ft_role {
	char raw[32];
};

/* A traced thread. Written when it is found, when its role becomes known, and when its account closes: the
 * last record for a (tid, start_ns) applies. The account of the thread covers start_ns..end_ns. */
struct ft_thread {
	uint64_t start_ns; /* first instant accounted */
	uint64_t end_ns;   /* last instant accounted; 0 while open */
	uint32_t tid;
	uint32_t tgid;
	uint32_t parent_tgid; /* the target that forked its process, or 0 */
	uint32_t flags;	      /* enum ft_thread_flags */
	struct ft_comm comm;
	struct ft_role role; /* "redis-server", "snapshot child", "AOF rewrite child", "bio_aof_fsync" ... */
};

/* An interval of one thread of at least the recording's min_span_ns. Spans of one thread nest. The own times
 * exclude every inner span that was sent and every inner frame that was tallied, and sum over all spans and
 * tallies to the thread's wall time. Off-CPU intervals are spans too: blocked first, then runnable, so the
 * wakeup was at start_ns + blocked_ns. An off-CPU span whose depth is above 0 is in a frame. Its owner is
 * then the frame's (what it was blocked in), unless it was stopped, frozen or stopped by a tracer there. Its
 * runnable part is run-queue (or, with FT_SPAN_THROTTLED, the CPU quota's; with FT_SPAN_KSOFTIRQD, deferred
 * soft interrupts'). */
struct ft_span {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t on_cpu_ns;   /* own time on the CPU */
	uint64_t runnable_ns; /* own time runnable */
	uint64_t blocked_ns;  /* own time blocked */
	uint64_t arg[2];      /* by owner, see docs/reference/recording-format.md */
	uint32_t tid;
	uint16_t cpu;	    /* the CPU where it ended */
	uint8_t owner;	    /* enum ft_owner */
	uint8_t depth;	    /* frames below it on the thread's stack; 0: directly on own code */
	uint32_t detail;    /* id of a detail block: CPU holder, file, or stack; 0: none */
	int16_t syscall;    /* number of the system call blocked in; -1: none or unknown */
	uint8_t flags;	    /* enum ft_span_flags */
	uint8_t off_cpu;    /* 1: an off-CPU interval, 0: a frame or an overlay */
	uint16_t queue_cpu; /* 1 + the CPU whose slices (ft_cpu_slice) it waited through; 0: unknown */
	uint16_t pad[3];
};

/* A task's slice of a CPU for which a traced thread waited, as far as known when the wait ended. A slice that
 * continued may appear again with a later end. A CPU's slices don't overlap. Those of one wait are known up
 * to FT_CPU_SLICES - 1 back (bpf/events.h). */
struct ft_cpu_slice {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t tid; /* 0: the CPU was idle */
	uint16_t cpu;
	uint16_t pad;
	struct ft_comm comm;
};

/* Intervals of one owner on one thread too short for a span, in one window. Windows of a thread follow each
 * other. They last at least one millisecond when the thread was active, longer when it was not. */
struct ft_tally {
	uint64_t start_ns; /* of the window */
	uint64_t end_ns;
	uint64_t total_ns; /* own time of this owner in the window, spans not included */
	uint64_t max_ns;   /* longest single one; for FT_OWN_CODE 0 */
	uint32_t count;
	uint32_t tid;
	uint32_t owner; /* enum ft_owner below FT_OWNER_LIMIT */
	uint32_t pad;
};

/* One block request, from its issue to the device to its completion. */
struct ft_io {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t sector;
	uint32_t bytes;
	uint32_t dev;  /* major << 20 | minor */
	uint32_t tid;  /* the issuing task: often a writeback kworker */
	uint8_t write; /* 1 write, 0 read, 2 discard, 3 flush, 4 other */
	uint8_t error; /* 1: completed with an error */
	uint16_t pad;
	struct ft_comm comm;
};

/* What a process wrote to the page cache for a device, as the kernel accounts it: pages that became dirty.
 * The device gets them later from a writeback thread, so ft_io doesn't show their source. At most 100 ms or 1
 * MB of one process and device. */
struct ft_writes {
	uint64_t start_ns; /* the first page */
	uint64_t end_ns;   /* the last */
	uint64_t bytes;
	uint32_t dev;	     /* as in ft_io; 0: a file system without a single device */
	uint32_t tgid;	     /* the process */
	struct ft_comm comm; /* of the thread */
};

struct ft_sample {
	uint64_t t_ns;
	double value;
	uint32_t series; /* id of a series block */
	uint32_t pad;
};

enum ft_drop_source {
	FT_DROP_RING = 1,   /* kernel ring buffer full; detail is the owner, or FT_DROP_* below */
	FT_DROP_STACK = 2,  /* frame stack of a thread too deep */
	FT_DROP_IO = 3,	    /* block request table full */
	FT_DROP_THREAD = 4, /* no space for a thread's state */
	FT_DROP_LOG = 5,    /* load generator could not write request log entries */
	FT_DROP_MISSED =
	    6, /* the kernel skipped a program; detail is its index in the manifest's "programs" */
	FT_DROP_UNWIND = 7, /* CPU samples without their callers, or without any name: unwinding took too
			       long, or its helper had exited */
	FT_DROP_DISK = 8,   /* the disk was slower than the recording for longer than the recorder's queue
			       lasts; detail is the enum ft_block_kind */
};
enum {
	FT_DROP_TALLY = 100,
	FT_DROP_BLOCK_IO = 101,
	FT_DROP_THREAD_EVENT = 102,
	FT_DROP_CPU_SAMPLE = 103,
	FT_DROP_WRITES = 104,
	FT_DROP_REQUESTS = 105 /* events of the request hooks */
};

/* Events lost: how many, of what, and when (between two reads of the counter). */
struct ft_drop {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t count;
	uint32_t source; /* enum ft_drop_source */
	uint32_t detail;
};

enum ft_cpu_sample_flags {
	FT_CPU_SAMPLE_KERNEL = 1,  /* in the kernel */
	FT_CPU_SAMPLE_CALLERS = 2, /* its stack includes the callers; otherwise only the innermost function */
	FT_CPU_SAMPLE_CUT = 4,	   /* the outermost callers are missing from the stack */
};

/* A thread seen on the CPU, by a clock that ticks on every CPU. */
struct ft_cpu_sample {
	uint64_t t_ns;
	uint32_t tid;
	uint32_t stack; /* id of a stack block; 0: unknown */
	uint16_t cpu;
	uint8_t owner;	  /* enum ft_owner of the time; interrupts that delay the clock are not seen */
	uint8_t flags;	  /* enum ft_cpu_sample_flags */
	uint16_t syscall; /* 1 + number of the system call the kernel executed for it; 0: none, or unknown */
	uint8_t file;	  /* enum ft_sample_file: the kind of file of that call's first argument */
	uint8_t period;	  /* since the previous sample, in sixteenths of a millisecond; 0: 16, the only period
			     of older recorders */
};

enum ft_counted_flags {
	FT_COUNTED_MISSES = 1,	 /* cache misses were counted */
	FT_COUNTED_SOFTWARE = 2, /* not cycles, instructions and misses: ns, page faults and switches */
};

/* What the CPU's counters counted between two CPU samples of a thread that kept the CPU meanwhile, in user
 * space, the kernel and interrupts. */
struct ft_counters {
	uint64_t t_ns; /* of the second sample */
	uint32_t duration_ns;
	uint32_t tid;
	uint32_t cycles;
	uint32_t instructions;
	uint32_t cache_misses; /* of the last level */
	uint16_t cpu;
	uint16_t flags; /* enum ft_counted_flags */
};

struct ft_clock {
	uint64_t monotonic_ns;
	uint64_t realtime_ns; /* read between two monotonic reads, of which monotonic_ns is the middle */
	uint64_t boottime_ns;
	uint64_t error_ns; /* half the difference of those two */
};

/* A round trip to another host's clock (the manifest's "peer"); of a burst of several, those that give the
 * tightest bounds. The peer's clock is ahead by an amount between peer_sent_ns - received_ns and
 * peer_received_ns - sent_ns, however long each way took. */
struct ft_probe {
	uint64_t sent_ns;	   /* by the recording host's clock, no later than it was sent */
	uint64_t peer_received_ns; /* by the peer's, no earlier than it arrived */
	uint64_t peer_sent_ns;	   /* by the peer's, no later than it was sent */
	uint64_t received_ns;	   /* by the recording host's, no earlier than it arrived */
	uint16_t tried;		   /* round trips of the burst */
	uint16_t answered;	   /* of those, the number that arrived in time */
	uint32_t pad;
};

/* A thread was seen to wait for events of another epoll instance than before. It waits for this one until its
 * next record or its end. */
struct ft_loop {
	uint64_t t_ns;
	uint32_t tid;
	uint32_t tgid;
	uint32_t epoll; /* the instance's descriptor in its process */
	uint32_t pad;
};

/* A thread of a target with several serving ones began to read a connected socket (`reader`). Or, from a
 * kernel that does not tell: the socket was added to an epoll instance, or left one, found by looks at
 * intervals, so it happened between two instants. A socket that is seen for the first time was in none
 * before: a socket's inode number is unique until the counter wraps. */
struct ft_socket {
	uint64_t before_ns; /* not yet, at this time; 0: it was never looked for before */
	uint64_t seen_ns;
	uint64_t inode;
	uint64_t peer_inode; /* of a Unix socket; 0: TCP, or unknown */
	uint32_t tgid;
	uint32_t epoll;	     /* the instance's descriptor; FT_SOCKET_GONE: in none any more; with a reader:
				closed by it */
	uint32_t local_port; /* TCP, else 0 */
	uint32_t peer_port;
	uint32_t reader; /* the thread; 0: see epoll */
	uint32_t pad;
};
enum { FT_SOCKET_GONE = -1 };

enum ft_client_flags {
	FT_CLIENT_HASHED = 1,	 /* client_address has random bytes, the same ones for the same address */
	FT_CLIENT_UNSAMPLED = 2, /* not followed after a note of kind requests-sample */
};

/* A connection between a client and a server. In a load generator's log, the load generator is the client. In
 * a log of the server's kernel, clients are any processes and `thread` is 0. The client's local port, or with
 * a Unix socket its inode (which the kernel reports together with the peer's), identifies the connection on
 * the server's side of the same host. */
struct ft_connection {
	uint64_t opened_ns;
	uint64_t closed_ns; /* 0 while open */
	uint32_t id;
	uint32_t thread;     /* index of the load generator's thread */
	uint32_t local_port; /* the client's; TCP, else 0 */
	uint32_t server;     /* index into the manifest's "servers" */
	uint64_t inode;	     /* of the client's socket; 0: unknown */
	/* Only in a log of the server's kernel, else zeros. */
	uint8_t client_address[16]; /* IPv6, or IPv4-mapped; zeros: Unix socket */
	uint32_t client_pid;	    /* process of a Unix socket's client; 0: unknown */
	uint32_t client_flags;	    /* enum ft_client_flags */
	struct ft_comm client_comm; /* of that process */
	uint64_t reader_ns;	    /* since when this thread of the server reads it */
	uint32_t reader;	    /* 0: unknown */
	uint32_t reader_changes;    /* how often it changed so far; from 32 on no change is recorded */
};
enum { FT_READER_CHANGES = 32 };

enum ft_status {
	FT_STATUS_OK = 0,
	FT_STATUS_MISS = 1, /* the answer says that the key does not exist; not an error */
	FT_STATUS_ERROR_REPLY = 2,
	FT_STATUS_TIMEOUT = 3,
	FT_STATUS_RESET = 4, /* connection closed or reset before the answer */
	FT_STATUS_REFUSED = 5,
	FT_STATUS_WRONG = 6,  /* protocol violation or wrong data */
	FT_STATUS_UNSENT = 7, /* due, but the run ended before it could be sent */
};

/* One request as the log holds it. op is an index into the manifest's "ops". In a log of the server's kernel,
 * intended_ns and start_ns are when its first byte arrived at the server's socket, and end_ns is when its
 * answer left that socket. */
struct ft_request {
	uint64_t intended_ns; /* when it was due; equals start_ns in a closed loop */
	uint64_t start_ns;    /* when it was handed to the kernel */
	uint64_t end_ns;      /* when its answer was read, or it failed */
	uint32_t connection;
	uint8_t op;
	uint8_t status; /* enum ft_status */
	uint8_t behind; /* behind a proxy: 1 + index into the manifest's "behind"; 0: unknown */
	/* when the kernel received the last segment that was read of its answer, at most end_ns; 0:
	 * unknown */
	uint64_t arrival_ns;
};

/* A block before the index block. The first entry of every index block except the first is the previous index
 * block, so that they form a chain from the trailer to the file's beginning. */
struct ft_index_entry {
	uint64_t offset; /* of the block header, from the file's beginning */
	uint32_t kind;
	uint32_t count;
	/* From the earliest begin to the latest end of its records; both 0: a kind without time, or
	 * unknown */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t stored_bytes; /* as in the block's header; entries of an old writer lack these */
	uint32_t raw_bytes;
};

struct ft_trailer {
	uint64_t index_offset; /* of the last index block's header */
	uint64_t blocks;       /* before the trailer */
};

#endif

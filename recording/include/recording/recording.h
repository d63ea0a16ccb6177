/* SPDX-License-Identifier: MIT */
/* The file format: its records, reading and writing them. Only this library knows the bytes of a file. */
#ifndef FORKTAIL_RECORDING_RECORDING_H
#define FORKTAIL_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/owners.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of this machine's system calls. Spans contain numbers, which differ on other machines, so a recorder
 * writes the names for its numbers to its manifest, and readers take them from there. */

/* "read" for 0. NULL for a number without a name at build time; from ft_syscall_limit() on, none has a
 * name. */
const char *ft_syscall_name(int number);
int ft_syscall_limit(void);

/* The recording format: block header, block kinds and the records inside, byte for byte. A recording is one
 * append-only file of self-contained blocks, so that after a killed recorder, a full disk or a flipped bit it
 * can be read around the damage. docs/reference/recording-format.md explains the reasons and rules;
 * recording.h writes and reads it. All integers are little-endian, all times CLOCK_MONOTONIC nanoseconds of
 * the recording host, unless a name says otherwise. Rules: records only grow at their end (the block's
 * record_size shows the writer's version; a reader fills missing fields with zeros); enum values are explicit
 * and never renumbered; fields are laid out without implicit padding. */

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
	FT_BLOCK_TCP_EVENT = 28,  /* struct ft_tcp_event */
	FT_BLOCK_TCP_STATE = 29,  /* struct ft_tcp_state */
	FT_BLOCK_LOAD_TCP = 30,	  /* struct ft_load_tcp */
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
	FT_DROP_REQUESTS = 105, /* events of the request hooks */
	FT_DROP_TCP = 106,	/* struct ft_tcp_event */
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

enum { FT_ADDRESS_BYTES = 16, FT_TCP_REASON_BYTES = 32 };

/* A TCP connection, as the end on the recording host sees it. Of two recorded ends either may be local. */
struct ft_tcp_ends {
	uint8_t local[FT_ADDRESS_BYTES]; /* IPv6, or IPv4-mapped */
	uint8_t peer[FT_ADDRESS_BYTES];
	uint16_t local_port;
	uint16_t peer_port;
};

/* What TCP did with a connection of a recorded server, at either end on this host. */
struct ft_tcp_event {
	uint64_t t_ns;
	struct ft_tcp_ends ends;
	uint8_t what; /* enum ft_tcp_what */
	uint8_t pad;
	uint16_t count; /* of FT_TCP_BEYOND_LIMIT; else 0 */
	/* of a dropped packet: the kernel's reason without SKB_DROP_REASON_ ("QDISC_DROP"), or the function
	 * that dropped it ("veth_xmit"); zero-filled text, "" if unknown */
	char reason[FT_TCP_REASON_BYTES];
};

/* What TCP waits for: a connection of a recorded server that had unsent bytes, or whose counters had grown
 * since the last look at it. */
struct ft_tcp_state {
	uint64_t t_ns;
	uint64_t before_ns; /* the look before, or when looking began; 0: unknown */
	struct ft_tcp_ends ends;
	uint8_t state;	  /* the kernel's number: 1 established */
	uint8_t ca_state; /* likewise: 0 open, 1 disorder, 2 congestion window reduced, 3 recovery, 4 loss */
	uint8_t timeouts; /* unanswered retransmission time-outs in sequence */
	uint8_t probes;	  /* unanswered probes of a closed window */
	uint32_t unsent_bytes;
	uint32_t unacked;	    /* segments that were sent and not acknowledged */
	uint32_t window_bytes;	    /* that the peer offers; FT_TCP_UNKNOWN_WINDOW */
	uint32_t congestion_window; /* segments */
	uint32_t segment_bytes;	    /* the most in a segment */
	uint32_t rtt_us, rto_us;
	uint32_t sent_ms, acked_ms;   /* since when nothing was sent, and no acknowledgment came */
	uint32_t unread_bytes;	      /* received, and not read by the process */
	uint32_t retransmitted;	      /* this and the next two: since before_ns */
	uint32_t receiver_limited_us; /* the peer's window was full, with bytes to send */
	uint32_t sender_limited_us;   /* the send buffer was full */
};
enum { FT_TCP_UNKNOWN_WINDOW = -1 };

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
	uint32_t client_pid;	    /* process of a client on this host; 0: unknown */
	uint32_t client_flags;	    /* enum ft_client_flags */
	struct ft_comm client_comm; /* of that process */
	uint64_t reader_ns;	    /* since when this thread of the server reads it */
	uint32_t reader;	    /* 0: unknown */
	uint32_t reader_changes;    /* how often it changed so far; from 32 on no change is recorded */
	char client_name[32];	    /* that the client gave the connection, cut; zeros: none */
	char client_library[32];    /* likewise, its library */
};
enum { FT_READER_CHANGES = 32 };

/* What TCP did with a connection of the load generator, by its own socket: after a slow request, and when the
 * connection closes. */
struct ft_load_tcp {
	uint64_t t_ns;
	uint64_t before_ns; /* the look before, or when it was opened */
	uint32_t connection;
	uint32_t retransmitted;	      /* segments; this and the next two: since before_ns */
	uint32_t receiver_limited_us; /* the server's window was full, with bytes to send */
	uint32_t sender_limited_us;   /* the send buffer was full */
	uint32_t rtt_us;	      /* smoothed */
	uint32_t unacked;	      /* segments that were sent and not acknowledged */
	uint32_t unsent_bytes;
	uint32_t pad;
};

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

/* Writing and reading recordings. The records above are the layout, docs/reference/recording-format.md
 * explains it. The recorder and the load generator append with the writer while time matters; the analysis
 * uses the reader. Functions return 0 (or a count) and a negative errno on failure. Nothing is printed here.
 */

/* ---- writing ---- */

struct ft_writer;

/* Creates `path`, with `manifest` (a JSON object as text) as its first block. A few kilobytes are reserved on
 * disk, so that index and trailer still fit when it is full. A recording there becomes PATH.old. Anything
 * else at `path` is left unchanged: -ELOOP a symbolic link, -EISDIR, -ENOTSUP another kind of file, -EACCES
 * another user's file, -EEXIST not a recording, -EWOULDBLOCK being written; -ENOTEMPTY: so is PATH.old,
 * because it is no recording. */
int ft_writer_open(struct ft_writer **out, const char *path, const char *manifest);

/* Whether there was one: it is PATH.old now, and has replaced an earlier one of that name. */
bool ft_writer_moved(const struct ft_writer *w);

/* The first of several files, one after the other: NAME in an open directory, which must not exist. An error
 * of one file ends with the next: until then records are dropped and counted. */
int ft_writer_open_first(struct ft_writer **out, int dir, const char *name, const char *manifest);

/* Continues in the next file: the current one ends with `summary`, index and trailer. With
 * ft_writer_background none of this blocks, and a failure is the writer's error until the next call. */
int ft_writer_next(struct ft_writer *w, int dir, const char *name, const char *manifest, const char *summary);

/* Calls `job` when everything so far is written, in the thread that waits for the disk. -ENOMEM: it is not
 * called. */
int ft_writer_then(struct ft_writer *w, void (*job)(void *arg), void *arg);

/* Number of files tried so far, including those that could not be created. */
uint32_t ft_writer_files(const struct ft_writer *w);

/* Why it failed, to follow "cannot write FILE: ". */
const char *ft_writer_why(int error);

/* Gives a file or directory to the user who called sudo. Does nothing without sudo. */
void ft_give_to_caller(int fd);

/* Buffers one fixed-size record of a kind that has a struct above. Written when the kind's buffer is
 * full or at the next flush. -EINVAL for JSON and column kinds. Thread-safe, like all writer calls. */
int ft_writer_record(struct ft_writer *w, enum ft_block_kind kind, const void *record);

/* Writes one JSON object as a separate block, at once, after buffered records. */
int ft_writer_json(struct ft_writer *w, enum ft_block_kind kind, const char *json);

/* Writes `bytes` of payload as one block, at once. record_size 0: the payload is not an array. (The index
 * does not know the time of request columns written this way.) */
int ft_writer_block(struct ft_writer *w, enum ft_block_kind kind, uint32_t record_size, uint32_t count,
		    const void *payload, size_t bytes);

/* Writes buffered records. Call it at least once per second: it limits the loss of a kill -9. */
int ft_writer_flush(struct ft_writer *w);

/* The first error of any call (negative errno), or 0. After -ENOSPC the file ends at its last complete block,
 * every later write returns the same error, and close still writes the trailer. */
int ft_writer_error(const struct ft_writer *w);

/* From here on a thread of the writer compresses and writes, and only drain and close wait for the disk. Up
 * to `bytes` wait in memory, and half as much again of blocks that others refer to. Records that do not fit
 * are dropped and counted. A drop block (FT_DROP_DISK) contains their number by kind and their time range.
 * Errors are reported later than the calls that caused them. Negative errno: nothing changes then. */
int ft_writer_background(struct ft_writer *w, size_t bytes);

/* From here on calls wait for space instead of dropping: all further records may wait. */
void ft_writer_wait_for_space(struct ft_writer *w);

/* Waits until the file contains all written blocks, and drop blocks. Returns ft_writer_error()'s value. */
int ft_writer_drain(struct ft_writer *w);

/* Records dropped so far. */
uint64_t ft_writer_lost(struct ft_writer *w);

/* Bytes written so far; of several files, including this one. */
uint64_t ft_writer_bytes(const struct ft_writer *w);

/* Flushes, writes `summary` (JSON text, or NULL), index and trailer, closes and frees. Returns
 * ft_writer_error()'s value. */
int ft_writer_close(struct ft_writer *w, const char *summary);

/* ---- request log: append by column ---- */

enum { FT_REQUEST_BLOCK = 16384 }; /* maximum number of requests in one block */

/* One load thread's open block: columns of varints that ft_requests_flush writes as one block. Appends never
 * allocate. */
struct ft_requests {
	uint32_t count;
	uint64_t last_end_ns; /* ends are stored as differences, zigzag: they may decrease slightly */
	uint64_t base_ns;
	uint8_t *end, *duration, *late, *connection; /* next free byte of each varint column */
	uint8_t *columns;			     /* owns the memory of all columns */
	uint8_t *op, *status, *behind;
	uint8_t any_behind; /* 0: no request of the block has one, and the column is omitted */
	bool any_arrival;   /* likewise */
	uint8_t *arrival;   /* next free byte of that varint column */
	uint64_t first_ns;  /* the earliest intended_ns of the block */
	uint64_t latest_ns; /* the latest end_ns of those followed by an earlier one */
	bool any_seen;	    /* the block's requests were appended with what the server's kernel knows */
	uint8_t *seen[4];   /* next free byte of those varint columns */
};

/* What only the server's kernel knows of a request. */
struct ft_request_seen {
	uint64_t read_ns;    /* the serving thread's read of its last byte returned; 0: unknown */
	uint64_t written_ns; /* the write of its answer returned; 0: unknown */
	uint32_t request_bytes;
	uint32_t answer_bytes;
};

int ft_requests_init(struct ft_requests *r);
void ft_requests_free(struct ft_requests *r);
/* True when the block is full: flush before the next append. */
static inline bool ft_requests_full(const struct ft_requests *r)
{
	return r->count == FT_REQUEST_BLOCK;
}
/* Appends a request `times` times, 1 to FT_REQUEST_BLOCK - r->count. */
void ft_requests_append_equal(struct ft_requests *r, const struct ft_request *q, uint32_t times);
static inline void ft_requests_append(struct ft_requests *r, const struct ft_request *q)
{
	ft_requests_append_equal(r, q, 1);
}
/* Appends a request seen in the server's kernel. A block has either these or those of ft_requests_append. */
void ft_requests_append_seen(struct ft_requests *r, const struct ft_request *q,
			     const struct ft_request_seen *seen);
/* Writes the open block, if it is not empty, and clears it. */
int ft_requests_flush(struct ft_requests *r, struct ft_writer *w);

/* Where a decoder stores requests: arrays with room for those of the block; NULL: not wanted. */
struct ft_request_columns {
	uint64_t *intended_ns, *start_ns, *end_ns;
	uint32_t *connection;
	uint8_t *op, *status;
	uint8_t *behind;      /* zeros if the block has no such column */
	uint64_t *arrival_ns; /* likewise; needs end_ns, too */
	uint64_t *read_ns;    /* zeros if the block has no such column; needs start_ns, too */
	uint64_t *written_ns; /* likewise; needs end_ns, too */
	uint32_t *request_bytes, *answer_bytes; /* likewise */
};
/* Whether a payload has the column of servers behind a proxy, that of arrivals, and those of struct
 * ft_request_seen. */
bool ft_requests_have_behind(const void *payload, size_t bytes);
bool ft_requests_have_arrivals(const void *payload, size_t bytes);
bool ft_requests_have_seen(const void *payload, size_t bytes);
/* Decodes one FT_BLOCK_REQUEST payload. Returns the number of requests, or -EBADMSG. */
int ft_requests_decode(const void *payload, size_t bytes, uint32_t count,
		       const struct ft_request_columns *out);

/* Only a request's duration, from due to end, and its op: half the work. Arrays as above; op may be NULL. */
int ft_requests_latencies(const void *payload, size_t bytes, uint32_t count, uint64_t *latency_ns,
			  uint8_t *op);

/* ---- reading ---- */

struct ft_reader;

struct ft_block {
	uint32_t kind;	      /* enum ft_block_kind; a newer writer may use more */
	uint32_t record_size; /* as the writer had it */
	uint32_t count;
	const void *payload; /* decompressed, 8-byte aligned, followed by a zero byte; valid until the next
				call on this reader */
	size_t bytes;
	uint64_t offset; /* of its header in the file */
};

/* Damage that a finished, intact file does not have. */
struct ft_damage {
	uint64_t bytes_skipped;	 /* bytes that belong to no complete block */
	uint32_t gaps;		 /* number of places with such bytes */
	uint32_t blocks_missing; /* according to sequence numbers before, between and after */
	bool no_trailer;	 /* killed, truncated, or still being written */
	bool bomb;		 /* the rest was not read: see FT_RAW_PER_STORED. It is in bytes_skipped */
};

/* Opens for reading. On failure *out is NULL and `error` contains one sentence for the user: missing file,
 * empty file, not a recording, written by a newer format. */
int ft_reader_open(struct ft_reader **out, const char *path, char *error, size_t error_size);
/* 1 and the next complete block in file order (without index and trailer), or 0 at the end. */
int ft_reader_next(struct ft_reader *r, struct ft_block *block);
/* The same for a file that is still being written: new blocks since the last call are found, and an
 * incomplete block at its end is read again by the next call. (The file must not be truncated meanwhile:
 * -ESTALE.) */
int ft_reader_follow(struct ft_reader *r, struct ft_block *block);
/* Whether its trailer was found: nothing follows it. */
bool ft_reader_sealed(const struct ft_reader *r);
/* Bytes of the file up to the last complete block that was read. */
uint64_t ft_reader_at(const struct ft_reader *r);
/* Copies record `i` of a block into `record` (record_size of this build's struct): shorter ones are filled
 * with zeros, longer ones truncated. */
void ft_block_record(const struct ft_block *block, uint32_t i, void *record, size_t size);
/* Complete once ft_reader_next has returned 0. */
void ft_reader_damage(const struct ft_reader *r, struct ft_damage *damage);
void ft_reader_close(struct ft_reader *r);

/* The position of a complete block, and its time range. */
struct ft_place {
	uint64_t offset; /* of its header */
	/* From the earliest begin to the latest end of its records, for requests from when they were due; at
	 * most 2^62, and the end is no earlier than the start, whatever the records contain. Both 0: a kind
	 * without time, a block without records or with invalid columns. */
	uint64_t start_ns, end_ns;
	uint32_t kind, count, stored_bytes, raw_bytes;
};

struct ft_places {
	struct ft_place *all;
	size_t count;
	struct ft_damage damage;
	bool indexed; /* from the index: no block was read, and damage inside blocks was not detected */
};

/* All complete blocks of the file, in order (without index and trailer): from its index if that can be
 * trusted and has times, otherwise every block is read once, and damage is counted like ft_reader_next()
 * does. `scan`: never from the index. `progress` may be NULL; it is called at intervals with the bytes done
 * and the total, and ends the call with -ECANCELED unless it returns 0. Returns 0, or a negative errno and
 * *out is empty. The position of ft_reader_next() doesn't change. */
int ft_reader_places(struct ft_reader *r, bool scan, struct ft_places *out,
		     int (*progress)(void *arg, uint64_t done, uint64_t all), void *arg);
void ft_places_free(struct ft_places *p);

/* Reads the block at a place: 1 and *block, valid until the next call on this reader; 0 if no complete block
 * of that kind and size is there: it is damaged, the file has changed, or the index was wrong. Any number of
 * readers may be open on one file, each for one thread. The position of ft_reader_next() doesn't change. */
int ft_reader_read(struct ft_reader *r, const struct ft_place *place, struct ft_block *block);

/* ---- clocks ---- */

uint64_t ft_now_ns(void); /* CLOCK_MONOTONIC */
/* Reads the three clocks several times and keeps the tightest reading. */
void ft_clock_read(struct ft_clock *c);
/* The kernel's boot id as text ("" if it can't be read). */
void ft_boot_id(char out[40]);
/* Identifies this process' CLOCK_MONOTONIC: equal texts, the same clock. The boot id, and in a time namespace
 * that shifts the clock, the offset: "BOOT+monotonic:86400.000000000", or if that can't be read the
 * namespace, "BOOT+time:[4026532001]". */
enum { FT_CLOCK_ID_BYTES = 96 };
void ft_clock_id(char out[FT_CLOCK_ID_BYTES]);

/* A latency histogram: fixed memory, bounded relative error, for a progress line each second and for runs
 * that don't log every request. The bucket layout is that of HdrHistogram with 3 significant digits (11 bits
 * of sub-bucket), so its log format can carry it. Exact percentiles come from the request log. */

/* Values 0 .. 2^42-1 ns (73 minutes) with at most 0.1 % error; larger ones are counted as the largest. */
enum { FT_HIST_SUB_BITS = 11, FT_HIST_BUCKETS = 32 };
enum { FT_HIST_SLOTS = (FT_HIST_BUCKETS + 1) << (FT_HIST_SUB_BITS - 1) };

struct ft_histogram {
	uint64_t count, min_ns, max_ns;
	double sum_ns, sum_squares;
	uint64_t slots[FT_HIST_SLOTS];
};

void ft_histogram_reset(struct ft_histogram *h);
/* Adds a value `times` times (at least once). */
void ft_histogram_add_equal(struct ft_histogram *h, uint64_t value_ns, uint32_t times);
static inline void ft_histogram_add(struct ft_histogram *h, uint64_t value_ns)
{
	ft_histogram_add_equal(h, value_ns, 1);
}
void ft_histogram_merge(struct ft_histogram *into, const struct ft_histogram *from);
/* The value at `percentile` (0..100], the highest value its bucket can hold, capped at max_ns; 0 when empty.
 */
uint64_t ft_histogram_percentile(const struct ft_histogram *h, double percentile);
/* The highest value that is counted in slots[slot]. */
uint64_t ft_histogram_slot_value(unsigned slot);
double ft_histogram_mean(const struct ft_histogram *h);
double ft_histogram_stddev(const struct ft_histogram *h);

#ifdef __cplusplus
}
#endif
#endif

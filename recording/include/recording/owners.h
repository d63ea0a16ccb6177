/* SPDX-License-Identifier: MIT */
/* What the kernel programs and all readers of recordings know: owners of time, and ids of tasks. */
#ifndef FORKTAIL_RECORDING_OWNERS_H
#define FORKTAIL_RECORDING_OWNERS_H

/* The owners of a server thread's time, the flags of its spans and the fields of its samples, shared by the
 * kernel programs, the recording and the analysis. At any instant a traced thread's time belongs to exactly
 * one owner. The numbers are written to recordings: they are never renumbered and never reused; new owners
 * are added before FT_OWNER_LIMIT. Plain enums without includes, because BPF programs and user space both
 * read this file. */

enum ft_owner {
	FT_OWN_CODE = 0, /* on CPU, in no frame: the thread's own user or system call code */

	/* Frames: work of the kernel in the thread, between a begin and an end. */
	FT_FORK = 1,	  /* clone, clone3, fork, vfork */
	FT_FSYNC = 2,	  /* fsync, fdatasync, msync, sync_file_range */
	FT_COW_COPY = 3,  /* write fault on a present page that had to be copied */
	FT_COW_REUSE = 4, /* write fault on a present page that was made writable in place */
	FT_PAGE_ZERO = 5, /* first touch of anonymous memory */
	FT_PAGE_FILE = 6, /* minor fault on a file mapping */
	FT_PAGE_IN = 7,	  /* major fault: swap-in or a file page read from disk */
	FT_RECLAIM = 8,	  /* direct reclaim, global or of a memory cgroup */
	FT_COMPACTION = 9,
	FT_HARDIRQ = 10,

	/* Off the CPU without a frame. Blocked time is classified by its system call. */
	FT_RUN_QUEUE = 11, /* runnable, not running */
	FT_IDLE = 12, /* epoll_wait, poll, select: waiting for requests. Before FT_PEER_WAIT: the latter two
		       * inside an iteration too */
	FT_LOCK_WAIT = 13,  /* futex */
	FT_SLEEP = 14,	    /* nanosleep, clock_nanosleep, pause */
	FT_STOPPED = 15,    /* SIGSTOP; for recorders without FT_PTRACED, ptrace too */
	FT_FILE_WRITE = 16, /* write, pwrite, writev, ftruncate, fallocate on a file */
	FT_FILE_READ = 17,  /* read, pread, readv on a file */
	FT_FILE_META = 18,  /* open, close, rename, unlink, stat ... */
	FT_NETWORK = 19, /* read, write, send, recv, accept, connect on a socket. Before FT_PEER_WAIT: inside
			  * an iteration too */
	FT_SYSCALL = 20, /* blocked in any other system call, or in none */

	/* Frames again: FT_SOFTIRQ + vector, in the kernel's order. */
	FT_SOFTIRQ = 21, /* hi 21, timer 22, net_tx 23, net_rx 24, block 25, irq_poll 26, tasklet 27, sched
			    28, hrtimer 29, rcu 30 */
	FT_FAULT_OTHER = 31, /* a page fault that ended but could not be classified */
	FT_CPU_QUOTA = 32,   /* runnable, but its cgroup had used up its CPU quota */

	/* Off the CPU whatever it was about to do, in a frame or not: according to the task's state. */
	FT_FROZEN = 33,	 /* with its cgroup (docker pause), or with the whole host */
	FT_PTRACED = 34, /* by its tracer: strace, gdb */

	/* Off the CPU inside an event-loop iteration of a loop over epoll: in poll, select, or in read,
	 * write, send, recv or connect on a socket. Such a thread waits for one peer, and serves nobody
	 * meanwhile. */
	FT_PEER_WAIT = 35,

	FT_OWNER_LIMIT = 40, /* size of a tally's table: all owners in the account are below it */

	/* Overlays: intervals across the account that are not part of its sum. */
	FT_ITERATION = 40, /* one event-loop iteration: from epoll_wait's return to its next call */
};

enum { FT_SOFTIRQ_VECTORS = 10 };

/* What a sampled system call worked on, by the descriptor that is its first argument. */
enum ft_sample_file {
	FT_SAMPLE_FILE_UNKNOWN = 0, /* no descriptor, a closed one, or not looked up */
	FT_SAMPLE_FILE_SOCKET = 1,
	FT_SAMPLE_FILE_DISK = 2,  /* a regular file, a block device or a directory */
	FT_SAMPLE_FILE_OTHER = 3, /* a pipe, an eventfd, an epoll set, a terminal */
};

enum ft_span_flags {
	FT_SPAN_UNFINISHED = 1, /* still open when the thread's account closed */
	FT_SPAN_THROTTLED = 2,	/* off the CPU: its runnable part is the CPU quota's, not the run queue's */
	/* Off the CPU: ksoftirqd held the CPU for most of its runnable part. Recorders now write the slices
	 * instead (FT_BLOCK_CPU_SLICE) and leave this to the analysis; only old recordings contain it. */
	FT_SPAN_KSOFTIRQD = 4,
	/* A page fault began here and never ended (it became a signal): owner and time are those of the
	 * enclosing frame, or own code. */
	FT_SPAN_ABANDONED = 8,
	/* An event-loop iteration whose begin or end was not seen (the thread did not wait for events): it
	 * covers the time between CPU samples, so it is at least as long. With reads in it, it may be several
	 * iterations. */
	FT_SPAN_SAMPLED = 16,
};

/* Ids of tasks in recordings, for the kernel programs and the analysis. */

/* Added to the id of a task that the recorder's pid namespace does not contain, in CPU slices, block I/O and
 * writes: it is the host's id, which may be another task's in the namespace. */
#define FT_TASK_OUTSIDE 0x80000000u
/* What TCP did with a connection: struct ft_tcp_event. */
enum ft_tcp_what {
	FT_TCP_RETRANSMITTED = 1, /* a segment was retransmitted */
	FT_TCP_RESET_SENT = 2,
	FT_TCP_RESET_RECEIVED = 3,
	FT_TCP_DROPPED = 4,	 /* this host dropped a packet of it; the local end is the sender's */
	FT_TCP_BEYOND_LIMIT = 5, /* `count` events that were only counted, since the last such record */
};

#endif

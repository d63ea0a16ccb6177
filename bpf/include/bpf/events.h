/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Data that the kernel programs pass to the recorder: ring buffer events and counters. BPF programs and the
 * loader both include it, so it contains only plain structs and limits. Events have a fixed size per type,
 * and the first word is the type. None of it is written to disk directly: the loader turns it into the
 * records of recording/recording.h. */
#ifndef FORKTAIL_BPF_EVENTS_H
#define FORKTAIL_BPF_EVENTS_H

#include <linux/types.h>

#include "recording/owners.h"

enum {
	FT_MAX_CPUS = 1024,    /* the loader refuses a host with more CPUs; a power of two */
	FT_MAX_TARGETS = 1024, /* processes at start; children come in addition */
	FT_STACK_FRAMES = 24,  /* kernel stack stored with a blocked span */
	FT_NAME_BYTES = 32,    /* file name or comm stored with a span */
	FT_FRAME_DEPTH = 8,    /* open frames of one thread; at most 3 were seen (fork, fault, reclaim) */
	FT_USER_STACK_BYTES = 4096, /* bytes of a sampled thread's stack; the outer part is cut off */
	FT_USER_STACK_CHUNK = 512,  /* bytes per read: a stack may end before it is full */
	FT_MAX_WRITERS = 1024,	    /* processes and devices with writes that are not an event yet */
	FT_CPU_SLICES = 16,	    /* last tasks on a CPU, to name the CPU holder; a power of two */
	FT_CPU_CHUNKS = 16,	    /* so many times as many, for long waits; a power of two */
};

#define FT_TALLY_WINDOW_NS 1000000ull

/* Values of the `targets` map: how a process is traced. */
enum ft_traced_as { FT_TRACED_TARGET = 1, FT_TRACED_CLIENT = 2 };

/* First argument of a span of FT_FROZEN: the freezer's cgroup version; 1 includes the whole host's freezer.
 * For FT_PTRACED it is the tracer's process. */
enum ft_freezer { FT_FREEZER_V1 = 1, FT_FREEZER_V2 = 2 };

/* The comm of a load generator's process, forktail-load. */
#define FT_CLIENT_COMM "forktail-load"

enum ft_event_type {
	FT_EVENT_SPAN = 1,
	FT_EVENT_SPAN_DETAIL = 2, /* span with name and stack */
	FT_EVENT_TALLY = 3,
	FT_EVENT_IO = 4,
	FT_EVENT_THREAD_BEGIN = 5,
	FT_EVENT_THREAD_END = 6,
	FT_EVENT_SAMPLE = 7,
	FT_EVENT_SAMPLE_STACK = 8, /* sample with registers and stacks */
	FT_EVENT_WRITES = 9,
	FT_EVENT_LOOP = 10,
	FT_EVENT_OPEN = 11, /* struct ft_event_span: still open */
	FT_EVENT_COUNTERS = 12,
	FT_EVENT_SLICES = 13,
	FT_EVENT_PIPE = 14,
};

struct ft_event_span {
	__u32 type;
	__u32 tid;
	__u64 start_ns, duration_ns;
	__u64 on_cpu_ns, runnable_ns, blocked_ns; /* own */
	__u64 arg[2];
	__u16 cpu;
	__s16 syscall;
	__u8 owner, depth, flags, off_cpu;
};

/* The other end of a socket, in the name of a span of FT_PEER_WAIT. */
struct ft_peer {
	__u8 family; /* AF_UNIX, AF_INET, AF_INET6; 0: unknown */
	__u8 datagram;
	__u16 port; /* of AF_INET and AF_INET6; 0: not connected */
	__u32 pid;  /* of AF_UNIX: the process that connected or listens, in the initial pid namespace; 0:
		       unknown */
	__u8 address[16]; /* in network order: 4 bytes of AF_INET, 16 of AF_INET6 */
};

/* A pipe, a terminal or another file that is not on a disk, in the name of a span of FT_SYSCALL. */
struct ft_special_file {
	__u64 number;		       /* inode; of a character device major << 20 | minor */
	__u16 mode;		       /* as st_mode; 0: no file */
	char name[FT_NAME_BYTES - 10]; /* in its directory; "" for a pipe without one */
};

/* A thread begins to wait for the other end of a pipe. */
struct ft_event_pipe {
	__u32 type;
	__u32 tid, tgid;
	__u32 fd;
	__u64 t_ns, inode;
	__u32 writes; /* 1: it waits for a reader; 0: for a writer */
	__u32 pad;
};

/* One stay of a task on a CPU. It ends where the next one starts. */
struct cpu_slice {
	__u64 start_ns;
	__u32 tid;
	__u32 host_tid; /* in the initial pid namespace */
	char comm[16];
};

struct ft_event_span_detail {
	struct ft_event_span span;
	char name[FT_NAME_BYTES]; /* file, the tracer's comm for FT_PTRACED, a struct ft_peer for
				     FT_PEER_WAIT, a struct ft_special_file for FT_SYSCALL, or "" */
	__s32 stack_bytes;	  /* 0 or negative: no stack */
	__u32 newest;		  /* slice that begins at the span's end: the thread's own */
	__u64 wake_ns;		  /* 0: no run-queue wait that needs the slices */
	__u32 queue_cpu; /* the CPU of the slices; the thread may have run on another one in the end */
	__u32 pad;
	__u64 stack[FT_STACK_FRAMES];
	struct cpu_slice slices[FT_CPU_SLICES]; /* a ring: the tasks that held the CPU since wake_ns */
};

/* Tasks that held a CPU one after the other, before those that a span with a wait for it has. */
struct ft_event_slices {
	__u32 type;
	__u32 cpu;
	__u64 until_ns; /* the first of the later ones */
	struct cpu_slice slices[FT_CPU_SLICES];
};

struct ft_tally_entry {
	__u64 total_ns;
	__u32 max_ns; /* the largest 32-bit number: this or longer */
	__u32 count;
};

struct ft_event_tally {
	__u32 type;
	__u32 tid;
	__u64 start_ns, end_ns;
	struct ft_tally_entry entry[FT_OWNER_LIMIT];
};

struct ft_event_io {
	__u32 type;
	__u32 tid;
	__u64 start_ns, duration_ns, sector;
	__u32 bytes, dev;
	__u8 op; /* REQ_OP_*: 0 read, 1 write, 2 flush, 3 discard */
	__u8 error;
	__u16 pad0;
	__u32 pad1;
	char comm[16];
};

/* What a process wrote to the page cache of a device. */
struct ft_event_writes {
	__u32 type;
	__u32 tgid;
	__u64 start_ns, end_ns, bytes;
	__u32 dev;
	__u32 pad;
	char comm[16];
};

/* An entry of the map `writers`: what is not an event yet. */
struct ft_writes_key {
	__u32 tgid, dev;
};
struct ft_writes_value {
	__u64 start_ns, end_ns;
	__u64 bytes; /* 0: all of it has been sent */
	char comm[16];
};

/* What is known of a thread's exit. */
enum ft_exit_flags {
	FT_EXIT_CODE = 1,	/* the code; otherwise the exit was not seen */
	FT_EXIT_OOM_KILLER = 2, /* the OOM killer had chosen its process */
};

struct ft_event_thread {
	__u32 type;
	__u32 tid, tgid, parent_tgid;
	__u64 t_ns;
	__u64 begin_ns;	  /* with an end: when the account began */
	__u64 clone_flag; /* with a begin: 1 if it is a thread of the parent's process */
	__u64 client;	  /* 1: of a load generator */
	__u32 exit_code;  /* with an end: as wait() returns it; of a killed process the same in each thread */
	__u32 exit_flags; /* with an end: enum ft_exit_flags */
	char comm[16];
};

/* A thread waits for events of an epoll instance that it did not wait for before. */
struct ft_event_loop {
	__u32 type;
	__u32 tid, tgid;
	__u32 epoll; /* its descriptor */
	__u64 t_ns;
};

/* A thread seen on the CPU by a sample. */
struct ft_event_sample {
	__u32 type;
	__u32 tid, tgid;
	__u16 cpu;
	__u8 owner;	/* owner of the time: FT_OWN_CODE, or the frame it was in */
	__u8 in_kernel; /* in the kernel on its behalf, or in an interrupt on top of it */
	__u64 t_ns;
	__u64 ip;      /* in user space: its current address, or the one it will return to */
	__s16 syscall; /* number of the system call that the kernel executes for it; -1: none */
	__u8 file;     /* enum ft_sample_file of that call's first argument */
	__u8 period;   /* of the samples then, in sixteenths of a millisecond */
	__u8 brief;    /* a whole stack although the thread is in no long iteration */
	__u8 pad[3];
};

/* Which counters of the CPUs are read with samples. Software: events of the kernel in the hardware's place,
 * to try this where a host has no PMU. */
enum ft_cpu_counters { FT_COUNTERS_NONE, FT_COUNTERS_HARDWARE, FT_COUNTERS_SOFTWARE };

/* The counters of a CPU, in the order of their events. */
enum ft_cpu_counter { FT_CYCLES, FT_INSTRUCTIONS, FT_CACHE_MISSES, FT_CPU_COUNTERS };

/* What a CPU counted between two samples of a thread that kept it. */
struct ft_event_counters {
	__u32 type;
	__u32 tid;
	__u64 end_ns, duration_ns;
	__u64 value[FT_CPU_COUNTERS];
	__u32 counted; /* bits: enum ft_cpu_counter */
	__u16 cpu;
	__u16 counters; /* enum ft_cpu_counters */
};

/* What unwinding needs: the callee-saved registers and the stack. */
struct ft_event_sample_stack {
	struct ft_event_sample sample;
	__u64 sp;
	__u64 saved[FT_SAVED_REGISTERS]; /* which: bpf/machine. How many: cmake/machine.cmake */
	__s32 kernel_bytes;		 /* 0 or negative: no kernel stack */
	__u32 stack_bytes;		 /* readable bytes from sp on */
	__u64 kernel[FT_STACK_FRAMES];
	__u8 stack[FT_USER_STACK_BYTES];
};

/* Per CPU, in the programs' memory, which the loader maps: written without locks by the CPU itself. */
enum ft_counter {
	FT_COUNT_FAULT_BEGIN = 0,
	FT_COUNT_FAULT_END = 1,	      /* number of begins */
	FT_COUNT_FAULT_ABANDONED = 2, /* begin without an end */
	FT_COUNT_FAULT_UNPAIRED = 3,  /* end without a begin */
	FT_COUNT_SPAN = 4,
	FT_COUNT_TALLY = 5,
	FT_COUNT_IRQ_UNPAIRED = 6,  /* interrupt whose begin or end was not seen */
	FT_COUNT_SAMPLE = 7,	    /* of a target, dropped ones included */
	FT_COUNT_SWITCH_UNSEEN = 8, /* a thread ran although its switch to the CPU was not seen */
	FT_COUNTERS = 9,
};

/* Interrupts of one kind on top of threads with accounts. */
struct interrupts {
	__u64 total_ns;	 /* finished ones, except those that became spans */
	__u64 folded_ns; /* how much of that is in a thread's account */
	__u32 count;	 /* not yet in an account */
	__u32 max_ns;	 /* the longest of these */
};

/* An interrupt that has not ended. */
struct open_interrupt {
	__u64 start_ns;
	__u64 inner_ns; /* time of nested interrupts */
	__u64 arg;	/* of its span */
	__u64 kind;	/* index into `interrupts` */
};

/* Soft interrupts by vector, then all hardware interrupts. */
enum { FT_HARD_INTERRUPTS = FT_SOFTIRQ_VECTORS, FT_INTERRUPT_KINDS, FT_OPEN_INTERRUPTS = 4 };

struct cpu_state {
	__u64 counters[FT_COUNTERS];
	__u32 target;	       /* the current task is a target, all of whose time is accounted */
	__u32 newest;	       /* slice of the current task */
	__u32 chunks;	       /* how often `slices` was full */
	__u32 softirq_hits;    /* samples of targets in soft interrupts that were not timed */
	__u32 interrupt_depth; /* of open nested interrupts */
	__u32 sample_period;   /* in sixteenths of a millisecond; set by the recorder */
	__u32 has_events;      /* its perf events are open: ends of page faults, samples */
	__u32 traced;	       /* the current task has an account: of a target or a load generator */
	__u64 interrupted_ns;  /* total time of finished interrupts on top of targets, including spans */
	__u64 folded_ns;       /* how much of that is in a thread's account */
	__u64 last_fold_ns;    /* when a thread's account was last brought up to date here */
	__u64 hard_end_ns;     /* the last hardware interrupt's end; 0: net_rx has run since */
	struct open_interrupt open[FT_OPEN_INTERRUPTS];
	struct interrupts interrupts[FT_INTERRUPT_KINDS];
	struct cpu_slice slices[FT_CPU_SLICES];
};

/* Code of the kernel that a sample's stack is searched for: which soft interrupt runs, and whether an
 * interrupt or a call of the thread began it. */
enum ft_kernel_code {
	FT_CODE_HANDLER = 0,			  /* .. FT_SOFTIRQ_VECTORS - 1: a vector's handler */
	FT_CODE_HANDLER_END = FT_SOFTIRQ_VECTORS, /* likewise: what the handler ends with a jump to */
	FT_CODE_RUNNER = 2 * FT_SOFTIRQ_VECTORS,  /* calls the handlers */
	FT_CODE_CALL,				  /* calls the runner at the end of a thread's call */
	FT_CODE_INTERRUPT,			  /* at an interrupt's end; two functions */
	FT_KERNEL_CODES = FT_CODE_INTERRUPT + 2,
};
struct ft_kernel_code_range {
	__u64 begin, bytes; /* bytes 0: this kernel has none */
};

/* Reasons why an event was lost. For spans they are counted by owner. Index into the programs' `drops`. */
enum ft_drop_slot {
	FT_DROP_SLOT_SPAN = 0, /* .. FT_ITERATION */
	FT_DROP_SLOT_TALLY = FT_OWNER_LIMIT + 8,
	FT_DROP_SLOT_IO,
	FT_DROP_SLOT_IO_TABLE,
	FT_DROP_SLOT_THREAD_EVENT,
	FT_DROP_SLOT_THREAD_STATE,
	FT_DROP_SLOT_DEPTH,
	FT_DROP_SLOT_SAMPLE,
	FT_DROP_SLOT_WRITES,
	FT_DROP_SLOT_UNWIND,   /* counted by the recorder: a stack that it had no time to resolve */
	FT_DROP_SLOT_REQUESTS, /* counted by the programs of request_events.h */
	FT_DROP_SLOT_TCP,      /* counted by those of tcp_events.h */
	FT_DROP_SLOTS,
};

#endif

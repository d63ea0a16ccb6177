/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel types that these programs access, with only the fields in use. CO-RE relocates every access
 * using the running kernel's BTF, so a struct here needs the right names and types but not the right layout.
 * They are written by hand instead of generated: the build needs no kernel BTF, and the file shows what the
 * programs depend on. Differences between kernel versions have a ___suffix (which libbpf ignores when
 * matching) and are chosen in compat.h. */
#ifndef FORKTAIL_BPF_TYPES_H
#define FORKTAIL_BPF_TYPES_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
/* from <stddef.h>, which is not available to BPF. */
#define NULL ((void *)0)
typedef _Bool bool;
#define true 1
#define false 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct super_block {
	struct block_device *s_bdev; /* NULL for a file system of several devices, or of none */
};

struct inode {
	unsigned short i_mode;
	u32 i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct address_space {
	struct inode *host;
};

struct folio {
	unsigned long _flags_1;
};

/* Until 6.6. */
struct folio___old {
	unsigned char _folio_order;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data; /* of a socket: its struct socket */
};

struct fdtable {
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* A CPU's run queue; its clock counts ns like CLOCK_MONOTONIC, with another origin. */
struct rq {
	u64 clock;
};

struct cfs_bandwidth {
	u64 throttled_time;
};

struct task_group {
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};

/* A task group's run queue on one CPU. */
struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;
	u64 throttled_clock_self; /* since when it is throttled, by its own group's quota or one above; or 0
				   */
	u64 throttled_clock_self_time; /* total time throttled, without that */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	u64 sum_exec_runtime; /* ns on a CPU so far */
};

struct ns_common {
	unsigned int inum; /* the inode of /proc/PID/ns/... */
};

struct pid_namespace {
	struct ns_common ns;
};

/* A task's id in one pid namespace. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 of them, from the initial namespace on */
};

struct thread_info {
	unsigned int cpu;
};

/* The scheduler's account of a task's waits on run queues, in ns of the run queue's clock. */
struct sched_info {
	u64 run_delay;	 /* waits that are over */
	u64 last_queued; /* when the wait under way began; 0: none */
};

struct task_io_accounting {
	u64 syscr, syscw; /* calls that read and wrote */
};

struct list_head {
	struct list_head *next;
};

/* Of a process. */
struct signal_struct {
	void *oom_mm; /* NULL, unless the OOM killer has chosen the process */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;  /* the thread id in user space, in the initial pid namespace */
	int tgid; /* the process id in user space, likewise */
	struct pid *thread_pid;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	u64 start_time;
	struct list_head children; /* of this thread */
	char comm[16];
	unsigned int __state;
	int exit_code; /* of an exiting thread, as wait() returns it */
	struct signal_struct *signal;
	int on_cpu;
	void *stack;
	struct files_struct *files;
	struct sched_entity se;
	struct sched_info sched_info;
	bool throttled;
	unsigned long nvcsw, nivcsw; /* how often it left a CPU by itself, and otherwise */
	struct task_io_accounting ioac;
	int pagefault_disabled;	    /* how many times */
	struct task_struct *parent; /* of a traced task: its tracer */
	unsigned int frozen : 1;
	void *bpf_storage; /* task storage of any program; NULL: none */
};

/* `state` before 5.14, `cpu` before 5.16. */
struct task_struct___old {
	long state;
	unsigned int cpu;
};

/* The root of a mapping's anonymous pages, its own or those it shares. */
struct anon_vma {
	struct anon_vma *parent;    /* itself, unless created by a fork */
	unsigned long num_children; /* including itself; until 5.19 there was another count */
};

struct vm_area_struct {
	struct file *vm_file;
	struct anon_vma *anon_vma; /* NULL: no anonymous pages yet */
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	unsigned long __sector;
};

/* Before 5.17 the disk was a member of the request. */
struct request___old {
	struct gendisk *rq_disk;
};

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	possible_net_t nd_net;
};

struct sock_common {
	unsigned short skc_family;
	volatile unsigned char skc_state;
	u16 skc_num;   /* the local port */
	u16 skc_dport; /* the peer's, in network order */
	u32 skc_daddr, skc_rcv_saddr;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
	unsigned int skc_hash; /* of the addresses and ports; of a Unix socket: of its address in memory */
};

struct sk_buff {
	struct sk_buff *next, *prev;
	struct sock *sk;
	struct net_device *dev;
	unsigned int len;     /* from `data` on */
	u16 protocol;	      /* of the network layer, in network order */
	u16 network_header;   /* offset from `head` */
	u16 transport_header; /* likewise */
	unsigned char *head, *data;
	char cb[48]; /* of a Unix socket: struct unix_skb_parms */
};

struct unix_skb_parms {
	u32 consumed; /* bytes that were read */
};

struct sk_buff_head {
	struct sk_buff *next, *prev;
	u32 qlen;
};

struct socket {
	struct sock *sk;
};

struct inode___numbered {
	unsigned long i_ino;
};

struct socket_alloc {
	struct inode___numbered vfs_inode;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	u16 sk_type;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
	void *sk_bpf_storage; /* NULL: none of any program */
};

struct inet_sock {
	u16 inet_sport; /* the local port in network order, also of a closed socket */
};

struct tcp_sock {
	u32 rcv_nxt;	/* offset after the last byte that has arrived */
	u32 copied_seq; /* offset after the last byte that was read */
};

struct unix_address;
struct msghdr;

struct unix_sock {
	struct unix_address *addr; /* of an accepted socket: its listener's */
	struct sock *peer;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct task_struct *task;
	struct file *file;
};

#pragma clang attribute pop

#endif

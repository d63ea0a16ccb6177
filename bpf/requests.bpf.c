/* SPDX-License-Identifier: GPL-2.0-only */
/* The streams of bytes between the targets and their clients, at the socket layer: when bytes arrived, when
 * the server read them, when it wrote. A separate object with its own ring, because it is attached on request
 * and for part of the time only, and because requests must never displace spans.
 *
 * The cost decided the form. Most sockets of a host are not a target's, or not sampled: the first test is a
 * hash in a line of the socket that the kernel has just touched. Of a sampled connection the deliverer (a
 * soft interrupt, or the client over a Unix socket) appends to a short queue in the socket's storage, and the
 * reader takes from it. What a request is, is decided in user space. */
#define PROGRAM_ROW FT_REQUEST_PROGRAM_ROW
#include "program.h" /* first: libbpf's headers need the integer types */

#include "bpf/request_events.h"
#include "request_slots.h"
#include "sockets.h"

#include <bpf/bpf_endian.h>

const volatile __u32 pid_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FT_REQUESTS_RING);
} requests_ring SEC(".maps");

/* Shared with the other object. */
struct targets_map targets SEC(".maps");

/* Addresses of listening Unix sockets of targets, learnt from the first read of a connection: an accepted
 * socket has its listener's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, u64);
	__type(value, u32);
} unix_servers SEC(".maps");

/* The processes of this host that opened TCP connections to targets. A server's socket does not know its
 * client's, even over loopback, but both name the same two ends. Each network namespace has its own loopback
 * addresses; others are of one namespace. */
struct connection_ends {
	u8 client[16], server[16]; /* IPv6, or IPv4-mapped */
	u16 client_port, server_port;
	u32 netns; /* of loopback, else 0 */
};
struct client_process {
	u32 pid;
	char comm[16];
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct connection_ends);
	__type(value, struct client_process);
} tcp_clients SEC(".maps");

/* By the address of a client's socket that is connecting: it has no port yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct client_process);
} connecting SEC(".maps");

struct read_buffer {
	struct ft_request_read event;
	u8 bytes[FT_READ_CHUNK];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct read_buffer);
} read_buffers SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ft_request_arrivals);
} arrivals_buffers SEC(".maps");

__u8 served[65536]; /* 1: a target listens on this TCP port; set by the loader */
__u64 request_counters[FT_REQUEST_COUNTERS];
__u64 program_runs[FT_MAX_CPUS][PROGRAM_ROW];
__u32 connections;
/* Set by the loader: connections whose hash has none of these bits are followed. */
volatile __u32 sample_mask;
/* Set by the loader. 0: some of the programs are not attached, so that a request would be seen in part.
 * Another number each time that all are: streams have gaps. */
volatile __u32 epoch;

char gpl[] SEC("license") = "GPL";

enum { SOCK_STREAM = 1, EAGAIN = 11, EPIPE = 32, ECONNRESET = 104, ETIMEDOUT = 110 };
enum { WRITES_SENT = 4096 }; /* enough for the largest value of Redis */
#define WRITE_EVERY_NS 10000000ull

/* How the kernel reports a socket's data: by tracepoints of Linux 6.3, or at the start and end of the
 * functions that have them there. A constant in every program. */
enum hooks { BY_TRACEPOINTS, BY_FUNCTIONS };

extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __weak; /* 6.2 */
/* A member of the protocol's part of a socket. A cast is nearly free. A kernel that lacks it refuses programs
 * that mention it, so they copy the member. */
#define MEMBER(hooks, type, p, member)                                                                       \
	((hooks) == BY_TRACEPOINTS ? ((type *)bpf_rdonly_cast(p, bpf_core_type_id_kernel(type)))->member     \
				   : BPF_CORE_READ((type *)(p), member))

static __always_inline void count_request(u32 counter)
{
	__sync_fetch_and_add(&request_counters[counter], 1);
}

/* The kernel's hash has a secret of this boot, but its low bits alone are not evenly spread. */
static __always_inline u32 hash_of(const struct sock *sk)
{
	u32 h = sk->__sk_common.skc_hash * 0x9e3779b1;
	h ^= h >> 15;
	h *= 0x85ebca6b;
	return h ^ h >> 13;
}

static __always_inline bool is_sampled(const struct sock *sk)
{
	return (hash_of(sk) & sample_mask) == 0;
}

/* Whether a result of a system call says that the connection is no more. */
static __always_inline bool is_broken(int result)
{
	return result == -EPIPE || result == -ECONNRESET || result == -ETIMEDOUT;
}

/* Whether the socket is a server's end of a connection to a target, as far as known without a look at the
 * process. */
static __always_inline bool is_servers(const struct sock *sk, u16 family, enum hooks hooks)
{
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED)
		return false;
	if (is_tcp(family))
		return served[sk->__sk_common.skc_num];
	u64 address = (u64)MEMBER(hooks, struct unix_sock, sk, addr);
	return address && bpf_map_lookup_elem(&unix_servers, &address);
}

/* No wake-up: the helper looks often enough. */
static __always_inline void send_event(void *event, u64 bytes)
{
	if (bpf_ringbuf_output(&requests_ring, event, bytes, BPF_RB_NO_WAKEUP))
		count_request(FT_REQUEST_DROPPED);
}

static __always_inline void copy_address(u8 to[16], u16 family, u32 v4, const struct in6_addr *v6)
{
	if (family == AF_INET6) {
		bpf_probe_read_kernel(to, 16, v6);
		return;
	}
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &v4, sizeof v4);
}

static __always_inline bool is_loopback(const u8 address[16])
{
	enum { LOOPBACK = 127 };
	const u64 *high = (const u64 *)address;
	const u32 *words = (const u32 *)address;
	return !high[0] && ((!words[2] && words[3] == bpf_htonl(1)) ||
			    (words[2] == bpf_htonl(0xffff) && address[12] == LOOPBACK));
}

/* `e`: zeros. `sk`: the client's end of a connection, else the server's. */
static __always_inline void ends_of(struct connection_ends *e, const struct sock *sk, bool client)
{
	const u16 family = sk->__sk_common.skc_family;
	copy_address(client ? e->client : e->server, family, sk->__sk_common.skc_rcv_saddr,
		     &sk->__sk_common.skc_v6_rcv_saddr);
	copy_address(client ? e->server : e->client, family, sk->__sk_common.skc_daddr,
		     &sk->__sk_common.skc_v6_daddr);
	const u16 own = sk->__sk_common.skc_num, other = __builtin_bswap16(sk->__sk_common.skc_dport);
	e->client_port = client ? own : other;
	e->server_port = client ? other : own;
	if (is_loopback(e->server) || is_loopback(e->client))
		e->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

static __always_inline void name_peer(struct ft_request_connection *e, const struct sock *sk, u16 family)
{
	if (family == AF_UNIX) {
		e->peer_inode = peer_inode_of(sk);
		struct pid *pid = sk->sk_peer_pid;
		if (pid)
			e->peer_pid = number_of(pid);
		return;
	}
	e->local_port = sk->__sk_common.skc_num;
	e->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	struct connection_ends ends = {};
	ends_of(&ends, sk, false);
	__builtin_memcpy(e->peer_address, ends.client, sizeof ends.client);
	const struct client_process *p = bpf_map_lookup_elem(&tcp_clients, &ends);
	if (!p)
		return;
	e->peer_pid = p->pid;
	__builtin_memcpy(e->peer_comm, p->comm, sizeof e->peer_comm);
}

static __always_inline bool leads_to_target(const struct sock *sk)
{
	u32 port = __builtin_bswap16(sk->__sk_common.skc_dport);
	asm volatile(
	    ""
	    : "+r"(port)); /* or the mask is left out: older verifiers do not know what a swap gives */
	return is_tcp(sk->__sk_common.skc_family) && served[port & 0xffff];
}

static __always_inline void describe_client(struct client_process *p, struct task_struct *task)
{
	p->pid = process_id_of(task);
	bpf_probe_read_kernel_str(p->comm, sizeof p->comm, &BPF_CORE_READ(task, group_leader)->comm);
}

/* connect() begins in the client's process. The kernel chooses the port after that, and the connection is
 * there when the answer has arrived, which is in no particular process. The kernel skips a few runs of many
 * connections in a short time: their clients stay without a process. */
SEC("tp_btf/inet_sock_set_state")
int COUNTED_PROG(client_connects, const struct sock *sk, int before, int after)
{
	u64 address = (u64)sk;
	if ((after != TCP_SYN_SENT && before != TCP_SYN_SENT) || !leads_to_target(sk))
		return 0;
	if (after == TCP_SYN_SENT) {
		struct client_process p = {};
		describe_client(&p, bpf_get_current_task_btf());
		if (p.pid)
			bpf_map_update_elem(&connecting, &address, &p, BPF_ANY);
		return 0;
	}
	struct client_process *p = bpf_map_lookup_elem(&connecting, &address);
	if (p && after == TCP_ESTABLISHED) {
		struct connection_ends ends = {};
		ends_of(&ends, sk, true);
		bpf_map_update_elem(&tcp_clients, &ends, p, BPF_ANY);
	}
	bpf_map_delete_elem(&connecting, &address);
	return 0;
}

/* The clients of connections that are older than the recording. Of several processes that have one open, the
 * first. */
SEC("iter/task_file")
int find_tcp_clients(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	if (!task || !file)
		return 0;
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk = socket ? socket->sk : NULL;
	if (!sk || sk->__sk_common.skc_state != TCP_ESTABLISHED || !leads_to_target(sk))
		return 0;
	struct client_process p = {};
	struct connection_ends ends = {};
	describe_client(&p, task);
	ends_of(&ends, sk, true);
	if (p.pid)
		bpf_map_update_elem(&tcp_clients, &ends, &p, BPF_NOEXIST);
	return 0;
}

/* What was known before the programs were detached is no longer true. Returns whether all are attached. */
static __always_inline bool renew(struct slot *s)
{
	u32 now = epoch;
	if (s->epoch == now || !now)
		return now;
	s->epoch = now;
	s->ready = s->known = 0;
	s->tail = s->arrivals.head;
	s->left_ns = 0;
	s->writes = s->unsent = s->captured = 0;
	return true;
}

static __always_inline void begin(struct slot *s, const struct sock *sk, u16 family, u64 now, u32 offset,
				  u32 tgid)
{
	if (!s->connection)
		s->connection = 1 + __sync_fetch_and_add(&connections, 1);
	if (!s->ready)
		s->arrivals.arrived = s->read = offset;
	s->ready = 1;
	s->known = tgid;
	struct ft_request_connection *e = bpf_ringbuf_reserve(&requests_ring, sizeof *e, 0);
	if (!e) {
		count_request(FT_REQUEST_DROPPED);
		return;
	}
	__builtin_memset(e, 0, sizeof *e);
	e->head = (struct ft_request_head){FT_REQUEST_CONNECTION, (u16)s->sequence, s->connection, now};
	e->start = s->read;
	e->tgid = tgid;
	e->hash = hash_of(sk);
	name_peer(e, sk, family);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* The pieces that do not fit are interpolated between the first and the last of them. */
static __always_inline void arrives(struct slot *s, u64 now, u32 end)
{
	struct arrivals_queue *a = &s->arrivals;
	u32 head = a->head;
	if (head - (u32) * (volatile u64 *)&s->tail >= FT_ARRIVALS) {
		struct ft_request_arrival *last = &a->queue[(head - 1) & (FT_ARRIVALS - 1)];
		last->last_ns = now;
		last->end = end;
		count_request(FT_REQUEST_MERGED);
		return;
	}
	a->queue[head & (FT_ARRIVALS - 1)] = (struct ft_request_arrival){now, now, end, end};
	asm volatile("" ::: "memory"); /* the entry before its number */
	a->head = head + 1;
}

/* A Unix socket does not know its offset: it is the sum of what has arrived. The reader may be faster than
 * this program. It then corrects the sum itself, so that a sum changed meanwhile includes the last piece. */
static __always_inline void arrives_at_unix(struct slot *s, const struct sock *sk, u64 now)
{
	const u32 before = *(volatile u32 *)&s->arrivals.arrived;
	struct sk_buff *last = sk->sk_receive_queue.prev;
	u32 consumed = 0;
	if ((u64)last == (u64)&sk->sk_receive_queue) /* read already */
		return;
	if (before == s->read)
		bpf_core_read(&consumed, sizeof consumed, &((struct unix_skb_parms *)last->cb)->consumed);
	const u32 end = before + last->len - consumed;
	if (__sync_val_compare_and_swap(&s->arrivals.arrived, before, end) == before)
		arrives(s, now, end);
}

/* What was read has arrived. If nothing is left, that is all. */
static __always_inline void correct_arrived(struct slot *s, const struct sock *sk, u16 family, u32 end)
{
	const u32 before = *(volatile u32 *)&s->arrivals.arrived;
	const bool all = family == AF_UNIX && sk->sk_receive_queue.qlen == 0 && before != end;
	if (all || (s32)(end - before) > 0)
		__sync_val_compare_and_swap(&s->arrivals.arrived, before, end);
}

/* The peer of a client's Unix socket is the server's, and the server has just written. */
static __always_inline void leaves_for_client(const struct sock *client)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_skc_to_unix_sock)) /* 5.16 */
		return;
	struct unix_sock *u = bpf_skc_to_unix_sock((void *)client);
	struct sock *own = u ? u->peer : NULL;
	if (!own || !own->sk_bpf_storage || !is_sampled(own))
		return;
	struct slot *s = bpf_sk_storage_get(&slots, own, 0, 0);
	if (s && s->ready && !s->left_ns)
		s->left_ns = bpf_ktime_get_ns();
}

/* Makes the slot of a connection. If another CPU makes it at the same time, the kernel refuses one of the
 * two, which then finds that of the other. */
static __always_inline struct slot *make_slot(struct sock *sk)
{
	struct slot *s = bpf_sk_storage_get(&slots, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		s = bpf_sk_storage_get(&slots, sk, 0, 0);
	if (!s)
		count_request(FT_REQUEST_NO_SLOT);
	return s;
}

static __always_inline void data_ready(const struct sock *sk, enum hooks hooks)
{
	u16 family = sk->__sk_common.skc_family;
	if (family == AF_UNIX && !MEMBER(hooks, struct unix_sock, sk, addr)) {
		leaves_for_client(sk);
		return;
	}
	if (!is_sampled(sk) || (!sk->sk_bpf_storage && !is_servers(sk, family, hooks)))
		return;
	struct slot *s = make_slot((void *)sk);
	if (!s || !renew(s))
		return;
	u64 now = bpf_ktime_get_ns();
	if (family == AF_UNIX) {
		if (!s->ready &&
		    sk->sk_receive_queue.qlen > 1) /* its position is unknown until it is empty */
			return;
		if (!s->ready)
			begin(s, sk, family, now, 0, 0);
		arrives_at_unix(s, sk, now);
	} else if (is_tcp(family)) {
		u32 end = MEMBER(hooks, struct tcp_sock, sk, rcv_nxt);
		if (!s->ready)
			begin(s, sk, family, now, MEMBER(hooks, struct tcp_sock, sk, copied_seq), 0);
		if (end != s->arrivals.arrived) {
			s->arrivals.arrived = end;
			arrives(s, now, end);
		}
	}
}

SEC("tp_btf/sk_data_ready")
int COUNTED_PROG(request_arrives, const struct sock *sk)
{
	data_ready(sk, BY_TRACEPOINTS);
	return 0;
}

SEC("fentry/sock_def_readable")
int COUNTED_PROG(request_arrives_function, const struct sock *sk)
{
	data_ready(sk, BY_FUNCTIONS);
	return 0;
}

/* Takes the pieces of the stream up to `end` from the queue. The first FT_READ_ARRIVALS go with the read; if
 * there are more, all go before it. */
static __always_inline void take_arrivals(struct slot *s, struct ft_request_read *e, u32 end)
{
	u32 zero = 0, n = 0, tail = (u32)s->tail;
	struct ft_request_arrivals *all = bpf_map_lookup_elem(&arrivals_buffers, &zero);
	e->arrivals = 0;
	if (!all)
		return;
	for (; n < FT_ARRIVALS; n++) {
		if (tail == *(volatile u32 *)&s->arrivals.head)
			break;
		struct ft_request_arrival a = s->arrivals.queue[tail & (FT_ARRIVALS - 1)];
		all->arrival[n & (FT_ARRIVALS - 1)] = a;
		if ((s32)(end - a.end) < 0) {
			n++;
			break;
		}
		tail++;
	}
	s->tail = tail;
	if (n > FT_READ_ARRIVALS) {
		all->head = e->head;
		all->head.type = FT_REQUEST_ARRIVALS;
		all->head.sequence = (u16)s->sequence++;
		all->count = n;
		send_event(all, sizeof *all);
		return;
	}
	e->arrival[0] = all->arrival[0];
	e->arrival[1] = all->arrival[1];
	e->arrivals = n;
}

/* The buffer of the system call that reads or writes, of several the first. NULL: not known (io_uring). */
struct user_buffer {
	void *at;
	u64 bytes;
};

static __always_inline struct user_buffer buffer_of_call(void)
{
	struct user_buffer b = {NULL, 0};
	struct pt_regs___user *regs = (struct pt_regs___user *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct {
		u64 base, bytes;
	} part;
	u64 at = regs->CALL_ARG1;
	switch (regs->CALL_NUMBER) {
	case __NR_read:
	case __NR_recvfrom:
	case __NR_write:
	case __NR_sendto:
		return (struct user_buffer){(void *)at, ~0ull};
	case __NR_recvmsg:
	case __NR_sendmsg: /* struct msghdr's msg_iov */
		if (bpf_probe_read_user(&at, sizeof at, (void *)(at + 16)))
			return b;
		break;
	case __NR_readv:
	case __NR_writev:
		break;
	default:
		return b;
	}
	if (bpf_probe_read_user(&part, sizeof part, (void *)at))
		return b;
	return (struct user_buffer){(void *)part.base, part.bytes};
}

/* Sends a read in chunks with its bytes. Of several buffers only the first is captured. */
static __always_inline void send_read(struct slot *s, struct read_buffer *b, u32 bytes, u32 end)
{
	struct user_buffer from = buffer_of_call();
	u32 begin = end - bytes;
	b->event.flags = 0;
	for (u32 i = 0; i < FT_READ_CHUNKS; i++) {
		u32 at = i * FT_READ_CHUNK, left = bytes - at, take = left;
		if (take > FT_READ_CHUNK)
			take = FT_READ_CHUNK;
		if (from.at && at + (u64)take > from.bytes)
			take = from.bytes > at ? (u32)from.bytes - at : 0;
		if (take > FT_READ_CAPTURED - s->captured)
			take = s->captured < FT_READ_CAPTURED ? FT_READ_CAPTURED - s->captured : 0;
		asm volatile("" : "+r"(take)); /* or the checks above are of another copy */
		if (take > FT_READ_CHUNK)
			return;
		if (take && (!from.at || bpf_probe_read_user(b->bytes, take, from.at + at))) {
			b->event.flags |= FT_READ_UNREADABLE;
			take = 0;
		}
		s->captured += take;
		bool last = left <= FT_READ_CHUNK || take < FT_READ_CHUNK || i == FT_READ_CHUNKS - 1;
		b->event.bytes = last ? left : FT_READ_CHUNK;
		b->event.end = begin + at + b->event.bytes;
		b->event.captured = take;
		b->event.head.sequence = (u16)s->sequence++;
		u64 size = sizeof b->event + take;
		asm volatile("" : "+r"(size));
		if (size > sizeof *b)
			return;
		send_event(b, size);
		if (last)
			return;
		b->event.arrivals = 0;
		b->event.flags = FT_READ_CONTINUES;
	}
}

/* Finds or makes the slot of a target's end of a connection that was read. */
static __always_inline struct slot *slot_of_reader(struct sock *sk, u16 family, u32 *tgid, enum hooks hooks)
{
	if (sk->sk_bpf_storage) {
		struct slot *s = bpf_sk_storage_get(&slots, sk, 0, 0);
		if (s && s->known)
			return s;
	}
	if (is_tcp(family) ? !served[sk->__sk_common.skc_num]
			   : family != AF_UNIX || sk->sk_type != SOCK_STREAM)
		return NULL;
	if (!target_runs(tgid))
		return NULL;
	if (family == AF_UNIX) {
		u64 address = (u64)MEMBER(hooks, struct unix_sock, sk, addr);
		if (!address) /* a connection that the target opened */
			return NULL;
		bpf_map_update_elem(&unix_servers, &address, tgid, BPF_NOEXIST);
	}
	return make_slot(sk);
}

/* The peer's FIN, if it follows the bytes that were read, has a place in the stream as well. */
static __always_inline bool fin_follows(const struct slot *s, struct sock *sk, u32 end, enum hooks hooks)
{
	return s->known && sk->__sk_common.skc_state != TCP_ESTABLISHED &&
	       MEMBER(hooks, struct tcp_sock, sk, copied_seq) == end + 1;
}

static __always_inline void was_read(struct sock *sk, int ret, int flags, enum hooks hooks)
{
	u32 tgid = 0, zero = 0, end;
	if (!is_sampled(sk) || flags & MSG_PEEK || (ret < 0 && !is_broken(ret)))
		return;
	u16 family = sk->__sk_common.skc_family;
	struct slot *s = slot_of_reader(sk, family, &tgid, hooks);
	if (!s || !renew(s))
		return;
	u64 now = bpf_ktime_get_ns();
	if (ret <= 0) {
		struct ft_request_head e = {FT_REQUEST_CLOSED, 0, s->connection, now};
		if (s->ready)
			send_event(&e, sizeof e);
		return;
	}
	end = s->read + (u32)ret;
	if (is_tcp(family) && !fin_follows(s, sk, end, hooks))
		end = MEMBER(hooks, struct tcp_sock, sk, copied_seq);
	if (!s->known) {
		if (!tgid && !target_runs(&tgid))
			return;
		if (!s->ready && family == AF_UNIX) {
			if (sk->sk_receive_queue.qlen) /* its position is unknown until it is empty */
				return;
			end = (u32)ret;
		}
		begin(s, sk, family, now, end - (u32)ret, tgid);
	}
	correct_arrived(s, sk, family, end);
	struct read_buffer *b = bpf_map_lookup_elem(&read_buffers, &zero);
	if (!b)
		return;
	s->read = end;
	s->writes = s->unsent = 0;
	s->left_ns = 0;
	b->event.head = (struct ft_request_head){FT_REQUEST_READ, 0, s->connection, now};
	b->event.tid = id_of(bpf_get_current_task_btf());
	take_arrivals(s, &b->event, end);
	send_read(s, b, (u32)ret, end);
}

SEC("tp_btf/sock_recv_length")
int COUNTED_PROG(request_read, struct sock *sk, int ret, int flags)
{
	was_read(sk, ret, flags, BY_TRACEPOINTS);
	return 0;
}

/* Of IPv6 too. */
SEC("fexit/tcp_recvmsg")
int COUNTED_PROG(request_read_tcp, struct sock *sk, struct msghdr *m, u64 bytes, int flags, int *address,
		 int ret)
{
	was_read(sk, ret, flags, BY_FUNCTIONS);
	return 0;
}

/* Until 5.18. */
SEC("fexit/tcp_recvmsg")
int COUNTED_PROG(request_read_tcp_old, struct sock *sk, struct msghdr *m, u64 bytes, int nonblock, int flags,
		 int *address, int ret)
{
	was_read(sk, ret, flags, BY_FUNCTIONS);
	return 0;
}

SEC("fexit/unix_stream_recvmsg")
int COUNTED_PROG(request_read_unix, struct socket *socket, struct msghdr *m, u64 bytes, int flags, int ret)
{
	was_read(socket->sk, ret, flags, BY_FUNCTIONS);
	return 0;
}

/* A connection that gets data without asking (pub/sub, a replica) has a write event every 10 ms at most. */
static __always_inline bool is_worth_sending(struct slot *s, u64 now)
{
	if (s->writes++ < WRITES_SENT || now - s->write_ns > WRITE_EVERY_NS)
		return true;
	s->unsent++;
	return false;
}

/* An error is recognized by the begin of the answer. */
static __always_inline void copy_begin(u8 *begin, u32 written)
{
	const struct user_buffer from = buffer_of_call();
	u32 take = written;
	if (take > from.bytes)
		take = (u32)from.bytes;
	if (take > FT_ANSWER_BEGIN)
		take = FT_ANSWER_BEGIN;
	asm volatile("" : "+r"(take)); /* or the check above is of another copy */
	if (from.at && take && take <= FT_ANSWER_BEGIN)
		bpf_probe_read_user(begin, take, from.at); /* zeros if it fails */
}

static __always_inline void was_written(struct sock *sk, int ret)
{
	if (!sk->sk_bpf_storage || !ret || !is_sampled(sk))
		return;
	struct slot *s = bpf_sk_storage_get(&slots, sk, 0, 0);
	if (!s || !s->known || s->epoch != epoch)
		return;
	u64 now = bpf_ktime_get_ns(), left_ns = s->left_ns;
	if (is_broken(ret)) {
		struct ft_request_head e = {FT_REQUEST_CLOSED, 0, s->connection, now};
		send_event(&e, sizeof e);
	}
	if (ret < 0 && (ret != -EAGAIN || s->full))
		return;
	s->full = ret < 0;
	s->left_ns = 0;
	s->captured = 0;
	if (!s->full && !is_worth_sending(s, now))
		return;
	struct ft_request_write e = {.head = {FT_REQUEST_WRITE, (u16)s->sequence++, s->connection, now},
				     .left_ns = left_ns,
				     .bytes = ret > 0 ? (u32)ret : 0,
				     .unsent = s->unsent};
	if (e.bytes)
		copy_begin(e.begin, e.bytes);
	s->write_ns = now;
	s->unsent = 0;
	send_event(&e, sizeof e);
}

SEC("tp_btf/sock_send_length")
int COUNTED_PROG(request_written, struct sock *sk, int ret, int flags)
{
	was_written(sk, ret);
	return 0;
}

SEC("fexit/tcp_sendmsg")
int COUNTED_PROG(request_written_tcp, struct sock *sk, struct msghdr *m, u64 bytes, int ret)
{
	was_written(sk, ret);
	return 0;
}

SEC("fexit/unix_stream_sendmsg")
int COUNTED_PROG(request_written_unix, struct socket *socket, struct msghdr *m, u64 bytes, int ret)
{
	was_written(socket->sk, ret);
	return 0;
}

static __always_inline bool has_payload(struct sk_buff *skb)
{
	enum { LENGTH_AT = 12 }; /* of the header, in its upper half: words of 4 bytes */
	unsigned char *header = skb->head + skb->transport_header;
	u8 words = 0;
	bpf_probe_read_kernel(&words, sizeof words, header + LENGTH_AT);
	return skb->data + skb->len > header + (words >> 4) * 4;
}

/* A packet goes to a device: over loopback the client may read it before the server's write() returns. */
SEC("tp_btf/net_dev_queue")
int COUNTED_PROG(request_leaves, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	if (!sk || !sk->sk_bpf_storage || !is_sampled(sk))
		return 0;
	struct slot *s = bpf_sk_storage_get(&slots, sk, 0, 0);
	if (s && s->ready && !s->left_ns && has_payload(skb))
		s->left_ns = bpf_ktime_get_ns();
	return 0;
}

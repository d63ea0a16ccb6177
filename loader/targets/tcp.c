/* SPDX-License-Identifier: MIT */
/* What TCP did with the connections of recorded servers. Programs (bpf/tcp.bpf.c) report what is rare:
 * retransmissions, resets, dropped packets. What a connection waits for (unsent bytes, a full window) is
 * in no event that would be rare, so netlink is asked for it (sock_diag). The kernel walks its whole table of
 * connections for an answer, so it is asked rarely while nothing is slow, and never for more than a small
 * part of the time. Its counters are sums, so little is missed between two looks but the exact time.
 * Some connections, first those that were seen to wait, are asked for one by one, at most ten times per
 * second: that takes microseconds each. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/programs.h"
#include "bpf/tcp_events.h"
#include "common/hash.h"
#include "loader/attach.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recording/json_block.h"
#include "tcp.skel.h"

enum {
	ENDS_MAX = 4096,       /* addresses and ports of servers */
	FILTER_PORTS_MAX = 32, /* of more, the kernel returns all connections */
	CONNECTIONS_MAX = 65536,
	STATES_MAX = 256, /* written at a look */
	SUSPECTS_MAX = 16,
	REASONS_MAX = FT_TCP_REASONS,
	ANSWER_BYTES = 32768,
	SHARE_QUIET = 2000, /* while nothing is slow, looks take at most one part in this many of the time */
};
#define SOONEST_NS 100000000ull	    /* between two looks while something is slow */
#define SELDOM_NS 800000000ull	    /* when nothing was for long */
#define SLOW_LASTS_NS 1000000000ull /* after the last sign of it */

_Static_assert((int)FT_TCP_ADDRESS_BYTES == (int)FT_ADDRESS_BYTES, "of a connection's end");

/* An address and port that make a connection one of a recorded server's. */
struct end {
	pid_t pid;
	uint32_t netns;
	uint16_t port;
	bool loopback; /* any loopback address, only in the network namespace */
	bool stale;    /* not found again */
	uint8_t address[FT_ADDRESS_BYTES];
};

/* A connection's counters as they were last seen. */
struct counted {
	struct counted_key {
		uint64_t cookie;
		uint64_t netns;
	} key;
	uint64_t look, seen_ns;
	uint32_t retransmitted;
	uint64_t receiver_limited_us, sender_limited_us;
	UT_hash_handle hh;
};

/* A connection that was seen to wait. */
struct suspect {
	const struct diag *diag; /* NULL: none */
	uint8_t family;
	struct inet_diag_sockid id;
};

struct tcp {
	struct tcp_bpf *skeleton;
	struct ring_buffer *ring;
	struct ft_writer *writer; /* during tcp_tick */
	struct diag diag[NAMESPACES_MAX];
	size_t diag_count;
	struct end ends[ENDS_MAX];
	size_t end_count;
	char reasons[REASONS_MAX][FT_TCP_REASON_BYTES];
	struct counted *counted; /* hash table */
	struct suspect suspects[SUSPECTS_MAX];
	size_t next_suspect; /* which is replaced next */
	uint64_t suspects_due_ns;
	uint64_t looks, last_look_ns, pause_ns, slow_until_ns;
	struct look look;	      /* at all connections */
	bool complete, last_complete; /* this look, the last one saw all connections of the present ends */
	size_t written;		      /* at this look */
	uint64_t beyond_written;      /* events beyond the limit */
};

static void put_address(uint8_t to[FT_ADDRESS_BYTES], int family, const void *from)
{
	static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	if (family == AF_INET6) {
		memcpy(to, from, FT_ADDRESS_BYTES);
		return;
	}
	memcpy(to, mapped, sizeof mapped);
	memcpy(to + sizeof mapped, from, 4);
}

static bool is_loopback(const uint8_t address[FT_ADDRESS_BYTES])
{
	uint8_t mapped[FT_ADDRESS_BYTES];
	put_address(mapped, AF_INET, address + 12);
	return memcmp(address, mapped, sizeof mapped) == 0
		   ? address[12] == IN_LOOPBACKNET
		   : memcmp(address, &in6addr_loopback, sizeof mapped) == 0;
}

static bool is_known_end(const struct tcp *t, const uint8_t *address, uint16_t port, uint32_t netns)
{
	for (size_t i = 0; i < t->end_count; i++) {
		const struct end *e = &t->ends[i];
		if (e->port == port && (e->loopback ? netns && e->netns == netns && is_loopback(address)
						    : memcmp(e->address, address, sizeof e->address) == 0))
			return true;
	}
	return false;
}

static bool is_wanted(const struct tcp *t, const struct ft_tcp_ends *c, uint32_t netns)
{
	return is_known_end(t, c->local, c->local_port, netns) ||
	       is_known_end(t, c->peer, c->peer_port, netns);
}

static void mark_stale(struct tcp *t, pid_t pid)
{
	for (size_t i = 0; i < t->end_count; i++)
		t->ends[i].stale |= t->ends[i].pid == pid;
}

static void drop_stale(struct tcp *t)
{
	size_t left = 0;
	for (size_t i = 0; i < t->end_count; i++)
		if (t->ends[i].stale)
			t->skeleton->bss->ports[t->ends[i].port] = 0;
		else
			t->ends[left++] = t->ends[i];
	t->end_count = left;
	for (size_t i = 0; i < left; i++) /* also of another target */
		t->skeleton->bss->ports[t->ends[i].port] = 1;
}

/* Beyond ENDS_MAX, TCP of the end is not seen. */
static void add_end(struct tcp *t, pid_t pid, uint32_t netns, uint16_t port, const uint8_t *address)
{
	struct end end = {.pid = pid, .netns = netns, .port = port, .loopback = !address};
	if (address)
		memcpy(end.address, address, sizeof end.address);
	for (size_t i = 0; i < t->end_count; i++) {
		struct end *e = &t->ends[i];
		if (e->pid == pid && e->netns == netns && e->port == port && e->loopback == end.loopback &&
		    memcmp(e->address, end.address, sizeof end.address) == 0) {
			e->stale = false;
			return;
		}
	}
	if (t->end_count == ENDS_MAX)
		return;
	t->ends[t->end_count++] = end;
	t->skeleton->bss->ports[port] = 1;
	t->last_complete = false; /* its connections may be old */
}

/* "10.0.0.7", "fd00::1". */
static bool parse_address(const char *text, uint8_t address[FT_ADDRESS_BYTES])
{
	uint8_t raw[FT_ADDRESS_BYTES];
	for (const int *family = (const int[]){AF_INET, AF_INET6, 0}; *family; family++)
		if (inet_pton(*family, text, raw) == 1) {
			put_address(address, *family, raw);
			return true;
		}
	return false;
}

/* "10.0.0.7:6379", "[fd00::1]:6379". */
static void add_peer(struct tcp *t, pid_t pid, uint32_t netns, const char *text)
{
	char address[INET6_ADDRSTRLEN];
	uint8_t raw[FT_ADDRESS_BYTES];
	const char *colon = strrchr(text, ':');
	const int port = colon ? port_number(colon + 1) : -EINVAL;
	const bool bracketed = *text == '[';
	const size_t length = colon ? (size_t)(colon - text) : 0;
	if (port < 0 || length < 2 || length >= sizeof address)
		return;
	memcpy(address, text + bracketed, length - 2 * bracketed);
	address[length - 2 * bracketed] = 0;
	if (parse_address(address, raw))
		add_end(t, pid, netns, (uint16_t)port, is_loopback(raw) ? NULL : raw);
}

void tcp_target(struct tcp *t, const json_t *target)
{
	if (!t || !target)
		return;
	const pid_t pid = (pid_t)json_integer_value(json_object_get(target, "pid"));
	const uint32_t netns = (uint32_t)network_namespace(pid);
	const json_t *addresses = json_object_get(target, "addresses");
	const json_t *listens = json_object_get(target, "listens"), *peers = json_object_get(target, "peers");
	size_t i, k;
	json_t *one, *at;
	uint8_t address[FT_ADDRESS_BYTES];
	if (!json_array_size(listens) && !json_array_size(peers))
		return; /* what it had cannot be read any more */
	mark_stale(t, pid);
	json_array_foreach(listens, i, one)
	{
		const char *text = json_string_value(one);
		const int port = text && strncmp(text, "tcp:", 4) == 0 ? port_number(text + 4) : -EINVAL;
		if (port < 0)
			continue;
		add_end(t, pid, netns, (uint16_t)port, NULL);
		json_array_foreach(addresses, k, at)
		{
			if (parse_address(json_string_value(at), address))
				add_end(t, pid, netns, (uint16_t)port, address);
		}
	}
	json_array_foreach(peers, i, one) add_peer(t, pid, netns, json_string_value(one));
	drop_stale(t);
}

void tcp_forget(struct tcp *t, pid_t pid)
{
	if (!t)
		return;
	mark_stale(t, pid);
	drop_stale(t);
}

/* What TCP discards by its own rules: of a connection that is closed, what came twice, and what answers that.
 * No packet is lost by it. */
static bool is_no_loss(const char *name)
{
	static const char *const names[] = {"QUEUE_PURGE",     "SOCKET_CLOSE",	   "NO_SOCKET",
					    "TCP_CLOSE",       "TCP_RESET",	   "TCP_ABORT_ON_DATA",
					    "TCP_OLD_DATA",    "TCP_OLD_SEQUENCE", "TCP_OLD_ACK",
					    "TCP_TOO_OLD_ACK", "TCP_FLAGS",	   "TCP_OFOMERGE"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "tcp_", 4) == 0 || strncmp(name, "__tcp_", 6) == 0;
}

/* The kernel's reason for a drop. Where it gives none, the function that dropped the packet. False: no packet
 * was lost. */
static bool put_reason(const struct tcp *t, const struct ft_tcp_seen *seen, char reason[FT_TCP_REASON_BYTES])
{
	char text[160];
	const char *name = seen->reason < REASONS_MAX ? t->reasons[seen->reason] : "";
	if (!*name || strcmp(name, "NOT_SPECIFIED") == 0) {
		symbol_name(seen->location, text, sizeof text);
		text[strcspn(text, "+.")] = 0;
		name = strcmp(text, "?") == 0 ? "" : text;
	}
	memcpy(reason, name, strnlen(name, FT_TCP_REASON_BYTES - 1));
	return !is_no_loss(name);
}

static int on_seen(void *context, void *data, size_t bytes)
{
	struct tcp *t = context;
	const struct ft_tcp_seen *seen = data;
	if (bytes < sizeof *seen)
		return 0;
	struct ft_tcp_event event = {.t_ns = seen->t_ns,
				     .what = seen->what,
				     .ends = {.local_port = seen->local_port, .peer_port = seen->peer_port}};
	memcpy(event.ends.local, seen->local, sizeof event.ends.local);
	memcpy(event.ends.peer, seen->peer, sizeof event.ends.peer);
	if (!is_wanted(t, &event.ends, seen->netns))
		return 0;
	if (seen->what == FT_TCP_DROPPED && !put_reason(t, seen, event.reason))
		return 0;
	ft_writer_record(t->writer, FT_BLOCK_TCP_EVENT, &event);
	t->slow_until_ns = seen->t_ns + SLOW_LASTS_NS;
	return 0;
}

static void read_reason(void *context, uint32_t value, const char *name)
{
	static const char prefix[] = "SKB_DROP_REASON_";
	struct tcp *t = context;
	if (value >= REASONS_MAX || strncmp(name, prefix, sizeof prefix - 1) != 0)
		return;
	name += sizeof prefix - 1;
	memcpy(t->reasons[value], name, strnlen(name, FT_TCP_REASON_BYTES - 1));
	t->skeleton->bss->no_loss[value] = is_no_loss(t->reasons[value]);
}

struct tcp *tcp_open(const pid_t *pids, size_t count)
{
	struct tcp *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->pause_ns = SOONEST_NS;
	t->diag_count = diag_open(t->diag, pids, count);
	t->skeleton = tcp_bpf__open();
	int err = t->skeleton ? 0 : -errno;
	if (!err) {
		const struct {
			struct bpf_program *program;
			const char *tracepoint;
		} all[] = {{t->skeleton->progs.tcp_retransmits, "tcp_retransmit_skb"},
			   {t->skeleton->progs.tcp_reset_received, "tcp_receive_reset"},
			   {t->skeleton->progs.tcp_reset_sent, "tcp_send_reset"}};
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			bpf_program__set_autoload(all[i].program, support_has_tracepoint(all[i].tracepoint));
		bpf_program__set_autoload(t->skeleton->progs.packet_dropped, support_sees_drops());
		err = tcp_bpf__load(t->skeleton);
	}
	if (!err) {
		support_enum_names("skb_drop_reason", read_reason, t);
		t->ring = ring_buffer__new(bpf_map__fd(t->skeleton->maps.tcp_ring), on_seen, t, NULL);
		err = t->ring ? 0 : -errno;
	}
	if (!err)
		return t;
	tcp_close(t);
	errno = -err;
	return NULL;
}

int tcp_attach(struct tcp *t)
{
	return t ? tcp_bpf__attach(t->skeleton) : 0;
}

/* A program of the kernel's inet_diag that accepts connections with one of the ports at either end. For a
 * port, two comparisons and a jump to the end, which accepts; a jump beyond the end refuses. Returns its
 * bytes; 0: too many ports. */
static uint16_t make_filter(const struct tcp *t, struct inet_diag_bc_op *code)
{
	enum { OP = sizeof *code, PORT_BYTES = 5 * OP };
	uint16_t ports[FILTER_PORTS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < t->end_count; i++) {
		size_t k = 0;
		while (k < count && ports[k] != t->ends[i].port)
			k++;
		if (k < count)
			continue;
		if (count == FILTER_PORTS_MAX)
			return 0;
		ports[count++] = t->ends[i].port;
	}
	const uint16_t bytes = (uint16_t)(2 * count * PORT_BYTES);
	for (size_t i = 0; i < 2 * count; i++) {
		const bool source = i < count;
		const uint16_t port = ports[i % count], left = (uint16_t)(bytes - i * PORT_BYTES),
			       refuse = i + 1 == 2 * count ? OP : 0;
		*code++ = (struct inet_diag_bc_op){source ? INET_DIAG_BC_S_GE : INET_DIAG_BC_D_GE, 2 * OP,
						   (uint16_t)(PORT_BYTES + refuse)};
		*code++ = (struct inet_diag_bc_op){.no = port};
		*code++ = (struct inet_diag_bc_op){source ? INET_DIAG_BC_S_LE : INET_DIAG_BC_D_LE, 2 * OP,
						   (uint16_t)(3 * OP + refuse)};
		*code++ = (struct inet_diag_bc_op){.no = port};
		*code++ = (struct inet_diag_bc_op){INET_DIAG_BC_JMP, OP, (uint16_t)(left - 4 * OP)};
	}
	return bytes;
}

static bool send_request(int fd, const void *request, size_t bytes)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct iovec part = {(void *)request, bytes};
	struct msghdr message = {
	    .msg_name = &kernel, .msg_namelen = sizeof kernel, .msg_iov = &part, .msg_iovlen = 1};
	return sendmsg(fd, &message, 0) >= 0;
}

/* Established, SYN sent, and closed by one end. */
enum { STATES = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8, EXTENSIONS = 1 << (INET_DIAG_INFO - 1) };

static bool ask_for_one(int fd, const struct suspect *s)
{
	const struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} ask = {.header = {.nlmsg_len = sizeof ask,
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST},
		 .request = {.sdiag_family = s->family,
			     .sdiag_protocol = IPPROTO_TCP,
			     .idiag_ext = EXTENSIONS,
			     .idiag_states = STATES,
			     .id = s->id}};
	return send_request(fd, &ask, sizeof ask);
}

/* The older request has the connections of IPv4 and IPv6 in one walk over the kernel's table, which takes
 * most of the time. The newer one has those of one family. */
static bool ask_for_all(const struct tcp *t, int fd)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req request;
		struct rtattr attribute;
		struct inet_diag_bc_op code[2 * FILTER_PORTS_MAX * 5];
	} ask = {.header = {.nlmsg_type = TCPDIAG_GETSOCK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		 .request = {.idiag_family = AF_INET, .idiag_ext = EXTENSIONS, .idiag_states = STATES}};
	const uint16_t bytes = make_filter(t, ask.code);
	ask.attribute = (struct rtattr){(unsigned short)RTA_LENGTH(bytes), INET_DIAG_REQ_BYTECODE};
	ask.header.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof ask.request) + (bytes ? RTA_LENGTH(bytes) : 0));
	return send_request(fd, &ask, ask.header.nlmsg_len);
}

/* The connection as it was at the last look; NULL: no memory, or there are too many. */
static struct counted *count_of(struct tcp *t, uint64_t cookie, uint64_t netns)
{
	const struct counted_key key = {cookie, netns};
	struct counted *c;
	HASH_FIND(hh, t->counted, &key, sizeof key, c);
	if (c)
		return c;
	if (HASH_COUNT(t->counted) < CONNECTIONS_MAX && (c = calloc(1, sizeof *c))) {
		c->key = key;
		HASH_ADD(hh, t->counted, key, sizeof c->key, c);
		if (hash_added(c))
			return c;
		free(c);
	}
	t->complete = false;
	return NULL;
}

/* `waits`: it was seen to wait. Others are looked up only as long as there is room. */
static void suspect(struct tcp *t, const struct diag *diag, const struct inet_diag_msg *m, bool waits)
{
	size_t at = SUSPECTS_MAX;
	for (size_t i = 0; i < SUSPECTS_MAX; i++) {
		if (!t->suspects[i].diag)
			at = i;
		else if (memcmp(&t->suspects[i].id, &m->id, sizeof m->id) == 0)
			return;
	}
	if (at == SUSPECTS_MAX && !waits)
		return;
	if (at == SUSPECTS_MAX)
		at = t->next_suspect++ % SUSPECTS_MAX;
	t->suspects[at] = (struct suspect){diag, m->idiag_family, m->id};
}

static uint32_t growth(uint64_t now, uint64_t before)
{
	const uint64_t more = now > before ? now - before : 0;
	return more > UINT32_MAX ? UINT32_MAX : (uint32_t)more;
}

static void see_connection(struct tcp *t, const struct diag *diag, const struct inet_diag_msg *m,
			   const struct tcp_info *info, size_t info_bytes, uint64_t now_ns)
{
	struct ft_tcp_state s = {
	    .t_ns = now_ns,
	    .ends = {.local_port = ntohs(m->id.idiag_sport), .peer_port = ntohs(m->id.idiag_dport)},
	    .state = m->idiag_state,
	    .ca_state = info->tcpi_ca_state,
	    .timeouts = info->tcpi_retransmits,
	    .probes = info->tcpi_probes,
	    .unsent_bytes = info->tcpi_notsent_bytes,
	    .unacked = info->tcpi_unacked,
	    .window_bytes = (uint32_t)FT_TCP_UNKNOWN_WINDOW,
	    .congestion_window = info->tcpi_snd_cwnd,
	    .segment_bytes = info->tcpi_snd_mss,
	    .rtt_us = info->tcpi_rtt,
	    .rto_us = info->tcpi_rto,
	    .sent_ms = info->tcpi_last_data_sent,
	    .acked_ms = info->tcpi_last_ack_recv,
	    .unread_bytes = m->idiag_rqueue,
	};
	put_address(s.ends.local, m->idiag_family, m->id.idiag_src);
	put_address(s.ends.peer, m->idiag_family, m->id.idiag_dst);
	if (!is_wanted(t, &s.ends, (uint32_t)diag->netns))
		return;
	if (info_bytes >= offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof info->tcpi_snd_wnd)
		s.window_bytes = info->tcpi_snd_wnd;
	struct counted *c =
	    count_of(t, (uint64_t)m->id.idiag_cookie[1] << 32 | m->id.idiag_cookie[0], diag->netns);
	if (!c || c->seen_ns == now_ns) /* a suspect, seen at the same tick */
		return;
	/* One without an entry opened after the last look, with counters of 0, if that look saw all. */
	s.before_ns = c->seen_ns ? c->seen_ns : t->last_look_ns;
	if (c->seen_ns || t->last_complete) {
		s.retransmitted = growth(info->tcpi_total_retrans, c->retransmitted);
		s.receiver_limited_us = growth(info->tcpi_rwnd_limited, c->receiver_limited_us);
		s.sender_limited_us = growth(info->tcpi_sndbuf_limited, c->sender_limited_us);
	}
	*c = (struct counted){.key = c->key,
			      .look = t->looks,
			      .seen_ns = now_ns,
			      .retransmitted = info->tcpi_total_retrans,
			      .receiver_limited_us = info->tcpi_rwnd_limited,
			      .sender_limited_us = info->tcpi_sndbuf_limited,
			      .hh = c->hh};
	const bool waits = s.unsent_bytes || s.timeouts || s.probes || s.retransmitted ||
			   s.receiver_limited_us || s.sender_limited_us;
	if (waits && t->written < STATES_MAX) {
		ft_writer_record(t->writer, FT_BLOCK_TCP_STATE, &s);
		t->written++;
	}
	suspect(t, diag, m, waits);
}

static void take(struct tcp *t, const struct diag *diag, struct nlmsghdr *h, uint64_t now_ns)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof *m);
	struct tcp_info info = {0};
	if (left < 0)
		return;
	for (struct rtattr *a = (void *)((char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof *m)); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		if (a->rta_type != INET_DIAG_INFO)
			continue;
		const size_t bytes = RTA_PAYLOAD(a);
		memcpy(&info, RTA_DATA(a), bytes < sizeof info ? bytes : sizeof info);
		see_connection(t, diag, m, &info, bytes, now_ns);
	}
}

/* `one`: NULL: at all connections. Whether a connection was seen. */
static bool look_in(struct tcp *t, const struct diag *diag, const struct suspect *one, uint64_t now_ns)
{
	static _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	bool seen = false;
	if (one ? !ask_for_one(diag->fd, one) : !ask_for_all(t, diag->fd)) {
		t->complete = false;
		return false;
	}
	for (bool done = false; !done;) {
		struct iovec part = {answer, sizeof answer};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		ssize_t n = recvmsg(diag->fd, &message, 0);
		cpu_offer_in_loop();
		if (n <= 0) {
			t->complete = false;
			return false;
		}
		int left = (int)n;
		for (struct nlmsghdr *h = (struct nlmsghdr *)answer; NLMSG_OK(h, left) && !done;
		     h = NLMSG_NEXT(h, left)) {
			done = h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY && h->nlmsg_type != TCPDIAG_GETSOCK)
				continue;
			take(t, diag, h, now_ns);
			seen = true;
			done = one;
		}
	}
	return seen;
}

static void look_at_suspects(struct tcp *t, uint64_t now_ns)
{
	if (now_ns < t->suspects_due_ns)
		return;
	t->written = 0;
	for (size_t i = 0; i < SUSPECTS_MAX; i++) {
		const struct suspect s = t->suspects[i];
		if (s.diag && !look_in(t, s.diag, &s, now_ns))
			t->suspects[i].diag = NULL;
	}
	const uint64_t soon_ns = SOONEST_NS - SOONEST_NS / 10, /* ticks come a little early */
	    least_ns = (ft_now_ns() - now_ns) * SHARE_QUIET;
	t->suspects_due_ns = now_ns + (soon_ns > least_ns ? soon_ns : least_ns);
}

static void look(struct tcp *t, uint64_t now_ns)
{
	t->looks++;
	t->written = 0;
	t->complete = true;
	for (size_t i = 0; i < t->diag_count; i++)
		look_in(t, &t->diag[i], NULL, now_ns);
	t->last_complete = t->complete;
	struct counted *c, *next;
	HASH_ITER(hh, t->counted, c, next)
	{
		if (c->look == t->looks)
			continue;
		HASH_DEL(t->counted, c);
		free(c);
	}
	t->last_look_ns = now_ns;
}

/* Events beyond the limit, with their number only. */
static void write_beyond_limit(struct tcp *t, uint64_t now_ns)
{
	uint64_t left = t->skeleton->bss->beyond - t->beyond_written;
	t->beyond_written += left;
	while (left) {
		const uint16_t count = left < UINT16_MAX ? (uint16_t)left : UINT16_MAX;
		ft_writer_record(
		    t->writer, FT_BLOCK_TCP_EVENT,
		    &(struct ft_tcp_event){.t_ns = now_ns, .what = FT_TCP_BEYOND_LIMIT, .count = count});
		left -= count;
	}
}

void tcp_tick(struct tcp *t, struct ft_writer *w, bool slow, uint64_t now_ns)
{
	if (!t)
		return;
	t->writer = w;
	ring_buffer__consume(t->ring);
	write_beyond_limit(t, now_ns);
	if (slow)
		t->slow_until_ns = now_ns + SLOW_LASTS_NS;
	slow = now_ns < t->slow_until_ns;
	if (slow && t->pause_ns > SOONEST_NS) { /* it was looked at seldom */
		t->pause_ns = SOONEST_NS;
		t->look.due_ns = t->last_look_ns + SOONEST_NS;
	}
	look_at_suspects(t, now_ns);
	if (!t->end_count || !look_begins(&t->look, now_ns))
		return;
	look(t, now_ns);
	t->pause_ns = slow ? SOONEST_NS : t->pause_ns < SELDOM_NS ? t->pause_ns * 2 : SELDOM_NS;
	const uint64_t quiet_ns = slow ? 0 : (ft_now_ns() - now_ns) * SHARE_QUIET;
	look_ends(&t->look, t->pause_ns > quiet_ns ? t->pause_ns : quiet_ns);
}

uint64_t tcp_lost(const struct tcp *t)
{
	return t ? t->skeleton->bss->lost : 0;
}

struct counted_programs tcp_programs(const struct tcp *t)
{
	static const char *const names[] = {FT_TCP_PROGRAMS(FT_NAME_OF)};
	return t ? (struct counted_programs){.object = t->skeleton->obj,
					     .runs = t->skeleton->bss->program_runs[0],
					     .row = FT_TCP_PROGRAM_ROW,
					     .count = FT_TCP_PROGRAM_COUNT,
					     .names = names}
		 : (struct counted_programs){.object = NULL};
}

void tcp_close(struct tcp *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->diag_count; i++)
		close(t->diag[i].fd);
	ring_buffer__free(t->ring);
	tcp_bpf__destroy(t->skeleton);
	hash_free_all(struct counted, t->counted);
	free(t);
}

/* SPDX-License-Identifier: MIT */
/* Reads the sets of epoll instances from /proc/PID/fdinfo, which shows the inodes of sockets. The peer of a
 * socket comes from the kernel's tables: TCP's as text, which can be read for the network namespace of any
 * process, and those of Unix sockets by netlink, because the text does not show peers. The kernel walks an
 * instance's set under the lock that the server takes to add a connection or to receive events, about a
 * microsecond per connection. So reads are rare: their cost is measured, and the next read is delayed by a
 * multiple of it, and by more while no descriptor is opened or closed. */
#include "loader/sockets/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sched.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/sockets/proc_sockets.h"
#include "loader/system/text.h"
#include "recording/json/json_block.h"

enum {
	LOOK_NS = 250000000,
	/* Reads take at most one part in this many of the time: while connections are opened or closed, and
	 * otherwise. */
	SHARE_CHANGING = 200,
	SHARE_QUIET = 2000,
	SHARE_TABLES = 20, /* of the tables, while connections are new: no server waits for those reads */
	INSTANCES_MAX = 4096,
	NAMESPACES_MAX = 16,
	SOCKETS_MAX = 65536,
	TRIES = 4,
	ANSWER_BYTES = 32768,
};

struct instance {
	pid_t pid;
	uint32_t epoll;
	bool alone; /* no other one of this process is known */
};

/* A socket as it was last written. */
struct known_socket {
	struct ft_socket record;
	uint64_t last_ns; /* when it was last seen there */
	uint64_t look;
	bool peer_known; /* it is connected, and its peer is known */
	unsigned tries;	 /* failed lookups of its peer: listening sockets have none */
	struct known_socket *next;
};

struct sockets {
	struct ft_writer *writer;
	struct instance instances[INSTANCES_MAX];
	size_t instance_count;
	int diag[NAMESPACES_MAX]; /* netlink sockets, one per network namespace */
	size_t diag_count;
	uint64_t device; /* device number of the sockets' inodes, in the format of fdinfo; 0: unknown */
	void *by_inode;	 /* tsearch tree of all known sockets */
	struct known_socket *all;
	size_t count;
	bool full;
	bool fresh; /* some instances have not been read yet */
	uint64_t looks, last_look_ns;
	uint64_t took_ns, tables_took_ns; /* the last read */
	uint64_t descriptors;		  /* descriptors that the processes had open then */
	struct text text;
};

static int compare_sockets(const void *a, const void *b)
{
	const struct known_socket *x = a, *y = b;
	return x->record.inode < y->record.inode ? -1 : x->record.inode > y->record.inode;
}

static struct known_socket *find(const struct sockets *s, uint64_t inode)
{
	struct known_socket wanted = {.record.inode = inode}, **found;
	found = tfind(&wanted, &s->by_inode, compare_sockets);
	return found ? *found : NULL;
}

static int open_diag(void)
{
	return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

static uint64_t namespace_of(pid_t pid)
{
	char path[64];
	struct stat st;
	if (pid)
		snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
	else
		snprintf(path, sizeof path, "/proc/self/ns/net");
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

/* Opens a netlink socket in the network namespace of a process. */
static int open_diag_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = open(path, O_RDONLY | O_CLOEXEC);
	int fd = -1;
	if (here >= 0 && there >= 0 && setns(there, CLONE_NEWNET) == 0) {
		fd = open_diag();
		if (setns(here, CLONE_NEWNET)) { /* it must not continue in another network namespace */
			perror("forktail record: cannot return to its own network namespace");
			abort();
		}
	}
	if (here >= 0)
		close(here);
	if (there >= 0)
		close(there);
	return fd;
}

static void open_namespaces(struct sockets *s, const pid_t *pids, size_t count)
{
	uint64_t seen[NAMESPACES_MAX] = {namespace_of(0)};
	size_t namespaces = 1;
	s->diag[s->diag_count] = open_diag();
	s->diag_count += s->diag[s->diag_count] >= 0;
	for (size_t i = 0; i < count && s->diag_count < NAMESPACES_MAX && namespaces < NAMESPACES_MAX; i++) {
		uint64_t space = namespace_of(pids[i]);
		bool known = space == 0;
		for (size_t k = 0; k < namespaces; k++)
			known |= seen[k] == space;
		if (known)
			continue;
		seen[namespaces++] = space;
		s->diag[s->diag_count] = open_diag_of(pids[i]);
		s->diag_count += s->diag[s->diag_count] >= 0;
	}
}

/* fdinfo uses the kernel's format of device numbers: 12 bits and 20 bits. */
static uint64_t device_of_sockets(void)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool known = fd >= 0 && fstat(fd, &st) == 0;
	if (fd >= 0)
		close(fd);
	return known ? (uint64_t)(st.st_dev >> 8 & 0xfff) << 20 | (st.st_dev & 0xff) |
			   (st.st_dev >> 12 & 0xfff00)
		     : 0;
}

struct sockets *sockets_open(struct ft_writer *writer, const pid_t *pids, size_t count)
{
	struct sockets *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->writer = writer;
	s->device = device_of_sockets();
	open_namespaces(s, pids, count);
	return s;
}

static void forget_ended(struct sockets *s)
{
	char comm[32];
	for (size_t i = 0; i < s->instance_count;)
		if (read_proc(s->instances[i].pid, "comm", comm, sizeof comm) < 0)
			s->instances[i] = s->instances[--s->instance_count];
		else
			i++;
}

void sockets_watch(struct sockets *s, pid_t pid, uint32_t epoll)
{
	if (!s || s->instance_count == INSTANCES_MAX)
		return;
	bool alone = true;
	for (size_t i = 0; i < s->instance_count; i++) {
		if (s->instances[i].pid != pid)
			continue;
		if (s->instances[i].epoll == epoll)
			return;
		alone = s->instances[i].alone = false;
	}
	s->instances[s->instance_count++] = (struct instance){pid, epoll, alone};
	s->fresh |= !alone;
}

bool sockets_several(const struct sockets *s)
{
	for (size_t i = 0; s && i < s->instance_count; i++)
		if (!s->instances[i].alone)
			return true;
	return false;
}

static void note_full(struct sockets *s)
{
	if (s->full)
		return;
	s->full = true;
	json_t *note = json_note(ft_now_ns(), "missing");
	json_put_text(note, "what", "serving threads of further connections");
	json_put_text(note, "why", "there are more than 65,536 connections");
	write_json_note(s->writer, note);
}

static struct known_socket *add(struct sockets *s, uint64_t inode)
{
	if (s->count == SOCKETS_MAX) {
		note_full(s);
		return NULL;
	}
	struct known_socket *k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	k->record.inode = inode;
	if (!tsearch(k, &s->by_inode, compare_sockets)) {
		free(k);
		return NULL;
	}
	k->next = s->all;
	s->all = k;
	s->count++;
	return k;
}

/* A socket is in this instance now. */
static void see(struct sockets *s, const struct instance *instance, uint64_t inode, uint64_t now)
{
	struct known_socket *k = find(s, inode);
	bool is_new = !k;
	if (is_new && !(k = add(s, inode)))
		return;
	bool moved =
	    is_new || k->record.epoll != instance->epoll || k->record.tgid != (uint32_t)instance->pid;
	/* A socket in two instances stays with the first. */
	if (moved && (is_new || k->look != s->looks)) {
		k->record.before_ns = is_new ? s->last_look_ns : k->last_ns;
		k->record.seen_ns = now;
		k->record.tgid = (uint32_t)instance->pid;
		k->record.epoll = instance->epoll;
		if (k->peer_known)
			ft_writer_record(s->writer, FT_BLOCK_SOCKET, &k->record);
	}
	k->look = s->looks;
	k->last_ns = now;
}

/* Reads an instance's set. False: it no longer exists. */
static bool look_at(struct sockets *s, const struct instance *instance)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%u", instance->pid, instance->epoll);
	text_read_at(&s->text, AT_FDCWD, path, SIZE_MAX);
	if (!s->text.length)
		return false;
	uint64_t now = ft_now_ns();
	for (const char *line = strstr(s->text.bytes, "tfd:"); line; line = strstr(line + 4, "tfd:")) {
		/* sscanf() would measure the rest of the text first. */
		const char *at = strstr(line, " ino:");
		char *end;
		const uint64_t inode = at ? strtoull(at + 5, &end, 16) : 0;
		if (at && strncmp(end, " sdev:", 6) == 0 && strtoull(end + 6, NULL, 16) == s->device)
			see(s, instance, inode, now);
	}
	return true;
}

/* Whether sockets of this process (0: of any) are worth a lookup in the tables. */
static bool any_without_peer(const struct sockets *s, pid_t pid)
{
	for (const struct known_socket *k = s->all; k; k = k->next)
		if (!k->peer_known && k->tries < TRIES && (!pid || k->record.tgid == (uint32_t)pid))
			return true;
	return false;
}

/* Finds the peer of a socket that was not known before. A listening socket has no peer. */
static void tell_tcp_socket(void *context, const struct tcp_socket *t)
{
	struct sockets *s = context;
	struct known_socket *k = t->inode ? find(s, t->inode) : NULL;
	if (!k || k->peer_known)
		return;
	if (!t->peer_port) {
		k->tries = TRIES;
		return;
	}
	k->record.local_port = t->local_port;
	k->record.peer_port = t->peer_port;
	k->peer_known = true;
	ft_writer_record(s->writer, FT_BLOCK_SOCKET, &k->record);
}

/* The same for all sockets in the network namespace of a process. */
static void tell_tcp(struct sockets *s, pid_t pid)
{
	char text[16];
	snprintf(text, sizeof text, "%d", pid);
	each_tcp_socket(text, "tcp", tell_tcp_socket, s);
	if (any_without_peer(s, pid))
		each_tcp_socket(text, "tcp6", tell_tcp_socket, s);
}

static void tell_unix_socket(struct sockets *s, const struct nlmsghdr *h)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	struct known_socket *k = find(s, m->udiag_ino);
	if (!k || k->peer_known)
		return;
	int left = (int)NLMSG_PAYLOAD(h, sizeof *m);
	for (const struct rtattr *a = (const struct rtattr *)(m + 1); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		uint32_t peer;
		if (a->rta_type != UNIX_DIAG_PEER || RTA_PAYLOAD(a) < sizeof peer)
			continue;
		memcpy(&peer, RTA_DATA(a), sizeof peer);
		if (!peer) /* not accepted yet, or closed by the peer */
			continue;
		k->record.peer_inode = peer;
		k->peer_known = true;
		ft_writer_record(s->writer, FT_BLOCK_SOCKET, &k->record);
	}
}

/* The same for Unix sockets, in one network namespace. */
static void tell_unix(struct sockets *s, int diag)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} ask = {.header = {.nlmsg_len = sizeof ask,
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		 .request = {.sdiag_family = AF_UNIX, .udiag_states = -1u, .udiag_show = UDIAG_SHOW_PEER}};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct iovec part = {&ask, sizeof ask};
	struct msghdr message = {
	    .msg_name = &kernel, .msg_namelen = sizeof kernel, .msg_iov = &part, .msg_iovlen = 1};
	if (sendmsg(diag, &message, 0) < 0)
		return;
	static _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	for (bool done = false; !done;) {
		part = (struct iovec){answer, sizeof answer};
		message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
		ssize_t n = recvmsg(diag, &message, 0);
		if (n <= 0)
			return;
		int left = (int)n;
		for (struct nlmsghdr *h = (struct nlmsghdr *)answer; NLMSG_OK(h, left) && !done;
		     h = NLMSG_NEXT(h, left)) {
			done = h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY)
				tell_unix_socket(s, h);
		}
	}
}

/* Sockets that are in no instance any more. */
static void forget_closed(struct sockets *s, uint64_t now)
{
	for (struct known_socket **at = &s->all; *at;) {
		struct known_socket *k = *at;
		if (k->look == s->looks) {
			at = &k->next;
			continue;
		}
		k->record.before_ns = k->last_ns;
		k->record.seen_ns = now;
		k->record.epoll = (uint32_t)FT_SOCKET_GONE;
		if (k->peer_known)
			ft_writer_record(s->writer, FT_BLOCK_SOCKET, &k->record);
		*at = k->next;
		tdelete(k, &s->by_inode, compare_sockets);
		free(k);
		s->count--;
	}
}

static void tell_who(struct sockets *s)
{
	if (!any_without_peer(s, 0))
		return;
	for (size_t i = 0; i < s->diag_count; i++)
		tell_unix(s, s->diag[i]);
	pid_t last_pid = 0; /* the TCP tables take milliseconds */
	for (size_t i = 0; i < s->instance_count; i++) {
		pid_t pid = s->instances[i].pid;
		if (pid != last_pid && any_without_peer(s, pid))
			tell_tcp(s, pid);
		last_pid = pid;
	}
	for (struct known_socket *k = s->all; k; k = k->next)
		k->tries += !k->peer_known;
}

/* The number of descriptors that the processes have open, or 0 before Linux 6.2. */
static uint64_t descriptors(const struct sockets *s)
{
	uint64_t sum = 0;
	pid_t last = 0;
	for (size_t i = 0; i < s->instance_count; i++) {
		char path[64];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%d/fd", s->instances[i].pid);
		if (s->instances[i].pid != last && stat(path, &st) == 0)
			sum += (uint64_t)st.st_size;
		last = s->instances[i].pid;
	}
	return sum;
}

static bool is_due(struct sockets *s, uint64_t now_ns)
{
	if (s->fresh)
		return true;
	uint64_t since_ns = now_ns - s->last_look_ns;
	if (since_ns < LOOK_NS || since_ns < SHARE_TABLES * s->tables_took_ns)
		return false;
	if (since_ns >= SHARE_QUIET * s->took_ns)
		return true;
	return since_ns >= SHARE_CHANGING * s->took_ns && descriptors(s) != s->descriptors;
}

void sockets_look(struct sockets *s, uint64_t now_ns)
{
	if (!sockets_several(s) || !s->device || !is_due(s, now_ns))
		return;
	s->fresh = false;
	s->looks++;
	s->descriptors = descriptors(s);
	for (size_t i = 0; i < s->instance_count;) {
		if (s->instances[i].alone || look_at(s, &s->instances[i]))
			i++;
		else
			s->instances[i] = s->instances[--s->instance_count];
	}
	forget_closed(s, now_ns);
	s->last_look_ns = now_ns;
	s->took_ns = ft_now_ns() - now_ns;
	tell_who(s);
	s->tables_took_ns = ft_now_ns() - now_ns - s->took_ns;
}

void sockets_begin_segment(struct sockets *s)
{
	if (!s)
		return;
	for (const struct known_socket *k = s->all; k; k = k->next)
		if (k->peer_known)
			ft_writer_record(s->writer, FT_BLOCK_SOCKET, &k->record);
	s->full = false;
	forget_ended(s);
}

void sockets_close(struct sockets *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->diag_count; i++)
		close(s->diag[i]);
	tdestroy(s->by_inode, free);
	free(s->text.bytes);
	free(s);
}

/* SPDX-License-Identifier: MIT */
/* Reads the sets of epoll instances from /proc/PID/fdinfo, which shows the inodes of sockets. The peer of a
 * socket comes from the kernel's tables: TCP's as text, which can be read for the network namespace of any
 * process, and those of Unix sockets by netlink, because the text does not show peers. The kernel walks an
 * instance's set under the lock that the server takes to add a connection or to receive events, about a
 * microsecond per connection. So reads are rare: their cost is measured, and the next read is delayed by a
 * multiple of it, and by more while no descriptor is opened or closed. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recording/json_block.h"

enum {
	LOOK_NS = 250000000,
	/* Reads take at most one part in this many of the time: while connections are opened or closed, and
	 * otherwise. */
	SHARE_CHANGING = 200,
	SHARE_QUIET = 2000,
	SHARE_TABLES = 20, /* of the tables, while connections are new: no server waits for those reads */
	INSTANCES_MAX = 4096,
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
	UT_hash_handle hh;
};

struct sockets {
	struct ft_writer *writer;
	struct instance instances[INSTANCES_MAX];
	size_t instance_count;
	struct diag diag[NAMESPACES_MAX];
	size_t diag_count;
	uint64_t device; /* device number of the sockets' inodes, in the format of fdinfo; 0: unknown */
	struct known_socket *by_inode; /* hash table */
	bool full;
	bool fresh; /* some instances have not been read yet */
	uint64_t looks, last_look_ns;
	uint64_t took_ns, tables_took_ns; /* the last read */
	uint64_t descriptors;		  /* descriptors that the processes had open then */
	struct text text;
};

static struct known_socket *find(const struct sockets *s, uint64_t inode)
{
	struct known_socket *found;
	HASH_FIND(hh, s->by_inode, &inode, sizeof inode, found);
	return found;
}

static int open_diag(void)
{
	return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

uint64_t network_namespace(pid_t pid)
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

size_t diag_open(struct diag all[NAMESPACES_MAX], const pid_t *pids, size_t count)
{
	size_t opened = 0;
	struct diag one = {open_diag(), network_namespace(0)};
	if (one.fd >= 0)
		all[opened++] = one;
	for (size_t i = 0; i < count && opened < NAMESPACES_MAX; i++) {
		one.netns = network_namespace(pids[i]);
		bool known = one.netns == 0 || one.netns == network_namespace(0);
		for (size_t k = 0; k < opened; k++)
			known |= all[k].netns == one.netns;
		if (!known && (one.fd = open_diag_of(pids[i])) >= 0)
			all[opened++] = one;
	}
	return opened;
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
	s->diag_count = diag_open(s->diag, pids, count);
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
	if (HASH_COUNT(s->by_inode) == SOCKETS_MAX) {
		note_full(s);
		return NULL;
	}
	struct known_socket *k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	k->record.inode = inode;
	HASH_ADD(hh, s->by_inode, record.inode, sizeof k->record.inode, k);
	if (!hash_added(k)) {
		free(k);
		return NULL;
	}
	return k;
}

/* A socket is in this instance now. */
static void see_socket(struct sockets *s, const struct instance *instance, uint64_t inode, uint64_t now)
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
			see_socket(s, instance, inode, now);
	}
	return true;
}

/* Whether sockets of this process (0: of any) are worth a lookup in the tables. */
static bool any_without_peer(const struct sockets *s, pid_t pid)
{
	for (const struct known_socket *k = s->by_inode; k; k = k->hh.next)
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
	struct known_socket *k, *next;
	HASH_ITER(hh, s->by_inode, k, next)
	{
		if (k->look == s->looks)
			continue;
		k->record.before_ns = k->last_ns;
		k->record.seen_ns = now;
		k->record.epoll = (uint32_t)FT_SOCKET_GONE;
		if (k->peer_known)
			ft_writer_record(s->writer, FT_BLOCK_SOCKET, &k->record);
		HASH_DEL(s->by_inode, k);
		free(k);
	}
}

static void tell_who(struct sockets *s)
{
	if (!any_without_peer(s, 0))
		return;
	for (size_t i = 0; i < s->diag_count; i++)
		tell_unix(s, s->diag[i].fd);
	pid_t last_pid = 0; /* the TCP tables take milliseconds */
	for (size_t i = 0; i < s->instance_count; i++) {
		pid_t pid = s->instances[i].pid;
		if (pid != last_pid && any_without_peer(s, pid))
			tell_tcp(s, pid);
		last_pid = pid;
	}
	for (struct known_socket *k = s->by_inode; k; k = k->hh.next)
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
	for (const struct known_socket *k = s->by_inode; k; k = k->hh.next)
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
		close(s->diag[i].fd);
	hash_free_all(struct known_socket, s->by_inode);
	free(s->text.bytes);
	free(s);
}

/* Text instead of netlink: it needs only read permission, and no socket in the other network namespace. */

bool any_link(pid_t pid, bool (*see)(void *context, const char *link), void *context)
{
	char path[32], link[64];
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	bool found = false;
	for (struct dirent *e; !found && (e = readdir(dir));) {
		cpu_offer_in_loop();
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
		if (n <= 0)
			continue;
		link[n] = 0;
		found = see(context, link);
	}
	closedir(dir);
	return found;
}

static bool note_inode(void *context, const char *link)
{
	char inode[32] = "";
	if (sscanf(link, "socket:[%31[0-9]]", inode) == 1)
		json_put_truth(context, inode, true);
	return false;
}

json_t *socket_inodes(pid_t pid)
{
	json_t *inodes = json_object();
	any_link(pid, note_inode, inodes);
	return inodes;
}

bool has_inode(const json_t *inodes, unsigned long inode)
{
	char text[32];
	snprintf(text, sizeof text, "%lu", inode);
	return json_object_get(inodes, text) != NULL;
}

int each_tcp_socket(const char *pid, const char *table,
		    void (*see)(void *context, const struct tcp_socket *s), void *context)
{
	char path[64], line[512];
	snprintf(path, sizeof path, "/proc/%s/net/%s", pid, table);
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof line, f)) {
		struct tcp_socket s;
		cpu_offer_in_loop();
		if (sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*s %*s %*s %*d %*d %lu",
			   s.local_address, &s.local_port, s.peer_address, &s.peer_port, &s.state,
			   &s.inode) == 6)
			see(context, &s);
	}
	fclose(f);
	return 0;
}

/* Reads text from /proc, because netlink would only show the recorder's own network namespace. /proc has no
 * list of a namespace's IPv4 addresses, but the routing table shows them: a local address is a leaf "|--
 * 10.0.0.1" with a line "/32 host LOCAL" below it. */

enum { ADDRESSES_MAX = 256 }; /* of a machine with thousands of addresses, the first ones must suffice */

static void add_address(json_t *all, int family, const void *address)
{
	char text[INET6_ADDRSTRLEN];
	size_t i;
	json_t *one;

	if (!inet_ntop(family, address, text, sizeof text) || json_array_size(all) >= ADDRESSES_MAX)
		return;
	json_array_foreach(all, i, one) if (!strcmp(json_string_value(one), text)) return;
	json_put_text(all, NULL, text);
}

static void add_ipv4(json_t *all, const char *path)
{
	char line[256], text[INET_ADDRSTRLEN] = "";
	struct in_addr address;
	FILE *in = fopen(path, "re");

	while (in && fgets(line, sizeof line, in)) {
		if (sscanf(line, " |-- %15[0-9.]", text) == 1 || !strstr(line, "/32 host LOCAL"))
			continue;
		if (inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 != IN_LOOPBACKNET)
			add_address(all, AF_INET, &address);
	}
	if (in)
		fclose(in);
}

static void add_ipv6(json_t *all, const char *path)
{
	char line[256];
	FILE *in = fopen(path, "re");

	while (in && fgets(line, sizeof line, in)) {
		struct in6_addr address;
		bool whole = strlen(line) >= 32;

		for (int i = 0; i < 16 && whole; i++) {
			unsigned int byte;

			whole = sscanf(line + 2 * i, "%2x", &byte) == 1;
			address.s6_addr[i] = (uint8_t)byte;
		}
		if (whole && !IN6_IS_ADDR_LOOPBACK(&address))
			add_address(all, AF_INET6, &address);
	}
	if (in)
		fclose(in);
}

json_t *addresses_read(const char *fib_trie, const char *if_inet6)
{
	json_t *all = json_array();

	add_ipv4(all, fib_trie);
	add_ipv6(all, if_inet6);
	return all;
}

json_t *addresses_of(pid_t pid)
{
	char fib_trie[64], if_inet6[64];

	snprintf(fib_trie, sizeof fib_trie, "/proc/%d/net/fib_trie", (int)pid);
	snprintf(if_inet6, sizeof if_inet6, "/proc/%d/net/if_inet6", (int)pid);
	return addresses_read(fib_trie, if_inet6);
}

/* An io_uring is an anonymous file with its own name. */

static bool is_io_uring(void *context, const char *link)
{
	(void)context;
	return strcmp(link, "anon_inode:[io_uring]") == 0;
}

bool has_io_uring(pid_t pid)
{
	return any_link(pid, is_io_uring, NULL);
}

/* Listening sockets, from the tables in /proc/net and the links in /proc/PID/fd. The tables contain inodes
 * without processes, the links processes without addresses, so each listening inode is searched in the links.
 * Text is used instead of netlink, because it is read only a few times per recording and is available for the
 * network namespace of any process. */

/* Receives a listening socket: its inode, and its port (path NULL) or path. */
typedef void (*listener_fn)(void *context, unsigned long inode, int port, const char *path);

struct each {
	listener_fn see;
	void *context;
};

static void see_tcp(void *context, const struct tcp_socket *s)
{
	enum { LISTEN = 0x0a };
	const struct each *each = context;
	if (s->state == LISTEN)
		each->see(each->context, s->inode, (int)s->local_port, NULL);
}

/* Visits the listening TCP sockets of a process' network namespace. "self": this process' namespace. */
static int each_tcp(const char *pid, listener_fn see, void *context)
{
	struct each each = {see, context};
	int err = each_tcp_socket(pid, "tcp", see_tcp, &each);
	each_tcp_socket(pid, "tcp6", see_tcp, &each);
	return err;
}

static int each_unix(const char *pid, listener_fn see, void *context)
{
	enum { ACCEPTS = 0x10000 }; /* __SO_ACCEPTCON */
	char path[64], line[PATH_MAX + 128];
	snprintf(path, sizeof path, "/proc/%s/net/unix", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof line, f)) {
		unsigned int flags;
		unsigned long inode;
		int at = 0;
		cpu_offer_in_loop();
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %lu %n", &flags, &inode, &at) >= 2 && at &&
		    (flags & ACCEPTS) && line[at] == '/')
			see(context, inode, 0, line + at);
	}
	fclose(f);
	return 0;
}

static bool contains(const struct inodes *list, unsigned long inode)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->inode[i] == inode)
			return true;
	return false;
}

static void add_inode(struct inodes *list, unsigned long inode)
{
	if (list->count < INODES_MAX)
		list->inode[list->count++] = inode;
}

struct search {
	struct inodes *found;
	int port;
	const char *path;
};

static void see_port(void *context, unsigned long inode, int port, const char *path)
{
	(void)path;
	struct search *s = context;
	if (port == s->port)
		add_inode(s->found, inode);
}

static bool same_path(const char *a, const char *b)
{
	char ra[PATH_MAX], rb[PATH_MAX];
	return strcmp(a, b) == 0 || (realpath(a, ra) && realpath(b, rb) && strcmp(ra, rb) == 0);
}

static void see_path(void *context, unsigned long inode, int port, const char *path)
{
	(void)port;
	struct search *s = context;
	if (same_path(path, s->path))
		add_inode(s->found, inode);
}

int listeners_on_port(struct inodes *found, int port)
{
	return each_tcp("self", see_port, &(struct search){.found = found, .port = port});
}

int listeners_on_path(struct inodes *found, const char *path)
{
	return each_unix("self", see_path, &(struct search){.found = found, .path = path});
}

static bool is_wanted(void *context, const char *link)
{
	unsigned long inode;
	return sscanf(link, "socket:[%lu]", &inode) == 1 && contains(context, inode);
}

bool holds_socket(pid_t pid, const struct inodes *wanted)
{
	return any_link(pid, is_wanted, (void *)(uintptr_t)wanted);
}

/* The sockets of a process, and the addresses of those that listen. */
struct listening {
	json_t *inodes, *addresses;
};

static void see_any(void *context, unsigned long inode, int port, const char *path)
{
	struct listening *l = context;
	char address[PATH_MAX + 8];
	if (!has_inode(l->inodes, inode))
		return;
	if (path)
		snprintf(address, sizeof address, "unix:%s", path);
	else
		snprintf(address, sizeof address, "tcp:%d", port);
	json_put_text(l->addresses, NULL, address);
}

json_t *listen_addresses(pid_t pid)
{
	char text[16];
	struct listening l = {socket_inodes(pid), json_array()};
	snprintf(text, sizeof text, "%d", pid);
	if (json_object_size(l.inodes)) {
		each_tcp(text, see_any, &l);
		each_unix(text, see_any, &l);
	}
	json_decref(l.inodes);
	return l.addresses;
}

/* Tables of sockets do not say who opened a connection: one that comes from a port with a listening socket
 * was accepted. The process' sockets are found first, so that each table is read once and few addresses are
 * kept. */

enum { ESTABLISHED = 1, LISTEN = 0x0a, ADDRESS_BYTES = INET6_ADDRSTRLEN + 8 };

struct connection {
	unsigned local_port, peer_port;
	char local_address[33], peer_address[33];
};

struct outgoing {
	bool listened[UINT16_MAX + 1];
	json_t *inodes; /* of the process' sockets */
	struct connection *all;
	size_t count, room;
};

/* An address as in /proc/net/tcp: 32-bit words in hexadecimal, each in the host's byte order. */
static bool address_text(const char *hex, unsigned port, char *to)
{
	uint32_t words[4];
	size_t n = 0;
	char word[9] = "", text[INET6_ADDRSTRLEN];
	for (; n < 4 && strlen(hex) >= 8; n++, hex += 8) {
		memcpy(word, hex, 8);
		words[n] = (uint32_t)strtoul(word, NULL, 16);
	}
	const bool mapped = n == 4 && !words[0] && !words[1] && words[2] == htonl(0xffff),
		   v6 = n == 4 && !mapped;
	if ((n != 1 && n != 4) ||
	    !inet_ntop(v6 ? AF_INET6 : AF_INET, mapped ? words + 3 : words, text, sizeof text))
		return false;
	snprintf(to, ADDRESS_BYTES, v6 ? "[%s]:%u" : "%s:%u", text, port);
	return true;
}

static void note_socket(void *context, const struct tcp_socket *s)
{
	struct outgoing *o = context;
	if (s->state == LISTEN)
		o->listened[s->local_port & UINT16_MAX] = true;
	if (s->state != ESTABLISHED || !has_inode(o->inodes, s->inode) ||
	    !grow(&o->all, &o->room, o->count, sizeof *o->all))
		return;
	struct connection *c = &o->all[o->count++];
	c->local_port = s->local_port;
	c->peer_port = s->peer_port;
	memcpy(c->local_address, s->local_address, sizeof c->local_address);
	memcpy(c->peer_address, s->peer_address, sizeof c->peer_address);
}

static bool has_text(const json_t *texts, const char *text)
{
	size_t i;
	json_t *known;
	json_array_foreach(texts, i, known)
	{
		if (strcmp(json_string_value(known), text) == 0)
			return true;
	}
	return false;
}

static void put_connection(const struct connection *c, json_t *peers, json_t *local_ends)
{
	char address[ADDRESS_BYTES];
	if (json_array_size(peers) < PEERS_MAX && address_text(c->peer_address, c->peer_port, address) &&
	    !has_text(peers, address))
		json_put_text(peers, NULL, address);
	if (json_array_size(local_ends) < LOCAL_ENDS_MAX &&
	    address_text(c->local_address, c->local_port, address))
		json_put_text(local_ends, NULL, address);
}

void peers_put(json_t *object, pid_t pid)
{
	struct outgoing *o = calloc(1, sizeof *o);
	json_t *peers = json_put_array(object, "peers"), *local_ends = json_put_array(object, "local_ends");
	if (!o)
		return;
	char text[16];
	snprintf(text, sizeof text, "%d", pid);
	o->inodes = socket_inodes(pid);
	if (json_object_size(o->inodes)) {
		each_tcp_socket(text, "tcp", note_socket, o);
		each_tcp_socket(text, "tcp6", note_socket, o);
	}
	for (size_t i = 0; i < o->count; i++)
		if (!o->listened[o->all[i].local_port & UINT16_MAX])
			put_connection(&o->all[i], peers, local_ends);
	json_decref(o->inodes);
	free(o->all);
	free(o);
}

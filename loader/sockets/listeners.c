/* SPDX-License-Identifier: MIT */
/* Listening sockets, from the tables in /proc/net and the links in /proc/PID/fd. The tables contain inodes
 * without processes, the links processes without addresses, so each listening inode is searched in the links.
 * Text is used instead of netlink, because it is read only a few times per recording and is available for the
 * network namespace of any process. */
#include "loader/sockets/listeners.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/sockets/proc_sockets.h"
#include "loader/system/affinity.h"
#include "recording/json/json_block.h"

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

static void add(struct inodes *list, unsigned long inode)
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
		add(s->found, inode);
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
		add(s->found, inode);
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

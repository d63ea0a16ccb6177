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

struct any {
	bool (*see)(void *context, unsigned long inode);
	void *context;
};

static bool see_link(void *context, const char *link)
{
	const struct any *any = context;
	unsigned long inode;
	return sscanf(link, "socket:[%lu]", &inode) == 1 && any->see(any->context, inode);
}

/* Calls `see` with each socket of a process until it returns true. */
static bool any_socket(pid_t pid, bool (*see)(void *context, unsigned long inode), void *context)
{
	return any_link(pid, see_link, &(struct any){see, context});
}

static bool is_wanted(void *context, unsigned long inode)
{
	return contains(context, inode);
}

bool holds_socket(pid_t pid, const struct inodes *wanted)
{
	return any_socket(pid, is_wanted, (void *)(uintptr_t)wanted);
}

/* Listening sockets of a namespace by inode, and those that one process holds. */
struct listening {
	json_t *by_inode; /* {"12345": "tcp:6379"} */
	json_t *addresses;
};

static void see_any(void *context, unsigned long inode, int port, const char *path)
{
	struct listening *l = context;
	char key[32], address[PATH_MAX + 8];
	snprintf(key, sizeof key, "%lu", inode);
	if (path)
		snprintf(address, sizeof address, "unix:%s", path);
	else
		snprintf(address, sizeof address, "tcp:%d", port);
	json_put_text(l->by_inode, key, address);
}

static bool collect(void *context, unsigned long inode)
{
	struct listening *l = context;
	char key[32];
	snprintf(key, sizeof key, "%lu", inode);
	json_t *address = json_object_get(l->by_inode, key);
	if (address)
		json_array_append(l->addresses, address);
	return false;
}

static bool is_any(void *context, unsigned long inode)
{
	(void)context, (void)inode;
	return true;
}

json_t *listen_addresses(pid_t pid)
{
	char text[16];
	if (!any_socket(pid, is_any, NULL)) /* most processes: the tables can be long */
		return json_array();
	struct listening l = {json_object(), json_array()};
	snprintf(text, sizeof text, "%d", pid);
	each_tcp(text, see_any, &l);
	each_unix(text, see_any, &l);
	any_socket(pid, collect, &l);
	json_decref(l.by_inode);
	return l.addresses;
}

/* SPDX-License-Identifier: MIT */
/* Text instead of netlink: it needs only read permission, and no socket in the other network namespace. */
#include "loader/sockets/proc_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "loader/system/affinity.h"
#include "recording/json/json_block.h"

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

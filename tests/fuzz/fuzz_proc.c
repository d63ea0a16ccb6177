/* SPDX-License-Identifier: MIT */
/* The recorder's reading of /proc and of cgroups under libFuzzer, from a directory that looks like it:
 * counters of the host, a target's stat (whose comm may have any content), cgroups with their quotas and
 * limits, listening sockets. An input is parts that begin with a byte 1 and the letter of a file (below). '@'
 * in a list of mounts is the directory. Everything is read twice, because rates need two readings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* It defines its own parsers, which read files in /proc. */
#include "loader/output.h"
#include "loader/targets/sockets.c"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

enum { PID = 4711, MOUNTINFO = 'h', FILES = 17 };

/* 'a', 'b' and so on. */
static const char *const files[FILES] = {
    "proc/stat",	   "proc/meminfo",	     "proc/vmstat",
    "proc/diskstats",	   "proc/softirqs",	     "proc/net/dev",
    "proc/4711/stat",	   "proc/self/mountinfo",    "proc/4711/cgroup",
    "cg/x/cpu.max",	   "cg/x/cpu.stat",	     "cg/x/cpu.cfs_quota_us",
    "proc/4711/net/tcp",   "proc/4711/net/unix",     "cg/x/memory.events",
    "cg/x/memory.failcnt", "cg/x/memory.oom_control"};

static void write_mounts(const char *text, size_t size)
{
	char root[SCRATCH_PATH], *whole = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&whole, &length);

	scratch_path(root, "cg");
	for (size_t i = 0; i < size; i++)
		if (text[i] == '@')
			fputs(root, out);
		else
			fputc(text[i], out);
	fclose(out);
	scratch_write(files[MOUNTINFO - 'a'], whole, length);
	free(whole);
}

static void write_files(const char *data, size_t size)
{
	bool written[FILES] = {false};

	for (const char *at = data, *end = data + size, *next; at < end; at = next) {
		size_t which = at + 1 < end ? (size_t)(at[1] - 'a') : FILES;

		next = memchr(at + 1, 1, (size_t)(end - at - 1));
		next = next ? next : end;
		if (*at != 1 || which >= FILES)
			continue;
		written[which] = true;
		if (at[1] == MOUNTINFO)
			write_mounts(at + 2, (size_t)(next - at) - 2);
		else
			scratch_write(files[which], at + 2, (size_t)(next - at) - 2);
	}
	for (size_t i = 0; i < FILES; i++)
		if (!written[i])
			scratch_write(files[i], NULL, 0);
}

static void look(const char *proc, struct ft_writer *writer)
{
	static const pid_t pid = PID;
	struct proc_metrics *metrics = proc_metrics_open(writer, proc);
	struct quotas *quotas = metrics ? quotas_open(writer, metrics, proc) : NULL;
	struct cgroup_memory *memory = metrics ? cgroup_memory_open(metrics, proc) : NULL;

	for (int i = 0; i < 2 && metrics; i++) {
		proc_metrics_sample(metrics, &pid, 1);
		quotas_look(quotas, &pid, 1, (uint64_t)i << 40);
		cgroup_memory_look(memory, &pid, 1, (uint64_t)i << 40);
	}
	quotas_close(quotas);
	cgroup_memory_close(memory);
	proc_metrics_close(metrics);
}

/* As if the process had each of these sockets. */
static void see_each(void *context, unsigned long inode, int port, const char *path)
{
	struct listening *l = context;
	char text[32];
	snprintf(text, sizeof(text), "%lu", inode);
	json_put_truth(l->inodes, text, true);
	see_any(l, inode, port, path);
}

/* Every listening socket of every line has to be in the parsed result. */
static void listen_to(const char *process)
{
	struct listening l = {json_object(), json_array()};
	json_t *address;
	size_t i;
	char from_proc[SCRATCH_PATH + 8];

	snprintf(from_proc, sizeof(from_proc), "..%s", process);
	each_tcp(from_proc, see_each, &l);
	each_unix(from_proc, see_each, &l);
	if (json_object_size(l.inodes) && !json_array_size(l.addresses))
		abort();
	json_array_foreach(l.addresses, i, address) if (!json_string_length(address)) abort();
	json_decref(l.inodes);
	json_decref(l.addresses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[SCRATCH_PATH];
	struct ft_writer *writer;

	write_files((const char *)data, size);
	scratch_path(path, "recording");
	if (ft_writer_open(&writer, path, "{}")) {
		perror(path);
		exit(3);
	}
	scratch_path(path, "proc");
	look(path, writer);
	scratch_path(path, "proc/4711");
	listen_to(path);
	ft_writer_close(writer, NULL);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Descriptions are kept, and renewed one at a time: where a process listens and connects to is found in the
 * tables of all sockets of its network namespace, which takes milliseconds with thousands of connections, and
 * seconds for hundreds of processes. */
#include "loader/targets/descriptions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/sockets/addresses.h"
#include "loader/sockets/io_uring.h"
#include "loader/sockets/listeners.h"
#include "loader/sockets/peers.h"
#include "loader/system/cpu_time.h"
#include "loader/system/text.h"
#include "loader/targets/cgroups.h"
#include "recording/json/json_block.h"

#define RENEW_NS 60000000000ull
#define YOUNG_NS 15000000000ull
#define RENEW_YOUNG_NS 3000000000ull
enum { SHARE = 500 };

struct description {
	pid_t pid;
	uint64_t added_ns, renewed_ns;
	json_t *text;
	char cmdline[DESCRIPTION_CMDLINE_BYTES];
};

struct descriptions {
	struct description all[TARGETS_MAX];
	size_t count;
	uint64_t due_ns;
};

static json_t *describe(pid_t pid, const char *cmdline)
{
	char comm[32], cgroup[CGROUP_BYTES], name[CGROUP_NAME_BYTES];
	read_proc(pid, "comm", comm, sizeof comm);
	json_t *process =
	    json_pack("{s:i, s:o, s:o, s:o, s:b}", "pid", (int)pid, "comm", json_text(comm, strlen(comm)),
		      "cmdline", json_text(cmdline, strlen(cmdline)), "listens", listen_addresses(pid),
		      "io_uring", has_io_uring(pid));
	json_object_set_new(process, "addresses", addresses_of(pid));
	peers_put(process, pid);
	if (cgroup_best("", pid, cgroup)) {
		cgroup_name("", cgroup, name);
		json_put_text(process, "cgroup", cgroup);
		json_put_text(process, "cgroup_of", name);
	}
	return process;
}

struct descriptions *descriptions_open(void)
{
	return calloc(1, sizeof(struct descriptions));
}

static struct description *find(struct descriptions *d, pid_t pid)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->all[i].pid == pid)
			return &d->all[i];
	return NULL;
}

static json_t *renew(struct description *one, uint64_t now_ns)
{
	json_decref(one->text);
	one->text = describe(one->pid, one->cmdline);
	one->renewed_ns = now_ns;
	return one->text;
}

json_t *descriptions_add(struct descriptions *d, pid_t pid, const char *cmdline, uint64_t now_ns)
{
	struct description *one = d ? find(d, pid) : NULL;
	if (d && !one && d->count < TARGETS_MAX) {
		one = &d->all[d->count++];
		*one = (struct description){.pid = pid, .added_ns = now_ns};
		snprintf(one->cmdline, sizeof one->cmdline, "%s", cmdline);
	}
	return one ? renew(one, now_ns) : NULL;
}

void descriptions_forget(struct descriptions *d, pid_t pid)
{
	struct description *one = d ? find(d, pid) : NULL;
	if (!one)
		return;
	json_decref(one->text);
	*one = d->all[--d->count];
}

json_t *descriptions_all(const struct descriptions *d)
{
	json_t *all = json_array();
	for (size_t i = 0; d && i < d->count; i++)
		json_array_append(all, d->all[i].text);
	return all;
}

static bool is_young(const struct description *one, uint64_t now_ns)
{
	return now_ns - one->added_ns < YOUNG_NS;
}

/* The one that it is time for: a young one first, then the one looked up longest ago. */
static struct description *next(struct descriptions *d, uint64_t now_ns)
{
	struct description *best = NULL;
	for (size_t i = 0; i < d->count; i++) {
		struct description *one = &d->all[i];
		const bool young = is_young(one, now_ns), best_young = best && is_young(best, now_ns);
		if (now_ns - one->renewed_ns < (young ? RENEW_YOUNG_NS : RENEW_NS))
			continue;
		if (!best || (young == best_young ? one->renewed_ns < best->renewed_ns : young))
			best = one;
	}
	return best;
}

json_t *descriptions_tick(struct descriptions *d, uint64_t now_ns)
{
	struct description *one = d && now_ns >= d->due_ns ? next(d, now_ns) : NULL;
	if (!one)
		return NULL;
	const uint64_t cpu_ns = own_cpu_ns();
	renew(one, now_ns);
	d->due_ns = now_ns + SHARE * (own_cpu_ns() - cpu_ns);
	return one->text;
}

void descriptions_close(struct descriptions *d)
{
	for (size_t i = 0; d && i < d->count; i++)
		json_decref(d->all[i].text);
	free(d);
}

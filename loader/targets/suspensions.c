/* SPDX-License-Identifier: MIT */
/* Notes of freezers and tracers. The cgroup of a frozen thread can be looked up when it runs again, because
 * the kernel reports only that it was frozen, and by which version's freezer. */
#include "loader/targets/suspensions.h"

#include <stdlib.h>
#include <string.h>

#include "loader/system/grow.h"
#include "recording/json/json_block.h"

/* Children that are frozen in a group count in addition to targets, and their number has no limit. */
enum { GROUPS_MAX = 4096 };

/* Whether this process was seen frozen in that group before. It counts as seen from now on. */
static bool is_noted(struct suspensions *h, uint32_t tgid, const char *path)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->groups[i].tgid == tgid && strcmp(h->groups[i].path, path) == 0)
			return true;
	if (h->count == GROUPS_MAX || !grow(&h->groups, &h->room, h->count, sizeof *h->groups))
		return true;
	struct frozen_group *g = &h->groups[h->count++];
	g->tgid = tgid;
	strcpy(g->path, path);
	return false;
}

void suspensions_frozen(struct suspensions *h, struct ft_writer *w, const struct threads *threads,
			const struct ft_event_span *e)
{
	char path[CGROUP_BYTES], name[CGROUP_NAME_BYTES];
	uint32_t tgid = threads_tgid(threads, e->tid);
	const char *root = h->root ? h->root : "";
	if (!cgroup_of(root, (pid_t)e->tid, e->arg[0] == FT_FREEZER_V2 ? "" : "freezer", path) ||
	    is_noted(h, tgid, path))
		return;
	cgroup_name(root, path, name);
	json_t *note = json_note(e->start_ns, "frozen");
	json_put_count(note, "pid", tgid);
	json_put_text(note, "cgroup", path);
	json_put_text(note, "cgroup_of", name);
	write_json_note(w, note);
}

static void write_tracer(struct ft_writer *w, const struct tracer *t)
{
	json_t *note = json_note(t->t_ns, "tracer");
	json_put_count(note, "pid", t->pid);
	json_put(note, "comm", json_text(t->comm, strnlen(t->comm, sizeof t->comm)));
	write_json_note(w, note);
}

void suspensions_traced(struct suspensions *h, struct ft_writer *w, const struct ft_event_span_detail *e)
{
	struct tracer t = {.t_ns = e->span.start_ns, .pid = e->span.arg[0]};
	memcpy(t.comm, e->name, sizeof t.comm);
	write_tracer(w, &t);
	for (size_t i = 0; i < h->tracer_count; i++)
		if (h->tracers[i].pid == t.pid)
			return;
	if (h->tracer_count == TRACERS_MAX)
		memmove(h->tracers, h->tracers + 1, --h->tracer_count * sizeof *h->tracers);
	h->tracers[h->tracer_count++] = t;
}

void suspensions_begin_segment(struct suspensions *h, struct ft_writer *w)
{
	h->count = 0;
	for (size_t i = 0; i < h->tracer_count; i++)
		write_tracer(w, &h->tracers[i]);
}

void suspensions_free(struct suspensions *h)
{
	free(h->groups);
	h->groups = NULL;
	h->count = h->room = 0;
}

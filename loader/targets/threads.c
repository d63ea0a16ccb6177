/* SPDX-License-Identifier: MIT */
/* Names and roles of traced threads. A role is what a reader wants to know: "snapshot child", not
 * "redis-server". Redis shows it in the process title of its children and the names of its background
 * threads. Threads set these themselves after they start, so names are read repeatedly for a while. */
#include "loader/targets/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/system/grow.h"
#include "loader/system/text.h"
#include "recording/json/json_block.h"

enum { LOOKS = 50, YOUNG_NS = 200000000 }; /* five seconds; 200 ms */

static const struct {
	const char *title, *role;
} child_roles[] = {
    {"redis-rdb-bgsave", "snapshot child"},	   {"valkey-rdb-bgsave", "snapshot child"},
    {"keydb-rdb-bgsave", "snapshot child"},	   {"redis-aof-rewrite", "AOF rewrite child"},
    {"valkey-aof-rewrite", "AOF rewrite child"},   {"keydb-aof-rewrite", "AOF rewrite child"},
    {"redis-rdb-to-slaves", "replica sync child"}, {"valkey-rdb-to-replicas", "replica sync child"},
};

/* Fills comm and role from /proc. Leaves them unchanged if the thread has exited. */
static void look(struct ft_thread *r)
{
	char text[256], file[32];
	snprintf(file, sizeof file, "task/%u/comm", r->tid);
	if (read_proc((pid_t)r->tgid, file, text, sizeof text) > 0)
		snprintf(r->comm, sizeof r->comm, "%.15s", text);
	if (r->flags & FT_THREAD_CLIENT) {
		snprintf(r->role, sizeof r->role, "load generator");
		return;
	}
	if (!(r->flags & FT_THREAD_CHILD) || !(r->flags & FT_THREAD_MAIN)) {
		snprintf(r->role, sizeof r->role, "%s", r->comm);
		return;
	}
	if (!r->role[0])
		snprintf(r->role, sizeof r->role, "child");
	if (read_proc((pid_t)r->tgid, "cmdline", text, sizeof text) <= 0)
		return;
	for (size_t i = 0; i < sizeof child_roles / sizeof *child_roles; i++)
		if (strncmp(text, child_roles[i].title, strlen(child_roles[i].title)) == 0)
			snprintf(r->role, sizeof r->role, "%s", child_roles[i].role);
}

void threads_begin(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w)
{
	if (!grow(&t->all, &t->room, t->count, sizeof *t->all))
		return;
	struct thread *n = &t->all[t->count++];
	memset(n, 0, sizeof *n);
	n->record.start_ns = e->begin_ns;
	n->record.tid = e->tid;
	n->record.tgid = e->tgid;
	memcpy(n->record.comm, e->comm, sizeof n->record.comm);
	bool child = e->parent_tgid && e->parent_tgid != e->tgid;
	/* Threads and children of a child count as children too. */
	for (size_t i = 0; i + 1 < t->count && !child; i++)
		child = t->all[i].record.tgid == e->parent_tgid && (t->all[i].record.flags & FT_THREAD_CHILD);
	n->record.parent_tgid = e->parent_tgid == e->tgid ? 0 : e->parent_tgid;
	n->record.flags = (e->tid == e->tgid ? FT_THREAD_MAIN : 0) | (child ? FT_THREAD_CHILD : 0) |
			  (e->client ? FT_THREAD_CLIENT : 0);
	t->begun += !e->client;
	look(&n->record);
	ft_writer_record(w, FT_BLOCK_THREAD, &n->record);
}

static struct ended_target *ended_of(struct threads *t, const struct ft_thread *r)
{
	for (size_t i = 0; i < t->ended_count; i++)
		if (t->ended[i].pid == (pid_t)r->tgid && !t->ended[i].t_ns)
			return &t->ended[i];
	struct ended_target *grown = realloc(t->ended, (t->ended_count + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	t->ended = grown;
	struct ended_target *e = &t->ended[t->ended_count++];
	e->pid = (pid_t)r->tgid;
	e->t_ns = 0;
	memcpy(e->comm, r->comm, sizeof e->comm);
	return e;
}

/* A thread of a target has exited. With the last thread, the target ends under the name of its main thread.
 * Whether its children continue does not matter. */
static void note_end(struct threads *t, const struct ft_thread *r, struct ft_writer *w)
{
	bool last = !threads_alive(t, (pid_t)r->tgid), main = r->flags & FT_THREAD_MAIN;
	if (r->flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT) || (!last && !main))
		return;
	struct ended_target *e = ended_of(t, r);
	if (!e || !last)
		return;
	e->t_ns = r->end_ns;
	json_t *note = json_note(e->t_ns, "target-ended");
	json_put_count(note, "pid", r->tgid);
	json_put(note, "comm", json_text(e->comm, strnlen(e->comm, sizeof e->comm)));
	write_json_note(w, note);
}

void threads_free(struct threads *t)
{
	free(t->all);
	free(t->ended);
	memset(t, 0, sizeof *t);
}

void threads_end(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w)
{
	for (size_t i = 0; i < t->count; i++) {
		struct ft_thread *r = &t->all[i].record;
		if (r->tid != e->tid || r->start_ns != e->begin_ns)
			continue;
		r->end_ns = e->t_ns;
		r->flags |= t->closing ? 0 : FT_THREAD_ENDED;
		struct ft_thread last = *r;
		ft_writer_record(w, FT_BLOCK_THREAD, &last);
		t->all[i] = t->all[--t->count];
		if (!t->closing)
			note_end(t, &last, w);
		return;
	}
}

void threads_loop(struct threads *t, const struct ft_loop *l, struct ft_writer *w)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].record.tid == l->tid)
			t->all[i].loop = *l;
	ft_writer_record(w, FT_BLOCK_LOOP, l);
}

void threads_begin_segment(struct threads *t, struct ft_writer *w)
{
	for (size_t i = 0; i < t->count; i++) {
		ft_writer_record(w, FT_BLOCK_THREAD, &t->all[i].record);
		if (t->all[i].loop.t_ns)
			ft_writer_record(w, FT_BLOCK_LOOP, &t->all[i].loop);
	}
	size_t left = 0;
	for (size_t i = 0; i < t->ended_count; i++)
		if (!t->ended[i].t_ns)
			t->ended[left++] = t->ended[i];
	t->ended_count = left;
}

/* Reads the name again and writes it if it has changed. */
static void look_again(struct ft_thread *r, struct ft_writer *w)
{
	struct ft_thread before = *r;
	look(r);
	if (memcmp(&before, r, sizeof before) != 0)
		ft_writer_record(w, FT_BLOCK_THREAD, r);
}

void threads_tick(struct threads *t, struct ft_writer *w)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].looks++ < LOOKS)
			look_again(&t->all[i].record, w);
}

static bool is_missing(const struct ft_thread *r)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%u/task/%u", r->tgid, r->tid);
	return access(path, F_OK) != 0 && errno == ENOENT;
}

/* Missing in two passes: the exit event of a thread that has just exited may still be in the ring. */
void threads_sweep(struct threads *t, void (*ended)(void *context, const struct ft_event_thread *e),
		   void *context)
{
	for (size_t i = t->count;
	     i--;) { /* `ended` removes it, and puts one that was looked at in its place */
		struct thread *n = &t->all[i];
		const uint64_t before_ns = n->missing_ns;
		if (!is_missing(&n->record))
			n->missing_ns = 0;
		else if (!before_ns)
			n->missing_ns = ft_now_ns();
		else
			ended(context, &(struct ft_event_thread){.type = FT_EVENT_THREAD_END,
								 .tid = n->record.tid,
								 .tgid = n->record.tgid,
								 .t_ns = before_ns,
								 .begin_ns = n->record.start_ns});
	}
}

static bool unnamed(const struct ft_thread *r)
{
	return r->flags == (FT_THREAD_MAIN | FT_THREAD_CHILD) && strcmp(r->role, "child") == 0 &&
	       ft_now_ns() - r->start_ns < YOUNG_NS;
}

bool threads_unnamed(const struct threads *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (unnamed(&t->all[i].record))
			return true;
	return false;
}

void threads_look(struct threads *t, struct ft_writer *w)
{
	for (size_t i = 0; i < t->count; i++)
		if (unnamed(&t->all[i].record))
			look_again(&t->all[i].record, w);
}

pid_t threads_parent(const struct threads *t, pid_t tgid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].record.tgid == (uint32_t)tgid)
			return (pid_t)t->all[i].record.parent_tgid;
	return 0;
}

uint32_t threads_tgid(const struct threads *t, uint32_t tid)
{
	for (size_t i = t->count; i--;)
		if (t->all[i].record.tid == tid)
			return t->all[i].record.tgid;
	return tid;
}

bool threads_are_mates(const struct threads *t, uint32_t tid, uint32_t other)
{
	const struct ft_thread *one = NULL, *two = NULL;
	for (size_t i = 0; i < t->count && !(one && two); i++) {
		const struct ft_thread *r = &t->all[i].record;
		if (r->tid == tid)
			one = r;
		if (r->tid == other)
			two = r;
	}
	return one && two && one->tgid == two->tgid;
}

bool threads_alive(const struct threads *t, pid_t tgid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].record.tgid == (uint32_t)tgid)
			return true;
	return false;
}

bool threads_of_other(const struct threads *t, pid_t tgid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].record.tgid == (uint32_t)tgid)
			return t->all[i].record.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT);
	return false;
}

/* SPDX-License-Identifier: MIT */
/* Names and roles of traced threads. A role is what a reader wants to know: "snapshot child", not
 * "redis-server". Redis shows it in the process title of its children and the names of its background
 * threads. Threads set these themselves after they start, so names are read repeatedly for a while. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recording/json_block.h"

enum {
	LOOKS = 7, /* 1, 3, 7, 15 ... ticks after it started: for six seconds or longer */
	LOOKS_PER_TICK = 20,
	YOUNG_NS = 200000000,
};

static const struct {
	const char *title, *role;
} child_roles[] = {
    {"redis-rdb-bgsave", "snapshot child"},	   {"valkey-rdb-bgsave", "snapshot child"},
    {"keydb-rdb-bgsave", "snapshot child"},	   {"redis-aof-rewrite", "AOF rewrite child"},
    {"valkey-aof-rewrite", "AOF rewrite child"},   {"keydb-aof-rewrite", "AOF rewrite child"},
    {"redis-rdb-to-slaves", "replica sync child"}, {"valkey-rdb-to-replicas", "replica sync child"},
    {"keydb-rdb-to-slaves", "replica sync child"},
};

/* Fills comm and role from /proc. Leaves them unchanged if the thread has exited. */
static void look(const struct threads *t, struct ft_thread *r)
{
	char text[256], file[32];
	snprintf(file, sizeof file, "task/%u/comm", r->tid);
	if (read_proc((pid_t)r->tgid, file, text, sizeof text) > 0)
		snprintf(r->comm.raw, sizeof r->comm.raw, "%.15s", text);
	if (r->flags & FT_THREAD_CLIENT) {
		snprintf(r->role.raw, sizeof r->role.raw, "load generator");
		return;
	}
	if (!(r->flags & FT_THREAD_CHILD) || !(r->flags & FT_THREAD_MAIN)) {
		snprintf(r->role.raw, sizeof r->role.raw, "%s", r->comm.raw);
		return;
	}
	if (!r->role.raw[0])
		snprintf(r->role.raw, sizeof r->role.raw, "child");
	if (t->ask_title && strcmp(r->role.raw, "child") == 0)
		t->ask_title(t->ask_context, (pid_t)r->tgid);
}

static struct thread *thread_of(const struct threads *t, uint32_t tid)
{
	struct thread *found;
	HASH_FIND(hh, t->by_tid, &tid, sizeof tid, found);
	return found;
}

static struct process *process_of(const struct threads *t, uint32_t tgid)
{
	struct process *found;
	HASH_FIND(hh, t->by_tgid, &tgid, sizeof tgid, found);
	return found;
}

static struct process *make_process(struct threads *t, uint32_t tgid)
{
	struct process *p = process_of(t, tgid);
	if (p)
		return p;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->tgid = tgid;
	HASH_ADD(hh, t->by_tgid, tgid, sizeof p->tgid, p);
	if (hash_added(p))
		return p;
	free(p);
	return NULL;
}

static void leave_process(struct threads *t, struct process *p)
{
	if (p->threads)
		return;
	HASH_DEL(t->by_tgid, p);
	free(p);
}

/* NULL without memory. */
static struct thread *add_thread(struct threads *t, uint32_t tid, uint32_t tgid)
{
	struct process *p = grow(&t->all, &t->room, t->count, sizeof *t->all) ? make_process(t, tgid) : NULL;
	struct thread *n = p ? calloc(1, sizeof *n) : NULL;
	if (n) {
		n->record.tid = tid;
		HASH_ADD(hh, t->by_tid, record.tid, sizeof n->record.tid, n);
	}
	if (!n || !hash_added(n)) {
		free(n);
		if (p)
			leave_process(t, p);
		return NULL;
	}
	n->process = p;
	p->threads++;
	n->place = t->count;
	t->all[t->count++] = n;
	t->young++;
	return n;
}

static void remove_thread(struct threads *t, struct thread *n)
{
	struct thread *last = t->all[--t->count];
	last->place = n->place;
	t->all[n->place] = last;
	t->young -= n->looks < LOOKS;
	n->process->threads--;
	leave_process(t, n->process);
	HASH_DEL(t->by_tid, n);
	free(n);
}

void threads_begin(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w)
{
	const struct thread *before = thread_of(t, e->tid);
	if (before) /* its exit event was lost */
		threads_end(t,
			    &(struct ft_event_thread){
				.tid = e->tid, .t_ns = e->begin_ns, .begin_ns = before->record.start_ns},
			    w);
	struct thread *n = add_thread(t, e->tid, e->tgid);
	if (!n)
		return;
	struct ft_thread *r = &n->record;
	r->start_ns = e->begin_ns;
	r->tgid = e->tgid;
	memcpy(r->comm.raw, e->comm, sizeof r->comm.raw);
	/* Threads and children of a child count as children too. */
	const struct process *parent = process_of(t, e->parent_tgid);
	bool child =
	    (e->parent_tgid && e->parent_tgid != e->tgid) || (parent && parent->flags & FT_THREAD_CHILD);
	r->parent_tgid = e->parent_tgid == e->tgid ? 0 : e->parent_tgid;
	r->flags = (e->tid == e->tgid ? FT_THREAD_MAIN : 0) | (child ? FT_THREAD_CHILD : 0) |
		   (e->client ? FT_THREAD_CLIENT : 0);
	n->process->flags |= r->flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT);
	if (r->parent_tgid) {
		n->process->parent_tgid = r->parent_tgid;
		t->unnamed_until_ns = r->start_ns + YOUNG_NS;
	}
	n->look_tick = t->ticks + 1;
	t->begun += !e->client;
	look(t, r);
	ft_writer_record(w, FT_BLOCK_THREAD, r);
}

static struct ended_target *ended_of(struct threads *t, const struct ft_thread *r)
{
	for (size_t i = 0; i < t->ended_count; i++)
		if (t->ended[i].pid == (pid_t)r->tgid && !t->ended[i].t_ns)
			return &t->ended[i];
	if (!grow(&t->ended, &t->ended_room, t->ended_count, sizeof *t->ended))
		return NULL;
	struct ended_target *e = &t->ended[t->ended_count++];
	e->pid = (pid_t)r->tgid;
	e->t_ns = 0;
	memcpy(e->comm, r->comm.raw, sizeof e->comm);
	return e;
}

enum { SIGNAL_BITS = 0x7f, CORE_BIT = 0x80, STATUS_SHIFT = 8, STATUS_BITS = 0xff };

void exit_text(uint32_t exit_code, uint32_t exit_flags, char *text, size_t size)
{
	const int signal = (int)(exit_code & SIGNAL_BITS);
	const char *name = sigabbrev_np(signal),
		   *oom = exit_flags & FT_EXIT_OOM_KILLER ? " (OOM killer)" : "";
	*text = 0;
	if (!(exit_flags & FT_EXIT_CODE))
		return;
	if (!signal)
		snprintf(text, size, "exit status %u", exit_code >> STATUS_SHIFT & STATUS_BITS);
	else if (name)
		snprintf(text, size, "killed by SIG%s%s", name, oom);
	else
		snprintf(text, size, "killed by signal %d%s", signal, oom);
}

void json_put_exit(json_t *object, uint32_t exit_code, uint32_t exit_flags)
{
	if (!(exit_flags & FT_EXIT_CODE))
		return;
	if (!(exit_code & SIGNAL_BITS)) {
		json_put_count(object, "status", exit_code >> STATUS_SHIFT & STATUS_BITS);
		return;
	}
	json_put_count(object, "signal", exit_code & SIGNAL_BITS);
	if (exit_code & CORE_BIT)
		json_put(object, "core_dumped", json_true());
	if (exit_flags & FT_EXIT_OOM_KILLER)
		json_put(object, "oom_killer", json_true());
}

static void write_end(const char *kind, uint64_t t_ns, const struct ft_thread *r, const char *comm,
		      size_t length, const struct ft_event_thread *exit, struct ft_writer *w)
{
	json_t *note = json_note(t_ns, kind);
	json_put_count(note, "pid", r->tgid);
	json_put(note, "comm", json_text(comm, length));
	json_put_exit(note, exit->exit_code, exit->exit_flags);
	write_json_note(w, note);
}

/* A thread of a target has exited. With the last thread, the target ends under the name of its main thread.
 * Whether its children continue does not matter. A child's end is noted if a signal killed it. */
static void note_end(struct threads *t, const struct ft_thread *r, const struct ft_event_thread *exit,
		     struct ft_writer *w)
{
	bool last = !threads_alive(t, (pid_t)r->tgid), main = r->flags & FT_THREAD_MAIN;
	if (r->flags & FT_THREAD_CHILD && last && exit->exit_code & SIGNAL_BITS)
		write_end("child-killed", r->end_ns, r, r->role.raw, strnlen(r->role.raw, sizeof r->role.raw),
			  exit, w);
	if (r->flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT) || (!last && !main))
		return;
	struct ended_target *e = ended_of(t, r);
	if (!e || !last)
		return;
	e->t_ns = r->end_ns;
	e->exit_code = exit->exit_code;
	e->exit_flags = exit->exit_flags;
	write_end("target-ended", e->t_ns, r, e->comm, strnlen(e->comm, sizeof e->comm), exit, w);
}

void threads_free(struct threads *t)
{
	while (t->count)
		remove_thread(t, t->all[t->count - 1]);
	free(t->all);
	free(t->ended);
	memset(t, 0, sizeof *t);
}

void threads_end(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w)
{
	struct thread *n = thread_of(t, e->tid);
	if (!n || n->record.start_ns != e->begin_ns)
		return;
	struct ft_thread last = n->record;
	remove_thread(t, n);
	last.end_ns = e->t_ns;
	last.flags |= t->closing ? 0 : FT_THREAD_ENDED;
	ft_writer_record(w, FT_BLOCK_THREAD, &last);
	if (!t->closing)
		note_end(t, &last, e, w);
}

void threads_loop(struct threads *t, const struct ft_loop *l, struct ft_writer *w)
{
	struct thread *n = thread_of(t, l->tid);
	if (n)
		n->loop = *l;
	ft_writer_record(w, FT_BLOCK_LOOP, l);
}

void threads_begin_segment(struct threads *t, struct ft_writer *w)
{
	for (size_t i = 0; i < t->count; i++) {
		ft_writer_record(w, FT_BLOCK_THREAD, &t->all[i]->record);
		if (t->all[i]->loop.t_ns)
			ft_writer_record(w, FT_BLOCK_LOOP, &t->all[i]->loop);
	}
	size_t left = 0;
	for (size_t i = 0; i < t->ended_count; i++)
		if (!t->ended[i].t_ns)
			t->ended[left++] = t->ended[i];
	t->ended_count = left;
}

/* Reads the name again and writes it if it has changed. */
static void look_again(const struct threads *t, struct ft_thread *r, struct ft_writer *w)
{
	struct ft_thread before = *r;
	look(t, r);
	if (memcmp(&before, r, sizeof before) != 0)
		ft_writer_record(w, FT_BLOCK_THREAD, r);
}

void threads_title(struct threads *t, pid_t pid, const char *title, struct ft_writer *w)
{
	struct thread *n = thread_of(t, (uint32_t)pid);
	if (!n || !(n->record.flags & FT_THREAD_CHILD) || !(n->record.flags & FT_THREAD_MAIN))
		return;
	for (size_t i = 0; i < sizeof child_roles / sizeof *child_roles; i++) {
		if (strncmp(title, child_roles[i].title, strlen(child_roles[i].title)) != 0)
			continue;
		snprintf(n->record.role.raw, sizeof n->record.role.raw, "%s", child_roles[i].role);
		ft_writer_record(w, FT_BLOCK_THREAD, &n->record);
	}
}

void threads_tick(struct threads *t, struct ft_writer *w)
{
	t->ticks++;
	for (size_t seen = 0, looks = 0; t->young && seen < t->count && looks < LOOKS_PER_TICK; seen++) {
		t->next_look = (t->next_look + 1) % t->count;
		struct thread *n = t->all[t->next_look];
		if (n->looks == LOOKS || t->ticks < n->look_tick)
			continue;
		look_again(t, &n->record, w);
		n->look_tick = t->ticks + (1u << ++n->looks);
		t->young -= n->looks == LOOKS;
		looks++;
	}
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
		struct thread *n = t->all[i];
		cpu_offer_in_loop();
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
	return r->flags == (FT_THREAD_MAIN | FT_THREAD_CHILD) && strcmp(r->role.raw, "child") == 0 &&
	       ft_now_ns() - r->start_ns < YOUNG_NS;
}

bool threads_unnamed(const struct threads *t)
{
	if (ft_now_ns() >= t->unnamed_until_ns)
		return false;
	for (size_t i = 0; i < t->count; i++)
		if (unnamed(&t->all[i]->record))
			return true;
	return false;
}

void threads_look(struct threads *t, struct ft_writer *w)
{
	if (ft_now_ns() >= t->unnamed_until_ns)
		return;
	for (size_t i = 0; i < t->count; i++)
		if (unnamed(&t->all[i]->record))
			look_again(t, &t->all[i]->record, w);
}

pid_t threads_parent(const struct threads *t, pid_t tgid)
{
	const struct process *p = process_of(t, (uint32_t)tgid);
	return p ? (pid_t)p->parent_tgid : 0;
}

uint32_t threads_tgid(const struct threads *t, uint32_t tid)
{
	const struct thread *n = thread_of(t, tid);
	return n ? n->record.tgid : tid;
}

bool threads_are_mates(const struct threads *t, uint32_t tid, uint32_t other)
{
	const struct thread *one = thread_of(t, tid), *two = thread_of(t, other);
	return one && two && one->process == two->process;
}

bool threads_alive(const struct threads *t, pid_t tgid)
{
	return process_of(t, (uint32_t)tgid);
}

bool threads_of_other(const struct threads *t, pid_t tgid)
{
	const struct process *p = process_of(t, (uint32_t)tgid);
	return p && p->flags;
}

/* Notes of freezers and tracers. The cgroup of a frozen thread can be looked up when it runs again, because
 * the kernel reports only that it was frozen, and by which version's freezer. */

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

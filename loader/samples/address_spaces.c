/* SPDX-License-Identifier: MIT */
/* Maps processes to address spaces. The table is limited by the number of targets: beyond twice that number,
 * the process sampled longest ago is removed. */
#include "loader/samples/address_spaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/events.h"
#include "loader/system/grow.h"
#include "recording/recording.h"

enum {
	PROCESSES_MAX = 2 * FT_MAX_TARGETS,
	/* A process' mappings are read again when an address is in none of them. That happens at most this
	 * often, and less and less often if it does not help: code generated at run time is in no file. */
	LOOK_AGAIN_NS = 1000000000,
	LOOKS_AT_MOST = 64, /* multiplied by this at most */
};

struct space {
	uint32_t id;
	bool ready; /* the unwinding helper has its files */
	size_t users;
	size_t count;
	struct mapped_place places[];
};

struct process {
	pid_t pid, parent;
	uint64_t looked_ns, used;
	unsigned patience; /* seconds until the next read */
	bool asked;	   /* its maps are being read */
	bool of_parent;	   /* no, but its parent's */
	bool ended, preload;
	uint64_t address; /* for which they are read; 0: for the first time */
	struct space *space;
	char program[NAME_MAX + 1];
};

struct address_spaces {
	struct target_files *files;
	struct address_spaces_handler handler;
	struct process *processes;
	size_t count, room;
	uint32_t ids;
	uint64_t finds;
};

struct address_spaces *address_spaces_open(struct target_files *files,
					   const struct address_spaces_handler *handler)
{
	struct address_spaces *s = calloc(1, sizeof *s);
	if (s) {
		s->files = files;
		s->handler = *handler;
	}
	return s;
}

static void release(struct address_spaces *s, struct space *space)
{
	if (!space || --space->users)
		return;
	s->handler.forget(s->handler.context, space->id);
	free(space);
}

static struct process *known(struct address_spaces *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

static void close_process(struct address_spaces *s, struct process *p)
{
	release(s, p->space);
	*p = s->processes[--s->count];
}

void address_spaces_forget_all(struct address_spaces *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].space && !--s->processes[i].space->users)
			free(s->processes[i].space);
	s->count = 0;
}

void address_spaces_close(struct address_spaces *s)
{
	if (!s)
		return;
	address_spaces_forget_all(s);
	free(s->processes);
	free(s);
}

/* Returns a slot for one more process. NULL: no memory. */
static struct process *add(struct address_spaces *s)
{
	if (s->count == PROCESSES_MAX) {
		struct process *oldest = s->processes;
		for (size_t i = 1; i < s->count; i++)
			if (s->processes[i].used < oldest->used)
				oldest = &s->processes[i];
		close_process(s, oldest);
	}
	if (!grow(&s->processes, &s->room, s->count, sizeof *s->processes))
		return NULL;
	return memset(&s->processes[s->count++], 0, sizeof *s->processes);
}

static bool holds(const struct process *p, uint64_t address)
{
	for (size_t i = 0; p->space && i < p->space->count; i++)
		if (address >= p->space->places[i].start && address < p->space->places[i].end)
			return true;
	return false;
}

static void look(struct address_spaces *s, struct process *p, uint64_t address)
{
	p->looked_ns = ft_now_ns();
	p->address = address;
	p->asked = target_files_ask_maps(s->files, p->pid);
}

/* What is known of a process now. */
static uint32_t state_of(const struct process *p, const char **program)
{
	*program = p->program;
	return p->asked || (p->space && !p->space->ready) ? SPACE_PENDING
	       : p->space				  ? p->space->id
							  : SPACE_NONE;
}

uint32_t address_spaces_known(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
			      const char **program)
{
	struct process *p = known(s, pid);
	*program = "";
	if (!p)
		p = parent ? known(s, parent) : NULL;
	/* Only what is not in the known files waits for the new ones. */
	if (p && p->asked && p->space && p->space->ready && holds(p, address)) {
		*program = p->program;
		return p->space->id;
	}
	return p ? state_of(p, program) : SPACE_NONE;
}

uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
			     bool preload, const char **program)
{
	*program = "";
	if (!pid)
		return SPACE_NONE;
	struct process *p = known(s, pid);
	if (!p) {
		p = add(s);
		if (!p)
			return SPACE_NONE;
		*p = (struct process){.pid = pid, .parent = parent, .patience = 1, .preload = preload};
		look(s, p, 0);
	} else if (!p->asked && address && !holds(p, address) &&
		   ft_now_ns() > p->looked_ns + (uint64_t)p->patience * LOOK_AGAIN_NS) {
		look(s, p, address);
	}
	p->used = ++s->finds;
	return address_spaces_known(s, pid, 0, address, program);
}

void address_spaces_forget(struct address_spaces *s, pid_t pid)
{
	struct process *p = known(s, pid);
	if (!p)
		return;
	p->ended = true;
	if (!p->asked && (!p->space || p->space->ready))
		close_process(s, p);
}

/* ---- answers ---- */

static bool same(const struct space *a, const struct mapped_place *places, size_t count)
{
	return a->count == count && memcmp(a->places, places, count * sizeof *places) == 0;
}

/* A new space with these files, which are sent to the unwinding helper. NULL: no memory. */
static struct space *make_space(struct address_spaces *s, const struct process *p,
				const struct mapped_place *places, size_t count)
{
	struct space *space = malloc(sizeof *space + count * sizeof *places);
	if (!space)
		return NULL;
	*space = (struct space){.id = ++s->ids, .users = 1, .count = count};
	memcpy(space->places, places, count * sizeof *places);
	if (target_files_send(s->files, p->pid, space->id, p->preload))
		return space;
	free(space);
	return NULL;
}

static struct space *share(struct space *space)
{
	if (space)
		space->users++;
	return space;
}

/* A lookup has ended. Those of ended processes were kept for the samples that waited for it. */
static void resolve(struct address_spaces *s)
{
	s->handler.resolved(s->handler.context);
	for (size_t i = s->count; i--;) {
		struct process *p = &s->processes[i];
		if (p->ended && !p->asked && (!p->space || p->space->ready))
			close_process(s, p);
	}
}

static void inherit(struct process *p, const struct process *parent)
{
	p->asked = p->of_parent = false;
	p->space = share(parent->space);
	memcpy(p->program, parent->program, sizeof p->program);
}

/* To processes that exited before their maps were read. */
static void hand_down(struct address_spaces *s, const struct process *parent)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].of_parent && s->processes[i].parent == parent->pid)
			inherit(&s->processes[i], parent);
}

void address_spaces_maps(struct address_spaces *s, pid_t pid, const struct mapped_place *places, size_t count,
			 const char *program)
{
	struct process *p = known(s, pid);
	if (!p || !p->asked)
		return;
	p->asked = false;
	snprintf(p->program, sizeof p->program, "%s", program);
	if (!p->space || !same(p->space, places, count)) {
		const struct process *parent = p->parent ? known(s, p->parent) : NULL;
		struct space *before = p->space;
		p->space = parent && parent->space && same(parent->space, places, count)
			       ? share(parent->space)
			       : make_space(s, p, places, count);
		release(s, before);
	}
	if (p->address && !holds(p, p->address))
		p->patience = p->patience < LOOKS_AT_MOST ? 2 * p->patience : p->patience;
	hand_down(s, p);
	resolve(s);
}

void address_spaces_no_maps(struct address_spaces *s, pid_t pid)
{
	const char *unused;
	struct process *p = known(s, pid);
	if (!p || !p->asked)
		return;
	p->asked = false;
	if (p->patience < LOOKS_AT_MOST)
		p->patience *= 2;
	const pid_t from = p->space ? 0 : p->parent;
	if (from && !known(s, from))
		address_spaces_find(s, from, 0, 0, false, &unused); /* the table may grow */
	const struct process *parent = from ? known(s, from) : NULL;
	p = known(s, pid);
	if (p && parent && !parent->asked)
		inherit(p, parent);
	else if (p)
		p->asked = p->of_parent = parent != NULL;
	if (p)
		hand_down(s, p);
	resolve(s);
}

void address_spaces_sent(struct address_spaces *s, uint32_t space, int error)
{
	bool used = false;
	for (size_t i = 0; i < s->count; i++) {
		struct process *p = &s->processes[i];
		if (!p->space || p->space->id != space)
			continue;
		used = true;
		p->space->ready = true;
		if (error) {
			release(s, p->space);
			p->space = NULL;
		}
	}
	if (!used)
		s->handler.forget(s->handler.context, space);
	resolve(s);
}

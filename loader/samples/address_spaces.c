/* SPDX-License-Identifier: MIT */
/* Maps processes to address spaces. The table is limited by the number of targets: beyond twice that number,
 * the process sampled longest ago is removed. */
#include "loader/samples/address_spaces.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/samples/mapped_open.h"
#include "loader/samples/mappings.h"
#include "loader/system/grow.h"
#include "recording/recording.h"

enum {
	PROCESSES_MAX = 2 * FT_MAX_TARGETS,
	/* A process' mappings are read again when an address is in none of them. That happens at most this
	 * often, and less and less often if it does not help: code generated at run time is in no file. */
	LOOK_AGAIN_NS = 1000000000,
	LOOKS_AT_MOST = 64, /* multiplied by this at most */
};

/* A file's mapping. These fields distinguish address spaces. */
struct place {
	uint64_t start, end, inode;
	uint32_t device[2];
};

struct space {
	uint32_t id;
	size_t users;
	size_t count;
	struct place places[];
};

struct process {
	pid_t pid;
	uint64_t looked_ns, used;
	unsigned patience; /* seconds until the next read */
	struct space *space;
	char program[NAME_MAX + 1];
};

struct address_spaces {
	request_sender send;
	void *context;
	struct process *processes;
	size_t count, room;
	uint32_t ids;
	uint64_t finds;
};

static void send(struct address_spaces *s, enum unwind_request_kind kind, uint32_t id, bool flag)
{
	const struct unwind_request r = {.kind = kind, .space = id, .flag = flag};
	s->send(s->context, &r, offsetof(struct unwind_request, file), -1);
}

static void release(struct address_spaces *s, struct space *space)
{
	if (!space || --space->users)
		return;
	send(s, UNWIND_FORGET_SPACE, space->id, false);
	free(space);
}

static struct process *known(struct address_spaces *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

/* The result of reading a process' maps. */
struct gathered {
	struct address_spaces *spaces;
	pid_t pid;
	uint32_t id;
	struct space *space;
};

static void note_place(void *context, const struct mapped_file *f)
{
	struct space *s = ((struct gathered *)context)->space;
	s->places[s->count++] = (struct place){f->start, f->end, f->inode, {f->device[0], f->device[1]}};
}

/* A file's key is its identity in the kernel plus its change time (ctime), which users cannot set. */
static void send_file(void *context, const struct mapped_file *f)
{
	const struct gathered *g = context;
	struct unwind_request r = {.kind = UNWIND_ADD_FILE, .space = g->id};
	struct stat st;
	int fd = f->inode ? mapped_open(g->pid, f) : -1;
	if (f->inode && fd < 0)
		return;
	r.file = (struct unwind_file){.start = f->start, .end = f->end};
	mappings_base_name(f->path, r.file.name, sizeof r.file.name);
	if (fd >= 0 && fstat(fd, &st) == 0)
		memcpy(r.file.key,
		       (uint64_t[4]){st.st_dev, st.st_ino, (uint64_t)st.st_size,
				     (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec},
		       sizeof r.file.key);
	g->spaces->send(g->spaces->context, &r, offsetof(struct unwind_request, file) + sizeof r.file, fd);
}

static bool same(const struct space *a, const struct space *b)
{
	return a->count == b->count && memcmp(a->places, b->places, a->count * sizeof *a->places) == 0;
}

/* Returns the address space that a process' maps describe: its parent's if they are equal, otherwise a new
 * one. */
static struct space *describe(struct address_spaces *s, pid_t pid, pid_t parent, const char *maps, bool ahead)
{
	struct space *space = calloc(1, sizeof *space + MAPPED_FILES * sizeof *space->places);
	struct gathered g = {s, pid, 0, space};
	if (!space)
		return NULL;
	mappings_each(maps, note_place, &g);
	const struct process *p = parent ? known(s, parent) : NULL;
	if (p && p->space && same(p->space, space)) {
		free(space);
		p->space->users++;
		return p->space;
	}
	struct space *smaller = realloc(space, sizeof *space + space->count * sizeof *space->places);
	space = smaller ? smaller : space;
	space->users = 1;
	space->id = g.id = ++s->ids;
	send(s, UNWIND_BEGIN_SPACE, g.id, false);
	mappings_each(maps, send_file, &g);
	send(s, UNWIND_END_SPACE, g.id, ahead);
	return space;
}

static void close_process(struct address_spaces *s, struct process *p)
{
	release(s, p->space);
	*p = s->processes[--s->count];
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

/* NULL if the mappings cannot be read, usually because the process has exited. */
static struct process *open_process(struct address_spaces *s, pid_t pid, pid_t parent, bool ahead)
{
	char path[64], program[PATH_MAX], *maps = mappings_read(pid);
	struct process *p = maps ? add(s) : NULL;
	if (p) {
		p->pid = pid;
		p->looked_ns = ft_now_ns();
		p->patience = 1;
		snprintf(path, sizeof path, "/proc/%d/exe", pid);
		ssize_t n = readlink(path, program, sizeof program - 1);
		program[n < 0 ? 0 : n] = 0;
		mappings_base_name(program, p->program, sizeof p->program);
		p->space = describe(s, pid, parent, maps, ahead);
	}
	free(maps);
	return p;
}

static bool holds(const struct process *p, uint64_t address)
{
	for (size_t i = 0; p->space && i < p->space->count; i++)
		if (address >= p->space->places[i].start && address < p->space->places[i].end)
			return true;
	return false;
}

static struct process *look_again(struct address_spaces *s, struct process *p, pid_t parent, uint64_t address)
{
	unsigned patience = p->patience;
	pid_t pid = p->pid;
	close_process(s, p);
	p = open_process(s, pid, parent, false);
	if (p && !holds(p, address))
		p->patience = patience < LOOKS_AT_MOST ? 2 * patience : patience;
	return p;
}

struct address_spaces *address_spaces_open(request_sender sender, void *context)
{
	struct address_spaces *s = calloc(1, sizeof *s);
	if (s) {
		s->send = sender;
		s->context = context;
	}
	return s;
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

uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address, bool ahead,
			     const char **program)
{
	*program = "";
	if (!pid)
		return 0;
	struct process *p = known(s, pid);
	if (!p && !(p = open_process(s, pid, parent, ahead)) && parent) {
		p = known(s, parent);
		p = p ? p : open_process(s, parent, 0, ahead);
	}
	if (p && address && !holds(p, address) &&
	    ft_now_ns() > p->looked_ns + (uint64_t)p->patience * LOOK_AGAIN_NS)
		p = look_again(s, p, p->pid == pid ? parent : 0, address);
	if (!p)
		return 0;
	p->used = ++s->finds;
	*program = p->program;
	return p->space ? p->space->id : 0;
}

void address_spaces_forget(struct address_spaces *s, pid_t pid)
{
	struct process *p = known(s, pid);
	if (p)
		close_process(s, p);
}

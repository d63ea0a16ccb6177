/* SPDX-License-Identifier: MIT */
/* A line of /proc/PID/maps is "start-end perms offset major:minor inode path". The kernel writes a newline in
 * a path as \012, so each line is one mapping. */
#include "loader/samples/mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/system/text.h"

enum { MAPS_BYTES_MAX = 16 << 20 };

struct line {
	uint64_t start, end, inode;
	uint32_t device[2];
	bool executable;
	const char *path;
	size_t path_length;
};

/* False: not a mapping. */
static bool take_apart(const char *text, size_t length, struct line *l)
{
	char head[128], permissions[5];
	int at = 0;
	size_t kept = length < sizeof head - 1 ? length : sizeof head - 1;
	memcpy(head, text, kept);
	head[kept] = 0;
	if (sscanf(head, "%" SCNx64 "-%" SCNx64 " %4s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64 "%n", &l->start,
		   &l->end, permissions, &l->device[0], &l->device[1], &l->inode, &at) != 6 ||
	    !at || l->start >= l->end)
		return false;
	l->executable = strlen(permissions) == 4 && permissions[2] == 'x';
	size_t path = (size_t)at + strspn(head + at, " ");
	l->path = text + path;
	l->path_length = length - path;
	return true;
}

static bool is_vdso(const struct line *l)
{
	return !l->inode && l->path_length == 6 && memcmp(l->path, "[vdso]", 6) == 0;
}

static void begin(struct mapped_file *f, const struct line *l)
{
	f->start = l->start;
	f->code_start = f->code_end = 0;
	f->inode = l->inode;
	memcpy(f->device, l->device, sizeof f->device);
	size_t length = l->path_length < sizeof f->path - 1 ? l->path_length : sizeof f->path - 1;
	memcpy(f->path, l->path, length);
	f->path[length] = 0;
}

void mappings_each(const char *text, mapping_handler found, void *context)
{
	struct mapped_file *f = calloc(1, sizeof *f);
	size_t count = 0;
	for (bool more = f; more && count < MAPPED_FILES;) {
		size_t length = strcspn(text, "\n");
		struct line l;
		more = *text;
		bool is_line = more && take_apart(text, length, &l);
		text += length + (text[length] == '\n');
		if (more && !is_line)
			continue;
		/* A file's memory beyond its end (.bss) has no file, and may be between its parts. */
		if (more && !l.inode && !is_vdso(&l) && !l.path_length)
			continue;
		bool same = more && l.start >= f->end && l.inode && l.inode == f->inode &&
			    l.device[0] == f->device[0] && l.device[1] == f->device[1];
		if (!same && f->code_start) {
			found(context, f);
			count++;
			f->code_start = 0;
		}
		if (!more || (!l.inode && !is_vdso(&l))) {
			f->inode = 0;
			continue;
		}
		if (!same)
			begin(f, &l);
		f->end = l.end;
		if (l.executable && !f->code_start) {
			f->code_start = l.start;
			f->code_end = l.end;
		}
	}
	free(f);
}

char *mappings_read(pid_t pid)
{
	char path[48];
	struct text maps = {NULL};
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	/* A process that has exited has an empty one. */
	if (text_read_at(&maps, AT_FDCWD, path, MAPS_BYTES_MAX) && maps.length)
		return maps.bytes;
	free(maps.bytes);
	return NULL;
}

void mappings_base_name(const char *path, char *name, size_t size)
{
	static const char gone[] = " (deleted)";
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t length = strlen(base), tail = sizeof gone - 1;
	if (length > tail && strcmp(base + length - tail, gone) == 0)
		length -= tail;
	snprintf(name, size, "%.*s", (int)(length < size ? length : size), base);
}

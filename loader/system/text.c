/* SPDX-License-Identifier: MIT */
/* One read() of a long file in /proc returns at most a page of whole lines, whatever size is requested. The
 * end is a read that returns nothing. */
#include "loader/system/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_ROOM = 1 << 16, READ_AT_LEAST = 4096 };

ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	int err = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	text[err ? 0 : n] = 0;
	return err ? err : n;
}

int read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	ssize_t n = read_text(path, text, size);
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == 0)
			text[i] = ' ';
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = 0;
	return (int)n;
}

static bool make_room(struct text *t, size_t most)
{
	size_t room = t->room ? 2 * t->room : FIRST_ROOM;
	char *grown = room > most ? NULL : realloc(t->bytes, room);

	if (!grown)
		return false;
	t->bytes = grown;
	t->room = room;
	return true;
}

bool text_read(struct text *t, int fd, size_t most)
{
	ssize_t n = -1;

	t->length = 0;
	while (t->room - t->length >= READ_AT_LEAST || make_room(t, most)) {
		n = pread(fd, t->bytes + t->length, t->room - 1 - t->length, (off_t)t->length);
		if (n <= 0)
			break;
		t->length += (size_t)n;
	}
	if (t->bytes)
		t->bytes[t->length] = 0;
	return n == 0;
}

bool text_read_at(struct text *t, int directory, const char *path, size_t most)
{
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	bool whole = text_read(t, fd, most);

	if (fd >= 0)
		close(fd);
	return whole;
}

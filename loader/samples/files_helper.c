/* SPDX-License-Identifier: MIT */
/* It handles one request at a time, and says in its note which process and file it is working on. While the
 * unwinding helper takes no more files, it answers that helper's questions, for which that helper waits. */
#include "loader/samples/files_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/samples/mapped_open.h"
#include "loader/samples/unwind_messages.h"
#include "loader/system/packets.h"
#include "loader/system/privileges.h"
#include "loader/system/text.h"

enum { WAIT_MS = 100 };

static struct {
	int spaces, questions; /* of the unwinding helper; -1: none */
	uint64_t refused[FILES_REFUSED_MAX][4];
	size_t refused_count;
	volatile struct helper_note *note;
} files = {.spaces = -1, .questions = -1};

static void note(const char *file)
{
	helper_note_file(files.note, NULL, file);
}

static void disconnect(void)
{
	close(files.spaces);
	close(files.questions);
	files.spaces = files.questions = -1;
}

/* ---- debug files ---- */

/* A debug file of this host. Its name consists of hexadecimal digits only. */
static int open_debug_file(const struct debug_file_question *q)
{
	char path[32 + 2 * BUILD_ID_MAX + 16] = "/usr/lib/debug/.build-id/";
	size_t at = strlen(path);
	if (q->bytes < 2 || q->bytes > BUILD_ID_MAX)
		return -1;
	for (size_t i = 0; i < q->bytes; i++)
		at +=
		    (size_t)snprintf(path + at, sizeof path - at, i == 0 ? "%02x/" : "%02x", q->build_id[i]);
	snprintf(path + at, sizeof path - at, ".debug");
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Answers a question, if there is one. */
static void answer_question(void)
{
	struct debug_file_question q;
	int fd;
	const ssize_t n = receive_packet(files.questions, &q, sizeof q, &fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	if (n == -EAGAIN)
		return;
	if (n != sizeof q) {
		disconnect();
		return;
	}
	note("a debug file");
	fd = open_debug_file(&q);
	send_packet(files.questions, "", 1, fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
}

/* ---- address spaces ---- */

/* Sends a packet to the unwinding helper when it has room for it, and takes the descriptor. */
static void push(const struct unwind_request *r, size_t bytes, int fd)
{
	while (files.spaces >= 0) {
		const int err = send_packet(files.spaces, r, bytes, fd, MSG_DONTWAIT);
		if (!err)
			break;
		/* ETOOMANYREFS: too many descriptors on their way */
		if (err != -EAGAIN && err != -ENOBUFS && err != -ETOOMANYREFS) {
			disconnect();
			break;
		}
		struct pollfd fds[] = {{.fd = err == -EAGAIN ? files.spaces : -1, .events = POLLOUT},
				       {.fd = files.questions, .events = POLLIN}};
		poll(fds, 2, WAIT_MS);
		files.note->progress++; /* it is not the target that this waits for */
		if (fds[1].revents)
			answer_question();
	}
	if (fd >= 0)
		close(fd);
	files.note->progress++;
}

static bool is_refused(const uint64_t key[4])
{
	for (size_t i = 0; i < files.refused_count; i++)
		if (memcmp(files.refused[i], key, sizeof files.refused[i]) == 0)
			return true;
	return false;
}

struct sending {
	const struct files_request *request;
	const struct mounts *mounts, *own_mounts;
};

/* A file's key is its identity in the kernel plus its change time (ctime), which users cannot set. */
static void send_file(void *context, const struct mapped_file *f)
{
	const struct sending *s = context;
	struct unwind_request r = {.kind = UNWIND_ADD_FILE, .space = s->request->space};
	struct stat st;
	r.file = (struct unwind_file){.start = f->start, .end = f->end};
	mappings_base_name(f->path, r.file.name, sizeof r.file.name);
	note(r.file.name);
	const struct mounts *const mounts[MOUNTS] = {s->mounts, s->own_mounts};
	const int fd = f->inode ? mapped_open(mounts, s->request->pid, f) : -1;
	if (f->inode && fd < 0)
		return;
	if (fd >= 0 && fstat(fd, &st) == 0)
		memcpy(r.file.key,
		       (uint64_t[4]){st.st_dev, st.st_ino, (uint64_t)st.st_size,
				     (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec},
		       sizeof r.file.key);
	if (fd >= 0 && is_refused(r.file.key)) {
		close(fd);
		return;
	}
	push(&r, offsetof(struct unwind_request, file) + sizeof r.file, fd);
}

static void push_kind(enum unwind_request_kind kind, const struct files_request *request)
{
	const struct unwind_request r = {
	    .kind = kind, .space = request->space, .flag = (uint8_t)request->preload};
	push(&r, offsetof(struct unwind_request, file), -1);
}

static int send_space(const struct files_request *request)
{
	note("the memory map");
	char *maps = mappings_read(request->pid);
	if (!maps)
		return -ESRCH;
	note("the list of mounts");
	struct mounts *mounts = mounts_read(request->pid), *own = mounts_read(getpid());
	struct sending s = {request, mounts, own};
	push_kind(UNWIND_BEGIN_SPACE, request);
	mappings_each(maps, send_file, &s);
	push_kind(UNWIND_END_SPACE, request);
	free(own);
	free(mounts);
	free(maps);
	return files.spaces >= 0 ? 0 : -EPIPE;
}

/* ---- answers ---- */

static void add_place(void *context, const struct mapped_file *f)
{
	struct files_answer *a = context;
	a->places[a->count++] =
	    (struct mapped_place){f->start, f->end, f->inode, {f->device[0], f->device[1]}};
}

static size_t describe_maps(struct files_answer *a)
{
	char path[48], program[PATH_MAX];
	note("the memory map");
	char *maps = mappings_read(a->pid);
	a->error = maps ? 0 : -ESRCH;
	if (maps)
		mappings_each(maps, add_place, a);
	free(maps);
	note("the program's name");
	snprintf(path, sizeof path, "/proc/%d/exe", a->pid);
	const ssize_t n = readlink(path, program, sizeof program - 1);
	program[n < 0 ? 0 : n] = 0;
	mappings_base_name(program, a->program, sizeof a->program);
	return a->count * sizeof *a->places;
}

static size_t describe_title(struct files_answer *a)
{
	note("the command line");
	const int n = read_proc(a->pid, "cmdline", a->title, sizeof a->title);
	a->error = n < 0 ? n : 0;
	a->count = n < 0 ? 0 : (uint32_t)n;
	return a->count;
}

static void refuse(const uint64_t key[4])
{
	if (files.refused_count < FILES_REFUSED_MAX)
		memcpy(files.refused[files.refused_count++], key, sizeof files.refused[0]);
}

static void handle(const struct files_request *r, const int *fds, size_t fd_count)
{
	static struct files_answer a;
	memset(&a, 0, offsetof(struct files_answer, places));
	a.kind = r->kind;
	a.pid = r->pid;
	size_t bytes = 0;
	switch (r->kind) {
	case FILES_CONNECT:
		if (fd_count == 2) {
			disconnect();
			files.spaces = fds[0];
			files.questions = fds[1];
		}
		return;
	case FILES_REFUSE:
		refuse(r->key);
		return;
	case FILES_MAPS:
		bytes = describe_maps(&a);
		break;
	case FILES_SEND:
		a.error = send_space(r);
		break;
	case FILES_TITLE:
		bytes = describe_title(&a);
		break;
	}
	note("");
	if (send_packet(HELPER_SOCKET, &a, offsetof(struct files_answer, places) + bytes, -1, 0))
		_exit(0); /* the recorder has exited */
}

static void live(pid_t parent, size_t kept_count)
{
	struct files_request r;
	int fds[2];
	size_t fd_count;
	(void)kept_count;
	files.note = helper_note_of(&files_helper);
	if (privileges_confine_files(parent))
		_exit(3);
	for (;;) {
		struct pollfd polled[] = {{.fd = HELPER_SOCKET, .events = POLLIN},
					  {.fd = files.questions, .events = POLLIN}};
		poll(polled, 2, -1);
		if (polled[1].revents)
			answer_question();
		if (!polled[0].revents)
			continue;
		if (receive_packet_fds(HELPER_SOCKET, &r, sizeof r, fds, 2, &fd_count, 0) != sizeof r)
			return;
		handle(&r, fds, fd_count);
	}
}

/* A memory map with all its files is a packet of 41 kB. */
const struct helper_setup files_helper = {
    .name = "forktail-files", .live = live, .socket_bytes = 1 << 18, .low_priority = false};

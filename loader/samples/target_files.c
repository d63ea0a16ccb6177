/* SPDX-License-Identifier: MIT */
/* One request is on its way at a time, so a hung helper is hung on that one. */
#include "loader/samples/target_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text/visible.h"
#include "loader/samples/unwind_messages.h"
#include "loader/system/cpu_time.h"
#include "loader/system/packets.h"
#include "loader/system/restarts.h"
#include "recording/recording.h"

enum {
	ASKED_MAX = 4096,
	BLAMED_MAX = 64,
	TITLE_MS = 100,
	BLAME_S = 10,
	BLAME_MOST_S = 3600,
	BLAMED_OF_USER = 2,
};
#define HUNG_NS 2000000000ull

struct asked {
	struct asked *next;
	struct files_request request;
};

struct blamed {
	pid_t pid; /* 0: none */
	uid_t user;
	uint64_t until_ns;
	unsigned seconds;
};

struct target_files {
	struct helper_process helper;
	struct restarts restarts;
	struct target_files_handler handler;
	void (*title)(void *context, pid_t pid, const char *title);
	void *title_context;
	struct asked *queue, **queue_end;
	size_t count;
	bool sent;	   /* the first of the queue is on its way */
	uint64_t moved_ns; /* when the helper last got on */
	uint64_t progress; /* its note's, then */
	struct blamed blamed[BLAMED_MAX];
	uint64_t blamed_until_ns; /* the last of them */
	uint64_t refused[FILES_REFUSED_MAX][4];
	size_t refused_count;
	pid_t wanted; /* whose title is waited for */
	char *wanted_title;
	size_t wanted_size;
	struct target_files_figures figures;
};

static bool has_helper(const struct target_files *f)
{
	return f->helper.pid > 0;
}

static int start(struct target_files *f)
{
	const int err = helper_process_start(&f->helper, &files_helper, NULL, 0);
	if (err)
		return err;
	fcntl(f->helper.socket, F_SETFL, O_NONBLOCK);
	for (size_t i = 0; i < f->refused_count; i++) {
		struct files_request r = {.kind = FILES_REFUSE};
		memcpy(r.key, f->refused[i], sizeof r.key);
		send_packet(f->helper.socket, &r, sizeof r, -1, MSG_DONTWAIT);
	}
	return 0;
}

struct target_files *target_files_open(void)
{
	struct target_files *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->queue_end = &f->queue;
	const int err = start(f);
	if (!err)
		return f;
	free(f);
	errno = -err;
	return NULL;
}

void target_files_close(struct target_files *f)
{
	if (!f)
		return;
	helper_process_end(&f->helper, false);
	while (f->queue) {
		struct asked *a = f->queue;
		f->queue = a->next;
		free(a);
	}
	free(f);
}

void target_files_handle(struct target_files *f, const struct target_files_handler *handler)
{
	f->handler = *handler;
}

void target_files_on_title(struct target_files *f, void (*title)(void *context, pid_t pid, const char *title),
			   void *context)
{
	f->title = title;
	f->title_context = context;
}

/* ---- processes that are left alone ---- */

static uid_t user_of(pid_t pid)
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d", pid);
	return stat(path, &st) == 0 ? st.st_uid : 0;
}

static bool is_blamed(const struct target_files *f, pid_t pid)
{
	const uint64_t now = ft_now_ns();
	if (now >= f->blamed_until_ns)
		return false;
	const uid_t user = user_of(pid);
	int of_user = 0;
	for (const struct blamed *b = f->blamed; b < f->blamed + BLAMED_MAX; b++) {
		if (!b->pid || b->until_ns <= now)
			continue;
		if (b->pid == pid)
			return true;
		of_user += user && b->user == user;
	}
	return of_user >= BLAMED_OF_USER;
}

static unsigned blame(struct target_files *f, pid_t pid)
{
	struct blamed *place = f->blamed;
	for (struct blamed *b = f->blamed; b < f->blamed + BLAMED_MAX; b++) {
		if (b->pid == pid) {
			place = b;
			break;
		}
		if (b->until_ns < place->until_ns)
			place = b;
	}
	if (place->pid != pid)
		*place = (struct blamed){.pid = pid, .user = user_of(pid)};
	place->seconds = !place->seconds		     ? BLAME_S
			 : place->seconds < BLAME_MOST_S / 2 ? 2 * place->seconds
							     : BLAME_MOST_S;
	place->until_ns = ft_now_ns() + place->seconds * 1000000000ull;
	if (place->until_ns > f->blamed_until_ns)
		f->blamed_until_ns = place->until_ns;
	return place->seconds;
}

/* Its time stays as it is in the table while it lasts: of its user, that counts. */
void target_files_forget(struct target_files *f, pid_t pid)
{
	for (struct blamed *b = f->blamed; b < f->blamed + BLAMED_MAX; b++)
		if (b->pid == pid)
			b->pid = -1;
}

/* ---- requests ---- */

static void send_next(struct target_files *f)
{
	if (f->sent || !f->queue || !has_helper(f) || is_blamed(f, f->queue->request.pid))
		return;
	const int err =
	    send_packet(f->helper.socket, &f->queue->request, sizeof f->queue->request, -1, MSG_DONTWAIT);
	f->sent = !err; /* that it has exited is noticed when answers are read */
	f->moved_ns = ft_now_ns();
	f->progress = helper_note_of(&files_helper)->progress;
}

static bool ask(struct target_files *f, const struct files_request *r)
{
	struct asked *a = f && f->count < ASKED_MAX ? malloc(sizeof *a) : NULL;
	if (!a)
		return false;
	*a = (struct asked){.request = *r};
	*f->queue_end = a;
	f->queue_end = &a->next;
	f->count++;
	send_next(f);
	return true;
}

bool target_files_ask_maps(struct target_files *f, pid_t pid)
{
	return ask(f, &(struct files_request){.kind = FILES_MAPS, .pid = pid});
}

bool target_files_send(struct target_files *f, pid_t pid, uint32_t space, bool preload)
{
	return ask(
	    f, &(struct files_request){.kind = FILES_SEND, .pid = pid, .space = space, .preload = preload});
}

bool target_files_ask_title(struct target_files *f, pid_t pid)
{
	for (const struct asked *a = f ? f->queue : NULL; a; a = a->next)
		if (a->request.kind == FILES_TITLE && a->request.pid == pid)
			return true;
	return ask(f, &(struct files_request){.kind = FILES_TITLE, .pid = pid});
}

void target_files_connect(struct target_files *f, int spaces, int questions)
{
	const struct files_request r = {.kind = FILES_CONNECT};
	if (has_helper(f))
		send_packet_fds(f->helper.socket, &r, sizeof r, (const int[]){spaces, questions}, 2,
				MSG_DONTWAIT);
	close(spaces);
	close(questions);
}

void target_files_refuse(struct target_files *f, const uint64_t key[4])
{
	struct files_request r = {.kind = FILES_REFUSE};
	if (f->refused_count == FILES_REFUSED_MAX)
		return;
	memcpy(f->refused[f->refused_count++], key, sizeof r.key);
	memcpy(r.key, key, sizeof r.key);
	if (has_helper(f))
		send_packet(f->helper.socket, &r, sizeof r, -1, MSG_DONTWAIT);
}

/* ---- answers ---- */

/* Takes the first request from the queue and delivers its answer; NULL: there will be none. */
static void deliver(struct target_files *f, const struct files_answer *a)
{
	struct asked *asked = f->queue;
	const struct files_request r = asked->request;
	f->queue = asked->next;
	f->queue_end = f->queue ? f->queue_end : &f->queue;
	f->count--;
	f->sent = false;
	free(asked);
	const bool good = a && !a->error;
	switch (r.kind) {
	case FILES_MAPS:
		if (good && f->handler.maps)
			f->handler.maps(f->handler.context, r.pid, a->places, a->count, a->program);
		else if (f->handler.no_maps)
			f->handler.no_maps(f->handler.context, r.pid);
		break;
	case FILES_SEND:
		if (f->handler.sent)
			f->handler.sent(f->handler.context, r.space, a ? a->error : -ETIMEDOUT);
		break;
	case FILES_TITLE:
		if (f->wanted == r.pid) {
			snprintf(f->wanted_title, f->wanted_size, "%s", good ? a->title : "");
			f->wanted = 0;
		} else if (good && f->title) {
			f->title(f->title_context, r.pid, a->title);
		}
		break;
	}
}

/* Ends a helper that is hung or has exited. What it was busy with fails, and is left alone if it was the
 * reason. */
static void give_up_helper(struct target_files *f, bool hung)
{
	const struct helper_note note = helper_note_read(&files_helper);
	char text[192] = "ended", file[sizeof note.file * VISIBLE_MOST + 1];
	visible_text(file, sizeof file, note.file, strlen(note.file));
	if (f->sent) {
		const pid_t pid = f->queue->request.pid;
		const unsigned seconds = blame(f, pid);
		snprintf(text, sizeof text, "%s reading %.80s of process %d, which is left alone for %u s",
			 hung ? "hangs" : "ended", *file ? file : "a file", pid, seconds);
	}
	f->figures.cpu_ns += cpu_time_ns(f->helper.pid);
	helper_process_lost(&f->helper, &files_helper);
	restarts_ended(&f->restarts, ft_now_ns());
	fprintf(stderr, "forktail record: the helper process that opens files of targets %s\n", text);
	if (f->sent)
		deliver(f, NULL);
}

static bool is_plausible(const struct files_answer *a, ssize_t bytes, const struct files_request *r)
{
	const size_t head = offsetof(struct files_answer, places);
	if (bytes < (ssize_t)head || a->kind != r->kind || a->pid != r->pid)
		return false;
	const size_t rest = (size_t)bytes - head;
	return a->kind == FILES_MAPS	? a->count <= MAPPED_FILES && rest == a->count * sizeof *a->places
	       : a->kind == FILES_TITLE ? a->count < FILES_TITLE_BYTES && rest == a->count
					: rest == 0;
}

void target_files_take(struct target_files *f)
{
	static struct files_answer a;
	while (f && has_helper(f)) {
		int fd;
		const ssize_t n = receive_packet(f->helper.socket, &a, sizeof a, &fd, MSG_DONTWAIT);
		if (fd >= 0)
			close(fd);
		if (n == -EAGAIN)
			return;
		if (!f->sent || !is_plausible(&a, n, &f->queue->request)) {
			give_up_helper(f, false);
			return;
		}
		a.program[sizeof a.program - 1] = 0;
		if (a.kind == FILES_TITLE)
			a.title[a.count] = 0;
		deliver(f, &a);
		send_next(f);
	}
}

/* Fails all requests of processes that are left alone. */
static void fail_blamed(struct target_files *f)
{
	while (f->queue && !f->sent && is_blamed(f, f->queue->request.pid))
		deliver(f, NULL);
}

static void revive(struct target_files *f)
{
	if (has_helper(f) || !restarts_due(&f->restarts, ft_now_ns()))
		return;
	const int err = start(f);
	if (err) {
		restarts_failed(&f->restarts, ft_now_ns());
		return;
	}
	if (f->handler.restarted)
		f->handler.restarted(f->handler.context);
}

void target_files_tick(struct target_files *f)
{
	if (!f)
		return;
	target_files_take(f);
	const uint64_t now = ft_now_ns(), progress = helper_note_of(&files_helper)->progress;
	if (f->sent && progress != f->progress) {
		f->progress = progress;
		f->moved_ns = now;
	}
	if (f->sent && f->moved_ns + HUNG_NS < now)
		give_up_helper(f, true);
	revive(f);
	fail_blamed(f);
	send_next(f);
}

void target_files_title_now(struct target_files *f, pid_t pid, char *title, size_t size)
{
	*title = 0;
	if (!f || !has_helper(f) || is_blamed(f, pid))
		return;
	f->wanted = pid;
	f->wanted_title = title;
	f->wanted_size = size;
	target_files_ask_title(f, pid);
	const uint64_t until_ns = ft_now_ns() + TITLE_MS * 1000000ull;
	for (uint64_t now; f->wanted && has_helper(f) && (now = ft_now_ns()) < until_ns;) {
		struct pollfd p = {.fd = f->helper.socket, .events = POLLIN};
		poll(&p, 1, (int)((until_ns - now) / 1000000) + 1);
		target_files_take(f);
	}
	/* Before the main loop begins there are no ticks that notice it. */
	if (f->wanted && f->sent && f->queue->request.pid == pid)
		give_up_helper(f, true);
	f->wanted = 0;
	revive(f);
	send_next(f);
}

int target_files_fd(const struct target_files *f)
{
	return f && has_helper(f) ? f->helper.socket : -1;
}

bool target_files_busy(const struct target_files *f)
{
	return f && f->queue;
}

struct target_files_figures target_files_so_far(const struct target_files *f)
{
	struct target_files_figures figures = {0};
	if (f) {
		figures = f->figures;
		figures.pid = f->helper.pid;
		figures.cpu_ns += cpu_time_ns(f->helper.pid);
	}
	return figures;
}

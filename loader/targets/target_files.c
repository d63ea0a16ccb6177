/* SPDX-License-Identifier: MIT */
/* What is asked of the process that touches files of targets, and that process.
 *
 * One request is on its way at a time, so a hung helper is hung on that one. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "common/text.h"
#include "loader/samples.h"
#include "loader/system.h"
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
	struct asked *prev, *next;
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
	void (*pipe)(void *context, const struct ft_event_pipe *wait, const struct pipe_end *ends,
		     size_t count);
	void *pipe_context;
	struct asked *queue;
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
	struct asked *a, *next;
	DL_FOREACH_SAFE(f->queue, a, next)
	{
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

void target_files_on_pipe(struct target_files *f,
			  void (*pipe)(void *context, const struct ft_event_pipe *wait,
				       const struct pipe_end *ends, size_t count),
			  void *context)
{
	f->pipe = pipe;
	f->pipe_context = context;
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
	DL_APPEND(f->queue, a);
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

bool target_files_ask_pipe(struct target_files *f, const struct ft_event_pipe *wait)
{
	return ask(f, &(struct files_request){.kind = FILES_PIPE, .pid = (pid_t)wait->tgid, .pipe = *wait});
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
	DL_DELETE(f->queue, asked);
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
	case FILES_PIPE:
		if (good && f->pipe)
			f->pipe(f->pipe_context, &r.pipe, a->ends, a->count);
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
	       : a->kind == FILES_PIPE	? a->count <= FILES_PIPE_ENDS && rest == a->count * sizeof *a->ends
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

/* It handles one request at a time, and says in its note which process and file it is working on. While the
 * unwinding helper takes no more files, it answers that helper's questions, for which that helper waits. */

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

/* ---- pipes ---- */

enum { LINK_BYTES = 256, PIPE_AGAIN_S = 10 };

/* What a descriptor refers to, as /proc shows it: "pipe:[4711]", or the path of a FIFO. False: there is no
 * such descriptor, or the text does not fit. Nothing is asked of the file. */
static bool link_of(pid_t pid, int fd, char link[LINK_BYTES])
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
	const ssize_t n = readlink(path, link, LINK_BYTES);
	if (n <= 0 || n == LINK_BYTES)
		return false;
	link[n] = 0;
	return true;
}

/* Whether the descriptor of a pipe is open for reading (or for writing). A FIFO has the name of another one
 * in another mount namespace, so its inode is compared (since Linux 5.14). */
static bool is_open_for(pid_t pid, int fd, uint64_t inode, bool reading)
{
	char file[32], text[128];
	unsigned flags = O_ACCMODE;
	uint64_t number;
	snprintf(file, sizeof file, "fdinfo/%d", fd);
	const bool is_read = read_proc(pid, file, text, sizeof text) > 0;
	const char *at = is_read ? strstr(text, "flags:") : NULL;
	if (!at || sscanf(at, "flags: %o", &flags) != 1)
		return false;
	at = strstr(text, "ino:");
	if (at && sscanf(at, "ino: %" SCNu64, &number) == 1 && number != inode)
		return false;
	return (flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == (reading ? O_RDONLY : O_WRONLY);
}

/* The state and name of a process. They may be those of a process that has ended meanwhile. */
static void look_at_end(struct pipe_end *end)
{
	char text[512];
	const char *after = read_proc(end->pid, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
	end->state = 0;
	if (after && after[1] == ' ')
		end->state = after[2];
	if (read_proc(end->pid, "comm", text, sizeof text) > 0)
		snprintf(end->comm, sizeof end->comm, "%.15s", text);
}

/* Adds the process if a descriptor of it is such an end of the pipe. */
static void add_end(struct files_answer *a, pid_t pid, const char *pipe, uint64_t inode, bool reading)
{
	char path[32], link[LINK_BYTES];
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *all = opendir(path);
	for (const struct dirent *one; all && (one = readdir(all));) {
		const int fd = atoi(one->d_name);
		if (one->d_name[0] == '.' || !link_of(pid, fd, link) || strcmp(link, pipe) != 0 ||
		    !is_open_for(pid, fd, inode, reading))
			continue;
		a->ends[a->count++] = (struct pipe_end){.pid = pid, .fd = fd};
		break;
	}
	if (all)
		closedir(all);
	files.note->progress++;
}

static void find_ends(struct files_answer *a, const char *pipe, uint64_t inode, bool reading)
{
	DIR *all = opendir("/proc");
	for (const struct dirent *one; all && a->count < FILES_PIPE_ENDS && (one = readdir(all));)
		if (isdigit((unsigned char)one->d_name[0]))
			add_end(a, atoi(one->d_name), pipe, inode, reading);
	if (all)
		closedir(all);
}

/* Every process is looked at, so the answer is kept for a while: a log that is not read quickly enough may be
 * waited for each second. */
static size_t describe_pipe(struct files_answer *a, const struct ft_event_pipe *wait)
{
	static struct {
		char pipe[LINK_BYTES];
		uint64_t inode, until_ns;
		bool reading;
		size_t count;
		struct pipe_end ends[FILES_PIPE_ENDS];
	} last;
	enum { SCAN_SHARE = 100 }; /* scans take at most one part in this many of the helper's time */
	static uint64_t next_scan_ns;
	char pipe[LINK_BYTES], named[32], link[LINK_BYTES];
	note("the list of open files");
	snprintf(named, sizeof named, "pipe:[%" PRIu64 "]", (uint64_t)wait->inode);
	/* The thread may have gone on, and use the number for another file. */
	if (!link_of(a->pid, (int)wait->fd, pipe) || (*pipe != '/' && strcmp(pipe, named) != 0)) {
		a->error = -ENOENT;
		return 0;
	}
	bool known = last.until_ns > ft_now_ns() && last.reading == (wait->writes != 0) &&
		     last.inode == wait->inode && strcmp(last.pipe, pipe) == 0;
	for (size_t i = 0; i < last.count && known; i++)
		known = link_of(last.ends[i].pid, last.ends[i].fd, link) && strcmp(link, pipe) == 0;
	if (known) {
		a->count = (uint32_t)last.count;
		memcpy(a->ends, last.ends, sizeof last.ends);
	} else if (ft_now_ns() < next_scan_ns) {
		a->error = -EAGAIN;
		return 0;
	} else {
		const uint64_t begin_ns = ft_now_ns();
		find_ends(a, pipe, wait->inode, wait->writes);
		next_scan_ns = ft_now_ns() + (ft_now_ns() - begin_ns) * SCAN_SHARE;
	}
	for (size_t i = 0; i < a->count; i++)
		look_at_end(&a->ends[i]);
	if (!known) {
		snprintf(last.pipe, sizeof last.pipe, "%s", pipe);
		last.reading = wait->writes;
		last.inode = wait->inode;
		last.until_ns = ft_now_ns() + PIPE_AGAIN_S * 1000000000ull;
		last.count = a->count;
		memcpy(last.ends, a->ends, sizeof last.ends);
	}
	return a->count * sizeof *a->ends;
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
	case FILES_PIPE:
		bytes = describe_pipe(&a, &r->pipe);
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

/* /proc/PID/map_files leads to exactly the file that is mapped, even if it was deleted or replaced on disk by
 * an upgrade, and never to a file that another user put in its place. It requires CAP_CHECKPOINT_RESTORE in
 * the host's user namespace. Without it (in a container), the path is walked from the process' own root, one
 * component at a time without following links, because paths in maps have none. Either way, the file is found
 * without opening it (O_PATH), checked, and opened only if it is a regular file. A FIFO would block, opening
 * a device could have side effects, and a FUSE server could delay us. Each of these calls may still block for
 * good: an overlay's lower layer may be FUSE, and a server of NFS may have stopped. So only a process that
 * may be abandoned makes them. */

enum { MOUNTINFO_MAX = 64 << 20 };

struct mounts {
	size_t count;
	struct mount {
		int id;
		unsigned device[2]; /* of its file system: major, minor */
		bool served;	    /* by another process (FUSE) */
	} all[];
};

static int by_id(const void *a, const void *b)
{
	const struct mount *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

struct mounts *mounts_read(pid_t pid)
{
	char path[48];
	struct text text = {NULL};
	size_t lines = 0;
	snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
	const bool whole = text_read_at(&text, AT_FDCWD, path, MOUNTINFO_MAX);
	for (const char *at = text.bytes; whole && at && (at = strchr(at, '\n')); at++)
		lines++;
	struct mounts *m = malloc(sizeof *m + lines * sizeof *m->all);
	if (m)
		m->count = 0;
	for (char *line = text.bytes, *end; m && m->count < lines; line = end + 1) {
		end = strchr(line, '\n');
		*end = 0;
		const char *type = strstr(line, " - ");
		struct mount one = {.id = 0};
		if (type && sscanf(line, "%d %*d %u:%u", &one.id, &one.device[0], &one.device[1]) == 3) {
			one.served = strncmp(type + 3, "fuse", 4) == 0;
			m->all[m->count++] = one;
		} else {
			lines--;
		}
	}
	if (m)
		qsort(m->all, m->count, sizeof *m->all, by_id);
	free(text.bytes);
	return m;
}

/* The mount of a descriptor, or -1 if the kernel doesn't report it. */
static int mount_of(int fd)
{
	char path[48], line[128];
	int id = -1;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "re");
	while (f && id < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	if (f)
		fclose(f);
	return id;
}

/* Whether a file system is mounted in one of the lists, and is no process'. */
static bool is_known_device(const struct mounts *const mounts[MOUNTS], const unsigned device[2])
{
	for (int i = 0; i < MOUNTS; i++)
		for (size_t n = 0; mounts[i] && n < mounts[i]->count; n++)
			if (mounts[i]->all[n].device[0] == device[0] &&
			    mounts[i]->all[n].device[1] == device[1])
				return !mounts[i]->all[n].served;
	return false;
}

/* A file may be on a mount that the process does not see: of another namespace, outside its root directory,
 * or unmounted while it was in use. Its file system (`device`, NULL: unknown) may be mounted elsewhere.
 * Another one may be of any kind. */
static bool may_hold_us_up(const struct mounts *const mounts[MOUNTS], int fd, const unsigned *device)
{
	const struct mount wanted = {.id = mount_of(fd)};
	for (int i = 0; i < MOUNTS; i++) {
		const struct mount *found =
		    mounts[i] ? bsearch(&wanted, mounts[i]->all, mounts[i]->count, sizeof wanted, by_id)
			      : NULL;
		if (found)
			return found->served;
	}
	return !device || !is_known_device(mounts, device);
}

/* Opens the next component of a path below `dir`, which is closed. */
static int descend(const struct mounts *const mounts[MOUNTS], int dir, const char *name, size_t length)
{
	char component[NAME_MAX + 1];
	int fd;
	if (length > NAME_MAX || (length == 2 && memcmp(name, "..", 2) == 0)) {
		fd = -ENOENT;
	} else if (may_hold_us_up(mounts, dir, NULL)) {
		fd = -ENOTSUP;
	} else {
		memcpy(component, name, length);
		component[length] = 0;
		fd = openat(dir, component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(dir);
	return fd;
}

/* Finds the file at the path within the process' root. */
static int walk(const struct mounts *const mounts[MOUNTS], pid_t pid, const char *path)
{
	char root[48];
	snprintf(root, sizeof root, "/proc/%d/root", pid);
	int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	at = at < 0 ? -errno : at;
	while (at >= 0 && *(path += strspn(path, "/"))) {
		size_t length = strcspn(path, "/");
		at = descend(mounts, at, path, length);
		path += length;
	}
	return at;
}

/* Opens the file that was found for reading. */
static int reopen(const struct mounts *const mounts[MOUNTS], int found, const unsigned *device,
		  uint64_t inode)
{
	struct stat st;
	char self[48];
	if (may_hold_us_up(mounts, found, device))
		return -ENOTSUP;
	if (fstat(found, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if (inode && st.st_ino != inode)
		return -ESTALE;
	snprintf(self, sizeof self, "/proc/self/fd/%d", found);
	int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int mapped_open(const struct mounts *const mounts[MOUNTS], pid_t pid, const struct mapped_file *file)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, file->code_start,
		 file->code_end);
	const unsigned *device = file->device; /* as the map has it, so of exactly this file */
	uint64_t inode = 0;
	int found = open(path, O_PATH | O_CLOEXEC), fd;
	if (found < 0 && (errno == EPERM || errno == EACCES)) {
		device = NULL;
		inode = file->inode;
		found = file->path[0] == '/' ? walk(mounts, pid, file->path) : -ENOENT;
	} else if (found < 0) {
		found = -errno;
	}
	if (found < 0)
		return found;
	fd = reopen(mounts, found, device, inode);
	close(found);
	return fd;
}

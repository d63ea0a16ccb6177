/* SPDX-License-Identifier: MIT */
/* Helper processes: starting, asking, ending and restarting them.
 *
 * The recorder asks for one thing at a time and waits for the answer, which needs no more than a fork. The
 * starting process reads nothing but the recorder's packets. It does not reap a helper before the recorder
 * says that it is done with it: until then the helper's CPU time can be read, and its process id belongs to
 * no other process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/system.h"
#include "recording/recording.h"

enum {
	KINDS_MAX = 16,
	CHILDREN_MAX = 64,
	ANSWER_MS = 2000,
	PATIENCE_MS = 3000, /* with a helper */
	END_MS = 1000,
};

/* kind < 0: end `pid`. */
struct starter_request {
	int kind;
	pid_t pid;
	bool wait;
	uint32_t absent; /* bits of descriptors that are /dev/null */
};

struct starter_answer {
	pid_t pid; /* or a negative errno */
};

static struct {
	const struct helper_setup *const *kinds;
	size_t count;
	struct helper_note *notes; /* shared memory, by kind */
	uint64_t lost[KINDS_MAX];
	pid_t pid;
	int socket;
} starter = {.socket = -1};

/* ---- the starting process ---- */

static struct child {
	pid_t pid;
	bool ended; /* killed, but perhaps still there */
} children[CHILDREN_MAX];

static void arrange_descriptors(int socket, const int *kept, size_t count)
{
	enum { HIGH = 64 };
	/* Moved up first, because each may be where another one belongs. */
	int high[HELPER_KEPT_MAX], null = open("/dev/null", O_RDWR);
	const int high_socket = fcntl(socket, F_DUPFD, HIGH);
	for (size_t i = 0; i < count; i++)
		high[i] = kept[i] < 0 ? -1 : fcntl(kept[i], F_DUPFD, HIGH);
	for (int fd = 0; fd < HELPER_SOCKET && null >= 0; fd++)
		dup2(null, fd);
	dup2(high_socket, HELPER_SOCKET);
	for (size_t i = 0; i < count; i++)
		dup2(high[i] < 0 ? null : high[i], HELPER_KEPT + (int)i);
	close_range(HELPER_KEPT + (unsigned)count, ~0u, 0);
}

__attribute__((noreturn)) static void live(pid_t parent, const struct helper_setup *setup, int socket,
					   const int *kept, size_t count)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	arrange_descriptors(socket, kept, count);
	if (setup->low_priority)
		priority_lower();
	prctl(PR_SET_NAME, setup->name);
	setup->live(parent, count);
	_exit(0);
}

/* Forgets children that are gone. Returns how many should be. */
static size_t reap(void)
{
	size_t stuck = 0;
	for (struct child *c = children; c < children + CHILDREN_MAX; c++) {
		if (c->ended && waitpid(c->pid, NULL, WNOHANG) != 0)
			*c = (struct child){.pid = 0};
		stuck += c->ended;
	}
	return stuck;
}

static pid_t start_child(const struct starter_request *r, const int *fds, size_t count)
{
	int kept[HELPER_KEPT_MAX];
	size_t kept_count = 0, used = 1;
	struct child *place = NULL;
	for (struct child *c = children; c < children + CHILDREN_MAX && !place; c++)
		place = c->pid ? NULL : c;
	if (!place || reap() >= HELPERS_STUCK_MAX)
		return -EAGAIN;
	for (uint32_t bit = 0; kept_count < HELPER_KEPT_MAX && (used < count || r->absent >> bit); bit++)
		kept[kept_count++] = r->absent >> bit & 1 ? -1 : used < count ? fds[used++] : -1;
	const pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		live(parent, starter.kinds[r->kind], fds[0], kept, kept_count);
	if (pid < 0)
		return -errno;
	*place = (struct child){.pid = pid};
	return pid;
}

static pid_t end_child(const struct starter_request *r)
{
	for (struct child *c = children; c < children + CHILDREN_MAX; c++) {
		if (!c->pid || c->pid != r->pid)
			continue;
		for (int ms = 0; r->wait && ms < END_MS; ms++) {
			siginfo_t i = {.si_pid = 0};
			if (waitid(P_PID, (id_t)c->pid, &i, WEXITED | WNOHANG | WNOWAIT) || i.si_pid)
				break;
			usleep(1000);
		}
		kill(c->pid, SIGKILL);
		c->ended = true;
	}
	reap();
	return 0;
}

__attribute__((noreturn)) static void start_and_end(pid_t recorder, int socket)
{
	struct starter_request r;
	int fds[1 + HELPER_KEPT_MAX];
	size_t count;
	prctl(PR_SET_NAME, "forktail-spawn");
	if (privileges_confine_starter(recorder))
		_exit(3);
	while (receive_packet_fds(socket, &r, sizeof r, fds, sizeof fds / sizeof *fds, &count, 0) ==
	       sizeof r) {
		const struct starter_answer a = {r.kind < 0 ? end_child(&r)
						 : (size_t)r.kind < starter.count && count
						     ? start_child(&r, fds, count)
						     : -EINVAL};
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		if (send_packet(socket, &a, sizeof a, -1, 0))
			break;
	}
	for (struct child *c = children; c < children + CHILDREN_MAX; c++)
		if (c->pid)
			kill(c->pid, SIGKILL);
	_exit(0);
}

/* ---- the recorder ---- */

int helpers_begin(const struct helper_setup *const *kinds, size_t count)
{
	int pair[2];
	const pid_t recorder = getpid();
	if (count > KINDS_MAX)
		return -E2BIG;
	starter.notes = mmap(NULL, count * sizeof *starter.notes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (starter.notes == MAP_FAILED) {
		starter.notes = NULL;
		return -ENOMEM;
	}
	starter.kinds = kinds;
	starter.count = count;
	memset(starter.lost, 0, sizeof starter.lost);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	const pid_t pid = fork();
	const int err = pid < 0 ? -errno : 0;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		const int high = fcntl(pair[1], F_DUPFD_CLOEXEC, 3);
		dup2(high < 0 ? pair[1] : high, 3);
		close_range(4, ~0u, 0);
		start_and_end(recorder, 3);
	}
	close(pair[1]);
	starter.pid = pid > 0 ? pid : 0;
	starter.socket = pair[0];
	if (err)
		helpers_end();
	return err;
}

void helpers_end(void)
{
	if (starter.socket >= 0)
		close(starter.socket);
	/* It ends at once. If it does not return from a call, it is left behind. */
	for (int ms = 0; starter.pid && ms < END_MS && waitpid(starter.pid, NULL, WNOHANG) == 0; ms++)
		usleep(1000);
	if (starter.notes)
		munmap(starter.notes, starter.count * sizeof *starter.notes);
	starter.socket = -1;
	starter.pid = 0;
	starter.notes = NULL;
}

static pid_t ask(const struct starter_request *r, const int *fds, size_t count)
{
	struct starter_answer a;
	int fd;
	struct pollfd p = {.fd = starter.socket, .events = POLLIN};
	if (starter.socket < 0 || send_packet_fds(starter.socket, r, sizeof *r, fds, count, MSG_DONTWAIT))
		return -EPIPE;
	if (poll(&p, 1, ANSWER_MS) != 1 ||
	    receive_packet(starter.socket, &a, sizeof a, &fd, MSG_DONTWAIT) != sizeof a) {
		/* A late answer would be taken for another one's. */
		close(starter.socket);
		starter.socket = -1;
		return -EPIPE;
	}
	return a.pid;
}

/* More than the default where allowed. */
static void enlarge(int socket, int bytes)
{
	if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
		setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static int kind_of(const struct helper_setup *setup)
{
	for (size_t i = 0; i < starter.count; i++)
		if (starter.kinds[i] == setup)
			return (int)i;
	return -1;
}

int helper_process_start(struct helper_process *h, const struct helper_setup *setup, const int *kept,
			 size_t kept_count)
{
	int pair[2], fds[1 + HELPER_KEPT_MAX];
	size_t count = 1;
	struct starter_request r = {.kind = kind_of(setup)};
	*h = (struct helper_process){.pid = 0, .socket = -1};
	if (kept_count > HELPER_KEPT_MAX || r.kind < 0)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	for (int i = 0; i < 2 && setup->socket_bytes; i++)
		enlarge(pair[i], setup->socket_bytes);
	fds[0] = pair[1];
	for (size_t i = 0; i < kept_count; i++) {
		if (kept[i] < 0)
			r.absent |= 1u << i;
		else
			fds[count++] = kept[i];
	}
	const pid_t pid = ask(&r, fds, count);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	*h = (struct helper_process){.pid = pid, .socket = pair[0]};
	return 0;
}

void helper_process_end(struct helper_process *h, bool wait)
{
	if (h->socket >= 0)
		close(h->socket);
	if (h->pid > 0)
		ask(&(struct starter_request){.kind = -1, .pid = h->pid, .wait = wait}, NULL, 0);
	*h = (struct helper_process){.pid = 0, .socket = -1};
}

int helper_process_answer(const struct helper_process *h, void *answer, size_t size, int *fd)
{
	struct pollfd p = {.fd = h->socket, .events = POLLIN};
	int none;
	fd = fd ? fd : &none;
	*fd = -1;
	if (h->socket < 0 || poll(&p, 1, PATIENCE_MS) != 1)
		return -EPIPE;
	return receive_packet(h->socket, answer, size, fd, MSG_DONTWAIT) == (ssize_t)size ? 0 : -EPIPE;
}

void helper_process_lost(struct helper_process *h, const struct helper_setup *setup)
{
	const int kind = kind_of(setup);
	if (kind >= 0)
		starter.lost[kind]++;
	helper_process_end(h, false);
}

const char *helper_deaths(size_t i, uint64_t *count)
{
	if (i >= starter.count)
		return NULL;
	*count = starter.lost[i];
	return strrchr(starter.kinds[i]->name, '-') + 1;
}

volatile struct helper_note *helper_note_of(const struct helper_setup *setup)
{
	static struct helper_note none;
	const int kind = kind_of(setup);
	return kind >= 0 && starter.notes ? &starter.notes[kind] : &none;
}

void helper_note_file(volatile struct helper_note *note, const uint64_t key[4], const char *file)
{
	for (int i = 0; i < 4; i++)
		note->key[i] = key ? key[i] : 0;
	size_t i = 0;
	for (; file[i] && i < sizeof note->file - 1; i++)
		note->file[i] = file[i];
	note->file[i] = 0;
	note->progress++;
}

struct helper_note helper_note_read(const struct helper_setup *setup)
{
	struct helper_note copy = *helper_note_of(setup);
	copy.file[sizeof copy.file - 1] = 0;
	return copy;
}

/* There is space for as many descriptors as the receiver expects: with space for more, the peer could leave
 * descriptors open in this process. */

union control {
	char bytes[CMSG_SPACE(PACKET_FDS * sizeof(int))];
	struct cmsghdr header; /* for its alignment */
};

int send_packet_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count, int flags)
{
	union control control = {{0}};
	struct iovec part = {(void *)bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;
	if (count > PACKET_FDS)
		return -E2BIG;
	if (count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
		struct cmsghdr *h = CMSG_FIRSTHDR(&message);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(count * sizeof *fds);
		memcpy(CMSG_DATA(h), fds, count * sizeof *fds);
	}
	do {
		n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int send_packet(int socket, const void *bytes, size_t size, int fd, int flags)
{
	return send_packet_fds(socket, bytes, size, &fd, fd >= 0, flags);
}

ssize_t receive_packet_fds(int socket, void *bytes, size_t size, int *fds, size_t most, size_t *count,
			   int flags)
{
	union control control = {{0}};
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
	ssize_t n;
	*count = 0;
	most = most < PACKET_FDS ? most : PACKET_FDS;
	message.msg_controllen = CMSG_LEN(most * sizeof *fds); /* CMSG_SPACE may have room for one more */
	do {
		n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	const struct cmsghdr *h = CMSG_FIRSTHDR(&message);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len >= CMSG_LEN(0)) {
		*count = (h->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
		memcpy(fds, CMSG_DATA(h), *count * sizeof *fds);
	}
	return n;
}

ssize_t receive_packet(int socket, void *bytes, size_t size, int *fd, int flags)
{
	int one;
	size_t count;
	const ssize_t n = receive_packet_fds(socket, bytes, size, &one, 1, &count, flags);
	*fd = count ? one : -1;
	return n;
}

#define SECOND_NS 1000000000ull
enum { LONGEST_S = 60, QUIET_S = 300, FAILED_S = 5 };

void restarts_ended(struct restarts *r, uint64_t now_ns)
{
	if (r->ended_ns + QUIET_S * SECOND_NS < now_ns)
		r->wait_s = 0;
	r->ended_ns = now_ns;
	r->due_ns = now_ns + r->wait_s * SECOND_NS;
	r->wait_s = !r->wait_s ? 1 : 2 * r->wait_s < LONGEST_S ? 2 * r->wait_s : LONGEST_S;
}

void restarts_failed(struct restarts *r, uint64_t now_ns)
{
	r->due_ns = now_ns + FAILED_S * SECOND_NS;
}

bool restarts_due(const struct restarts *r, uint64_t now_ns)
{
	return now_ns >= r->due_ns;
}

#define LOOK_NS 500000000
#define LONG_NS 1000000000ull

static struct {
	pid_t thread; /* that is watched */
	_Atomic uint64_t round_ns, stalls;
	sem_t begun;
} watched;

/* The system call that the thread is in, or "its own code". */
static void where(char *text, size_t size)
{
	char path[64], line[128];
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", watched.thread);
	const ssize_t n = read_text(path, line, sizeof line);
	char *end = line;
	const long number = n > 0 ? strtol(line, &end, 10) : -1;
	char *name = end != line && number >= 0
			 ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number)
			 : NULL;
	if (name)
		snprintf(text, size, "%s()", name);
	else
		snprintf(text, size, "its own code");
	free(name);
}

static void *watch(void *unused)
{
	uint64_t said_ns = 0; /* the round of which it was said */
	(void)unused;
	sem_post(&watched.begun);
	for (;;) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		const uint64_t round_ns = watched.round_ns, now_ns = ft_now_ns();
		if (!round_ns || round_ns == said_ns || now_ns < round_ns + LONG_NS)
			continue;
		char text[80];
		where(text, sizeof text);
		said_ns = round_ns;
		watched.stalls++;
		fprintf(stderr, "forktail record: the main loop has not come back for %.1f s; it is in %s\n",
			(double)(now_ns - round_ns) * 1e-9, text);
	}
	return NULL;
}

int watchdog_start(void)
{
	pthread_t thread;
	sigset_t all, before;
	watched.thread = gettid();
	sem_init(&watched.begun, 0, 0);
	/* Signals are for the main thread, but for one that this thread's own call causes. */
	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int err = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	pthread_detach(thread);
	/* A thread's first calls are not on the filter's list. */
	while (sem_wait(&watched.begun) && errno == EINTR)
		;
	return 0;
}

void watchdog_round(uint64_t now_ns)
{
	watched.round_ns = now_ns;
}

uint64_t watchdog_stalls(void)
{
	return watched.stalls;
}

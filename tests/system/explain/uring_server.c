/* SPDX-License-Identifier: MIT */
/* A server whose event loop uses io_uring, because distributions have no such server. uring_server PATH
 * [workers] listens on a Unix socket and answers the commands of Redis' protocol that a load generator of
 * GETs sends, with "there is no such key". It accepts, reads and answers through the ring alone, or has the
 * kernel's workers do it, and waits in io_uring_enter. Exits with 77 where the kernel refuses rings. */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTIONS = 64, BUFFER = 65536, ENTRIES = 256, NO_RING = 77, LISTENER = CONNECTIONS };
enum { ACCEPT, RECEIVE, SEND };

static struct connection {
	int fd; /* 0: free */
	size_t in, out, sent;
	char input[BUFFER], output[BUFFER];
} connections[CONNECTIONS];

static struct {
	int fd;
	_Atomic unsigned *sq_tail, *cq_head, *cq_tail;
	unsigned sq_mask, cq_mask, unsubmitted;
	unsigned *sq_array;
	uint8_t flags; /* of every request */
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static void fail(const char *what)
{
	perror(what);
	exit(errno == ENOSYS || errno == EPERM ? NO_RING : 1);
}

static void *map(size_t bytes, off_t what)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);
	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

static void set_up(void)
{
	struct io_uring_params p = {0};
	ring.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring.fd < 0)
		fail("io_uring_setup");
	char *sq = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	char *cq = map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring.sqes = map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.sq_tail = (_Atomic unsigned *)(void *)(sq + p.sq_off.tail);
	ring.sq_mask = *(unsigned *)(void *)(sq + p.sq_off.ring_mask);
	ring.sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
	ring.cq_head = (_Atomic unsigned *)(void *)(cq + p.cq_off.head);
	ring.cq_tail = (_Atomic unsigned *)(void *)(cq + p.cq_off.tail);
	ring.cq_mask = *(unsigned *)(void *)(cq + p.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

/* Each connection has at most one outstanding request, so the ring has room. */
static void ask(int op, int number, int fd, void *bytes, size_t size)
{
	static const uint8_t codes[] = {IORING_OP_ACCEPT, IORING_OP_RECV, IORING_OP_SEND};
	unsigned tail = atomic_load(ring.sq_tail), at = tail & ring.sq_mask;
	ring.sqes[at] = (struct io_uring_sqe){.opcode = codes[op],
					      .flags = ring.flags,
					      .fd = fd,
					      .addr = (uintptr_t)bytes,
					      .len = (uint32_t)size,
					      .user_data = (uint64_t)number << 2 | (uint64_t)op};
	ring.sq_array[at] = at;
	atomic_store(ring.sq_tail, tail + 1);
	ring.unsubmitted++;
}

static void receive(int number)
{
	struct connection *c = &connections[number];
	ask(RECEIVE, number, c->fd, c->input + c->in, sizeof c->input - c->in);
}

/* The size of the first complete command in `text`, or 0, and its first word. */
static size_t whole_command(const char *text, size_t size, char word[16])
{
	size_t at = 0;
	long words = -1;
	word[0] = 0;
	for (long i = -1; i < words || words < 0; i++) {
		const char *end = memchr(text + at, '\n', size - at);
		if (!end)
			return 0;
		long number = strtol(text + at + 1, NULL, 10);
		at = (size_t)(end - text) + 1;
		if (words < 0) {
			words = number;
			continue;
		}
		if (number < 0 || (size_t)number + 2 > size - at)
			return 0;
		if (!word[0])
			snprintf(word, 16, "%.*s", (int)number, text + at);
		at += (size_t)number + 2;
	}
	return at;
}

static const char *answer_to(const char *word)
{
	return strcmp(word, "GET") == 0	   ? "$-1\r\n"
	       : strcmp(word, "PING") == 0 ? "+PONG\r\n"
	       : strcmp(word, "INFO") == 0 ? "$0\r\n\r\n"
					   : "+OK\r\n";
}

/* Answers all complete commands, or waits for the rest of one. */
static void answer(int number)
{
	struct connection *c = &connections[number];
	size_t at = 0, bytes;
	char word[16];
	c->out = c->sent = 0;
	while (at < c->in && c->out + 16 < sizeof c->output &&
	       (bytes = whole_command(c->input + at, c->in - at, word))) {
		const char *text = answer_to(word);
		memcpy(c->output + c->out, text, strlen(text));
		c->out += strlen(text);
		at += bytes;
	}
	memmove(c->input, c->input + at, c->in - at);
	c->in -= at;
	if (c->out)
		ask(SEND, number, c->fd, c->output, c->out);
	else
		receive(number);
}

static void welcome(int fd)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (!connections[i].fd) {
			connections[i].fd = fd;
			connections[i].in = 0;
			receive(i);
			return;
		}
	close(fd);
}

static void done(int op, int number, int result, int listener)
{
	struct connection *c = &connections[number];
	if (op == ACCEPT) {
		if (result >= 0)
			welcome(result);
		ask(ACCEPT, LISTENER, listener, NULL, 0);
	} else if (result <= 0) {
		close(c->fd);
		c->fd = 0;
	} else if (op == RECEIVE) {
		c->in += (size_t)result;
		answer(number);
	} else if ((c->sent += (size_t)result) < c->out) {
		ask(SEND, number, c->fd, c->output + c->sent, c->out - c->sent);
	} else {
		answer(number); /* what came after the answered commands */
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (argc < 2 || argc > 3 || strlen(argv[1]) >= sizeof address.sun_path)
		return 2;
	ring.flags = argc == 3 ? IOSQE_ASYNC : 0;
	set_up();
	strcpy(address.sun_path, argv[1]);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, CONNECTIONS))
		fail(argv[1]);
	ask(ACCEPT, LISTENER, listener, NULL, 0);
	for (;;) {
		long n = syscall(SYS_io_uring_enter, ring.fd, ring.unsubmitted, 1, IORING_ENTER_GETEVENTS,
				 NULL, 0);
		if (n < 0 && errno != EINTR)
			fail("io_uring_enter");
		if (n > 0)
			ring.unsubmitted -= (unsigned)n;
		unsigned head = atomic_load(ring.cq_head), tail = atomic_load(ring.cq_tail);
		for (; head != tail; head++) {
			struct io_uring_cqe cqe = ring.cqes[head & ring.cq_mask];
			atomic_store(ring.cq_head, head + 1);
			done((int)(cqe.user_data & 3), (int)(cqe.user_data >> 2), cqe.res, listener);
		}
	}
}

/* SPDX-License-Identifier: MIT */
/* The least that a GET costs a client that uses io_uring instead of epoll: descriptors and
 * buffers are registered, a receive is requested once for all answers of a connection (multishot), and one
 * system call sends all waiting requests and waits for the next answer. It shows what an io_uring engine of
 * the load generator could save at most: compare it with the floor of epoll by
 *
 *   bench/loadgen --only 'redis GET' --floor 'bench/uring_floor.c -luring'     (Debian's liburing-dev)
 *
 * which runs uring_floor unix:PATH|tcp:PORT REQUESTS PIPELINE. Key key:000000000001 has 16 bytes. Exit status
 * 3 when the server or the kernel refuses. */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dial.h"

enum {
	CONNECTIONS = 50,
	PIPELINE_MAX = 200,
	REPLY_BYTES = 23,
	BUFFERS = 256, /* a power of two, more than answers can wait at once */
	BUFFER_BYTES = 8192,
	SENT = 1 << 16, /* marks the completion of a send; the rest is the connection */
	FAILED = 3,
};

static struct io_uring ring;
static struct io_uring_buf_ring *pool;
static char buffers[BUFFERS][BUFFER_BYTES];
static char request[PIPELINE_MAX * 40];
static size_t request_length;

static _Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "uring_floor: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(FAILED);
}

static void open_ring(const int *fds)
{
	struct io_uring_params params = {
	    .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
	    .cq_entries = 1024,
	};
	struct io_uring_buf_reg registration = {.ring_entries = BUFFERS};
	void *memory = NULL;
	int rc = io_uring_queue_init_params(BUFFERS, &ring, &params);

	if (rc)
		fail("io_uring", rc);
	io_uring_register_ring_fd(&ring);
	rc = io_uring_register_files(&ring, fds, CONNECTIONS);
	if (rc)
		fail("registered descriptors", rc);
	if (posix_memalign(&memory, 4096, BUFFERS * sizeof(struct io_uring_buf)))
		fail("buffers", ENOMEM);
	pool = memory;
	registration.ring_addr = (unsigned long)memory;
	rc = io_uring_register_buf_ring(&ring, &registration, 0);
	if (rc)
		fail("registered buffers", rc);
	io_uring_buf_ring_init(pool);
	for (unsigned short b = 0; b < BUFFERS; b++)
		io_uring_buf_ring_add(pool, buffers[b], BUFFER_BYTES, b, BUFFERS - 1, b);
	io_uring_buf_ring_advance(pool, BUFFERS);
}

static void begin_receiving(unsigned connection)
{
	struct io_uring_sqe *s = io_uring_get_sqe(&ring);

	io_uring_prep_recv_multishot(s, (int)connection, NULL, 0, 0);
	s->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
	s->user_data = connection;
}

static void send_requests(unsigned connection)
{
	struct io_uring_sqe *s = io_uring_get_sqe(&ring);

	io_uring_prep_send(s, (int)connection, request, request_length, MSG_NOSIGNAL);
	s->flags |= IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS; /* only a failure completes */
	s->user_data = connection | SENT;
}

/* Handles all completions. Returns how many batches were answered. */
static long take_completions(int *received, int batch_bytes)
{
	struct io_uring_cqe *c;
	unsigned head, count = 0;
	long batches = 0;
	int returned = 0;

	io_uring_for_each_cqe(&ring, head, c)
	{
		unsigned connection = (unsigned)c->user_data & (SENT - 1);
		unsigned short buffer = (unsigned short)(c->flags >> IORING_CQE_BUFFER_SHIFT);

		count++;
		if (c->user_data & SENT || c->res <= 0)
			fail(c->user_data & SENT ? "send" : "receive", c->res ? c->res : ECONNRESET);
		io_uring_buf_ring_add(pool, buffers[buffer], BUFFER_BYTES, buffer, BUFFERS - 1, returned++);
		if (!(c->flags & IORING_CQE_F_MORE))
			begin_receiving(connection);
		received[connection] += c->res;
		if (received[connection] < batch_bytes)
			continue;
		received[connection] -= batch_bytes;
		batches++;
		send_requests(connection);
	}
	io_uring_buf_ring_advance(pool, returned);
	io_uring_cq_advance(&ring, count);
	return batches;
}

int main(int argc, char **argv)
{
	int fds[CONNECTIONS], received[CONNECTIONS] = {0}, pipeline = argc == 4 ? atoi(argv[3]) : 0, rc;
	long total, done = 0;

	if (pipeline < 1 || pipeline > PIPELINE_MAX) {
		fprintf(stderr, "usage: %s unix:PATH|tcp:PORT REQUESTS PIPELINE\n", argv[0]);
		return 2;
	}
	total = atol(argv[2]);
	for (int i = 0; i < pipeline; i++)
		request_length += (size_t)sprintf(request + request_length,
						  "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n");
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = dial(argv[1]);
		if (fds[i] < 0)
			fail(argv[1], errno);
	}
	open_ring(fds);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		begin_receiving(i);
		send_requests(i);
	}
	while (done < total) {
		rc = io_uring_submit_and_wait(&ring, 1);
		if (rc < 0)
			fail("wait", rc);
		done += pipeline * take_completions(received, REPLY_BYTES * pipeline);
	}
	return 0;
}

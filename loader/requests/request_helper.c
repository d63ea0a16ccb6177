/* SPDX-License-Identifier: MIT */
/* The ring comes in a packet, and is mapped before the process gives up its rights; reading it then needs no
 * system call. The process looks twenty times per second. If the recorder is slow, it waits, and the kernel
 * counts what does not fit into the ring. */
#include "loader/requests/request_helper.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/requests/matcher.h"
#include "loader/requests/scanner.h"
#include "loader/system/packets.h"
#include "loader/system/privileges.h"
#include "recording/recording.h"

enum {
	LOOK_MS = 50,
	SOCKET_BYTES = 4 << 20,
};

struct outbox {
	struct request_message messages[REQUEST_PACKET];
	size_t count;
};

static void send_outbox(struct outbox *o)
{
	if (o->count && send_packet(HELPER_SOCKET, o->messages, o->count * sizeof *o->messages, -1, 0))
		_exit(0); /* the recorder has exited */
	o->count = 0;
}

/* A request_handler. */
static void put(void *context, const struct request_message *message)
{
	struct outbox *o = context;
	o->messages[o->count++] = *message;
	if (o->count == REQUEST_PACKET)
		send_outbox(o);
}

static int on_event(void *context, void *event, size_t bytes)
{
	matcher_event(context, event, bytes);
	return 0;
}

/* Takes what the recorder sent. False: it asked for the end, or has exited. */
static bool take_targets(struct matcher *m)
{
	struct request_target target;
	for (;;) {
		int fd;
		ssize_t n = receive_packet(HELPER_SOCKET, &target, sizeof target, &fd, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return true;
		if (n != sizeof target || !target.tgid)
			return false;
		matcher_target(m, &target);
	}
}

static void serve(struct ring_buffer *ring, struct matcher *m, struct outbox *o)
{
	struct pollfd fd = {.fd = HELPER_SOCKET, .events = POLLIN};
	bool more = true;
	while (more) {
		poll(&fd, 1, LOOK_MS);
		more = take_targets(m);
		ring_buffer__consume(ring);
		matcher_tick(m, ft_now_ns());
		send_outbox(o);
	}
	matcher_finish(m);
	send_outbox(o);
}

/* Waits for the map of events. Its descriptors are not needed once it is mapped. */
static struct ring_buffer *receive_ring(struct matcher *m)
{
	char unused;
	int map;
	if (receive_packet(HELPER_SOCKET, &unused, sizeof unused, &map, 0) <= 0 || map < 0)
		_exit(0);
	struct ring_buffer *ring = ring_buffer__new(map, on_event, m, NULL);
	close_range(HELPER_SOCKET + 1, ~0u, 0);
	return ring;
}

static void live(pid_t parent, size_t kept_count)
{
	static struct outbox o;
	uint64_t seed = 0;
	(void)kept_count;
	struct matcher *m = matcher_open(put, &o);
	struct ring_buffer *ring = receive_ring(m);
	if (!m || !ring || getrandom(&seed, sizeof seed, 0) != sizeof seed ||
	    privileges_confine_requests(parent))
		_exit(3);
	scanner_seed(seed);
	serve(ring, m, &o);
}

const struct helper_setup requests_helper = {
    .name = "forktail-reqs", .live = live, .socket_bytes = SOCKET_BYTES, .low_priority = true};

int request_helper_start(struct helper_process *h)
{
	const int err = helper_process_start(h, &requests_helper, NULL, 0);
	if (!err)
		fcntl(h->socket, F_SETFL, O_NONBLOCK);
	return err;
}

int request_helper_map(const struct helper_process *h, int map)
{
	return send_packet(h->socket, "", 1, map, 0);
}

void request_helper_target(const struct helper_process *h, const struct request_target *target)
{
	send_packet(h->socket, target, sizeof *target, -1, MSG_DONTWAIT);
}

void request_helper_finish(const struct helper_process *h)
{
	const struct request_target none = {.tgid = 0};
	send_packet(h->socket, &none, sizeof none, -1, 0);
}

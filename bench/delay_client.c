/* SPDX-License-Identifier: MIT */
/* The smallest delay that a client can see: only epoll_wait(), read(), the clock and write(). What it reports
 * beyond the true delay comes from the kernel and this host, not from a load generator. forktail-load is
 * compared with it where no client can measure the true delay (loadgen_accuracy).
 *
 *   delay_client [busy] SOCKET CONNECTIONS SECONDS PERCENTILE...
 *
 * With "busy" epoll_wait() returns at once instead of sleeping. A closed loop of GETs on delay_server; key
 * numbers count up from 0. Prints the number of requests, then each percentile (nearest rank) in nanoseconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1024, EVENTS = 64, REPLY_BYTES = 23 };

struct connection {
	int fd;
	uint64_t start_ns;
};

static struct connection connections[CONNECTIONS_MAX];
static uint64_t *latencies, next_key;
static size_t count, room;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(3);
}

static int dial(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		fail(path);
	return fd;
}

static void send_one(struct connection *c)
{
	char request[64];
	int n = snprintf(request, sizeof(request), "*2\r\n$3\r\nGET\r\n$16\r\nkey:%012llu\r\n",
			 (unsigned long long)next_key++);

	c->start_ns = now_ns();
	if (write(c->fd, request, (size_t)n) != n)
		fail("write");
}

static void take_one(struct connection *c)
{
	char reply[64];
	ssize_t n = read(c->fd, reply, sizeof(reply));
	uint64_t now = now_ns();

	if (n != REPLY_BYTES)
		fail("read"); /* the server writes answers whole */
	if (count == room) {
		room = room ? room * 2 : 1 << 16;
		latencies = realloc(latencies, room * sizeof(*latencies));
		if (!latencies)
			fail("memory");
	}
	latencies[count++] = now - c->start_ns;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void run(int poll_fd, int number, uint64_t end_ns, int patience_ms)
{
	struct epoll_event events[EVENTS];

	for (int i = 0; i < number; i++)
		send_one(&connections[i]);
	while (number > 0) {
		int n = epoll_wait(poll_fd, events, EVENTS, patience_ms);

		for (int i = 0; i < n; i++) {
			struct connection *c = &connections[events[i].data.u32];

			take_one(c);
			if (now_ns() < end_ns)
				send_one(c);
			else
				number--;
		}
	}
}

int main(int argc, char **argv)
{
	int busy = argc > 1 && strcmp(argv[1], "busy") == 0, number, poll_fd = epoll_create1(EPOLL_CLOEXEC);

	argc -= busy;
	argv += busy;
	number = argc > 4 ? atoi(argv[2]) : 0;
	if (number < 1 || number > CONNECTIONS_MAX || poll_fd < 0) {
		fputs("usage: delay_client [busy] SOCKET CONNECTIONS SECONDS PERCENTILE...\n", stderr);
		return 2;
	}
	for (int i = 0; i < number; i++) {
		struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = (uint32_t)i};

		connections[i].fd = dial(argv[1]);
		epoll_ctl(poll_fd, EPOLL_CTL_ADD, connections[i].fd, &e);
	}
	run(poll_fd, number, now_ns() + (uint64_t)(atof(argv[3]) * 1e9), busy ? 0 : -1);
	qsort(latencies, count, sizeof(*latencies), ascending);
	printf("%zu\n", count);
	for (int i = 4; i < argc; i++) {
		size_t rank = (count * (size_t)atoi(argv[i]) + 99) / 100;

		printf("%llu\n", (unsigned long long)latencies[rank ? rank - 1 : 0]);
	}
	return 0;
}

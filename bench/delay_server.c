/* SPDX-License-Identifier: MIT */
/* A server with a known latency. It answers request k of key k a set time after the request came, and records
 * when the request came and when the answer was sent. The latencies of a load generator are checked against
 * these records (loadgen_accuracy).
 *
 *   delay_server SOCKET RECORDS
 *
 * It understands only what a client needs to connect: PING gets PONG, GET gets 16 bytes after the delay,
 * everything else gets an error at once. The delays are 100 us, 1 ms and 10 ms in rotation, by the number in
 * the key's name. It never sleeps while a client is connected, so that an answer is at most one loop
 * iteration late (below 1 us for few connections). It therefore needs a CPU to itself. At SIGTERM it writes a
 * line per GET into RECORDS: the key, the time in nanoseconds of CLOCK_MONOTONIC when the read() of the
 * request returned, and the time just before the write() of the answer.
 *
 * Each connection may have one request outstanding. A client that pipelines gets an error and is
 * disconnected.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1024, REQUEST_MAX = 4096, EVENTS = 64, LISTENER = CONNECTIONS_MAX };

static const uint64_t delays_ns[] = {100000, 1000000, 10000000};

struct record {
	uint64_t key, came_ns, went_ns;
};

struct connection {
	int fd; /* -1: free */
	char request[REQUEST_MAX];
	size_t have;
	uint64_t due_ns; /* 0: nothing to answer */
	struct record record;
};

static struct connection connections[CONNECTIONS_MAX];
static int highest; /* of the connections in use, plus one */
static struct record *records;
static size_t record_count, record_room;
static volatile sig_atomic_t over;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_end(int number)
{
	(void)number;
	over = 1;
}

static void keep(const struct record *r)
{
	if (record_count == record_room) {
		record_room = record_room ? record_room * 2 : 1 << 20;
		records = realloc(records, record_room * sizeof(*records));
		if (!records) {
			fputs("delay_server: out of memory\n", stderr);
			exit(3);
		}
	}
	records[record_count++] = *r;
}

static void drop(struct connection *c)
{
	close(c->fd);
	c->fd = -1;
	c->due_ns = 0;
}

static void say(struct connection *c, const char *text)
{
	if (write(c->fd, text, strlen(text)) < 0)
		drop(c);
}

/* The end of a whole request at the start of the buffer ("*n" and n times "$length", bytes). NULL: the
 * request is incomplete.
 */
static const char *request_end(const struct connection *c)
{
	const char *at = c->request, *end = c->request + c->have;
	long words = 0, length;

	for (long i = -1; i < words; i++) {
		const char *line = memchr(at, '\n', (size_t)(end - at));

		if (!line)
			return NULL;
		length = strtol(at + 1, NULL, 10);
		at = line + 1;
		if (i < 0) {
			words = length;
			continue;
		}
		if (length < 0 || end - at < length + 2)
			return NULL;
		at += length + 2;
	}
	return at;
}

static void take_request(struct connection *c, const char *end, uint64_t came_ns)
{
	const char *key;

	c->request[end - c->request] = 0; /* the buffer has room for it */
	key = strstr(c->request, "\nGET\r\n") ? strstr(c->request, "key:") : NULL;
	if (strcasestr(c->request, "\nPING\r\n")) {
		say(c, "+PONG\r\n");
	} else if (!key) {
		say(c, "-ERR this server only waits\r\n");
	} else {
		c->record = (struct record){.key = strtoull(key + 4, NULL, 10), .came_ns = came_ns};
		c->due_ns = came_ns + delays_ns[c->record.key % 3];
	}
	c->have = 0;
}

static void take_bytes(struct connection *c)
{
	ssize_t n = read(c->fd, c->request + c->have, REQUEST_MAX - 1 - c->have);
	uint64_t came_ns = now_ns();
	const char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	c->have += (size_t)n;
	end = request_end(c);
	if (c->due_ns || (end && end != c->request + c->have) || (!end && c->have == REQUEST_MAX - 1)) {
		say(c, "-ERR one request at a time\r\n");
		if (c->fd >= 0)
			drop(c);
		return;
	}
	if (end)
		take_request(c, end, came_ns);
}

static void answer(struct connection *c)
{
	c->due_ns = 0;
	c->record.went_ns = now_ns();
	keep(&c->record);
	say(c, "$16\r\nabcdefghijklmnop\r\n");
}

static void welcome(int poll_fd, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), i = 0;
	struct epoll_event e = {.events = EPOLLIN};

	if (fd < 0)
		return;
	while (i < CONNECTIONS_MAX && connections[i].fd >= 0)
		i++;
	if (i == CONNECTIONS_MAX) {
		close(fd);
		return;
	}
	connections[i] = (struct connection){.fd = fd};
	highest = i + 1 > highest ? i + 1 : highest;
	e.data.u32 = (uint32_t)i;
	epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &e);
}

static int listen_at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, CONNECTIONS_MAX)) {
		fprintf(stderr, "delay_server: cannot listen at %s: %s\n", path, strerror(errno));
		exit(3);
	}
	return fd;
}

static void serve(int poll_fd, int listener)
{
	struct epoll_event events[EVENTS];

	while (!over) {
		int n = epoll_wait(poll_fd, events, EVENTS, 0);

		for (int i = 0; i < n; i++) {
			if (events[i].data.u32 == LISTENER)
				welcome(poll_fd, listener);
			else
				take_bytes(&connections[events[i].data.u32]);
		}
		for (int i = 0; i < highest; i++)
			if (connections[i].due_ns && connections[i].due_ns <= now_ns())
				answer(&connections[i]);
		while (highest > 0 && connections[highest - 1].fd < 0)
			highest--;
		if (highest == 0)
			epoll_wait(poll_fd, events, 1, 100); /* level-triggered: reported again */
	}
}

int main(int argc, char **argv)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = LISTENER};
	int listener, poll_fd = epoll_create1(EPOLL_CLOEXEC);
	FILE *out = argc == 3 ? fopen(argv[2], "w") : NULL;

	if (!out || poll_fd < 0) {
		fputs("usage: delay_server SOCKET RECORDS\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, on_end);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections[i].fd = -1;
	listener = listen_at(argv[1]);
	epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &e);
	serve(poll_fd, listener);
	for (size_t i = 0; i < record_count; i++)
		fprintf(out, "%llu %llu %llu\n", (unsigned long long)records[i].key,
			(unsigned long long)records[i].came_ns, (unsigned long long)records[i].went_ns);
	return fclose(out) == 0 ? 0 : 3;
}

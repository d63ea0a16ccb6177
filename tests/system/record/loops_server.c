/* SPDX-License-Identifier: MIT */
/* A server with an event loop in each of its threads, like KeyDB and Envoy: loops_server PORT THREADS. Every
 * thread listens on the port itself (SO_REUSEPORT), so that the kernel distributes connections. It answers a
 * line with the id of the thread that read it. After "move" the connection is the next thread's. Prints a
 * line when all threads listen. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_THREADS = 16, EVENTS = 16 };

static int epolls[MOST_THREADS], threads, port;
static pthread_barrier_t all_listen;

static void die(const char *what)
{
	perror(what);
	exit(3);
}

static void add(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		die("epoll_ctl");
}

static int listener(void)
{
	const int on = 1;
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) ||
	    bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 64))
		die("listen");
	return fd;
}

static void answer(int self, int fd)
{
	char line[64], text[32];
	ssize_t n = read(fd, line, sizeof line);
	if (n <= 0) {
		close(fd);
		return;
	}
	if (strncmp(line, "move", 4) == 0) {
		epoll_ctl(epolls[self], EPOLL_CTL_DEL, fd, NULL);
		add(epolls[(self + 1) % threads], fd);
	}
	int length = snprintf(text, sizeof text, "%d\n", gettid());
	if (write(fd, text, (size_t)length) != length)
		close(fd);
}

static void *serve(void *number)
{
	int self = (int)(long)number, accepting = listener();
	struct epoll_event events[EVENTS];
	add(epolls[self], accepting);
	pthread_barrier_wait(&all_listen);
	for (;;) {
		int n = epoll_wait(epolls[self], events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == accepting)
				add(epolls[self], accept(fd, NULL, NULL));
			else
				answer(self, fd);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 3 || (threads = atoi(argv[2])) < 1 || threads > MOST_THREADS)
		return 2;
	port = atoi(argv[1]);
	if (pthread_barrier_init(&all_listen, NULL, (unsigned)threads + 1))
		return 3;
	for (int i = 0; i < threads; i++)
		if ((epolls[i] = epoll_create1(EPOLL_CLOEXEC)) < 0)
			die("epoll_create1");
	for (long i = 0; i < threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, serve, (void *)i))
			die("pthread_create");
	}
	pthread_barrier_wait(&all_listen);
	puts("listening");
	fflush(stdout);
	for (;;)
		pause();
}

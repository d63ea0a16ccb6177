/* SPDX-License-Identifier: MIT */
/* The difference between the clocks is known within half the time of reading them, some 20 to 50 ns. It is
 * read at most once per millisecond, which costs almost nothing. After the clock was set, timestamps may be
 * wrong for a millisecond, as may those of answers that were in the socket then. Implausible ones are
 * discarded. */
#include "arrival.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "recording/recording.h"

/* How far a timestamp may seem to be in the future: the error of the clocks' difference. */
#define SLACK_NS 1000u
#define LOOK_NS 1000000u

bool arrival_ask(int fd)
{
	int domain = 0, stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	socklen_t size = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
	    (domain != AF_INET && domain != AF_INET6))
		return false;
	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)) == 0;
}

/* The timestamp in recvmsg()'s control data. */
static uint64_t stamp_of(struct msghdr *message)
{
	struct scm_timestamping stamps;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING ||
		    c->cmsg_len < CMSG_LEN(sizeof(stamps)))
			continue;
		memcpy(&stamps, CMSG_DATA(c), sizeof(stamps));
		return (uint64_t)stamps.ts[0].tv_sec * 1000000000u + (uint64_t)stamps.ts[0].tv_nsec;
	}
	return 0;
}

ssize_t arrival_read(int fd, void *to, size_t size, uint64_t *stamp_ns)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct scm_timestamping))];
	} control;
	struct iovec bytes = {.iov_base = to, .iov_len = size};
	struct msghdr message = {
	    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &message, 0);

	*stamp_ns = n > 0 ? stamp_of(&message) : 0;
	return n;
}

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of a few readings uses the fastest, because an interrupt may come between. */
static void look(struct arrival_clock *clock)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t before_ns = ft_now_ns(), at_ns = realtime_ns(), took_ns = ft_now_ns() - before_ns;

		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		clock->ahead_ns = at_ns - before_ns - took_ns / 2;
	}
}

uint64_t arrival_monotonic(struct arrival_clock *clock, uint64_t stamp_ns, uint64_t now_ns)
{
	uint64_t at_ns;

	if (stamp_ns == 0)
		return 0;
	if (clock->looked_ns == 0 || now_ns - clock->looked_ns >= LOOK_NS) {
		look(clock);
		clock->looked_ns = now_ns;
	}
	at_ns = stamp_ns - clock->ahead_ns;
	if (at_ns <= now_ns)
		return at_ns;
	return at_ns - now_ns <= SLACK_NS ? now_ns : 0;
}

/* SPDX-License-Identifier: MIT */
/* The kernel's timestamps use CLOCK_REALTIME. They are converted by reading both clocks at once.
 * CLOCK_MONOTONIC is read last, because a time that is too late only widens the bound, while one that is too
 * early makes it wrong. */
#include "stamp.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "recording/recording.h"

/* A larger difference means that the clock was set in between. */
enum { LONGEST_NS = 1000000000 };

void stamp_ask(int fd)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
}

static uint64_t when(struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct timespec stamp, real;
		uint64_t now_ns;
		int64_t ago_ns;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
		clock_gettime(CLOCK_REALTIME, &real);
		now_ns = ft_now_ns();
		ago_ns = (real.tv_sec - stamp.tv_sec) * INT64_C(1000000000) + real.tv_nsec - stamp.tv_nsec;
		return ago_ns < 0 || ago_ns > LONGEST_NS ? now_ns : now_ns - (uint64_t)ago_ns;
	}
	return ft_now_ns();
}

int stamp_receive(int fd, void *packet, size_t size, uint64_t *at_ns, struct sockaddr_storage *from,
		  socklen_t *from_size)
{
	_Alignas(struct cmsghdr) char control[256];
	struct iovec data = {packet, size};
	struct msghdr message = {
	    .msg_name = from,
	    .msg_namelen = from ? sizeof(*from) : 0,
	    .msg_iov = &data,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	*at_ns = when(&message);
	if (from_size)
		*from_size = message.msg_namelen;
	return message.msg_flags & MSG_TRUNC ? (int)size + 1 : (int)n;
}

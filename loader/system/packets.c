/* SPDX-License-Identifier: MIT */
/* There is space for as many descriptors as the receiver expects: with space for more, the peer could leave
 * descriptors open in this process. */
#include "loader/system/packets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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

/* SPDX-License-Identifier: MIT */
/* The guard reports to the manager. It only sees what is written to the ring, so while nothing can be written
 * the recorder reports by itself. It connects early, because its filter allows no new sockets. */
#include "loader/system/manager.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loader/system/packets.h"

int manager_connect(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	if (!length || length >= sizeof to.sun_path)
		return -1;
	memcpy(to.sun_path, path, length);
	if (*path == '@')
		*to.sun_path = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return fd;
	close(fd);
	return -1;
}

void manager_alive(int socket)
{
	static const char alive[] = "WATCHDOG=1";
	if (socket >= 0)
		send_packet(socket, alive, sizeof alive - 1, -1, MSG_DONTWAIT);
}

/* SPDX-License-Identifier: MIT */
/* Which sockets are in the epoll instances that the targets' threads wait for: the serving thread of each
 * connection. They are read at intervals instead of traced, because a tracepoint of epoll_ctl would slow
 * every system call of the host. A delay is harmless: the inode number shows that a socket is new and was in
 * no other instance before. A connection that opens and closes between two reads is missed. */
#ifndef FORKTAIL_LOADER_SOCKETS_H
#define FORKTAIL_LOADER_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sockets;

/* `pids`: the targets, whose network namespaces are searched for Unix sockets besides the caller's. That
 * needs CAP_SYS_ADMIN; later only reading /proc of the targets is needed. NULL: no memory. */
struct sockets *sockets_open(struct ft_writer *writer, const pid_t *pids, size_t count);
/* A thread of this process waits for events of the epoll instance. Does nothing if `s` is NULL. */
void sockets_watch(struct sockets *s, pid_t pid, uint32_t epoll);
/* Whether threads of one process wait for different instances. Only then a connection's thread must be found.
 */
bool sockets_several(const struct sockets *s);
/* For kernels without the tracepoints of readers.h. Reads all instances of such processes and writes what has
 * changed. Call it often: it reads four times per second, or less often where servers would have to wait for
 * it for more than a 2000th of the time (a 200th while connections are opened or closed). */
void sockets_look(struct sockets *s, uint64_t now_ns);
/* A new file begins: writes all sockets again. Forgets the instances of processes that have ended. */
void sockets_begin_segment(struct sockets *s);
void sockets_close(struct sockets *s);

#ifdef __cplusplus
}
#endif

#endif

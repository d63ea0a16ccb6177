/* SPDX-License-Identifier: MIT */
/* Which sockets are in the epoll instances that targets' threads wait for: who serves which connection.
 *
 * Looked up at intervals rather than traced: a tracepoint of epoll_ctl makes every system call of the host
 * dearer. That a socket is found late does no harm, because its number tells that it is a new one, which was
 * in no other instance before; a connection that comes and goes between two looks is missed. */
#ifndef FORKTAIL_LOADER_SOCKETS_H
#define FORKTAIL_LOADER_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sockets;

/* `pids`: the targets, whose network namespaces Unix sockets are looked up in besides the caller's own. Needs
 * CAP_SYS_ADMIN for those, and nothing else later on but to read /proc of the targets. NULL: no memory. */
struct sockets *sockets_open(struct ft_writer *writer, const pid_t *pids, size_t count);
/* A thread of this process waits for events of the epoll instance. Nothing if `s` is NULL. */
void sockets_watch(struct sockets *s, pid_t pid, uint32_t epoll);
/* Looks at all instances and writes what has changed. Called often: it looks four times a second, or less
 * often where servers would have to wait for it for more than a 2000th of the time (a 200th while connections
 * come or go). */
void sockets_look(struct sockets *s, uint64_t now_ns);
/* A file begins: writes again where they are. */
void sockets_begin_segment(struct sockets *s);
void sockets_close(struct sockets *s);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* The service manager that started this process: sd_notify(3), which is one datagram and needs no library. */
#ifndef FORKTAIL_COMMON_MANAGER_H
#define FORKTAIL_COMMON_MANAGER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a socket for manager_send(), or -1. `path`: the value of NOTIFY_SOCKET ("@...": an abstract name);
 * NULL or "" without a manager. */
int manager_connect(const char *path);
/* "READY=1", "STATUS=...". Never waits and never fails: without a manager (-1) it does nothing. */
void manager_send(int socket, const char *state, size_t length);

#ifdef __cplusplus
}
#endif

#endif

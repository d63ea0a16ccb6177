/* SPDX-License-Identifier: MIT */
/* The service manager that started this process (sd_notify(3)). */
#ifndef FORKTAIL_LOADER_MANAGER_H
#define FORKTAIL_LOADER_MANAGER_H

/* Returns a socket for manager_alive(), or -1 without a manager. */
int manager_connect(void);
/* Restarts the manager's watchdog period. */
void manager_alive(int socket);

#endif

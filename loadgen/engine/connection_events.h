/* SPDX-License-Identifier: MIT */
/* Events of an open connection in an event loop: `on_readable` and `on_writable` of most load models. */
#ifndef FORKTAIL_LOADGEN_CONNECTION_EVENTS_H
#define FORKTAIL_LOADGEN_CONNECTION_EVENTS_H

#include <event2/util.h>

void connection_readable(evutil_socket_t fd, short what, void *arg);
void connection_writable(evutil_socket_t fd, short what, void *arg);

#endif

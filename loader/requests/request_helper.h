/* SPDX-License-Identifier: MIT */
/* The process that reads what clients sent. Bytes of strangers are scanned in a process without rights; the
 * recorder gets times, sizes and numbers of commands only. */
#ifndef FORKTAIL_LOADER_REQUEST_HELPER_H
#define FORKTAIL_LOADER_REQUEST_HELPER_H

#include <sys/types.h>

struct request_helper {
	pid_t pid;
	int socket; /* packets of request_messages.h */
};

/* Starts it. `ring` is the map of events. Returns 0 or a negative errno. */
int request_helper_start(struct request_helper *h, int ring);
/* It sends what it has and exits: the socket is then at its end. */
void request_helper_finish(struct request_helper *h);
void request_helper_end(struct request_helper *h);

#endif

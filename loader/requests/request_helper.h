/* SPDX-License-Identifier: MIT */
/* The process that reads what clients sent. Bytes of strangers are scanned in a process without rights; the
 * recorder gets times, sizes and numbers of commands only. */
#ifndef FORKTAIL_LOADER_REQUEST_HELPER_H
#define FORKTAIL_LOADER_REQUEST_HELPER_H

#include "loader/requests/request_messages.h"
#include "loader/system/helper_process.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct helper_setup requests_helper;
/* Starts it. Returns 0 or a negative errno. */
int request_helper_start(struct helper_process *h);
/* Passes it the map of events, from which it reads from now on. */
int request_helper_map(const struct helper_process *h, int map);
/* What a target speaks. */
void request_helper_target(const struct helper_process *h, const struct request_target *target);
/* It sends what it has and exits: the socket is then at its end. */
void request_helper_finish(const struct helper_process *h);

#ifdef __cplusplus
}
#endif

#endif

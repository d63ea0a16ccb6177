/* SPDX-License-Identifier: MIT */
/* Requests that a proxy passes on are seen twice: at the proxy and at the server behind it. This joins them:
 * the proxy's request gets the server that answered it, and the server's request, a part of it, is left out.
 *
 * A proxy passes a request on unchanged, so both have the same hash (scanner.h), and the server's ends
 * between the proxy's read and its answer. Of several the oldest is taken. */
#ifndef FORKTAIL_LOADER_PROXIED_H
#define FORKTAIL_LOADER_PROXIED_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/requests/request_messages.h"

#ifdef __cplusplus
extern "C" {
#endif

struct proxied;

/* What was found is passed on to the handler, a second later at most. NULL: no memory. */
struct proxied *proxied_open(request_handler handler, void *context);
void proxied_close(struct proxied *p);
/* A request at a proxy, or at another server. A message without a hash is passed on after what came before
 * it. */
void proxied_add(struct proxied *p, const struct request_message *m, uint64_t hash, bool at_proxy,
		 uint64_t now_ns);
/* Passes on what has waited long enough. */
void proxied_tick(struct proxied *p, uint64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif

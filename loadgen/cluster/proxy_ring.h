/* SPDX-License-Identifier: MIT */
/* Servers behind a proxy (--behind): which server a request's key belongs to, for the log. The proxy
 * distributes keys in twemproxy's default way, so the same ring gives the answer (ketama.h). Only requests of
 * one command with one key have a known server; for others the log says that it is unknown. */
#ifndef FORKTAIL_LOADGEN_PROXY_RING_H
#define FORKTAIL_LOADGEN_PROXY_RING_H

#include "ketama.h"
#include "loadgen/options/options.h"
#include "loadgen/workload/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name of server `i` in the proxy's ring: the given name, otherwise derived from its address. */
void proxy_ring_name(const struct options *o, uint32_t i, char *out, size_t size);

/* Builds the ring and finds the key in each command of the workload. Call it before workload_prepare: an
 * __int__ in a key becomes __key_number__, so that the key follows from the request's key number. Returns
 * -ENOMEM, or -EIO if this host's OpenSSL has no MD5, and a sentence. */
int proxy_ring_prepare(struct ketama *ring, const struct options *o, struct workload *w, char *error,
		       size_t size);

/* The value for the log: the server's number plus one, or 0 if unknown. */
uint8_t proxy_ring_server(const struct ketama *ring, const struct workload *w, unsigned operation,
			  uint64_t key, struct bytes *scratch);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Servers behind a proxy (--behind): which of them a request's key belongs to, for the log. The proxy spreads
 * keys as twemproxy does by default, so that the same ring (ketama.h) tells. Only requests of one command
 * with one key have one; of others the log says that it isn't known. */
#ifndef FORKTAIL_LOADGEN_PROXY_RING_H
#define FORKTAIL_LOADGEN_PROXY_RING_H

#include "ketama.h"
#include "loadgen/options/options.h"
#include "loadgen/workload/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the proxy's ring calls number `i`: the name that was given, else what follows from its address. */
void proxy_ring_name(const struct options *o, uint32_t i, char *out, size_t size);

/* Makes the ring, and finds the key in each command of the workload. To be called before workload_prepare:
 * an __int__ in a key becomes __key_number__, so that the key follows from the request's key number. -ENOMEM,
 * or -EIO where this host's OpenSSL has no MD5, and a sentence. */
int proxy_ring_prepare(struct ketama *ring, const struct options *o, struct workload *w, char *error,
		       size_t size);

/* What the log has for a request: one more than the number of its server; 0: not known. */
uint8_t proxy_ring_server(const struct ketama *ring, const struct workload *w, unsigned operation,
			  uint64_t key, struct bytes *scratch);

#ifdef __cplusplus
}
#endif
#endif

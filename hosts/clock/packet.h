/* SPDX-License-Identifier: MIT */
/* The packets of a clock comparison: one in each direction, of the same length, so the server cannot be used
 * for amplification attacks. Integers are little-endian. New versions only add fields.
 */
#ifndef FORKTAIL_HOSTS_CLOCK_PACKET_H
#define FORKTAIL_HOSTS_CLOCK_PACKET_H

#include <stdint.h>

#include "recording/recording.h"

#define CLOCK_MAGIC 0x4b435446u /* "FTCK" */
enum { CLOCK_VERSION = 1, CLOCK_ASKS = 1, CLOCK_ANSWERS = 2, CLOCK_HOST_BYTES = 64 };
#define CLOCK_PORT "7380"

struct clock_packet {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;	      /* CLOCK_ASKS, CLOCK_ANSWERS */
	uint64_t cookie;      /* random per run of the client, to reject other answers */
	uint64_t number;      /* of the request */
	uint64_t received_ns; /* by the server's clock; this and the following fields are 0 in a request */
	uint64_t sent_ns;
	char clock_id[FT_CLOCK_ID_BYTES]; /* ft_clock_id() of the server */
	char host[CLOCK_HOST_BYTES];	  /* its host name */
};
_Static_assert(sizeof(struct clock_packet) == 200, "packet");

#endif

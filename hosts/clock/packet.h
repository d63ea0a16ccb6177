/* SPDX-License-Identifier: MIT */
/* What goes between two hosts whose clocks are to be compared: one packet each way, of the same length, so
 * that nobody can have a server send somebody else more than they sent themselves. Integers are
 * little-endian, as in recordings. Fields are only ever added by a new version.
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
	uint64_t cookie;      /* random, of a run of the asking program: others' answers are none */
	uint64_t number;      /* of the question */
	uint64_t received_ns; /* by the answering host's clock; 0 in a question, as all from here on */
	uint64_t sent_ns;
	char clock_id[FT_CLOCK_ID_BYTES]; /* ft_clock_id() of who answers */
	char host[CLOCK_HOST_BYTES];	  /* what it calls itself */
};
_Static_assert(sizeof(struct clock_packet) == 200, "packet");

#endif

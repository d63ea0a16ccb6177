/* SPDX-License-Identifier: MIT */
/* What the protocols' writers share. For command.c, memcached_write.c and route.c only. */
#ifndef FORKTAIL_LOADGEN_COMMAND_INTERNAL_H
#define FORKTAIL_LOADGEN_COMMAND_INTERNAL_H

#include "command.h"

/* What a part became in one request: drawn before its length is needed, written after. */
struct drawn {
	uint64_t number;
	uint32_t length;
	char text[12];
};

struct drawn draw_part(const struct command_part *p, const struct fill *f, const struct request_values *v,
		       struct random_stream *random);
/* The room must be there. */
void write_part(const struct command_part *p, const struct drawn *d, const struct fill *f,
		const struct request_values *v, struct bytes *to, struct patches *patches);
/* A whole word; `counted`: as a Redis bulk string, with its length and CRLF. */
bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches, bool counted);

bool write_memcached_text(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches);
bool write_memcached_binary(const struct command *c, const struct fill *f, const struct request_values *v,
			    struct random_stream *random, struct bytes *to, struct patches *patches);

#endif

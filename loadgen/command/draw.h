/* SPDX-License-Identifier: MIT */
/* What the protocols' writers share. For command.c, memcached_write.c, memcached_meta_write.c and route.c
 * only.
 */
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

void note_patch(struct patches *patches, enum part_kind kind, size_t at, uint32_t width);
/* A word's parts, drawn. Returns its length in bytes. */
size_t draw_word(const struct command *c, uint32_t index, const struct fill *f,
		 const struct request_values *v, struct random_stream *random, struct drawn *drawn);
bool write_drawn(const struct command *c, uint32_t index, const struct drawn *drawn, size_t length,
		 const struct fill *f, const struct request_values *v, struct bytes *to,
		 struct patches *patches);

bool write_memcached_text(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches);
bool write_memcached_binary(const struct command *c, const struct fill *f, const struct request_values *v,
			    struct random_stream *random, struct bytes *to, struct patches *patches);
bool write_memcached_meta(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches);

/* Appends text as it is. False: out of memory. */
bool add_text(struct bytes *to, const char *text);

char memcached_meta_reply_kind(const struct command *c);
bool memcached_meta_fits(const struct command *c, char *error, size_t size);

#endif

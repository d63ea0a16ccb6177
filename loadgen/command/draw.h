/* SPDX-License-Identifier: MIT */
/* What a command's placeholders become in one request: for whoever writes requests, which are the protocols,
 * and for whoever has to know a request's key without sending it (a cluster's route). */
#ifndef FORKTAIL_LOADGEN_DRAW_H
#define FORKTAIL_LOADGEN_DRAW_H

#include "command.h"

#ifdef __cplusplus
extern "C" {
#endif

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

void note_patch(struct patches *patches, enum part_kind kind, size_t at, uint32_t width);
/* A word's parts, drawn. Returns its length in bytes. */
size_t draw_word(const struct command *c, uint32_t index, const struct fill *f,
		 const struct request_values *v, struct random_stream *random, struct drawn *drawn);
/* Appends what draw_word drew. False: out of memory. */
bool write_drawn(const struct command *c, uint32_t index, const struct drawn *drawn, size_t length,
		 const struct fill *f, const struct request_values *v, struct bytes *to,
		 struct patches *patches);
/* Both, for a word whose length need not be known. */
bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches);

#ifdef __cplusplus
}
#endif
#endif

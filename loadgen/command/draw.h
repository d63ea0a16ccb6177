/* SPDX-License-Identifier: MIT */
/* The values of a command's placeholders in one request: for protocols, which write requests, and for code
 * that needs a request's key without sending it (a cluster's route). */
#ifndef FORKTAIL_LOADGEN_DRAW_H
#define FORKTAIL_LOADGEN_DRAW_H

#include "command.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a part in one request: drawn before its length is needed, written after. */
struct drawn {
	uint64_t number;
	uint32_t length;
	char text[32];
};

struct drawn draw_part(const struct command_part *p, const struct fill *f, const struct request_values *v,
		       struct random_stream *random);
/* The space must exist. */
void write_part(const struct command_part *p, const struct drawn *d, const struct fill *f,
		const struct request_values *v, struct bytes *to, struct patches *patches);

void note_patch(struct patches *patches, enum part_kind kind, size_t at, uint32_t width);
/* Draws a word's parts. Returns its length in bytes. */
size_t draw_word(const struct command *c, uint32_t index, const struct fill *f,
		 const struct request_values *v, struct random_stream *random, struct drawn *drawn);
/* Appends what draw_word drew. False: out of memory. */
bool write_drawn(const struct command *c, uint32_t index, const struct drawn *drawn, size_t length,
		 const struct fill *f, const struct request_values *v, struct bytes *to,
		 struct patches *patches);
/* Draws and appends a word whose length is not needed in advance. */
bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches);

#ifdef __cplusplus
}
#endif
#endif

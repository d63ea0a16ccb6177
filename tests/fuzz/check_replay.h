/* SPDX-License-Identifier: MIT */
/* The property of every reader of recordings, checked with every input: a cut file gives the same commands as
 * the whole one, only fewer. Used by the libFuzzer targets and by the replay of their corpus.
 */
#ifndef FORKTAIL_TESTS_FUZZ_CHECK_REPLAY_H
#define FORKTAIL_TESTS_FUZZ_CHECK_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/replay.h"

/* Reads the input whole, and cut at a dozen places (each in separate memory). Aborts, with a sentence on
 * stderr, when words are outside of both the input and the reader's own text, when a command takes no bytes,
 * when damage is not explained, or when a cut changes a command before it. */
void fuzz_check_reader(int (*next)(struct replay_reader *, struct replay_item *), const uint8_t *data,
		       size_t size);

/* Each target's entry, with libFuzzer's name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

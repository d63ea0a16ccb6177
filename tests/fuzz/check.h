/* SPDX-License-Identifier: MIT */
/* The property of every reply scanner, checked with every input: the result does not depend on where the
 * bytes are cut. Used by the libFuzzer targets and by the replay of their corpus, which needs no libFuzzer.
 */
#ifndef FORKTAIL_TESTS_FUZZ_CHECK_H
#define FORKTAIL_TESTS_FUZZ_CHECK_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_SUMMARY = 128 };

/* One scanner, for check.c to use without knowing its type. */
struct fuzz_scanner {
	size_t state_bytes; /* of the scanner's struct; all zeros is its initial state */
	int (*scan)(void *state, const char **at, const char *end);
	/* The scanner's complete result for the reply it has just found, as bytes. Returns their number, at
	 * most FUZZ_SUMMARY. */
	size_t (*summarize)(const void *state, char *summary);
};

/* An input is the places to cut at, and a stream of replies. The first byte's low three bits are the number
 * of lengths that follow. Each is a byte whose low six bits, plus 1, are a piece's length. They are used
 * repeatedly. Digits and letters can be used, so that a corpus is readable. Aborts, with a sentence on
 * stderr, when:
 * - *at leaves the buffer, a complete reply has no bytes, or bytes are left over that were not refused; */
void fuzz_check(const struct fuzz_scanner *scanner, const uint8_t *data, size_t size);

/* Each target's entry, with libFuzzer's name. */
#ifdef __cplusplus
extern "C"
#endif
    int
    LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

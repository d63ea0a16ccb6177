/* SPDX-License-Identifier: MIT */
/* What is asked of every reply scanner with every input: that where the bytes are cut never matters. Used by
 * the libFuzzer targets and by the replay of their corpus, which needs no libFuzzer.
 */
#ifndef FORKTAIL_TESTS_FUZZ_CHECK_H
#define FORKTAIL_TESTS_FUZZ_CHECK_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_SAID = 128 };

/* One scanner, for check.c to use without knowing its type. */
struct fuzz_scanner {
	size_t state_bytes; /* of the scanner's struct; all zeros is at rest */
	int (*scan)(void *state, const char **at, const char *end);
	/* All that the scanner says of the reply it has just found, as bytes: how many. At most FUZZ_SAID. */
	size_t (*said)(const void *state, char *said);
};

/* An input is the places to cut at, and a stream of replies: the first byte's low three bits say how many
 * lengths follow, each a byte whose low six bits, plus 1, are a piece's length; they're used over and over.
 * Digits and letters serve, so that a corpus can be read. Aborts, with a sentence on stderr, when:
 * - *at leaves the buffer, a complete reply has no bytes, or bytes are left over that weren't refused;
 * - the stream scanned at once, in these pieces, byte by byte, and with a new scanner for every reply gives
 *   different replies, or is refused at different bytes. */
void fuzz_check(const struct fuzz_scanner *scanner, const uint8_t *data, size_t size);

/* Each target's entry, of libFuzzer's name. */
#ifdef __cplusplus
extern "C"
#endif
    int
    LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* A scanner of requests as they arrive at a server: finds where each one ends, its command, and what the
 * command means for its reply. Bytes come from the kernel in pieces of any length, and the middle of large
 * values may be missing. The scanner allocates nothing and stores no keys or values: it keeps a few bytes of
 * state per connection. It accepts any input, and refuses what the server would refuse.
 *
 *	protocol	requests
 *	Redis		arrays of strings (RESP2 and RESP3); inline commands
 *	memcached	text and meta commands; binary requests
 *
 * It is stricter than the servers where clients are never at the limits, so that a lost position is noticed
 * soon: numbers and values must end with CRLF, a CR must not be elsewhere in a line of memcached, and lines
 * must begin with a printable command. */
#ifndef FORKTAIL_LOADER_SCANNER_H
#define FORKTAIL_LOADER_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "scan_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the seed of all hashes. Call it once, before the first scan. */
void scanner_seed(uint64_t seed);

/* Continues scanning from *at. 1: a request is complete, *at is after it, and *out has it. 0: no more bytes
 * (*at == end). -1: not a request; *at is at the offending byte, and the scanner is lost (scanner_lose). */
int scanner_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end, struct scanned *out);

/* Skips bytes of the stream that were not captured. 1: they end where a request ends, and *out has it. 0:
 * they are within a value or end with it. -1: they include other bytes, so that the scanner is lost. */
int scanner_gap(struct scanner *s, uint64_t bytes, struct scanned *out);

/* The position in the stream is unknown, for example because the connection is older than the recording.
 * The next byte begins a request or is refused: offer bytes for which scanner_may_begin is true. */
void scanner_lose(struct scanner *s);

/* Whether a lost scanner may resume at this byte. Inline commands of Redis can begin with any letter, so
 * they are not found again: in the middle of a value any text would be one. */
bool scanner_may_begin(enum scan_protocol protocol, uint8_t byte);

#ifdef __cplusplus
}
#endif
#endif

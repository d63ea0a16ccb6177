/* SPDX-License-Identifier: MIT */
/* The checks of the reply scanners. See check.h. Every piece is scanned in memory of exactly its size, so
 * that AddressSanitizer reports a read beyond it. */
#include "check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A complete reply, or the refusal that ends a stream. */
struct event {
	int result;
	size_t end; /* where it ends in the stream, or the place of the invalid byte */
	size_t summary_bytes;
	char summary[FUZZ_SUMMARY];
};

struct events {
	struct event *at;
	size_t count, room;
};

/* The lengths of the pieces of a stream, used repeatedly. None: one piece. */
struct cuts {
	const uint8_t *lengths;
	size_t count;
};

static void fail(const char *what, size_t at)
{
	fprintf(stderr, "byte %zu of the stream: %s\n", at, what);
	abort();
}

static void *checked(void *memory)
{
	if (!memory) {
		fprintf(stderr, "out of memory\n");
		exit(3);
	}
	return memory;
}

static struct event *add(struct events *events)
{
	if (events->count == events->room) {
		events->room = events->room ? events->room * 2 : 16;
		events->at = checked(realloc(events->at, events->room * sizeof(*events->at)));
	}
	return &events->at[events->count++];
}

/* Scans one piece, which begins at `offset` of the stream. False: it was refused. */
static bool scan_piece(const struct fuzz_scanner *scanner, void *state, bool reset, const uint8_t *bytes,
		       size_t size, size_t offset, struct events *events)
{
	char *piece = checked(malloc(size));
	const char *at = piece, *end = piece + size;
	int result = 0;

	memcpy(piece, bytes, size);
	while (at < end && result >= 0) {
		const char *before = at;
		struct event *event;

		result = scanner->scan(state, &at, end);
		if (at < before || at > end)
			fail("the scanner left the buffer", offset + (size_t)(before - piece));
		if (result == 0 && at != end)
			fail("the scanner stopped before the end", offset + (size_t)(at - piece));
		if (result < 0 && at == end)
			fail("the scanner refused a byte it had not seen", offset + size);
		if (result > 0 && at == before)
			fail("a reply of no bytes", offset + (size_t)(at - piece));
		if (result == 0)
			continue;
		event = add(events);
		event->result = result;
		event->end = offset + (size_t)(at - piece);
		event->summary_bytes = result > 0 ? scanner->summarize(state, event->summary) : 0;
		if (reset)
			memset(state, 0, scanner->state_bytes);
	}
	free(piece);
	return result >= 0;
}

/* Scans a stream. `reset`: with a new scanner for every reply. */
static struct events scan_stream(const struct fuzz_scanner *scanner, const uint8_t *stream, size_t size,
				 struct cuts cuts, bool reset)
{
	void *state = checked(calloc(1, scanner->state_bytes));
	struct events events = {NULL, 0, 0};

	for (size_t offset = 0, i = 0; offset < size; i++) {
		size_t piece = cuts.count ? (cuts.lengths[i % cuts.count] & 63) + 1u : size;

		if (piece > size - offset)
			piece = size - offset;
		if (!scan_piece(scanner, state, reset, stream + offset, piece, offset, &events))
			break;
		offset += piece;
	}
	free(state);
	return events;
}

static void compare(const struct events *whole, struct events other, const char *how)
{
	size_t both = whole->count < other.count ? whole->count : other.count;

	for (size_t i = 0; i < both; i++) {
		const struct event *a = &whole->at[i], *b = &other.at[i];

		if (a->result != b->result || a->end != b->end || a->summary_bytes != b->summary_bytes ||
		    memcmp(a->summary, b->summary, a->summary_bytes) != 0) {
			fprintf(stderr, "reply %zu: %d to byte %zu at once, %d to byte %zu %s\n", i,
				a->result, a->end, b->result, b->end, how);
			fail("different replies for different cuts", a->end);
		}
	}
	if (whole->count != other.count) {
		fprintf(stderr, "%zu replies at once, %zu %s\n", whole->count, other.count, how);
		fail("different numbers of replies for different cuts", both ? whole->at[both - 1].end : 0);
	}
	free(other.at);
}

void fuzz_check(const struct fuzz_scanner *scanner, const uint8_t *data, size_t size)
{
	static const uint8_t single[] = {0};
	const struct cuts uncut = {NULL, 0}, bytewise = {single, 1};
	struct cuts given;
	struct events whole;

	if (size == 0)
		return;
	given.count = data[0] & 7;
	given.lengths = data + 1;
	if (size - 1 <= given.count)
		return;
	data += 1 + given.count;
	size -= 1 + given.count;
	whole = scan_stream(scanner, data, size, uncut, false);
	compare(&whole, scan_stream(scanner, data, size, uncut, true), "with a new scanner for each");
	compare(&whole, scan_stream(scanner, data, size, bytewise, false), "byte by byte");
	if (given.count)
		compare(&whole, scan_stream(scanner, data, size, given, false), "in pieces");
	free(whole.at);
}

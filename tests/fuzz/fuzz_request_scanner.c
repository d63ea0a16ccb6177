/* SPDX-License-Identifier: MIT */
/* The scanner of requests under libFuzzer. An input is the protocol ("r" Redis, "m" memcached, "e" either)
 * and what check.h describes, with requests for replies. Checked in addition:
 * - bytes within values may be missing: the same requests are found;
 * - a lost scanner accepts nothing that does not begin like a request, and none that a new one refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/requests.h"
#include "tests/fuzz/check.h"

/* All zeros at the beginning, as check.h requires. */
struct state {
	struct scanner scanner;
	struct scanned found;
};

static enum scan_protocol protocol;

static void fail(const char *what, uint64_t at)
{
	fprintf(stderr, "byte %llu of the stream: %s\n", (unsigned long long)at, what);
	abort();
}

static int scan(void *state, const char **at, const char *end)
{
	struct state *s = state;
	const uint8_t *p = (const uint8_t *)*at;
	int result;

	s->scanner.protocol = (uint8_t)protocol;
	result = scanner_bytes(&s->scanner, &p, (const uint8_t *)end, &s->found);
	*at = (const char *)p;
	return result;
}

/* Without SCANNED_NO_REPLY, which CLIENT REPLY sets for later requests: a new scanner does not know it. */
static size_t summarize(const void *state, char *summary)
{
	const struct scanned *f = &((const struct state *)state)->found;

	return (size_t)snprintf(summary, FUZZ_SUMMARY, "%llu %llx %s %u", (unsigned long long)f->bytes,
				(unsigned long long)f->hash, commands_name(f->command),
				f->flags & ~(unsigned)SCANNED_NO_REPLY);
}

/* Scans up to the next request. Returns as scanner_bytes; *used are the bytes up to there. */
static int next_request(struct scanner *s, const uint8_t *bytes, size_t size, size_t *used,
			struct scanned *found)
{
	const uint8_t *at = bytes;
	int result = scanner_bytes(s, &at, bytes + size, found);

	*used = (size_t)(at - bytes);
	return result;
}

/* The request at `bytes` with `gap` of its bytes missing after `before`. */
static void check_gap(const struct scanner *start, const uint8_t *bytes, size_t size, size_t before,
		      size_t gap, const struct scanned *whole)
{
	struct scanner s = *start;
	struct scanned found;
	size_t used;
	int result = next_request(&s, bytes, before, &used, &found);

	if (result != 0)
		fail("a request ended early", used);
	result = scanner_gap(&s, gap, &found);
	if (result < 0) {
		if (!s.lost)
			fail("a scanner that has lost the position does not say so", before);
		return;
	}
	if ((result == 1) != (before + gap == size && gap > 0))
		fail("the request's end is not where the gap ends", before + gap);
	if (result == 0 && next_request(&s, bytes + before + gap, size - before - gap, &used, &found) != 1)
		fail("a request with a gap does not end", before + gap);
	if (found.bytes != whole->bytes || found.command != whole->command || found.flags != whole->flags ||
	    (found.hash != whole->hash && found.hash != 0))
		fail("another request because of a gap", before);
}

/* Gaps at places that depend on the input, in every request. */
static void check_gaps(const uint8_t *bytes, size_t size)
{
	struct scanner s = {.protocol = (uint8_t)protocol};
	size_t used, at = 0;

	for (unsigned i = 0; at < size; i++, at += used) {
		struct scanner start = s;
		struct scanned whole;

		if (next_request(&s, bytes + at, size - at, &used, &whole) != 1)
			return;
		for (size_t before = i % 3; before < used; before += 1 + used / 8)
			for (size_t gap = 0; gap <= used - before; gap += 1 + used / 5)
				check_gap(&start, bytes + at, used, before, gap, &whole);
	}
}

static void check_lost(const uint8_t *bytes, size_t size)
{
	struct scanner fresh = {.protocol = (uint8_t)protocol}, lost = fresh;
	struct scanned a, b;
	size_t used_fresh, used_lost;
	int result;

	if (size == 0)
		return;
	scanner_lose(&lost);
	result = next_request(&lost, bytes, size, &used_lost, &b);
	if (result < 0)
		return;
	if (!scanner_may_begin(protocol, bytes[0]))
		fail("a lost scanner accepted what begins no request", 0);
	if (next_request(&fresh, bytes, size, &used_fresh, &a) != result || used_fresh != used_lost ||
	    (result == 1 &&
	     (a.bytes != b.bytes || a.hash != b.hash || a.command != b.command || a.flags != b.flags)))
		fail("a lost scanner found another request", used_lost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct state), scan, summarize};
	size_t cuts;

	if (size < 2)
		return 0;
	protocol = data[0] == 'm' ? SCAN_MEMCACHED : data[0] == 'e' ? SCAN_EITHER : SCAN_REDIS;
	fuzz_check(&scanner, data + 1, size - 1);
	cuts = data[1] & 7;
	if (size > 2 + cuts) {
		check_gaps(data + 2 + cuts, size - 2 - cuts);
		check_lost(data + 2 + cuts, size - 2 - cuts);
	}
	return 0;
}

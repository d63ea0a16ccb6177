/* SPDX-License-Identifier: MIT */
/* The decoder of the request log under libFuzzer. An input is a count of requests (two bytes) and a payload.
 * No byte outside of it may be read. It is decoded twice, as columns and as latencies alone; both results
 * have to be the same, or both refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"
#include "tests/fuzz/check.h"

static void fail(const char *what, uint32_t at)
{
	fprintf(stderr, "request %u: %s\n", at, what);
	abort();
}

static struct {
	uint64_t intended_ns[FT_REQUEST_BLOCK], start_ns[FT_REQUEST_BLOCK], end_ns[FT_REQUEST_BLOCK],
	    latency_ns[FT_REQUEST_BLOCK], arrival_ns[FT_REQUEST_BLOCK], read_ns[FT_REQUEST_BLOCK],
	    written_ns[FT_REQUEST_BLOCK];
	uint32_t connection[FT_REQUEST_BLOCK], request_bytes[FT_REQUEST_BLOCK],
	    answer_bytes[FT_REQUEST_BLOCK];
	uint8_t op[FT_REQUEST_BLOCK], status[FT_REQUEST_BLOCK], behind[FT_REQUEST_BLOCK],
	    op_again[FT_REQUEST_BLOCK];
} all;

static void compare(const void *payload, size_t bytes, uint32_t count)
{
	const struct ft_request_columns columns = {
	    all.intended_ns, all.start_ns,   all.end_ns,	all.connection,
	    all.op,	     all.status,     all.behind,	all.arrival_ns,
	    all.read_ns,     all.written_ns, all.request_bytes, all.answer_bytes};
	int whole = ft_requests_decode(payload, bytes, count, &columns);
	int latencies = ft_requests_latencies(payload, bytes, count, all.latency_ns, all.op_again);

	if (whole >= 0 && (uint32_t)whole != count)
		fail("more or fewer than requested", (uint32_t)whole);
	/* The half that is not decoded is not checked either. */
	if (whole >= 0 && latencies != whole)
		fail("decoded as columns but not as latencies", count);
	for (uint32_t i = 0; whole > 0 && i < count; i++) {
		if (all.latency_ns[i] != all.end_ns[i] - all.intended_ns[i])
			fail("its latency differs", i);
		if (all.op[i] != all.op_again[i])
			fail("its operation differs", i);
	}
	if (whole > 0 && !ft_requests_have_behind(payload, bytes))
		for (uint32_t i = 0; i < count; i++)
			if (all.behind[i])
				fail("has a server behind the proxy in a log without that column", i);
	if (whole > 0 && !ft_requests_have_arrivals(payload, bytes))
		for (uint32_t i = 0; i < count; i++)
			if (all.arrival_ns[i])
				fail("has an arrival in a log without that column", i);
	if (whole > 0 && !ft_requests_have_seen(payload, bytes))
		for (uint32_t i = 0; i < count; i++)
			if (all.answer_bytes[i])
				fail("has an answer's size in a log without that column", i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t count;
	uint8_t *payload;

	if (size < 2)
		return 0;
	count = (uint32_t)(data[0] | data[1] << 8);
	if (count == 0 || count > FT_REQUEST_BLOCK)
		return 0;
	/* The reader's payloads are aligned, with one zero byte after them. */
	payload = malloc(size - 1);
	if (!payload)
		exit(3);
	memcpy(payload, data + 2, size - 2);
	payload[size - 2] = 0;
	compare(payload, size - 2, count);
	free(payload);
	return 0;
}

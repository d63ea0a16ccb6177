/* SPDX-License-Identifier: MIT */
/* Every kind of record has its times at fixed positions, so one loop serves all. */
#include "cover.h"

#include <string.h>

#include "format.h"

/* Positions of a kind's times. A record of an older writer may lack some: those are 0, unknown. */
struct times {
	enum { TIMELESS = 0, BETWEEN, LASTING } form; /* the second time is an end, or a duration */
	uint16_t first, second;
};

#define TIMES(form, record, first, second)                                                                   \
	{                                                                                                    \
		form, offsetof(struct record, first), offsetof(struct record, second)                        \
	}

static const struct times times_of[FT_BLOCK_KINDS] = {
    [FT_BLOCK_THREAD] = TIMES(BETWEEN, ft_thread, start_ns, end_ns),
    [FT_BLOCK_SPAN] = TIMES(LASTING, ft_span, start_ns, duration_ns),
    [FT_BLOCK_OPEN] = TIMES(LASTING, ft_span, start_ns, duration_ns),
    [FT_BLOCK_TALLY] = TIMES(BETWEEN, ft_tally, start_ns, end_ns),
    [FT_BLOCK_IO] = TIMES(LASTING, ft_io, start_ns, duration_ns),
    [FT_BLOCK_WRITES] = TIMES(BETWEEN, ft_writes, start_ns, end_ns),
    [FT_BLOCK_CPU_SLICE] = TIMES(BETWEEN, ft_cpu_slice, start_ns, end_ns),
    [FT_BLOCK_LOOP] = TIMES(BETWEEN, ft_loop, t_ns, t_ns),
    [FT_BLOCK_SOCKET] = TIMES(BETWEEN, ft_socket, before_ns, seen_ns),
    [FT_BLOCK_SAMPLE] = TIMES(BETWEEN, ft_sample, t_ns, t_ns),
    [FT_BLOCK_CPU_SAMPLE] = TIMES(BETWEEN, ft_cpu_sample, t_ns, t_ns),
    [FT_BLOCK_COUNTERS] = TIMES(BETWEEN, ft_counters, t_ns, t_ns),
    [FT_BLOCK_DROP] = TIMES(BETWEEN, ft_drop, start_ns, end_ns),
    [FT_BLOCK_CLOCK] = TIMES(BETWEEN, ft_clock, monotonic_ns, monotonic_ns),
    [FT_BLOCK_PROBE] = TIMES(BETWEEN, ft_probe, sent_ns, received_ns),
    [FT_BLOCK_CONNECTION] = TIMES(BETWEEN, ft_connection, opened_ns, closed_ns),
};

static uint64_t time_at(const uint8_t *record, uint32_t record_size, uint32_t at)
{
	uint64_t t = 0;

	if (at + sizeof(t) <= record_size)
		memcpy(&t, record + at, sizeof(t));
	return t;
}

struct ft_cover ft_cover_records(uint32_t kind, uint32_t record_size, uint32_t count, const void *payload)
{
	struct times times = kind < FT_BLOCK_KINDS ? times_of[kind] : (struct times){0};
	const uint8_t *record = payload;
	uint64_t earliest = UINT64_MAX, latest = 0;

	if (times.form == TIMELESS || !record_size || !count)
		return (struct ft_cover){0};
	for (uint32_t i = 0; i < count; i++, record += record_size) {
		uint64_t start = time_at(record, record_size, times.first);
		uint64_t end = time_at(record, record_size, times.second);

		if (times.form == LASTING && __builtin_add_overflow(start, end, &end))
			end = UINT64_MAX;
		start = start ? start : end; /* 0: unknown, or still open */
		end = end > start ? end : start;
		earliest = start < earliest ? start : earliest;
		latest = end > latest ? end : latest;
	}
	return ft_cover_between(earliest, latest);
}

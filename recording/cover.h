/* SPDX-License-Identifier: MIT */
/* The time range of a block's records: the writer stores it in the index, and a reader computes it for a file
 * without one. Private to recording/. */
#ifndef FORKTAIL_COVER_H
#define FORKTAIL_COVER_H

#include <stddef.h>
#include <stdint.h>

/* Times beyond it, more than a hundred years of uptime, are damage. */
#define FT_COVER_LIMIT_NS (1ull << 62)

/* From the earliest begin to the latest end. Both 0: no time is known, and the block may belong to any
 * time. */
struct ft_cover {
	uint64_t start_ns, end_ns;
};

/* The range of two times from any source: neither is beyond the limit, nor the end before the start. */
static inline struct ft_cover ft_cover_between(uint64_t start_ns, uint64_t end_ns)
{
	struct ft_cover c = {start_ns, end_ns};

	c.start_ns = c.start_ns > FT_COVER_LIMIT_NS ? FT_COVER_LIMIT_NS : c.start_ns;
	c.end_ns = c.end_ns > FT_COVER_LIMIT_NS ? FT_COVER_LIMIT_NS : c.end_ns;
	c.end_ns = c.end_ns < c.start_ns ? c.start_ns : c.end_ns;
	return c;
}

/* Of `count` records of a kind that is an array of a struct; 0 and 0 for every other kind. */
struct ft_cover ft_cover_records(uint32_t kind, uint32_t record_size, uint32_t count, const void *payload);

/* Of request columns; 0 and 0 for an invalid payload. */
struct ft_cover ft_cover_requests(const void *payload, size_t bytes, uint32_t count);

#endif

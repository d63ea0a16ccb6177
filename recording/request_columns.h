/* SPDX-License-Identifier: MIT */
/* The layout of a request block's payload, shared by the appender (requests.c, which has the reasons) and the
 * decoder (decode_requests.c). Private to recording/. */
#ifndef FORKTAIL_REQUEST_COLUMNS_H
#define FORKTAIL_REQUEST_COLUMNS_H

#include <stdint.h>

enum {
	VARINT_MAX = 9,
	COLUMNS = 6,
	FURTHER_HEAD = sizeof(uint32_t), /* the length before an additional column */
};

/* The start of a request block's payload; the columns follow in this order. */
struct request_head {
	uint64_t base_ns;	 /* the first end is a difference to this */
	uint32_t bytes[COLUMNS]; /* end, duration, late, connection, op, status */
};

/* What follows the six columns: a length and a column, repeatedly. A column of zeros holds the place of a
 * missing one before another; later ones belong to newer writers. The last four are those of struct
 * ft_request_seen: a block has all of them or none. */
enum further_column {
	COLUMN_BEHIND,
	COLUMN_ARRIVAL,
	COLUMN_READ,
	COLUMN_WRITTEN,
	COLUMN_REQUEST_BYTES,
	COLUMN_ANSWER_BYTES,
	FURTHER_COLUMNS,
};
enum { SEEN_COLUMNS = FURTHER_COLUMNS - COLUMN_READ };

#endif

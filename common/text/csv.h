/* SPDX-License-Identifier: MIT */
/* Rows of fields as in RFC 4180: fields in double quotes may contain separators, line ends and, doubled,
 * quotes. Lines may end with LF or CRLF. */
#ifndef FORKTAIL_CSV_H
#define FORKTAIL_CSV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum csv_end {
	CSV_FIELD,	 /* more fields follow in the row */
	CSV_ROW,	 /* the field ended the row */
	CSV_OPEN_QUOTE,	 /* a quoted field has no closing quote: the text ends within it */
	CSV_AFTER_QUOTE, /* text follows a closing quote */
};

/* Reads the field at *at, and sets *at to the next. `out` needs room for the rest of the row, quoted line
 * ends included, and gets *length bytes, without quotes. *lines is increased by the line ends within the
 * field. After an error *at is unchanged. */
enum csv_end csv_read(const char **at, const char *end, char separator, char *out, size_t *length,
		      uint64_t *lines);

/* The number of bytes from `at` to the end of its row: an upper limit of its fields together. */
size_t csv_row_bytes(const char *at, const char *end, char separator);

#ifdef __cplusplus
}
#endif
#endif

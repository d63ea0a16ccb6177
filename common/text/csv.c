/* SPDX-License-Identifier: MIT */
/* Without quotes a field is copied as it is, so that a file of plain fields costs one pass. */
#include "csv.h"

#include <string.h>

static enum csv_end read_quoted(const char **at, const char *end, char separator, char *out, size_t *length,
				uint64_t *lines)
{
	const char *p = *at + 1;
	uint64_t ends = 0;
	size_t n = 0;

	for (; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) {
		ends += *p == '\n';
		p += *p == '"';
		out[n++] = *p;
	}
	if (p == end)
		return CSV_OPEN_QUOTE;
	p++;
	if (p + 1 < end && *p == '\r' && p[1] == '\n')
		p++;
	if (p < end && *p != separator && *p != '\n')
		return CSV_AFTER_QUOTE;
	*length = n;
	*lines += ends;
	*at = p < end ? p + 1 : p;
	return p < end && *p == separator ? CSV_FIELD : CSV_ROW;
}

enum csv_end csv_read(const char **at, const char *end, char separator, char *out, size_t *length,
		      uint64_t *lines)
{
	const char *from = *at, *p = from, *last;

	if (p < end && *p == '"')
		return read_quoted(at, end, separator, out, length, lines);
	while (p < end && *p != separator && *p != '\n')
		p++;
	last = p;
	if (last > from && last[-1] == '\r' && (p == end || *p == '\n'))
		last--;
	*length = (size_t)(last - from);
	memcpy(out, from, *length);
	*at = p < end ? p + 1 : p;
	return p < end && *p == separator ? CSV_FIELD : CSV_ROW;
}

size_t csv_row_bytes(const char *at, const char *end, char separator)
{
	const char *p = at;

	while (p < end && *p != '\n') {
		if (*p == '"')
			for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++)
				p += *p == '"';
		while (p < end && *p != separator && *p != '\n')
			p++;
		p += p < end && *p == separator;
	}
	return (size_t)(p - at);
}

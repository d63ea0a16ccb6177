/* SPDX-License-Identifier: MIT */
/* A table whose rows fill placeholders: CSV, or TSV if the file's name ends with .tsv, with the names of its
 * columns in the first row. A request takes one row, so that its fields belong together. The file is kept in
 * memory once. */
#ifndef FORKTAIL_LOADGEN_DATA_SET_H
#define FORKTAIL_LOADGEN_DATA_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DATA_COLUMNS_MAX = 256 };

struct data_field {
	const char *at;
	uint32_t length;
};

struct data_set {
	char *text;		   /* all fields */
	struct data_field *fields; /* rows times columns, without the first row */
	uint64_t rows;		   /* at least 1 */
	uint32_t columns;
	struct data_field names[DATA_COLUMNS_MAX];
};

/* Reads a file. Returns 0, or -EINVAL or -ENOMEM and a sentence. The caller frees it in both cases. */
int data_set_read(struct data_set *d, const char *path, char *error, size_t size);
void data_set_free(struct data_set *d);

/* The number of a column, or -1. */
int data_set_column(const struct data_set *d, const char *name, size_t length);

static inline const struct data_field *data_set_field(const struct data_set *d, uint64_t row, uint32_t column)
{
	return &d->fields[row * d->columns + column];
}

/* The bytes of a field as the inside of a JSON string: quotes, backslashes and control characters escaped. */
uint32_t data_json_length(const struct data_field *f);
void data_json_write(const struct data_field *f, char *to);

#ifdef __cplusplus
}
#endif
#endif

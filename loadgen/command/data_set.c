/* SPDX-License-Identifier: MIT */
/* The file is read into memory, and the unquoted fields are written to a second buffer of the same size,
 * which they cannot exceed. */
#include "data_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "common/text/csv.h"

static int fail(char *error, size_t size, const char *path, uint64_t line, const char *why)
{
	snprintf(error, size, "%s:%llu: %s", path, (unsigned long long)line, why);
	return -EINVAL;
}

struct row_reader {
	struct data_set *d;
	const char *path, *at, *end;
	char separator, *out;
	uint64_t line, room;
	char *error;
	size_t size;
};

static bool grow(struct row_reader *r)
{
	struct data_field *grown;

	if (r->d->rows < r->room)
		return true;
	r->room = r->room ? 2 * r->room : 1024;
	grown = realloc(r->d->fields, r->room * r->d->columns * sizeof(*grown));
	if (grown)
		r->d->fields = grown;
	return grown != NULL;
}

/* Reads a row into `fields`, which has room for `most`. Returns their number, or negative and a sentence. */
static int read_row(struct row_reader *r, struct data_field *fields, uint32_t most)
{
	enum csv_end end = CSV_FIELD;
	uint64_t line = r->line;
	uint32_t count = 0;
	size_t length;

	while (end == CSV_FIELD) {
		end = csv_read(&r->at, r->end, r->separator, r->out, &length, &r->line);
		if (end == CSV_OPEN_QUOTE || end == CSV_AFTER_QUOTE)
			return fail(r->error, r->size, r->path, line,
				    end == CSV_OPEN_QUOTE ? "a quoted field has no closing quote"
							  : "unexpected text after a closing quote");
		if (count == most)
			return fail(r->error, r->size, r->path, line,
				    "the row has more fields than the first row");
		fields[count++] = (struct data_field){r->out, (uint32_t)length};
		r->out += length;
	}
	r->line++;
	return (int)count;
}

static int read_rows(struct row_reader *r)
{
	struct data_set *d = r->d;
	int count = read_row(r, d->names, DATA_COLUMNS_MAX);

	if (count < 0)
		return fail(r->error, r->size, r->path, 1, "expected at most 256 names of columns");
	d->columns = (uint32_t)count;
	while (r->at < r->end) {
		uint64_t line = r->line;

		if (!grow(r)) {
			snprintf(r->error, r->size, "not enough memory for %s", r->path);
			return -ENOMEM;
		}
		count = read_row(r, d->fields + d->rows * d->columns, d->columns);
		if (count < 0)
			return count;
		if (count == 1 && d->columns > 1 && d->fields[d->rows * d->columns].length == 0)
			continue; /* an empty line */
		if ((uint32_t)count < d->columns)
			return fail(r->error, r->size, r->path, line,
				    "the row has fewer fields than the first row");
		d->rows++;
	}
	return d->rows ? 0
		       : fail(r->error, r->size, r->path, r->line,
			      "there are no rows after the names of columns");
}

int data_set_read(struct data_set *d, const char *path, char *error, size_t size)
{
	size_t name = strlen(path);
	struct bytes all = {0};
	int rc = bytes_add_file(&all, path, SIZE_MAX);
	struct row_reader r = {.d = d,
			       .path = path,
			       .at = all.at,
			       .end = all.at + all.length,
			       .separator = name > 4 && strcmp(path + name - 4, ".tsv") == 0 ? '\t' : ',',
			       .line = 1,
			       .error = error,
			       .size = size};

	memset(d, 0, sizeof(*d));
	if (rc == 0)
		d->text = r.out = malloc(all.length + 1);
	if (rc && rc != -ENOMEM) {
		snprintf(error, size, "cannot read %s: %s", path, strerror(-rc));
		rc = -EINVAL;
	} else if (!d->text) {
		snprintf(error, size, "not enough memory for %s", path);
		rc = -ENOMEM;
	} else {
		rc = read_rows(&r);
	}
	free(all.at);
	return rc;
}

void data_set_free(struct data_set *d)
{
	free(d->text);
	free(d->fields);
	memset(d, 0, sizeof(*d));
}

int data_set_column(const struct data_set *d, const char *name, size_t length)
{
	for (uint32_t i = 0; i < d->columns; i++)
		if (d->names[i].length == length && memcmp(d->names[i].at, name, length) == 0)
			return (int)i;
	return -1;
}

/* ---- JSON ---- */

/* The bytes that one byte becomes. */
static uint32_t escaped(char c)
{
	return c == '"' || c == '\\' ? 2 : (unsigned char)c < ' ' ? 6 : 1;
}

uint32_t data_json_length(const struct data_field *f)
{
	uint32_t length = 0;

	for (uint32_t i = 0; i < f->length; i++)
		length += escaped(f->at[i]);
	return length;
}

void data_json_write(const struct data_field *f, char *to)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < f->length; i++) {
		char c = f->at[i];

		switch (escaped(c)) {
		case 2:
			*to++ = '\\';
			*to++ = c;
			break;
		case 6:
			memcpy(to, "\\u00", 4);
			to[4] = digits[(unsigned char)c >> 4];
			to[5] = digits[c & 15];
			to += 6;
			break;
		default:
			*to++ = c;
		}
	}
}

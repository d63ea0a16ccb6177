/* SPDX-License-Identifier: MIT */
/* Values, key names and data sets.
 *
 * Bytes are copied from a pool made once, because drawing each would cost more than sending it. Sizes are
 * derived from their seed each time and not stored. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "common/text.h"
#include "loadgen/protocol.h"

#define LOGNORMAL_HIGH (1u << 20)

static bool parse_size(const char *text, uint32_t *out)
{
	uint64_t value;

	if (!parse_bytes(text, &value) || value < 1 || value > VALUE_BYTES_MAX)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool parse_lognormal(char *text, struct value_sizes *s)
{
	char *sigma = strchr(text, ','), *high = sigma ? strchr(sigma + 1, ',') : NULL;

	if (!sigma)
		return false;
	*sigma++ = 0;
	if (high)
		*high++ = 0;
	s->kind = SIZE_LOGNORMAL;
	s->low = 1;
	s->high = LOGNORMAL_HIGH;
	return parse_positive(text, VALUE_BYTES_MAX, &s->median) && parse_positive(sigma, 10, &s->sigma) &&
	       (!high || parse_size(high, &s->high));
}

/* "SIZE:WEIGHT,..." */
static bool parse_list(char *text, struct value_sizes *s)
{
	uint64_t weights[VALUE_SIZES_MAX], sum = 0, seen = 0;
	char *part, *rest = text;

	s->kind = SIZE_LIST;
	s->low = UINT32_MAX;
	while ((part = strsep(&rest, ","))) {
		char *weight = strchr(part, ':');
		if (!weight || s->count == VALUE_SIZES_MAX)
			return false;
		*weight++ = 0;
		if (!parse_size(part, &s->list[s->count]) ||
		    !parse_count(weight, 1, 1000000, &weights[s->count]))
			return false;
		sum += weights[s->count];
		s->low = s->list[s->count] < s->low ? s->list[s->count] : s->low;
		s->high = s->list[s->count] > s->high ? s->list[s->count] : s->high;
		s->count++;
	}
	for (uint32_t i = 0; i < s->count; i++) {
		seen += weights[i];
		s->below[i] =
		    i + 1 == s->count ? UINT64_MAX : (uint64_t)(((unsigned __int128)seen << 64) / sum);
	}
	return s->count > 0;
}

bool value_sizes_parse(const char *text, struct value_sizes *s, char *error, size_t size)
{
	char *copy = strdup(text), *dash = copy ? strchr(copy, '-') : NULL;
	bool good = copy != NULL;

	memset(s, 0, sizeof(*s));
	if (good && strncmp(copy, "lognormal:", 10) == 0) {
		good = parse_lognormal(copy + 10, s);
	} else if (good && strchr(copy, ':')) {
		good = parse_list(copy, s);
	} else if (good && dash) {
		*dash++ = 0;
		s->kind = SIZE_RANGE;
		good = parse_size(copy, &s->low) && parse_size(dash, &s->high) && s->low <= s->high;
	} else if (good) {
		good = parse_size(copy, &s->low);
		s->high = s->low;
	}
	free(copy);
	if (!good)
		snprintf(error, size,
			 "value size: expected BYTES, LOW-HIGH, SIZE:WEIGHT,... or "
			 "lognormal:MEDIAN,SIGMA[,MAX], each 1 to %u bytes, got \"%s\"",
			 VALUE_BYTES_MAX, text);
	return good;
}

void value_sizes_describe(const struct value_sizes *s, char *out, size_t size)
{
	switch (s->kind) {
	case SIZE_FIXED:
		snprintf(out, size, "%u-byte values", s->low);
		return;
	case SIZE_RANGE:
		snprintf(out, size, "values of %u to %u bytes", s->low, s->high);
		return;
	case SIZE_LIST:
		snprintf(out, size, "values of %u sizes from %u to %u bytes", s->count, s->low, s->high);
		return;
	case SIZE_LOGNORMAL:
		snprintf(out, size, "lognormal values (median %.10g bytes, sigma %.10g)", s->median,
			 s->sigma);
		return;
	}
}

void values_text(char *to, uint32_t bytes, double compressible, struct random_stream *random)
{
	enum { RUN = 64 };
	uint32_t same = (uint32_t)(compressible * RUN + 0.5);

	for (uint32_t i = 0; i < bytes; i++)
		to[i] = i % RUN < same ? 'x' : (char)('!' + random_below(random, '~' - '!' + 1));
}

int values_prepare(struct values *v, double compressible, uint64_t seed)
{
	struct random_stream random = {seed};

	v->pool = malloc(2 * VALUE_POOL_BYTES);
	if (!v->pool)
		return -ENOMEM;
	values_text(v->pool, VALUE_POOL_BYTES, compressible, &random);
	memcpy(v->pool + VALUE_POOL_BYTES, v->pool, VALUE_POOL_BYTES);
	return 0;
}

void values_free(struct values *v)
{
	free(v->pool);
	v->pool = NULL;
}

/* Box-Muller, from two draws that follow from the seed. */
static double normal(struct random_stream *r)
{
	double radius = sqrt(-2 * log(random_unit(r)));

	return radius * cos(2 * M_PI * random_unit(r));
}

uint32_t value_size(const struct values *v, uint64_t seed)
{
	const struct value_sizes *s = &v->sizes;
	struct random_stream r = {seed};
	uint64_t draw;
	double size;
	uint32_t i = 0;

	switch (s->kind) {
	case SIZE_FIXED:
		break;
	case SIZE_RANGE:
		return s->low + (uint32_t)random_below(&r, (uint64_t)s->high - s->low + 1);
	case SIZE_LIST:
		draw = random_next(&r);
		while (draw > s->below[i])
			i++;
		return s->list[i];
	case SIZE_LOGNORMAL:
		size = s->median * exp(s->sigma * normal(&r));
		return size < s->low ? s->low : size > s->high ? s->high : (uint32_t)size;
	}
	return s->low;
}

static void stamp_of(uint64_t seed, char out[VALUE_STAMP_BYTES])
{
	for (int i = 0; i < VALUE_STAMP_BYTES; i++)
		out[i] = "0123456789abcdef"[seed >> (60 - 4 * i) & 15];
}

/* Offset of byte `from` of a value in the pool, and the number of consecutive bytes there. */
static const char *pool_at(const struct values *v, uint64_t seed, uint32_t from)
{
	return v->pool + (seed + from) % VALUE_POOL_BYTES;
}

void value_copy(const struct values *v, uint64_t seed, uint32_t from, char *to, uint32_t count)
{
	char stamp[VALUE_STAMP_BYTES];

	if (from < VALUE_STAMP_BYTES && count > 0) {
		uint32_t n = VALUE_STAMP_BYTES - from < count ? VALUE_STAMP_BYTES - from : count;
		stamp_of(seed, stamp);
		memcpy(to, stamp + from, n);
		from += n;
		to += n;
		count -= n;
	}
	while (count > 0) {
		uint32_t n = count < VALUE_POOL_BYTES ? count : VALUE_POOL_BYTES;
		memcpy(to, pool_at(v, seed, from), n);
		from += n;
		to += n;
		count -= n;
	}
}

int64_t value_check(const struct values *v, uint64_t seed, uint32_t from, const char *bytes, uint32_t count)
{
	enum { PIECE = 4096 };
	char expected[PIECE];

	while (count > 0) {
		uint32_t n = count < PIECE ? count : PIECE;
		value_copy(v, seed, from, expected, n);
		if (memcmp(expected, bytes, n) != 0) {
			uint32_t i = 0;
			while (expected[i] == bytes[i])
				i++;
			return (int64_t)from + i;
		}
		from += n;
		bytes += n;
		count -= n;
	}
	return -1;
}

/* The file is read into memory, and the unquoted fields are written to a second buffer of the same size,
 * which they cannot exceed. */

static int fail(char *error, size_t size, const char *path, uint64_t line, const char *why)
{
	snprintf(error, size, "%s:%llu: %s", path, (unsigned long long)line, why);
	return -EINVAL;
}

struct row_reader {
	struct data_set *d;
	const char *path, *at, *end;
	char separator, *out;
	uint64_t line;
	char *error;
	size_t size, room;
};

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

		if (!grow(&d->fields, &r->room, d->rows, d->columns * sizeof(*d->fields))) {
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

/* Digits are written in blocks of twelve where possible, because every request contains a key's name. */

uint32_t digits_count(uint64_t value)
{
	uint32_t n = 1;

	while (value >= 10) {
		value /= 10;
		n++;
	}
	return n;
}

void digits_write(char *to, uint32_t width, uint64_t value)
{
	for (char *p = to + width; p > to; value /= 10)
		*--p = (char)('0' + value % 10);
}

static bool parse_length(const char *text, struct key_names *k)
{
	char *copy = strdup(text), *dash = copy ? strchr(copy, '-') : NULL;
	uint64_t low = 0, high = 0;
	bool good;

	if (!copy)
		return false;
	if (dash)
		*dash++ = 0;
	good = parse_count(copy, 1, KEY_NAME_MAX, &low) &&
	       parse_count(dash ? dash : copy, low, KEY_NAME_MAX, &high);
	free(copy);
	k->low = (uint32_t)low;
	k->high = (uint32_t)high;
	return good;
}

int key_names_prepare(struct key_names *k, const char *prefix, const char *length, uint64_t keys, char *error,
		      size_t size)
{
	uint32_t needs = digits_count(keys > 1 ? keys - 1 : 0);

	if (strlen(prefix) > KEY_NAME_MAX - KEY_DIGITS) {
		snprintf(error, size, "--key-prefix is longer than the longest key name (%u bytes)",
			 KEY_NAME_MAX);
		return -EINVAL;
	}
	k->prefix = strdup(prefix);
	if (!k->prefix) {
		snprintf(error, size, "not enough memory");
		return -ENOMEM;
	}
	k->prefix_length = (uint32_t)strlen(prefix);
	k->low = k->high = k->prefix_length + KEY_DIGITS;
	if (length && !parse_length(length, k)) {
		snprintf(error, size, "--key-length: expected BYTES or LOW-HIGH, each 1 to %u, got \"%s\"",
			 KEY_NAME_MAX, length);
		return -EINVAL;
	}
	if (k->low == k->high && k->low < k->prefix_length + needs) {
		snprintf(error, size,
			 "--key-length: %u bytes are too short for the prefix and the %u digits of %llu keys",
			 k->low, needs, (unsigned long long)keys);
		return -EINVAL;
	}
	return 0;
}

void key_names_free(struct key_names *k)
{
	free(k->prefix);
	k->prefix = NULL;
}

uint32_t key_name_length(const struct key_names *k, uint64_t key)
{
	struct random_stream r = {key ^ 0x6b657973};
	uint32_t length, needs;

	if (k->ycsb) {
		char name[YCSB_NAME_BYTES];
		return (uint32_t)ycsb_key_name(key, name);
	}
	if (k->low == k->high)
		return k->low;
	length = k->low + (uint32_t)random_below(&r, k->high - k->low + 1);
	needs = k->prefix_length + digits_count(key);
	return length > needs ? length : needs;
}

void key_name_write(const struct key_names *k, uint64_t key, char *to, uint32_t length)
{
	if (k->ycsb) {
		char name[YCSB_NAME_BYTES];
		memcpy(to, name, (size_t)ycsb_key_name(key, name));
		return;
	}
	memcpy(to, k->prefix, k->prefix_length);
	if (length - k->prefix_length == KEY_DIGITS) {
		digits_write_key(to + k->prefix_length, key);
		return;
	}
	memset(to + k->prefix_length, '0', length - k->prefix_length);
	digits_write(to + length - digits_count(key), digits_count(key), key);
}

/* YCSB's hash functions as in its Java code, so that both use the same keys. */

uint64_t ycsb_hash(uint64_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (int i = 0; i < 8; i++, n >>= 8)
		hash = (hash ^ (n & 0xff)) * 0x100000001b3u;
	return (int64_t)hash < 0 ? -hash : hash;
}

size_t ycsb_key_name(uint64_t n, char name[YCSB_NAME_BYTES])
{
	char digits[20];
	size_t at = sizeof(digits);
	uint64_t hash = ycsb_hash(n);

	for (; hash >= 10; hash /= 100) {
		const unsigned pair = (unsigned)(hash % 100);

		digits[--at] = (char)('0' + pair % 10);
		digits[--at] = (char)('0' + pair / 10);
	}
	if (hash > 0)
		digits[--at] = (char)('0' + hash);
	memcpy(name, "user", 4);
	memcpy(name + 4, digits + at, sizeof(digits) - at);
	name[4 + sizeof(digits) - at] = 0;
	return 4 + sizeof(digits) - at;
}

int32_t ycsb_name_hash(const char *name, size_t length)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < length; i++)
		hash = hash * 31 + (unsigned char)name[i];
	return (int32_t)hash;
}

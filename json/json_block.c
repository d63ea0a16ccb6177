/* SPDX-License-Identifier: MIT */
/* JSON blocks and members over jansson. Nothing here reports that memory is short: jansson passes NULL on, so
 * that what could not be made is missing in what is written. */
#include "json_block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 10 };

void write_json_block(struct ft_writer *w, enum ft_block_kind kind, json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	if (text)
		ft_writer_json(w, kind, text);
	free(text);
	json_decref(object);
}

json_t *json_note(uint64_t t_ns, const char *kind)
{
	json_t *note = json_object();

	json_put_count(note, "t_ns", t_ns);
	json_put_text(note, "kind", kind);
	return note;
}

void write_json_note(struct ft_writer *w, json_t *note)
{
	write_json_block(w, FT_BLOCK_NOTE, note);
}

char *json_line(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));

	json_decref(value);
	return text;
}

/* Bytes of the character that begins here; 0: it is none in UTF-8, which jansson is the judge of. */
static size_t character(const char *text, size_t left)
{
	for (size_t n = 1; n <= 4 && n <= left; n++) {
		json_t *s = json_stringn(text, n);

		json_decref(s);
		if (s)
			return n;
	}
	return 0;
}

static json_t *from_bytes(const char *text, size_t length)
{
	char *out = malloc(2 * length + 1);
	size_t at = 0;
	json_t *s;

	for (size_t i = 0, n; out && i < length; i += n) {
		n = character(text + i, length - i);
		if (n) {
			memcpy(out + at, text + i, n);
			at += n;
		} else {
			out[at++] = (char)(0xc0 | (unsigned char)text[i] >> 6);
			out[at++] = (char)(0x80 | (text[i] & 0x3f));
			n = 1;
		}
	}
	s = out ? json_stringn(out, at) : NULL;
	free(out);
	return s;
}

json_t *json_text(const char *text, size_t length)
{
	json_t *s = json_stringn(text, length);

	return s ? s : from_bytes(text, length);
}

bool json_put(json_t *in, const char *name, json_t *value)
{
	json_t *clean;
	int rc;

	if (!name)
		return json_array_append_new(in, value) == 0;
	rc = json_object_set(in, name, value);
	if (rc) { /* a name may have any bytes, too */
		clean = json_text(name, strlen(name));
		rc = json_object_set(in, json_string_value(clean), value);
		json_decref(clean);
	}
	json_decref(value);
	return rc == 0;
}

void json_put_text(json_t *in, const char *name, const char *text)
{
	json_put(in, name, json_text(text, strlen(text)));
}

/* jansson's whole numbers end at 2^63. */
void json_put_count(json_t *in, const char *name, uint64_t value)
{
	json_put(in, name, value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value));
}

/* Whole numbers of no more digits than are written look whole. */
void json_put_number(json_t *in, const char *name, double value)
{
	if (!isfinite(value))
		value = 0;
	json_put(in, name,
		 value == trunc(value) && fabs(value) < 1e10 ? json_integer((json_int_t)value)
							     : json_real(value));
}

void json_put_truth(json_t *in, const char *name, bool value)
{
	json_put(in, name, json_boolean(value));
}

json_t *json_put_object(json_t *in, const char *name)
{
	json_t *object = json_object();

	return json_put(in, name, object) ? object : NULL;
}

json_t *json_put_array(json_t *in, const char *name)
{
	json_t *array = json_array();

	return json_put(in, name, array) ? array : NULL;
}

/* SPDX-License-Identifier: MIT */
/* JSON blocks and members over jansson. Nothing here reports a lack of memory: jansson passes NULL on, and
 * the value is missing in the output. */
#include "recording/json_block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { DIGITS = 10 };

void write_json_block(struct ft_writer *w, enum ft_block_kind kind, json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	if (text)
		ft_writer_json(w, kind, text);
	free(text);
	json_decref(object);
}

void write_json_definition(struct ft_writer *w, enum ft_block_kind kind, json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	if (text)
		ft_writer_block(w, kind, 0, 1, text, strlen(text));
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

json_t *json_text(const char *text, size_t length)
{
	json_t *s = json_stringn(text, length);
	size_t room = VISIBLE_MOST * length + 1;
	char *visible = s ? NULL : malloc(room);

	if (visible)
		s = json_stringn(visible, visible_text(visible, room, text, length));
	free(visible);
	return s;
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

/* Whole numbers that need no more than the printed digits are printed as whole numbers. */
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

/* SPDX-License-Identifier: MIT */
/* A JSON writer on a FILE: a file of the user's, or memory for a recording's block. Text that isn't UTF-8
 * (a path may be anything) is kept readable by escaping its bytes as Latin-1 characters. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence that begins here; 0: it's none. */
static int utf8_length(const unsigned char *s)
{
	int more = s[0] >= 0xf0 && s[0] < 0xf5	 ? 3
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 2
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 1
						 : -1;
	if (more < 0)
		return 0;
	for (int i = 1; i <= more; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, surrogates, beyond the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return more + 1;
}

static void put_text(FILE *to, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', to);
	while (*s) {
		int length = *s < 0x80 ? 1 : utf8_length(s);

		if (*s == '"' || *s == '\\')
			fprintf(to, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f || length == 0)
			fprintf(to, "\\u%04x", *s);
		else
			fwrite(s, 1, (size_t)length, to);
		s += length ? length : 1;
	}
	fputc('"', to);
}

static void begin_value(struct json *j, const char *name)
{
	if (!j->first)
		fputc(',', j->to);
	j->first = false;
	if (name) {
		put_text(j->to, name);
		fputc(':', j->to);
	}
}

void json_begin(struct json *j, const char *name, char bracket)
{
	begin_value(j, name);
	fputc(bracket, j->to);
	j->first = true;
}

void json_end(struct json *j, char bracket)
{
	fputc(bracket, j->to);
	j->first = false;
}

void json_text(struct json *j, const char *name, const char *value)
{
	begin_value(j, name);
	put_text(j->to, value);
}

void json_count(struct json *j, const char *name, uint64_t value)
{
	begin_value(j, name);
	fprintf(j->to, "%" PRIu64, value);
}

void json_number(struct json *j, const char *name, double value)
{
	begin_value(j, name);
	fprintf(j->to, "%.10g", isfinite(value) ? value : 0.0);
}

void json_truth(struct json *j, const char *name, bool value)
{
	begin_value(j, name);
	fputs(value ? "true" : "false", j->to);
}

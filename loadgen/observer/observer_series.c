/* SPDX-License-Identifier: MIT */
/* A series is announced once, and a value written only when it has changed, because most statistics rarely
 * change. Names are in a tree of limited size, in case a server invents names. */
#include "observer_series.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/json/json_block.h"

enum { SERIES_LIMIT = 4096 }; /* limit for a server that invents new names every second */

struct series {
	char name[96];
	uint32_t id;
	double value; /* last written */
	bool written;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct series *)a)->name, ((const struct series *)b)->name);
}

static void announce(struct observer_series *to, const struct series *s)
{
	json_t *b = json_object();

	json_put_count(b, "id", s->id);
	json_put_text(b, "name", s->name);
	json_put_text(b, "unit", "");
	json_put_object(b, "labels");
	write_json_block(to->writer, FT_BLOCK_SERIES, b);
}

static struct series *find_series(struct observer_series *to, const struct series *probe)
{
	struct series **found = tfind(probe, &to->tree, by_name), *s;

	if (found)
		return *found;
	if (to->ids >= SERIES_LIMIT)
		return NULL;
	s = malloc(sizeof(*s));
	if (!s)
		return NULL;
	*s = *probe;
	s->id = to->ids + 1;
	if (!tsearch(s, &to->tree, by_name)) {
		free(s);
		return NULL;
	}
	to->ids++;
	announce(to, s);
	return s;
}

void observer_series_value(struct observer_series *to, const char *prefix, const char *name, const char *part,
			   double value, uint64_t t_ns)
{
	struct series probe = {0}, *s;
	int length =
	    snprintf(probe.name, sizeof(probe.name), "%s.%s%s%s", prefix, name, *part ? "." : "", part);

	if (length < 0 || (size_t)length >= sizeof(probe.name))
		return; /* longer than any field name of a server */
	s = find_series(to, &probe);
	if (!s || (s->written && s->value == value))
		return;
	s->value = value;
	s->written = true;
	struct ft_sample sample = {.t_ns = t_ns, .value = value, .series = s->id};
	ft_writer_record(to->writer, FT_BLOCK_SAMPLE, &sample);
}

bool observer_series_number(const char *text, double *value)
{
	const char *digits = text + (*text == '-'), *at = digits;

	while (isdigit((unsigned char)*at))
		at++;
	if (at == digits)
		return false;
	if (*at == '.')
		do
			at++;
		while (isdigit((unsigned char)*at));
	if (*at)
		return false; /* a version, time or name: "7.0.15" is not a number */
	*value = strtod(text, NULL);
	return true;
}

bool observer_series_part(char **list, char **name, double *value)
{
	while ((*name = strsep(list, ","))) {
		char *number = strchr(*name, '=');

		if (!number)
			continue;
		*number++ = 0;
		if (observer_series_number(number, value))
			return true;
	}
	return false;
}

void note_refusal(struct observer_series *to, const char *asked, const char *answer)
{
	json_t *n = json_note(ft_now_ns(), "observer-refused");

	json_put_text(n, "command", asked);
	json_put_text(n, "error", answer);
	write_json_note(to->writer, n);
}

void observer_series_free(struct observer_series *to)
{
	tdestroy(to->tree, free);
}

/* SPDX-License-Identifier: MIT */
/* The command line from rows.
 *
 * argp's table is made of the rows when the program starts: an option's key is its letter, or its place. */
#include "common/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { FIRST_KEY = 256 }; /* above the letters */

static const char *program = "";

/* The option as messages name it: "-c" or "--idle". */
struct spelled {
	char text[64];
};

static struct spelled spelled(const struct option_row *row)
{
	struct spelled s;

	if (row->letter)
		snprintf(s.text, sizeof s.text, "-%c", row->letter);
	else
		snprintf(s.text, sizeof s.text, "--%s", row->name);
	return s;
}

error_t option_refuse(const char *format, ...)
{
	char *sentence;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&sentence, format, args);
	va_end(args);
	fprintf(stderr, "%s: ", program);
	put_visible(stderr, length < 0 ? format : sentence); /* it may quote a recording of commands */
	fputc('\n', stderr);
	if (length >= 0)
		free(sentence);
	return EINVAL;
}

error_t option_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out)
{
	if (parse_count(text, low, high, out))
		return 0;
	return option_refuse("%s: expected a whole number from %llu to %llu, got \"%s\"", what,
			     (unsigned long long)low, (unsigned long long)high, text);
}

error_t option_count32(const char *text, const char *what, uint32_t low, uint32_t high, uint32_t *out)
{
	uint64_t value = 0;
	error_t result = option_count(text, what, low, high, &value);

	*out = (uint32_t)value;
	return result;
}

error_t option_time(const char *text, const char *what, bool zero, uint64_t *ns)
{
	if (parse_duration(text, TIME_ANY, TIME_S, ns) && (*ns || zero))
		return 0;
	return option_refuse("%s: expected a time%s such as 10, 2.5s, 500ms, 3m or 1h, got \"%s\"", what,
			     zero ? "" : " above 0", text);
}

error_t option_name(const char *text, const char *what, const char *const *names, int count, int low,
		    int *out)
{
	char all[128] = "";

	for (int i = 0; i < count; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = low + i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i == 0		  ? ""
			 : i + 1 == count ? " or "
					  : ", ",
			 names[i]);
	}
	return option_refuse("%s: expected %s, got \"%s\"", what, all, text);
}

error_t option_percent(const char *text, const char *what, double *share)
{
	size_t length = strlen(text);
	char number[32] = "";
	double percent = 0;

	if (length > 0 && text[length - 1] == '%')
		length--;
	if (length < sizeof(number))
		memcpy(number, text, length);
	if (strcmp(number, "0") != 0 && !parse_positive(number, 100, &percent))
		return option_refuse("%s: expected a percentage from 0 to 100, got \"%s\"", what, text);
	*share = percent / 100;
	return 0;
}

static error_t read_row(const struct option_row *row, const char *text, struct options *o)
{
	void *to = (char *)o + row->at;
	struct spelled what = spelled(row);

	switch (row->kind) {
	case OPTION_TEXT:
		*(const char **)to = text;
		return 0;
	case OPTION_TRUE:
	case OPTION_FALSE:
		*(bool *)to = row->kind == OPTION_TRUE;
		return 0;
	case OPTION_COUNT:
		return option_count(text, what.text, row->low, row->high, to);
	case OPTION_COUNT32:
		return option_count32(text, what.text, (uint32_t)row->low, (uint32_t)row->high, to);
	case OPTION_TIME:
	case OPTION_PAUSE:
		return option_time(text, what.text, row->kind == OPTION_PAUSE, to);
	case OPTION_NAME:
		return option_name(text, what.text, row->names, (int)row->high, (int)row->low, to);
	case OPTION_SHARE:
		return option_percent(text, what.text, to);
	case OPTION_SET:
		*(int *)to = (int)row->low;
		return 0;
	case OPTION_READ:
		return row->read_row ? row->read_row(row, text, o) : row->read(text, o);
	case OPTION_GROUP:
	case OPTION_SAME:
		break;
	}
	return ARGP_ERR_UNKNOWN;
}

struct parsing {
	const struct option_program *program;
	struct options *options;
};

static error_t read_key(int key, char *text, struct argp_state *state)
{
	const struct parsing *p = state->input;

	if (key == ARGP_KEY_ARG)
		return option_refuse("unexpected argument \"%s\". %s", text, p->program->no_arguments);
	for (const struct option_row *row = p->program->rows; row->name || row->help; row++) {
		if (row->kind <= OPTION_SAME ||
		    key != (row->letter ? row->letter : FIRST_KEY + (int)(row - p->program->rows)))
			continue;
		if (row->given)
			*(bool *)((char *)p->options + row->given) = true;
		return read_row(row, text, p->options);
	}
	return ARGP_ERR_UNKNOWN;
}

/* The help of a row, with its default. NULL: no memory. */
static char *help_of(const struct option_row *row)
{
	char *help;

	if (!row->normally)
		return strdup(row->help);
	return asprintf(&help, "%s (default: %s)", row->help, row->normally) < 0 ? NULL : help;
}

error_t option_parse(const struct option_program *p, int argc, char **argv, struct options *o)
{
	struct parsing parsing = {p, o};
	struct argp_option *table;
	size_t count = 0;
	int group = 0;
	error_t result = 0;

	program = p->name;
	while (p->rows[count].name || p->rows[count].help)
		count++;
	table = calloc(count + 1, sizeof *table);
	if (!table)
		return option_refuse("not enough memory");
	for (size_t i = 0; i < count && !result; i++) {
		const struct option_row *row = &p->rows[i];
		char *help = row->help ? help_of(row) : NULL;

		if (row->help && !help)
			result = option_refuse("not enough memory");
		table[i] = (struct argp_option){
		    .name = row->name,
		    .key = row->kind <= OPTION_SAME ? 0
			   : row->letter	    ? row->letter
						    : FIRST_KEY + (int)i,
		    .arg = row->argument,
		    .flags = row->flags | (row->kind == OPTION_SAME ? OPTION_ALIAS : 0),
		    .doc = help,
		    .group = row->kind == OPTION_GROUP ? ++group : 0,
		};
		if (!result && row->normally)
			result = read_row(row, row->normally, o);
	}
	if (!result) {
		const struct argp argp = {table, read_key, 0, p->about, p->others, 0, 0};

		result = argp_parse(&argp, argc, argv, 0, NULL, &parsing);
	}
	for (size_t i = 0; i < count; i++)
		free((char *)table[i].doc);
	free(table);
	return result;
}

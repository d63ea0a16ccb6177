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
#include <unistd.h>

#include "common/text.h"

enum { FIRST_KEY = 256 }; /* above the letters */

static const char *program = "";
static bool refused; /* a sentence was printed */

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
	refused = true;
	fprintf(stderr, "%s: ", program);
	put_visible(stderr, length < 0 ? format : sentence); /* it may quote a recording of commands */
	fputc('\n', stderr);
	if (length >= 0)
		free(sentence);
	return EINVAL;
}

error_t option_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out)
{
	if (parse_amount(text, low, high, out))
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
	const struct argp *argp;
	int stopped_at; /* the word behind the one that argp refused */
};

static bool is_listed(const struct option_row *row)
{
	return row->name && row->kind != OPTION_GROUP && !(row->flags & OPTION_HIDDEN);
}

/* The text in lines of the terminal's width, which is argp's too. */
static void print_wrapped(const char *text, size_t columns)
{
	while (*text) {
		size_t length = strcspn(text, "\n"), end = length;

		if (length >= columns)
			for (end = columns - 1; end > 0 && text[end] != ' ';)
				end--;
		end = end ? end : length;
		printf("%.*s\n", (int)end, text);
		text += end;
		text += *text == ' ' || *text == '\n';
	}
}

/* --help: the purpose, examples, options, and what follows them. */
static void print_help(const struct parsing *p)
{
	const size_t columns = terminal_columns(STDOUT_FILENO, 80);
	const char *about = p->program->about, *after = strchr(about, '\v');
	char format[32];

	snprintf(format, sizeof(format), "rmargin=%zu", columns - 1);
	setenv("ARGP_HELP_FMT", format, 0);
	for (char *copy = strndup(about, after ? (size_t)(after - about) : strlen(about)); copy;
	     free(copy), copy = NULL)
		print_wrapped(copy, columns);
	if (p->program->examples)
		printf("\nExamples:\n%s", p->program->examples);
	putchar('\n');
	argp_help(p->argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_POST_DOC,
		  (char *)p->program->name);
}

enum { KEY_VERSION = 'V', KEY_HELP = '?' };

static error_t read_key(int key, char *text, struct argp_state *state)
{
	struct parsing *p = state->input;
	const char *sentence;

	switch (key) {
	case ARGP_KEY_ARGS:
		sentence = p->program->read_arguments
			       ? p->program->read_arguments(state->argv + state->next, p->options)
			       : p->program->no_arguments;
		return sentence ? option_refuse("unexpected argument \"%s\". %s", state->argv[state->next],
						sentence)
				: 0;
	case ARGP_KEY_ERROR:
		p->stopped_at = state->next;
		return 0;
	case KEY_HELP:
		print_help(p);
		exit(fflush(stdout) ? argp_err_exit_status : 0);
	case KEY_VERSION:
		puts(argp_program_version);
		exit(fflush(stdout) ? argp_err_exit_status : 0);
	default:
		break;
	}
	for (const struct option_row *row = p->program->rows; row->name || row->help; row++) {
		if (row->kind <= OPTION_SAME ||
		    key != (row->letter ? row->letter : FIRST_KEY + (int)(row - p->program->rows)))
			continue;
		if (row->given)
			*(bool *)((char *)p->options + row->given) = true;
		sentence = text && p->program->foreign_value ? p->program->foreign_value(row, text) : NULL;
		return sentence ? option_refuse("%s %s: %s", spelled(row).text, text, sentence)
				: read_row(row, text, p->options);
	}
	return ARGP_ERR_UNKNOWN;
}

/* The first letter of a word such as "-qx" that is no option or, at the end of the command line (`last`),
 * lacks its value. NULL: none. *row: the option, if it is one. */
static const char *wrong_letter(const struct option_row *rows, const char *word, bool last,
				const struct option_row **row)
{
	if (!word || word[0] != '-' || word[1] == '-')
		return NULL;
	for (const char *letter = word + 1; *letter; letter++) {
		for (*row = rows; ((*row)->name || (*row)->help) && (*row)->letter != *letter;)
			++*row;
		if (!(*row)->name)
			return letter;
		if ((*row)->argument && !((*row)->flags & OPTION_ARG_OPTIONAL))
			return last && !letter[1] ? letter : NULL;
	}
	return NULL;
}

/* What getopt(3) refused. It stops behind the word, or at it (`word`) if letters follow the wrong one. */
static error_t refuse_word(const struct option_program *p, const char *before, const char *word)
{
	const char *names[512], *name = before ? before : "", *closest, *letter;
	const struct option_row *rows = p->rows, *wrong;
	size_t count = 0, length;

	letter = wrong_letter(rows, before, !word, &wrong);
	if (!letter)
		letter = wrong_letter(rows, word, false, &wrong);
	if (letter || strncmp(name, "--", 2) != 0)
		return letter && wrong->name
			   ? option_refuse("-%c needs a value: %s", *letter, wrong->argument)
			   : option_refuse("unknown option -%c. See %s --help", letter ? *letter : '?',
					   p->name);
	name += 2;
	length = strcspn(name, "=");
	for (const struct option_row *row = rows; row->name || row->help; row++) {
		if (!row->name || row->kind == OPTION_GROUP)
			continue;
		if (strncmp(row->name, name, length) == 0 && !row->name[length])
			return name[length] ? option_refuse("--%s takes no value", row->name)
					    : option_refuse("--%s needs a value: %s", row->name,
							    row->argument ? row->argument : "VALUE");
		if (is_listed(row) && count < sizeof(names) / sizeof(*names))
			names[count++] = row->name;
	}
	char *text = strndup(name, length);

	closest = text ? closest_name(text, names, count) : NULL;
	free(text);
	return closest
		   ? option_refuse("unknown option --%.*s. Did you mean --%s?", (int)length, name, closest)
		   : option_refuse("unknown option --%.*s. See %s --help", (int)length, name, p->name);
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
	static const struct argp_option own[] = {
	    {"help", KEY_HELP, NULL, 0, "Print this help", -1},
	    {"version", KEY_VERSION, NULL, 0, "Print the version", -1},
	};
	struct parsing parsing = {.program = p, .options = o};
	struct argp_option *table;
	size_t count = 0;
	int group = 0;
	error_t result = 0;

	program = p->name;
	while (p->rows[count].name || p->rows[count].help)
		count++;
	table = calloc(count + 3, sizeof *table);
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
	memcpy(table + count, own, sizeof own);
	if (!result) {
		const struct argp argp = {table, read_key, p->arguments, p->about, p->others, 0, 0};

		parsing.argp = &argp;
		/* Without argp's own messages, which take three lines and name no remedy. */
		result =
		    argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &parsing);
		if (result && !refused)
			result = refuse_word(p, parsing.stopped_at > 1 ? argv[parsing.stopped_at - 1] : NULL,
					     parsing.stopped_at < argc ? argv[parsing.stopped_at] : NULL);
	}
	for (size_t i = 0; i < count; i++)
		free((char *)table[i].doc);
	free(table);
	return result;
}

error_t option_start_at(const char *text, uint64_t *ns)
{
	double seconds;

	/* A double has a resolution of a quarter of a microsecond here. */
	if (!parse_positive(text, 1e10, &seconds))
		return option_refuse(
		    "--start-at: expected a time in seconds since 1970 such as 1795412345.5, got \"%s\"",
		    text);
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

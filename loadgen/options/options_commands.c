/* SPDX-License-Identifier: MIT */
/* The file of --commands: a command per line, with what belongs to it in front.
 *
 *   # a comment
 *   data products.csv
 *   9 key-pattern=zipf:1.1 key-space=100000 HGETALL __key__
 *   1 FT.SEARCH products "@name:__field:name__"
 *
 * A number is the command's weight (1 without). `data` names a data set, relative to the file. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/parse.h"
#include "loadgen/command/bytes.h"
#include "options_values.h"

enum { FILE_BYTES_MAX = 1 << 20 };

/* The next word of a line, ended with a 0; *line moves behind it. */
static char *take_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t length = strcspn(word, " \t");

	*line = word + length;
	if (**line)
		*(*line)++ = 0;
	*line += strspn(*line, " \t");
	return word;
}

static bool is_number(const char *word)
{
	size_t digits = strspn(word, "0123456789");

	return digits > 0 && (word[digits] == ' ' || word[digits] == '\t' || !word[digits]);
}

/* What is in front of a command: a weight, key-pattern=, key-space=. */
static bool take_front(char **line, struct custom_command *c, char *why, size_t size)
{
	uint64_t weight;
	char *word;

	*c = (struct custom_command){.weight = 1};
	if (is_number(*line)) {
		word = take_word(line);
		if (!parse_count(word, 1, 1000000, &weight)) {
			snprintf(why, size, "expected a weight from 1 to 1000000, got \"%s\"", word);
			return false;
		}
		c->weight = (uint32_t)weight;
	}
	for (;;) {
		if (strncmp(*line, "key-pattern=", 12) == 0) {
			word = take_word(line) + 12;
			c->has_distribution = true;
			if (!key_distribution_parse(word, &c->distribution, why, size))
				return false;
		} else if (strncmp(*line, "key-space=", 10) == 0) {
			word = take_word(line) + 10;
			if (!parse_count(word, 1, KEY_SPACE_MAX, &c->keys)) {
				snprintf(why, size, "key-space: expected a number of keys, got \"%s\"", word);
				return false;
			}
		} else {
			break;
		}
	}
	if (!**line)
		snprintf(why, size, "there is no command in this line");
	else
		c->text = *line;
	return **line != 0;
}

/* `name`, relative to the folder of `beside`. NULL: no memory. */
static char *path_beside(const char *beside, const char *name)
{
	const char *slash = *name == '/' ? NULL : strrchr(beside, '/');
	size_t folder = slash ? (size_t)(slash - beside) + 1 : 0, size = folder + strlen(name) + 1;
	char *path = malloc(size);

	if (path)
		snprintf(path, size, "%.*s%s", (int)folder, beside, name);
	return path;
}

static bool take_line(char *line, const char *path, struct options *o, char *why, size_t size)
{
	char *end = line + strlen(line);
	struct command parsed;

	while (end > line && isspace((unsigned char)end[-1]))
		*--end = 0;
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return true;
	if (strncmp(line, "data ", 5) == 0) {
		take_word(&line);
		if (o->data_path)
			snprintf(why, size, "there are two data sets");
		else if (!(o->data_path = path_beside(path, line)))
			snprintf(why, size, "not enough memory");
		return !*why;
	}
	if (o->command_count == COMMANDS_MAX) {
		snprintf(why, size, "there are more than %d commands", COMMANDS_MAX);
		return false;
	}
	if (!take_front(&line, &o->commands[o->command_count++], why, size) ||
	    !command_parse(&parsed, line, why, size))
		return false;
	command_free(&parsed);
	return true;
}

error_t options_read_commands(const char *path, struct options *o)
{
	char why[256] = "", *rest, *line;
	uint32_t before = o->command_count, number = 0;
	struct bytes text = {0};
	int rc;

	if (o->commands_text)
		return options_refuse("--commands: only one file can be given");
	rc = bytes_add_file(&text, path, FILE_BYTES_MAX);
	if (rc == 0)
		rc = bytes_reserve(&text, 1) ? 0 : -ENOMEM;
	o->commands_text = rest = text.at;
	if (rc)
		return options_refuse("--commands: cannot read %s: %s", path, strerror(-rc));
	text.at[text.length] = 0;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		if (!take_line(line, path, o, why, sizeof(why)))
			return options_refuse("%s:%u: %s", path, number, why);
	}
	return o->command_count > before ? 0 : options_refuse("%s has no commands", path);
}

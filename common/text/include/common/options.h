/* SPDX-License-Identifier: MIT */
/* The command line of a program in C: one row per option. Parsing, defaults, checks of a value and --help
 * come from the rows (manual pages and completions from --help). argp reads and prints. */
#ifndef FORKTAIL_COMMON_OPTIONS_H
#define FORKTAIL_COMMON_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a program keeps its options in: each program defines its own. */
struct options;

/* The first two have no key of their own. */
enum option_kind {
	OPTION_GROUP,	/* no option: the heading of those that follow, in `help` */
	OPTION_SAME,	/* another name of the option before it */
	OPTION_TEXT,	/* const char *: the argument */
	OPTION_TRUE,	/* bool: true */
	OPTION_FALSE,	/* bool: false */
	OPTION_COUNT,	/* uint64_t: a whole number from `low` to `high` */
	OPTION_COUNT32, /* uint32_t: the same */
	OPTION_TIME,	/* uint64_t, ns: above 0; a number without a unit is seconds */
	OPTION_PAUSE,	/* uint64_t, ns: the same, or 0 */
	OPTION_NAME,	/* an enumeration, in an int: the place of the argument in `names`, plus `low` */
	OPTION_SHARE,	/* double: "10%" or "10" as a share from 0 to 1 */
	OPTION_SET,	/* an enumeration, in an int: `low`, without an argument */
	OPTION_READ,	/* `read` or `read_row` does it */
};

struct option_row {
	const char *name;
	char letter;	      /* 0: none */
	const char *argument; /* as --help prints it; NULL: takes none */
	const char *help;
	enum option_kind kind;
	size_t at; /* offset in struct options of what the kind says */
	uint64_t low, high;
	const char *const *names; /* `high` of them */
	/* 0, or an error after one sentence on stderr (option_refuse). `text` is NULL without an argument. */
	error_t (*read)(const char *text, struct options *o);
	error_t (*read_row)(const struct option_row *row, const char *text, struct options *o); /* instead */
	size_t given;	      /* offset in struct options of a bool that becomes true; 0: nowhere */
	const char *normally; /* its default, as a user writes it, which --help prints; NULL: 0 or as the
				 program says */
	int flags;	      /* argp's OPTION_HIDDEN, OPTION_ARG_OPTIONAL */
};

/* Ends of rows. */
#define IN_OPTIONS(kind_, member) .kind = (kind_), .at = offsetof(struct options, member)
#define IS_TEXT(member) IN_OPTIONS(OPTION_TEXT, member)
#define IS_TRUE(member) IN_OPTIONS(OPTION_TRUE, member)
#define IS_FALSE(member) IN_OPTIONS(OPTION_FALSE, member)
#define IS_TIME(member) IN_OPTIONS(OPTION_TIME, member)
#define IS_PAUSE(member) IN_OPTIONS(OPTION_PAUSE, member)
#define IS_COUNT(member, low_, high_) IN_OPTIONS(OPTION_COUNT, member), .low = (low_), .high = (high_)
#define IS_COUNT32(member, low_, high_) IN_OPTIONS(OPTION_COUNT32, member), .low = (low_), .high = (high_)
#define IS_NAME(member, names_, count, low_)                                                                 \
	IN_OPTIONS(OPTION_NAME, member), .names = (names_), .high = (count), .low = (low_)
#define IS_SHARE(member) IN_OPTIONS(OPTION_SHARE, member)
#define IS_SET(member, value) IN_OPTIONS(OPTION_SET, member), .low = (value)
#define IS_READ(function) .kind = OPTION_READ, .read = (function)
#define IS_READ_ROW(function) .kind = OPTION_READ, .read_row = (function)
#define IS_SAME .kind = OPTION_SAME
#define GIVEN(member) .given = offsetof(struct options, member)

struct option_program {
	const char *name;		 /* before sentences */
	const char *about;		 /* argp's: the purpose, \v, what follows the options */
	const struct option_row *rows;	 /* ends with a row of zeros */
	const char *no_arguments;	 /* what to say of a word that is no option: a sentence */
	const struct argp_child *others; /* further options; NULL: none */
	const char *examples;		 /* what --help begins with: lines, indented by two spaces */
	/* Optional: reads the words that are no options (`words` ends with NULL), in place of `no_arguments`.
	 * NULL, or a sentence that refuses them. */
	const char *(*read_arguments)(char **words, struct options *o);
	const char *arguments; /* those words, as --help names them; NULL: none */
	/* Optional: a sentence on a value that other programs' option of this name takes; NULL: it is ours.
	 */
	const char *(*foreign_value)(const struct option_row *row, const char *text);
};

/* Sets the defaults of the rows in *o, then reads the command line into it. Returns 0, or EINVAL after one
 * sentence on stderr. --help and --version print and exit. */
error_t option_parse(const struct option_program *p, int argc, char **argv, struct options *o);

/* Prints the program's name and one sentence, made printable, on stderr. Returns EINVAL. */
__attribute__((format(printf, 1, 2))) error_t option_refuse(const char *format, ...);

/* Values: 0, or EINVAL after one sentence. `what`: the option, as the user wrote it. */
error_t option_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out);
error_t option_count32(const char *text, const char *what, uint32_t low, uint32_t high, uint32_t *out);
/* In ns; 0 only if `zero`. */
error_t option_time(const char *text, const char *what, bool zero, uint64_t *ns);
/* One of `count` names: *out is its place, plus `low`. */
error_t option_name(const char *text, const char *what, const char *const *names, int count, int low,
		    int *out);
/* --start-at: seconds since 1970 with decimals, in the format of `date +%s.%N`. */
error_t option_start_at(const char *text, uint64_t *ns);
/* "10%" or "10": a share from 0 to 1. */
error_t option_percent(const char *text, const char *what, double *share);
#endif

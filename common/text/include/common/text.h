/* SPDX-License-Identifier: MIT */
/* What the programs in C and C++ share: text that is read and shown, limits, output files, the service
 * manager. */
#ifndef FORKTAIL_COMMON_TEXT_H
#define FORKTAIL_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers, times and ratios in user input, for every program, in C and C++: so that "1h" means an hour
 * everywhere. Each function accepts the whole text or refuses it, unless its comment says otherwise. */

/* Decimal digits only, within low .. high. */
bool parse_count(const char *text, uint64_t low, uint64_t high, uint64_t *out);
/* A decimal number above 0 and at most `high`. */
bool parse_positive(const char *text, double high, double *out);
/* The decimal number of at least 0 that the text begins with; *text is what follows it. */
bool parse_number(const char **text, double *out);
/* "1:4": two counts of at most a million, not both 0. */
bool parse_ratio(const char *text, uint32_t *first, uint32_t *second);
/* "1/16": one in that many, a power of two from 1 to 1,024, which is the largest sample of connections. */
bool parse_sample(const char *text, uint32_t *one_in);
enum { KEY_BYTES_MOST = 32 }; /* of `forktail record --keys` */
#define SAMPLE_WANTED "auto, or 1/N with a power of two up to 1024, such as 1/16"

/* Units of time; callers combine those they accept. */
enum {
	TIME_NS = 1,
	TIME_US = 2,
	TIME_MS = 4,
	TIME_S = 8,
	TIME_M = 16,
	TIME_H = 32,
	TIME_D = 64,
	TIME_ANY = TIME_NS | TIME_US | TIME_MS | TIME_S | TIME_M |
		   TIME_H, /* all but days, which few options accept */
};

struct time_unit {
	const char *name; /* "ms" */
	unsigned unit;	  /* TIME_MS */
	double ns;
};

/* The first of `units` with this name, or the first of all if the name is NULL. NULL: none. */
const struct time_unit *find_time_unit(const char *name, unsigned units);

/* A number of at least 0 followed by one of `units`: "500ms", "2.5s". A bare number is in `bare`, one of the
 * units; 0: a unit is required. At most 10^9 s, rounded to the nearest nanosecond. */
bool parse_duration(const char *text, unsigned units, unsigned bare, uint64_t *ns);

/* "64MB", "64M", "4KiB", bytes without a unit: k, M, G and T are of 1000 (Ki to Ti of 1024), with or without
 * B, in upper or lower case. At most 10^18 bytes; fractions of a byte are dropped. */
bool parse_bytes(const char *text, uint64_t *bytes);

/* Rows of fields as in RFC 4180: fields in double quotes may contain separators, line ends and, doubled,
 * quotes. Lines may end with LF or CRLF. */

enum csv_end {
	CSV_FIELD,	 /* more fields follow in the row */
	CSV_ROW,	 /* the field ended the row */
	CSV_OPEN_QUOTE,	 /* a quoted field has no closing quote: the text ends within it */
	CSV_AFTER_QUOTE, /* text follows a closing quote */
};

/* Reads the field at *at, and sets *at to the next. `out` needs room for the rest of the row, quoted line
 * ends included, and gets *length bytes, without quotes. *lines is increased by the line ends within the
 * field. After an error *at is unchanged. */
enum csv_end csv_read(const char **at, const char *end, char separator, char *out, size_t *length,
		      uint64_t *lines);

/* The number of bytes from `at` to the end of its row: an upper limit of its fields together. */
size_t csv_row_bytes(const char *at, const char *end, char separator);

/* Sanitizes untrusted text (names that a traced process gives itself, file names, a server's text), so that
 * any terminal, page or log prints it unchanged and it misleads no reader: UTF-8, without anything that moves
 * the cursor, sets a title or a clipboard, starts a line or changes the direction of writing. Each program
 * does it once, where it receives the text: the analysis when it reads a recording, the recorder and the load
 * generator before they print. */

enum { VISIBLE_MOST = 4 }; /* maximum output bytes per input byte */

/* Writes `length` bytes of text in printable form: control characters (C0, DEL, C1) and invalid UTF-8 bytes
 * as \x1b, invisible characters that affect other text as \u202e. Printable text stays unchanged, including a
 * backslash, so sanitizing twice has no further effect. Ends with a 0, before the first character that does
 * not fit in `size` bytes. Returns the size of the complete result, without the 0: equal to `length` if
 * nothing was changed. */
size_t visible_text(char *out, size_t size, const char *text, size_t length);
/* The same to a file. */
void put_visible(FILE *to, const char *text);

/* The limits of a ring in user input: in the recorder's option, and in the configuration, which is checked
 * without a recorder. */

/* Whichever limit is reached first applies. */
struct ring_limits {
	uint64_t age_ns; /* 10 s to 7 days */
	uint64_t bytes;	 /* at least 4 MB */
};

/* The valid forms, for error messages. */
#define RING_LIMITS_WANTED "a time from 10s to 7d and a size of at least 4MB, such as 10m or 10m,2GB"

/* "10m", "12h,2GB"; the size is 1 GB by default. False: not such limits. */
bool ring_limits_parse(const char *text, struct ring_limits *limits);

/* Limits for a run that is a test in a pipeline. One grammar for all programs, with two meanings: --fail-if
 * 'p99>2ms' of the load generator and explain says when a run has failed; 'p99 < 2ms' of the gate says what
 * has to hold. The caller looks up the figure, and checks whether the operation or cause exists.
 *
 *   [OF.]FIGURE OP VALUE              OP: >  >=  <  <=  =  !=
 *   [OF.]FIGURE no worse than BASE [by more than VALUE]
 *   cause share of CAUSE OP VALUE     the same as CAUSE.share OP VALUE
 *
 *   OF         FIGURE                 VALUE
 *   operation  p50, p99.99, avg,      a time: us, ms or s; ms without a unit
 *   or none    min, max, stddev
 *              errors                 a count, or a share of the requests: 1%
 *              misses, requests       a count
 *              rps, mb/s              a number
 *   cause      max, total             a time
 *              share                  a share in percent, with its sign: 1%
 *              requests, episodes     a count
 *   none       unknown                the same as unknown.share
 *              episodes, drops        a count
 *
 * After "by more than", the value may be a share of the figure in the base: 10%. Spaces around OP and before
 * a unit are allowed; figures and units may be in upper case. */

enum limit_figure {
	LIMIT_PERCENTILE,
	LIMIT_AVERAGE,
	LIMIT_MINIMUM,
	LIMIT_MAXIMUM,
	LIMIT_STDDEV,
	LIMIT_ERRORS,
	LIMIT_ERROR_PERCENT, /* "errors>1%" */
	LIMIT_MISSES,
	LIMIT_RPS,
	LIMIT_REQUESTS,
	LIMIT_MB_PER_S,
	/* The following figures exist for recordings only, not for a load. */
	LIMIT_TOTAL,
	LIMIT_SHARE,
	LIMIT_EPISODES,
	LIMIT_DROPS,
};

enum limit_comparison {
	LIMIT_OVER,
	LIMIT_OVER_OR_AT,
	LIMIT_UNDER,
	LIMIT_UNDER_OR_AT,
	LIMIT_EQUAL,
	LIMIT_UNEQUAL,
	LIMIT_NO_WORSE, /* than in the base; `value` is the allowed difference */
};

enum limit_reading { LIMIT_FAILS_IF, LIMIT_HAS_TO_HOLD };

struct limit {
	char of[64];	      /* as written, an operation or a cause; "": all requests together */
	char figure_name[24]; /* as written, lower case: "p99.99" */
	enum limit_figure figure;
	bool cause;	   /* `of` can only be a cause */
	double percentile; /* 0 < p <= 100; of LIMIT_PERCENTILE */
	enum limit_comparison comparison;
	double value;	  /* a time in nanoseconds; a share in percent */
	bool base_share;  /* for LIMIT_NO_WORSE: `value` is percent of the figure in the base */
	bool derived;	  /* computed by limit_against, not written by a user */
	const char *unit; /* "ms", "%", ""; the unit of the value in input and output */
	double scale;	  /* that unit in ns: 1e6 for "ms" */
};

/* False, and one sentence in `error`, if the text is not a limit. */
bool limit_parse(const char *text, struct limit *limit, char *error, size_t size);

/* Whether the load generator can evaluate the figure: without a recording and without a base. */
bool limit_is_of_load(const struct limit *limit);

/* Whether the limit can have to hold: not if it demands a high latency, errors, or a low rate. False, and in
 * `error` one sentence that says what to write. For LIMIT_HAS_TO_HOLD only: what fails a run is the
 * opposite. */
bool limit_can_hold(const struct limit *limit, const char *text, char *error, size_t size);

/* Whether more of a figure is worse: true except for those that count work done. */
bool limit_more_is_worse(enum limit_figure figure);

/* Turns a LIMIT_NO_WORSE into a limit by comparison, given the figure `base` in the base, in the unit of a
 * limit.value. Times are printed in a suitable unit. */
struct limit limit_against(const struct limit *limit, double base);

/* Whether the run has failed. `value` is the figure in the unit of limit.value: nanoseconds, percent, or
 * plain. A missing figure (NAN: nothing was measured) fails in both meanings. Not for LIMIT_NO_WORSE, see
 * limit_against. */
bool limit_broken(const struct limit *limit, enum limit_reading reading, double value);

/* "GET p99 is 2.31 ms, over the limit of 2 ms"; "p99 is 1.2 ms, within its limit (over 2 ms fails)"; for the
 * gate "p99 is 2.31 ms, over 2 ms". With as many digits as are needed to distinguish the two numbers. */
void limit_sentence(const struct limit *limit, enum limit_reading reading, double value, char *out,
		    size_t size);

/* What people type and where they read: short numbers, misspelled names, the terminal. */

/* As parse_count, for numbers that users write short: also "10k", "1.5M", "1e6" (k, M, G, T: 10^3 to
 * 10^12), if the result is a whole number. */
bool parse_amount(const char *text, uint64_t low, uint64_t high, uint64_t *out);
/* As parse_positive, also "10k". */
bool parse_rate(const char *text, double high, double *out);

/* The name that a misspelled text probably means: the one with the fewest wrong letters, at most 1 to 3 of
 * them by the length of the text. NULL: none is so close. */
const char *closest_name(const char *text, const char *const *names, size_t count);

/* The width of the terminal at `fd`, else $COLUMNS, else `usual`; from 40 to 500. */
size_t terminal_columns(int fd, size_t usual);
/* Whether standard error is a terminal on which a line can be written again: not with TERM=dumb. */
bool can_rewrite_line(void);

/* The service manager that started this process: sd_notify(3), which is one datagram and needs no library. */

/* Returns a socket for manager_send(), or -1. `path`: the value of NOTIFY_SOCKET ("@...": an abstract name);
 * NULL or "" without a manager. */
int manager_connect(const char *path);
/* "READY=1", "STATUS=...". Never waits and never fails: without a manager (-1) it does nothing. */
void manager_send(int socket, const char *state, size_t length);

/* Opens files that a user named for output. The programs often run as root, and the name may be in a
 * directory of another user, who could have put a link there: to a file that only root may write. So a link
 * is followed only if it and its directory belong to the caller or to root, and a file that has other names
 * (hard links) is written only in such a directory. /dev/stdout, /dev/stderr, /dev/fd and /proc/self/fd lead
 * to the caller's open files. */

/* Opens a file for writing, made if it is not there (0666 as far as the umask allows) and emptied. Returns a
 * descriptor or a negative errno: -ELOOP and -EMLINK are explained by output_why(). */
int output_open(const char *path);
/* The same as a stream. NULL: errno is set. */
FILE *output_fopen(const char *path);
/* Whether an existing name may be written to: 0 or a negative errno, as above. */
int output_check(const char *path);
/* Why output_open() or output_check() refused; `error` is a positive errno. */
const char *output_why(int error);

#ifdef __cplusplus
}
#endif
#endif

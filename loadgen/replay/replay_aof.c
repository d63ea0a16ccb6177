/* SPDX-License-Identifier: MIT */
/* The commands of an append-only file: arrays of bulk strings, as clients send them, with lines between them
 * that begin with #. "#TS:1640995200" is the time of what follows (aof-timestamp-enabled). rdb.c handles an
 * RDB preamble. */
#include <string.h>

#include "replay_item.h"

#define SECOND_NS 1000000000ull
/* More than a server accepts (proto-max-bulk-len is 512 MB by default). */
#define BULK_MAX (4ull << 30)

/* "*3\r\n" or "$12\r\n" at *p. 1: read, 0: truncated, -1: something else. */
static int read_head(const char **p, const char *end, char type, uint64_t limit, uint64_t *number)
{
	const char *at = *p, *digits;

	*number = 0;
	if (at == end)
		return 0;
	if (*at++ != type)
		return -1;
	for (digits = at; at < end && *at >= '0' && *at <= '9'; at++) {
		*number = *number * 10 + (uint64_t)(*at - '0');
		if (*number > limit)
			return -1;
	}
	if (at == end)
		return 0;
	if (at == digits || *at++ != '\r')
		return -1;
	if (at == end)
		return 0;
	if (*at++ != '\n')
		return -1;
	*p = at;
	return 1;
}

/* An annotation line at r->at. False: truncated. */
static bool read_annotation(struct replay_reader *r)
{
	const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
	const char *p = r->at + 4;
	uint64_t ns;

	if (!end)
		return false;
	if (end - r->at > 4 && memcmp(r->at, "#TS:", 4) == 0 && replay_read_seconds(&p, end, &ns))
		r->second_ns = ns / SECOND_NS * SECOND_NS;
	r->at = end + 1;
	return true;
}

static int read_command(struct replay_reader *r, const char **p)
{
	uint64_t words, length;
	int rc = read_head(p, r->end, '*', REPLAY_WORDS_MAX, &words);

	if (rc <= 0)
		return rc;
	if (words == 0)
		return -1;
	for (uint64_t i = 0; i < words; i++) {
		rc = read_head(p, r->end, '$', BULK_MAX, &length);
		if (rc <= 0)
			return rc;
		if ((uint64_t)(r->end - *p) < length + 2)
			return 0;
		if (memcmp(*p + length, "\r\n", 2) != 0)
			return -1;
		if (!replay_words_add(r, *p, length))
			return -2;
		*p += length + 2;
	}
	return 1;
}

int replay_aof_next(struct replay_reader *r, struct replay_item *item)
{
	const char *p;
	int rc;

	while (r->at < r->end && *r->at == '#')
		if (!read_annotation(r))
			return replay_damage(r, r->at, true, "the last line is truncated");
	if (r->at == r->end)
		return 0;
	p = r->at;
	replay_words_begin(r, 0);
	rc = read_command(r, &p);
	if (rc == -2)
		return -1;
	if (rc <= 0)
		return replay_damage(r, r->at, rc == 0,
				     rc == 0 ? "the last command is truncated"
					     : "not a command of an append-only file");
	*item = (struct replay_item){
	    .time_ns = r->second_ns,
	    .database = REPLAY_OWN_DATABASE,
	    .words = r->words,
	    .word_count = r->word_count,
	    .wire = {r->at, (size_t)(p - r->at)},
	};
	r->at = p;
	return 1;
}

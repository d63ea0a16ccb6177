/* SPDX-License-Identifier: MIT */
/* Commands in a table, for recordings from other sources (a proxy's log, a packet capture, a spreadsheet):
 *
 *   0.000,app-1,SET,user:7,"a value, with a comma"
 *
 * A row is the time in seconds since any origin, the client (rows of one client stay in order, on one
 * connection; it may be empty), and the words of the command, one field each. Fields are quoted as in RFC
 * 4180,
 * so that a value can contain commas, quotes and line ends. A first row without a time is a header. */
#include <string.h>

#include "replay_item.h"

/* Reads one field at *p into words. 1: more follow in the row, 0: it ended the row, -1: r->why is set. */
static int read_field(struct replay_reader *r, const char *row, const char **p)
{
	const char *at = *p, *from = at, *begin;
	char *out = r->text.at + r->text.length;
	bool quoted = at < r->end && *at == '"';

	if (!quoted) {
		while (at < r->end && *at != ',' && *at != '\n')
			at++;
		*p = at;
		if (at > from && at[-1] == '\r' && (at == r->end || *at == '\n'))
			at--;
		if (!replay_words_add(r, from, (size_t)(at - from)))
			return -1;
	} else {
		begin = out;
		for (at++; at < r->end && (*at != '"' || (at + 1 < r->end && at[1] == '"')); at++) {
			r->line += *at == '\n';
			at += *at == '"';
			*out++ = *at;
		}
		if (at == r->end)
			return replay_damage(r, row, true, "a quoted field has no closing quote");
		r->text.length += (size_t)(out - begin);
		if (!replay_words_add(r, begin, (size_t)(out - begin)))
			return -1;
		at++;
		if (at + 1 < r->end && *at == '\r' && at[1] == '\n')
			at++;
		if (at < r->end && *at != ',' && *at != '\n')
			return replay_damage(r, row, false, "unexpected text after a closing quote");
		*p = at;
	}
	if (*p < r->end && *(*p)++ == ',')
		return 1;
	return 0;
}

/* The row's length, found like read_field does: an upper limit of its unquoted words. */
static size_t row_bytes(const struct replay_reader *r)
{
	const char *p = r->at, *end = r->end;

	while (p < end && *p != '\n') {
		if (*p == '"')
			for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++)
				p += *p == '"';
		while (p < end && *p != ',' && *p != '\n')
			p++;
		p += p < end && *p == ',';
	}
	return (size_t)(p - r->at);
}

static int read_row(struct replay_reader *r)
{
	const char *row = r->at, *p = row;
	int more = 1;

	if (!replay_words_begin(r, row_bytes(r)))
		return -1;
	while (more > 0) {
		more = read_field(r, row, &p);
		if (more < 0)
			return -1;
	}
	r->at = p;
	r->line++;
	return 1;
}

int replay_csv_next(struct replay_reader *r, struct replay_item *item)
{
	while (r->at < r->end) {
		const char *row = r->at, *p, *end;
		uint64_t line = r->line;

		if (read_row(r) < 0)
			return -1;
		if (r->word_count == 1 && r->words[0].length == 0)
			continue; /* an empty line */
		p = r->words[0].at;
		end = p + r->words[0].length;
		*item = (struct replay_item){.database = REPLAY_OWN_DATABASE};
		if (!replay_read_seconds(&p, end, &item->time_ns) || p != end) {
			if (row == r->begin)
				continue; /* the header */
			r->line = line;
			return replay_damage(r, row, false, "the row does not begin with a time in seconds");
		}
		if (r->word_count < 3) {
			r->line = line;
			return replay_damage(r, row, false,
					     "the row has no command. Expected seconds,client,command,...");
		}
		item->client = r->words[1];
		item->words = r->words + 2;
		item->word_count = r->word_count - 2;
		return 1;
	}
	return 0;
}

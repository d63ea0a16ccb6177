/* SPDX-License-Identifier: MIT */
/* Commands in a table, for recordings from other sources (a proxy's log, a packet capture, a spreadsheet):
 *
 *   0.000,app-1,SET,user:7,"a value, with a comma"
 *
 * A row is the time in seconds since any origin, the client (rows of one client stay in order, on one
 * connection; it may be empty), and the words of the command, one field each. A first row without a time is a
 * header. */

#include "common/text/csv.h"
#include "replay_item.h"

static int read_row(struct replay_reader *r)
{
	const char *p = r->at;
	enum csv_end end = CSV_FIELD;

	if (!replay_words_begin(r, csv_row_bytes(p, r->end, ',')))
		return -1;
	while (end == CSV_FIELD) {
		char *out = r->text.at + r->text.length;
		size_t length = 0;

		end = csv_read(&p, r->end, ',', out, &length, &r->line);
		if (end == CSV_OPEN_QUOTE)
			return replay_damage(r, r->at, true, "a quoted field has no closing quote");
		if (end == CSV_AFTER_QUOTE)
			return replay_damage(r, r->at, false, "unexpected text after a closing quote");
		r->text.length += length;
		if (!replay_words_add(r, out, length))
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

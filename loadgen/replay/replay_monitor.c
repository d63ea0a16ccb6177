/* SPDX-License-Identifier: MIT */
/* A capture of Redis' MONITOR, from redis-cli or a raw connection:
 *
 *   1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
 *
 * A source is host:port, unix:PATH (the server's socket, so all its clients look like one) or lua (a script's
 * call). A path may contain blanks and brackets; the source ends at the first `] "`. */
#include <string.h>

#include "replay_item.h"

static int hex_digit(char x)
{
	return x >= '0' && x <= '9'   ? x - '0'
	       : x >= 'a' && x <= 'f' ? x - 'a' + 10
	       : x >= 'A' && x <= 'F' ? x - 'A' + 10
				      : -1;
}

/* "keys" and the words after it, unescaped. False: r->why is set. */
static bool read_words(struct replay_reader *r, const char *line, const char *p, const char *end)
{
	static const char from[] = "\\\"nrtab", to[] = "\\\"\n\r\t\a\b";

	while (p < end) {
		char *out = r->text.at + r->text.length;
		const char *begin = out;

		if (*p++ != '"')
			break;
		while (p < end && *p != '"') {
			const char *known;
			int high, low;

			if (*p != '\\') {
				*out++ = *p++;
				continue;
			}
			if (end - p >= 4 && p[1] == 'x') {
				high = hex_digit(p[2]);
				low = hex_digit(p[3]);
				if (high < 0 || low < 0)
					break;
				*out++ = (char)(high * 16 + low);
				p += 4;
				continue;
			}
			known = end - p >= 2 ? memchr(from, p[1], sizeof(from) - 1) : NULL;
			if (!known)
				break;
			*out++ = to[known - from];
			p += 2;
		}
		if (p == end || *p != '"')
			break;
		p++;
		r->text.length += (size_t)(out - begin);
		if (!replay_words_add(r, begin, (size_t)(out - begin)))
			return false;
		if (p == end)
			return true;
		if (*p++ != ' ' || p == end)
			break;
	}
	replay_damage(r, line, false, "the words are not quoted as in MONITOR's output");
	return false;
}

/* Time, database and source. Returns where the words begin, or NULL. */
static const char *read_head(const char *p, const char *end, struct replay_item *item)
{
	uint64_t database = 0;
	const char *digits, *close;

	if (!replay_read_seconds(&p, end, &item->time_ns) || end - p < 2 || p[0] != ' ' || p[1] != '[')
		return NULL;
	for (digits = p += 2; p < end && *p >= '0' && *p <= '9' && p - digits < 9; p++)
		database = database * 10 + (uint64_t)(*p - '0');
	if (p == digits || p == end || *p++ != ' ')
		return NULL;
	close = memmem(p, (size_t)(end - p), "] \"", 3);
	if (!close)
		return NULL;
	item->database = (uint32_t)database;
	item->client = (struct replay_word){p, (size_t)(close - p)};
	item->scripted = close - p == 3 && memcmp(p, "lua", 3) == 0;
	return close + 2;
}

int replay_monitor_next(struct replay_reader *r, struct replay_item *item)
{
	while (r->at < r->end) {
		const char *line = r->at, *p = line;
		const char *end = memchr(line, '\n', (size_t)(r->end - line)), *next;

		/* Even if it looks complete: it may lack words. */
		if (!end)
			return replay_damage(r, line, true, "the last line is truncated");
		next = end + 1;
		if (end > p && end[-1] == '\r')
			end--;
		/* The replies of a raw connection begin with +; MONITOR itself is answered with OK. */
		if (p < end && *p == '+')
			p++;
		if (p == end || (end - p == 2 && memcmp(p, "OK", 2) == 0)) {
			r->at = next;
			r->line++;
			continue;
		}
		*item = (struct replay_item){0};
		p = read_head(p, end, item);
		if (!p)
			return replay_damage(r, line, false, "not a line of MONITOR's output");
		if (!replay_words_begin(r, (size_t)(end - p)) || !read_words(r, line, p, end))
			return -1;
		item->words = r->words;
		item->word_count = r->word_count;
		r->at = next;
		r->line++;
		return 1;
	}
	return 0;
}

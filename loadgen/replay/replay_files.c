/* SPDX-License-Identifier: MIT */
/* Opens recordings. Files are mapped; other inputs (a pipe from redis-cli) are read to the end. Since Redis 7
 * an append-only "file" is a directory: a manifest, a base (an RDB or commands) and increments. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/grow.h"
#include "common/text.h"
#include "loadgen/protocol.h"
#include "loadgen/replay.h"
#include "replay_parts.h"

enum { CHUNK_BYTES = 4 << 20, READ_AT_ONCE = 1 << 20, MANIFEST_BYTES_MAX = 1 << 20 };

char *replay_store_take(struct replay_store *s, size_t bytes)
{
	struct replay_chunk *c = s->chunks;

	if (!c || c->room - c->used < bytes) {
		size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct replay_chunk){.next = s->chunks, .room = room};
		s->chunks = c;
	}
	c->used += bytes;
	return c->bytes + c->used - bytes;
}

static void file_free(struct replay_file *f)
{
	if (f->mapped)
		munmap((void *)f->at, f->size);
	else if (f->size)
		free((void *)f->at);
	free(f->path);
}

void replay_store_close_files(struct replay_store *s)
{
	for (uint32_t i = 0; i < s->file_count; i++)
		file_free(&s->files[i]);
	free(s->files);
	s->files = NULL;
	s->file_count = 0;
	s->file_room = 0;
}

void replay_store_free(struct replay_store *s)
{
	if (!s)
		return;
	replay_store_close_files(s);
	while (s->chunks) {
		struct replay_chunk *next = s->chunks->next;

		free(s->chunks);
		s->chunks = next;
	}
	free(s);
}

/* Reads input that can't be mapped to its end. */
static int read_stream(int fd, struct replay_file *f)
{
	struct bytes all = {0};
	ssize_t n = 1;

	while (n > 0 || (n < 0 && errno == EINTR)) {
		if (!bytes_reserve(&all, READ_AT_ONCE)) {
			free(all.at);
			return -ENOMEM;
		}
		n = read(fd, all.at + all.length, READ_AT_ONCE);
		all.length += n > 0 ? (size_t)n : 0;
	}
	if (n < 0 || all.length == 0) {
		int rc = n < 0 ? -errno : 0;

		free(all.at);
		return rc;
	}
	f->at = all.at;
	f->size = all.length;
	return 0;
}

static int file_open(struct replay_file *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
	struct stat st;
	void *at;

	*f = (struct replay_file){.at = "", .path = strdup(path)};
	if (rc == 0 && fstat(fd, &st))
		rc = -errno;
	if (rc == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at == MAP_FAILED) {
			rc = -errno;
		} else {
			madvise(at, (size_t)st.st_size, MADV_WILLNEED);
			f->at = at;
			f->size = (size_t)st.st_size;
			f->mapped = true;
		}
	} else if (rc == 0 && !S_ISREG(st.st_mode)) {
		rc = read_stream(fd, f);
	}
	if (fd >= 0)
		close(fd);
	return f->path ? rc : -ENOMEM;
}

static int add_file(struct replay_store *s, const char *path, char *error, size_t size)
{
	int rc = grow(&s->files, &s->file_room, s->file_count, sizeof(*s->files))
		     ? file_open(&s->files[s->file_count++], path)
		     : -ENOMEM;

	if (rc)
		snprintf(error, size, "cannot read %s: %s", path, strerror(-rc));
	return rc;
}

/* ---- Redis 7's directories ---- */

/* "file appendonly.aof.1.incr.aof seq 1 type i": its name and type. False: another kind of line. */
static bool manifest_line(const char *line, char *name, size_t size, char *type)
{
	struct command c;
	char ignored[256];
	bool good;

	if (!command_parse(&c, line, ignored, sizeof(ignored)))
		return false;
	good = c.word_count >= 6 && c.part_count == c.word_count && strcmp(c.parts[0].text, "file") == 0 &&
	       strcmp(c.parts[4].text, "type") == 0 && !strchr(c.parts[1].text, '/') &&
	       (size_t)snprintf(name, size, "%s", c.parts[1].text) < size;
	*type = good ? c.parts[5].text[0] : 0;
	command_free(&c);
	return good;
}

/* Replaces the manifest, which is the store's only file, with the files it lists. */
static int open_manifest(struct replay_store *s, char *error, size_t size)
{
	struct replay_file manifest = s->files[0];
	const char *slash = strrchr(manifest.path, '/');
	char *text = manifest.size < MANIFEST_BYTES_MAX ? strndup(manifest.at, manifest.size) : NULL;
	char *rest = text, *line, name[256], path[4096], type;
	int rc = text ? 0 : -EINVAL;

	s->file_count = 0;
	while (rc == 0 && (line = strsep(&rest, "\n"))) {
		line[strcspn(line, "\r")] = 0;
		if (!*line || *line == '#')
			continue;
		if (!manifest_line(line, name, sizeof(name), &type)) {
			snprintf(error, size, "%s is not a manifest of an append-only file: \"%.80s\"",
				 manifest.path, line);
			rc = -EINVAL;
		} else if (type != 'h') { /* history: replaced, and about to be deleted */
			snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - manifest.path) : 0,
				 manifest.path, name);
			rc = add_file(s, path, error, size);
		}
	}
	if (!text)
		snprintf(error, size, "%s is too long for a manifest", manifest.path);
	else if (rc == 0 && s->file_count == 0) {
		snprintf(error, size, "the manifest %s lists no files", manifest.path);
		rc = -EINVAL;
	}
	free(text);
	file_free(&manifest);
	return rc;
}

/* Finds the only manifest in a directory. */
static int find_manifest(const char *directory, char *path, size_t path_size, char *error, size_t size)
{
	static const char ending[] = ".manifest";
	DIR *d = opendir(directory);
	struct dirent *e;
	int found = 0;

	while (d && (e = readdir(d))) {
		size_t length = strlen(e->d_name);

		if (length < sizeof(ending) || strcmp(e->d_name + length - sizeof(ending) + 1, ending) != 0)
			continue;
		snprintf(path, path_size, "%s/%s", directory, e->d_name);
		found++;
	}
	if (d)
		closedir(d);
	if (found == 1)
		return 0;
	snprintf(error, size,
		 found ? "%s has several manifests. Name one of them"
		       : "%s is a directory without a manifest of an append-only file. Name a file",
		 directory);
	return -EINVAL;
}

int replay_files_open(struct replay_store *s, const char *path, char *error, size_t size)
{
	char manifest[4096];
	struct stat st;
	int rc;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		rc = find_manifest(path, manifest, sizeof(manifest), error, size);
		if (rc)
			return rc;
		path = manifest;
	}
	rc = add_file(s, path, error, size);
	if (rc)
		return rc;
	if (s->files[0].size == 0) {
		snprintf(error, size, "%s is empty: nothing to replay", path);
		return -ENODATA;
	}
	if (s->files[0].size > 5 && memcmp(s->files[0].at, "file ", 5) == 0)
		return open_manifest(s, error, size);
	return 0;
}

/* The commands of an append-only file: arrays of bulk strings, as clients send them, with lines between them
 * that begin with #. "#TS:1640995200" is the time of what follows (aof-timestamp-enabled). rdb.c handles an
 * RDB preamble. */

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

/* Commands in a table, for recordings from other sources (a proxy's log, a packet capture, a spreadsheet):
 *
 *   0.000,app-1,SET,user:7,"a value, with a comma"
 *
 * A row is the time in seconds since any origin, the client (rows of one client stay in order, on one
 * connection; it may be empty), and the words of the command, one field each. A first row without a time is a
 * header. */

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

/* A capture of Redis' MONITOR, from redis-cli or a raw connection:
 *
 *   1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
 *
 * A source is host:port, unix:PATH (the server's socket, so all its clients look like one) or lua (a script's
 * call). A path may contain blanks and brackets; the source ends at the first `] "`. */

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
static const char *read_monitor_head(const char *p, const char *end, struct replay_item *item)
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
		p = read_monitor_head(p, end, item);
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

/* Times are changed in the records themselves, once before the load, so that sending handles only one kind of
 * time, plus the speed as a factor. */

void replay_spread_seconds(struct replay *r)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i <= r->count; i++) {
		uint32_t n = i - first;

		if (i < r->count && r->records[i].due_ns == r->records[first].due_ns)
			continue;
		for (uint32_t k = 1; k < n; k++)
			r->records[first + k].due_ns += (uint64_t)((unsigned __int128)SECOND_NS * k / n);
		first = i;
	}
}

void replay_set_span(struct replay *r)
{
	uint64_t last = r->count ? r->records[r->count - 1].due_ns : 0;

	r->span_ns = last + (r->count > 1 && last > 0 ? last / (r->count - 1) : SECOND_NS);
}

void replay_limit(struct replay *r, uint64_t count)
{
	if (count < r->count)
		r->count = (uint32_t)count;
	replay_set_span(r);
}

void replay_pace(struct replay *r, enum arrival arrival, double rate, uint64_t seed)
{
	struct pacing pacing;

	pacing_start(&pacing, arrival, rate, 0, 0, PACING_NEVER, UINT64_MAX, random_begin(seed, 0, 3));
	for (uint32_t i = 0; i < r->count; i++) {
		r->records[i].due_ns = pacing.due_ns;
		pacing_take(&pacing);
	}
	r->timed = r->paced = true;
	r->speed = 1;
	replay_set_span(r);
}

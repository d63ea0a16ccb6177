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

#include "loadgen/command/command.h"
#include "replay_store.h"

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
	struct replay_file *grown = realloc(s->files, (s->file_count + 1) * sizeof(*grown));
	int rc = grown ? 0 : -ENOMEM;

	if (grown) {
		s->files = grown;
		rc = file_open(&grown[s->file_count++], path);
	}
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

/* SPDX-License-Identifier: MIT */
/* Gathers records into blocks. append.h writes them; queue.h does so in a separate thread if wanted. There is
 * a buffer per kind, because records of one kind compress well together and interleaved ones don't. */
#include "recording.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "append.h"
#include "layout.h"
#include "queue.h"

enum { BUFFER_BYTES = 64 << 10 };

struct buffer {
	uint8_t *bytes;
	uint32_t record_size, count, room; /* room: in records */
};

struct ft_writer {
	pthread_mutex_t lock; /* protects the buffers; without a queue also the file */
	struct ft_file file;
	struct ft_queue *queue; /* NULL: the calling thread waits for the disk */
	struct buffer buffers[FT_BLOCK_KINDS];
};

/* Whether nothing more is written: in a recording of one file, its first error is the end. */
static int ended(const struct ft_writer *w)
{
	return w->file.goes_on ? 0 : ft_writer_error(w);
}

/* Passes a block on. */
static int emit(struct ft_writer *w, struct ft_block_header *header, const void *payload)
{
	static const struct ft_cover told_by_records = {0};

	return w->queue ? ft_queue_put(w->queue, header, told_by_records, payload, true)
			: ft_file_append(&w->file, header, told_by_records, payload, true);
}

static int flush_kind(struct ft_writer *w, unsigned kind)
{
	struct buffer *b = &w->buffers[kind];
	struct ft_block_header header = {
	    .kind = (uint16_t)kind,
	    .record_size = b->record_size,
	    .count = b->count,
	    .raw_bytes = b->count * b->record_size,
	};

	if (!b->count)
		return 0;
	b->count = 0;
	return emit(w, &header, b->bytes);
}

static int flush_all(struct ft_writer *w)
{
	for (unsigned kind = 0; kind < FT_BLOCK_KINDS && !ended(w); kind++)
		flush_kind(w, kind);
	return ended(w);
}

static void free_writer(struct ft_writer *w)
{
	for (unsigned kind = 0; kind < FT_BLOCK_KINDS; kind++)
		free(w->buffers[kind].bytes);
	ft_file_free(&w->file);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int make_writer(struct ft_writer **out)
{
	struct ft_writer *w = calloc(1, sizeof(*w));

	*out = w;
	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	w->file.fd = -1;
	for (unsigned kind = 0; kind < FT_BLOCK_KINDS; kind++) {
		struct buffer *b = &w->buffers[kind];
		b->record_size = ft_record_size(kind);
		if (!b->record_size || kind == FT_BLOCK_INDEX || kind == FT_BLOCK_TRAILER)
			continue; /* only closing writes these two */
		b->room = BUFFER_BYTES / b->record_size;
		b->bytes = malloc(BUFFER_BYTES);
		if (!b->bytes)
			return -ENOMEM;
	}
	return 0;
}

/* The result so far, or nothing after an error. */
static int made(struct ft_writer **out, int rc)
{
	if (rc && *out) {
		free_writer(*out);
		*out = NULL;
	}
	return rc;
}

int ft_writer_open(struct ft_writer **out, const char *path, const char *manifest)
{
	int rc = make_writer(out);

	if (!rc)
		rc = ft_file_open(&(*out)->file, path);
	if (!rc)
		rc = ft_writer_json(*out, FT_BLOCK_MANIFEST, manifest);
	return made(out, rc);
}

int ft_writer_open_first(struct ft_writer **out, int dir, const char *name, const char *manifest)
{
	int rc = make_writer(out);

	if (!rc)
		rc = ft_file_prepare(&(*out)->file);
	if (!rc)
		rc = ft_file_next(&(*out)->file, dir, name, manifest, NULL);
	if (!rc)
		(*out)->file.goes_on = true;
	return made(out, rc);
}

struct next_file {
	struct ft_writer *w;
	int dir;
	char *name, *manifest, *summary;
};

static void free_next(struct next_file *n)
{
	free(n->name);
	free(n->manifest);
	free(n->summary);
	free(n);
}

/* A job for the queue's thread. A failure is the file's error. */
static void begin_next(void *arg)
{
	struct next_file *n = arg;

	ft_file_next(&n->w->file, n->dir, n->name, n->manifest, n->summary);
	free_next(n);
}

int ft_writer_next(struct ft_writer *w, int dir, const char *name, const char *manifest, const char *summary)
{
	struct next_file *n = calloc(1, sizeof(*n));
	int rc = -ENOMEM;

	if (!n)
		return -ENOMEM;
	*n = (struct next_file){w, dir, strdup(name), strdup(manifest), strdup(summary)};
	pthread_mutex_lock(&w->lock);
	flush_all(w);
	if (n->name && n->manifest && n->summary)
		rc = w->queue ? ft_queue_run(w->queue, begin_next, n, true) : (begin_next(n), 0);
	pthread_mutex_unlock(&w->lock);
	if (rc)
		free_next(n);
	return rc;
}

int ft_writer_then(struct ft_writer *w, void (*job)(void *arg), void *arg)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->queue)
		rc = ft_queue_run(w->queue, job, arg, false);
	else
		job(arg);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

uint32_t ft_writer_files(const struct ft_writer *w)
{
	return __atomic_load_n(&w->file.files, __ATOMIC_RELAXED);
}

int ft_writer_record(struct ft_writer *w, enum ft_block_kind kind, const void *record)
{
	struct buffer *b = &w->buffers[(unsigned)kind < FT_BLOCK_KINDS ? kind : 0];
	int rc;

	if (!b->room)
		return -EINVAL;
	pthread_mutex_lock(&w->lock);
	rc = ended(w);
	if (!rc) {
		memcpy(b->bytes + (size_t)b->count * b->record_size, record, b->record_size);
		if (++b->count == b->room)
			rc = flush_kind(w, kind);
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_json(struct ft_writer *w, enum ft_block_kind kind, const char *json)
{
	size_t bytes = strlen(json);
	struct ft_block_header header = {.kind = (uint16_t)kind, .count = 1, .raw_bytes = (uint32_t)bytes};
	int rc;

	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	pthread_mutex_lock(&w->lock);
	rc = flush_all(w);
	if (!rc)
		rc = emit(w, &header, json);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_block(struct ft_writer *w, enum ft_block_kind kind, uint32_t record_size, uint32_t count,
		    const void *payload, size_t bytes)
{
	struct ft_block_header header = {
	    .kind = (uint16_t)kind,
	    .record_size = record_size,
	    .count = count,
	    .raw_bytes = (uint32_t)bytes,
	};
	int rc;

	if (kind == FT_BLOCK_REQUEST)
		return ft_writer_requests(w, 1, count, (struct ft_cover){0}, payload, bytes);
	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	if (record_size != 0 ? (uint64_t)record_size * count != bytes : ft_record_size(kind) != 0)
		return -EINVAL;
	pthread_mutex_lock(&w->lock);
	rc = emit(w, &header, payload);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* Request columns are stored uncompressed (requests.c explains why), so load threads compute their hashes in
 * parallel and wait for each other only while the kernel takes the bytes. */
int ft_writer_requests(struct ft_writer *w, uint8_t version, uint32_t count, struct ft_cover cover,
		       const void *payload, size_t bytes)
{
	struct ft_block_header header = {
	    .kind = FT_BLOCK_REQUEST,
	    .version = version,
	    .count = count,
	    .raw_bytes = (uint32_t)bytes,
	};
	int rc;

	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	header.payload_xxh32 = XXH32(payload, bytes, 0);
	pthread_mutex_lock(&w->lock);
	rc = w->queue ? ft_queue_put(w->queue, &header, cover, payload, false)
		      : ft_file_append(&w->file, &header, cover, payload, false);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_flush(struct ft_writer *w)
{
	int rc;

	pthread_mutex_lock(&w->lock);
	rc = flush_all(w);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_background(struct ft_writer *w, size_t bytes)
{
	int rc;

	pthread_mutex_lock(&w->lock);
	rc = w->queue ? 0 : ft_queue_start(&w->queue, &w->file, bytes);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

void ft_writer_patient(struct ft_writer *w)
{
	if (w->queue)
		ft_queue_patient(w->queue);
}

int ft_writer_drain(struct ft_writer *w)
{
	ft_writer_flush(w);
	if (w->queue)
		ft_queue_drain(w->queue);
	return ft_writer_error(w);
}

uint64_t ft_writer_lost(struct ft_writer *w)
{
	return w->queue ? ft_queue_lost(w->queue) : 0;
}

int ft_writer_error(const struct ft_writer *w)
{
	return ft_file_error(&w->file);
}

uint64_t ft_writer_bytes(const struct ft_writer *w)
{
	return __atomic_load_n(&w->file.offset, __ATOMIC_RELAXED);
}

int ft_writer_close(struct ft_writer *w, const char *summary)
{
	int rc;

	if (!w)
		return 0;
	ft_writer_patient(w);
	ft_writer_flush(w);
	ft_queue_end(w->queue);
	w->queue = NULL;
	rc = ft_file_end(&w->file, summary);
	free_writer(w);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/* A list of copied blocks under one lock, which is never held during disk writes. */
#include "queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "recording.h"

struct queued {
	struct queued *next;
	struct ft_block_header header;
	struct ft_cover cover;
	bool pack, renews;
	void (*job)(void *arg); /* NULL: a block */
	void *arg;
	uint8_t payload[];
};

/* Dropped records of a kind since the last block that was not dropped. */
struct lost {
	uint64_t count, start_ns, end_ns;
};

struct ft_queue {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, written;
	struct ft_file *file;
	struct queued *first, **last;
	size_t bytes; /* queued or being written */
	size_t limit;
	struct lost lost[FT_BLOCK_KINDS];
	uint64_t all_lost;
	uint32_t renewals; /* queued: the file's error does not apply to blocks after it */
	bool begun, patient, ending;
};

/* A block's size in memory; for a job the header is empty. */
static size_t room_of(const struct ft_block_header *header)
{
	return sizeof(struct queued) + header->raw_bytes;
}

/* Blocks that other records depend on. There are too few of them to fill the queue. */
static bool is_vital(const struct ft_block_header *header)
{
	return !header->record_size || header->kind == FT_BLOCK_THREAD || header->kind == FT_BLOCK_DROP ||
	       header->kind == FT_BLOCK_CLOCK;
}

static bool has_room(const struct ft_queue *q, const struct ft_block_header *header)
{
	size_t limit = q->limit + (is_vital(header) ? q->limit / 2 : 0);

	return q->bytes == 0 || q->bytes + room_of(header) <= limit;
}

static void append(struct ft_queue *q, struct queued *b)
{
	*q->last = b;
	q->last = &b->next;
	q->bytes += room_of(&b->header);
	pthread_cond_signal(&q->filled);
}

/* Appends a block. False: out of memory. */
static bool add(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
		const void *payload, bool pack)
{
	struct queued *b = malloc(room_of(header));

	if (!b)
		return false;
	*b = (struct queued){.header = *header, .cover = cover, .pack = pack};
	memcpy(b->payload, payload, header->raw_bytes);
	append(q, b);
	return true;
}

/* From when on records are missing: records that have a duration begin with their begin. A thread's begin may
 * be long ago and does not show when its other records are missing. */
static uint64_t earliest_ns(const struct ft_block_header *header, const void *payload, uint64_t now_ns)
{
	uint64_t earliest = now_ns, start;

	if (header->record_size < sizeof(start) || header->kind == FT_BLOCK_THREAD)
		return now_ns;
	for (uint32_t i = 0; i < header->count; i++) {
		memcpy(&start, (const uint8_t *)payload + (size_t)i * header->record_size, sizeof(start));
		earliest = start < earliest ? start : earliest;
	}
	return earliest;
}

static void lose(struct ft_queue *q, const struct ft_block_header *header, const void *payload)
{
	struct lost *l = &q->lost[header->kind < FT_BLOCK_KINDS ? header->kind : 0];
	uint64_t now_ns = ft_now_ns(), start_ns = earliest_ns(header, payload, now_ns);

	if (!l->count || start_ns < l->start_ns)
		l->start_ns = start_ns;
	l->end_ns = now_ns;
	l->count += header->count;
	q->all_lost += header->count;
}

/* Appends a block for dropped records, if there are any. They stay counted without memory. */
static void add_lost(struct ft_queue *q)
{
	struct ft_drop drops[FT_BLOCK_KINDS];
	struct ft_block_header header = {.kind = FT_BLOCK_DROP, .record_size = sizeof(drops[0])};

	for (uint32_t kind = 0; kind < FT_BLOCK_KINDS; kind++) {
		const struct lost *l = &q->lost[kind];
		if (l->count)
			drops[header.count++] = (struct ft_drop){.start_ns = l->start_ns,
								 .end_ns = l->end_ns,
								 .count = l->count,
								 .source = FT_DROP_DISK,
								 .detail = kind};
	}
	header.raw_bytes = header.count * header.record_size;
	if (header.count && add(q, &header, (struct ft_cover){0}, drops, true))
		memset(q->lost, 0, sizeof(q->lost));
}

int ft_queue_put(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
		 const void *payload, bool pack)
{
	int rc = ft_file_error(q->file);

	if (rc && !q->file->goes_on)
		return rc;
	pthread_mutex_lock(&q->lock);
	if (rc && !q->renewals) {
		lose(q, header, payload);
		pthread_mutex_unlock(&q->lock);
		return rc;
	}
	while (q->patient && !has_room(q, header))
		pthread_cond_wait(&q->written, &q->lock);
	if (has_room(q, header)) {
		/* Vital blocks continue while others are dropped: one drop block for each of them would only
		 * fill the queue. */
		if (!is_vital(header))
			add_lost(q);
		if (!add(q, header, cover, payload, pack))
			lose(q, header, payload);
	} else {
		lose(q, header, payload);
	}
	pthread_mutex_unlock(&q->lock);
	return 0;
}

int ft_queue_run(struct ft_queue *q, void (*job)(void *arg), void *arg, bool renews)
{
	struct queued *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->job = job;
	b->arg = arg;
	b->renews = renews;
	pthread_mutex_lock(&q->lock);
	q->renewals += renews;
	append(q, b);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static struct queued *take(struct ft_queue *q)
{
	struct queued *b = q->first;

	if (b) {
		q->first = b->next;
		q->last = q->first ? q->last : &q->first;
	}
	return b;
}

static void *write_blocks(void *arg)
{
	struct ft_queue *q = arg;

	pthread_setname_np(pthread_self(), "block-writer");
	pthread_mutex_lock(&q->lock);
	q->begun = true;
	pthread_cond_broadcast(&q->written);
	while (q->first || !q->ending) {
		struct queued *b = take(q);
		if (!b) {
			pthread_cond_wait(&q->filled, &q->lock);
			continue;
		}
		int rc = 0;
		pthread_mutex_unlock(&q->lock);
		if (b->job)
			b->job(b->arg);
		else
			rc = ft_file_append(q->file, &b->header, b->cover, b->payload, b->pack);
		pthread_mutex_lock(&q->lock);
		/* An error stays with the file. If no file follows, it applies to all later blocks. */
		if (rc && q->file->goes_on)
			lose(q, &b->header, b->payload);
		q->renewals -= b->renews;
		q->bytes -= room_of(&b->header);
		free(b);
		pthread_cond_broadcast(&q->written);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* Signals are for other threads, except those caused by this thread's own code: blocking them would be
 * fatal. */
static int start_thread(struct ft_queue *q)
{
	static const int own[] = {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&q->thread, NULL, write_blocks, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void free_queue(struct ft_queue *q)
{
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->filled);
	pthread_cond_destroy(&q->written);
	free(q);
}

int ft_queue_start(struct ft_queue **out, struct ft_file *file, size_t bytes)
{
	struct ft_queue *q = calloc(1, sizeof(*q));
	int rc;

	*out = NULL;
	if (!q)
		return -ENOMEM;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	pthread_cond_init(&q->written, NULL);
	q->file = file;
	q->last = &q->first;
	q->limit = bytes;
	rc = start_thread(q);
	if (rc) {
		free_queue(q);
		return rc;
	}
	pthread_mutex_lock(&q->lock);
	while (!q->begun)
		pthread_cond_wait(&q->written, &q->lock);
	pthread_mutex_unlock(&q->lock);
	*out = q;
	return 0;
}

void ft_queue_patient(struct ft_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->patient = true;
	pthread_mutex_unlock(&q->lock);
}

void ft_queue_drain(struct ft_queue *q)
{
	pthread_mutex_lock(&q->lock);
	add_lost(q);
	while (q->bytes)
		pthread_cond_wait(&q->written, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

uint64_t ft_queue_lost(struct ft_queue *q)
{
	uint64_t lost;

	pthread_mutex_lock(&q->lock);
	lost = q->all_lost;
	pthread_mutex_unlock(&q->lock);
	return lost;
}

void ft_queue_end(struct ft_queue *q)
{
	if (!q)
		return;
	ft_queue_drain(q);
	pthread_mutex_lock(&q->lock);
	q->ending = true;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	free_queue(q);
}

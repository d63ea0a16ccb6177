/* SPDX-License-Identifier: MIT */
/* The request log.
 *
 * The writer thread and its queue. One lock protects both lists. It is taken once per block of 16384
 * requests, and never held while waiting for the disk. */
#include "loadgen/results.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "recording/json_block.h"

/* Which keys the log takes. The threads' blocks arrive up to a second apart, so several seconds are counted
 * at the same time. */
struct logged_keys {
	bool wanted, hash;
	uint8_t secret[32]; /* of the random bytes; never stored */
	uint64_t stored, left_out;
	struct {
		uint64_t second, stored;
	} seconds[8];
};

enum {
	BLOCKS_MIN = 64, /* at 200,000 requests/s, five seconds of a stalled disk */
	BLOCKS_PER_LANE = 16,
	CLOCK_SECONDS = 10,
	WRITER_NICE = 5, /* yields to load threads on the same core, and still keeps up with a busy one */
};

struct request_log {
	struct ft_writer *writer;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, freed;
	struct log_block *blocks;
	struct log_block *spare; /* the most recently used one first: its pages are in the cache */
	struct log_block *full_first, **full_last;
	unsigned block_count;
	bool writing, closing;
	struct logged_keys keys; /* the writer thread's; left_out needs the lock */
};

/* Once per second, whatever else there is to do: limits the loss of a kill -9. */
static void keep_up(struct request_log *log, struct timespec *next, unsigned *seconds)
{
	struct ft_clock c;

	if ((*seconds)++ % CLOCK_SECONDS == 0) {
		ft_clock_read(&c);
		ft_writer_record(log->writer, FT_BLOCK_CLOCK, &c);
	}
	ft_writer_flush(log->writer);
	clock_gettime(CLOCK_MONOTONIC, next);
	next->tv_sec++;
}

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* The next block to write, or NULL: time to flush, or to end. Called with the lock held. */
static struct log_block *next_block(struct request_log *log, const struct timespec *until)
{
	struct timespec now;
	struct log_block *b;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!before(&now, until))
		return NULL;
	while (!log->full_first && !log->closing)
		if (pthread_cond_timedwait(&log->filled, &log->lock, until))
			return NULL;
	b = log->full_first;
	if (b)
		log->full_first = b->next;
	if (!log->full_first)
		log->full_last = &log->full_first;
	return b;
}

/* Random bytes in place of others, the same ones for the same. The secret is not stored. */
static void hide_key(const struct logged_keys *keys, const struct slow_key *key, char *to, size_t size)
{
	unsigned char hidden[EVP_MAX_MD_SIZE] = {0};
	uint64_t number;

	HMAC(EVP_sha256(), keys->secret, sizeof(keys->secret), (const unsigned char *)key->text, key->bytes,
	     hidden, NULL);
	memcpy(&number, hidden, sizeof(number));
	snprintf(to, size, "key-%016llx", (unsigned long long)number);
}

/* The same note as the recorder's, which knows the thread of the server instead of the connection. */
static void write_key(struct request_log *log, const struct slow_key *key)
{
	struct logged_keys *keys = &log->keys;
	const uint64_t second = key->end_ns / 1000000000;
	const size_t place = second % (sizeof(keys->seconds) / sizeof(*keys->seconds));
	char text[32];
	json_t *note;

	if (keys->seconds[place].second != second) {
		keys->seconds[place].second = second;
		keys->seconds[place].stored = 0;
	}
	if (keys->seconds[place].stored == LOG_KEYS) {
		pthread_mutex_lock(&log->lock);
		keys->left_out++;
		pthread_mutex_unlock(&log->lock);
		return;
	}
	keys->seconds[place].stored++;
	keys->stored++;
	note = json_note(key->sent_ns, "key");
	json_put_count(note, "connection", key->connection);
	json_put_count(note, "op", key->operation);
	json_put_count(note, "took_ns", key->end_ns - key->sent_ns);
	if (keys->hash) {
		hide_key(keys, key, text, sizeof(text));
		json_put_text(note, "key", text);
	} else {
		json_put(note, "key", json_text(key->text, key->bytes));
		if (key->begin)
			json_put_truth(note, "begin", true);
	}
	write_json_note(log->writer, note);
}

static void note_keys(struct request_log *log)
{
	json_t *note = json_note(ft_now_ns(), "keys");

	json_put_count(note, "keys", log->keys.stored);
	json_put_count(note, "keys_left_out", log->keys.left_out);
	write_json_note(log->writer, note);
}

static void *write_blocks(void *arg)
{
	struct request_log *log = arg;
	struct sched_param none = {0};
	struct timespec next = {0};
	unsigned seconds = 0;
	struct log_block *b;

	/* Neither is essential. On Linux each thread has its own nice value. */
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICE);
	pthread_setname_np(pthread_self(), "log-writer");
	pthread_mutex_lock(&log->lock);
	while (!log->closing || log->full_first) {
		b = next_block(log, &next);
		log->writing = b != NULL;
		pthread_mutex_unlock(&log->lock);
		if (!b) {
			keep_up(log, &next, &seconds);
			pthread_mutex_lock(&log->lock);
			continue;
		}
		/* The writer keeps errors. */
		if (b->drop.count)
			ft_writer_record(log->writer, FT_BLOCK_DROP, &b->drop);
		b->drop.count = 0;
		for (uint32_t i = 0; i < b->socket_count; i++)
			ft_writer_record(log->writer, FT_BLOCK_CONNECTION, &b->sockets[i]);
		b->socket_count = 0;
		for (uint32_t i = 0; i < b->tcp_count; i++)
			ft_writer_record(log->writer, FT_BLOCK_LOAD_TCP, &b->tcp[i]);
		b->tcp_count = 0;
		for (uint32_t i = 0; i < b->key_count; i++)
			write_key(log, &b->keys[i]);
		b->key_count = 0;
		ft_requests_flush(&b->requests, log->writer);
		pthread_mutex_lock(&log->lock);
		log->writing = false;
		b->next = log->spare;
		log->spare = b;
		pthread_cond_broadcast(&log->freed);
	}
	pthread_mutex_unlock(&log->lock);
	return NULL;
}

static void free_log(struct request_log *log)
{
	for (unsigned i = 0; log->blocks && i < log->block_count; i++)
		ft_requests_free(&log->blocks[i].requests);
	free(log->blocks);
	pthread_mutex_destroy(&log->lock);
	pthread_cond_destroy(&log->filled);
	pthread_cond_destroy(&log->freed);
	free(log);
}

int request_log_open(struct request_log **out, const char *path, const char *manifest, unsigned lanes)
{
	struct request_log *log = calloc(1, sizeof(*log));
	pthread_condattr_t attributes;
	int rc;

	*out = NULL;
	if (!log)
		return -ENOMEM;
	pthread_mutex_init(&log->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&log->filled, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_cond_init(&log->freed, NULL);
	log->full_last = &log->full_first;
	log->block_count = lanes * BLOCKS_PER_LANE < BLOCKS_MIN ? BLOCKS_MIN : lanes * BLOCKS_PER_LANE;
	log->blocks = calloc(log->block_count, sizeof(*log->blocks));
	rc = log->blocks ? 0 : -ENOMEM;
	for (unsigned i = 0; i < log->block_count && rc == 0; i++) {
		rc = ft_requests_init(&log->blocks[i].requests);
		log->blocks[i].next = log->spare;
		log->spare = &log->blocks[i];
	}
	if (rc == 0)
		rc = ft_writer_open(&log->writer, path, manifest);
	if (rc == 0) {
		rc = -pthread_create(&log->thread, NULL, write_blocks, log);
		if (rc)
			ft_writer_close(log->writer, NULL);
	}
	if (rc) {
		free_log(log);
		return rc;
	}
	*out = log;
	return 0;
}

int request_log_keys(struct request_log *log, bool hash)
{
	log->keys.wanted = true;
	log->keys.hash = hash;
	return getrandom(log->keys.secret, sizeof(log->keys.secret), 0) == sizeof(log->keys.secret) ? 0
												    : -EIO;
}

struct ft_writer *request_log_writer(struct request_log *log)
{
	return log->writer;
}

int request_log_error(const struct request_log *log)
{
	return ft_writer_error(log->writer);
}

void request_log_drain(struct request_log *log)
{
	pthread_mutex_lock(&log->lock);
	while (log->full_first || log->writing)
		pthread_cond_wait(&log->freed, &log->lock);
	pthread_mutex_unlock(&log->lock);
}

int request_log_close(struct request_log *log, const char *summary)
{
	int rc;

	pthread_mutex_lock(&log->lock);
	log->closing = true;
	pthread_cond_signal(&log->filled);
	pthread_mutex_unlock(&log->lock);
	pthread_join(log->thread, NULL);
	if (log->keys.wanted)
		note_keys(log);
	rc = ft_writer_close(log->writer, summary);
	free_log(log);
	return rc;
}

void log_lane_open(struct log_lane *lane, struct request_log *log)
{
	*lane = (struct log_lane){.log = log};
}

static struct ft_drop take_drops(struct log_lane *lane, uint64_t now_ns)
{
	struct ft_drop d = {
	    .start_ns = lane->drop_start_ns,
	    .end_ns = now_ns,
	    .count = lane->drops,
	    .source = FT_DROP_LOG,
	};

	lane->all_drops += lane->drops;
	lane->drops = 0;
	return d;
}

/* Queues the open block, if it is not empty, and takes a spare, if there is one. */
void log_lane_next(struct log_lane *lane, uint64_t now_ns)
{
	struct request_log *log = lane->log;

	if (!lane->open && lane->drops == 0)
		lane->drop_start_ns = now_ns;
	pthread_mutex_lock(&log->lock);
	if (lane->open) {
		lane->open->next = NULL;
		*log->full_last = lane->open;
		log->full_last = &lane->open->next;
		pthread_cond_signal(&log->filled);
	}
	while (!log->spare && lane->waits_for_spare)
		pthread_cond_wait(&log->freed, &log->lock);
	lane->open = log->spare;
	if (lane->open)
		log->spare = lane->open->next;
	pthread_mutex_unlock(&log->lock);
	if (lane->open && lane->drops)
		lane->open->drop = take_drops(lane, now_ns);
}

void log_socket(struct log_lane *lane, const struct ft_connection *c, uint64_t now_ns)
{
	if (!lane->log)
		return;
	if (!lane->open || lane->open->socket_count == LOG_SOCKETS)
		log_lane_next(lane, now_ns);
	if (lane->open)
		lane->open->sockets[lane->open->socket_count++] = *c;
	else
		lane->drops++;
}

struct ft_load_tcp *log_tcp_room(struct log_lane *lane)
{
	struct log_block *b = lane->log ? lane->open : NULL;

	return b && b->tcp_count < LOG_TCP ? &b->tcp[b->tcp_count] : NULL;
}

void log_tcp(struct log_lane *lane)
{
	lane->open->tcp_count++;
}

void log_key(struct log_lane *lane, const struct slow_key *key)
{
	struct log_block *b = lane->open;

	if (b && b->key_count < LOG_KEYS)
		b->keys[b->key_count++] = *key;
	else
		lane->keys_left_out++;
}

void log_lane_flush(struct log_lane *lane, uint64_t now_ns)
{
	if (lane->log && lane->open &&
	    (lane->open->requests.count || lane->open->socket_count || lane->open->tcp_count ||
	     lane->open->key_count))
		log_lane_next(lane, now_ns);
}

void log_lane_close(struct log_lane *lane, uint64_t now_ns)
{
	struct log_block *b;
	struct ft_drop d;

	if (!lane->log)
		return;
	log_lane_flush(lane, now_ns);
	if (lane->drops) {
		d = take_drops(lane, now_ns);
		ft_writer_record(lane->log->writer, FT_BLOCK_DROP, &d);
	}
	b = lane->open;
	lane->open = NULL;
	pthread_mutex_lock(&lane->log->lock);
	lane->log->keys.left_out += lane->keys_left_out;
	lane->keys_left_out = 0;
	if (b) {
		b->next = lane->log->spare;
		lane->log->spare = b;
	}
	pthread_mutex_unlock(&lane->log->lock);
}

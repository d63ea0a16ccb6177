// SPDX-License-Identifier: MIT
// A client of hiredis that combines commands in the ways a program can, for bench/batches: report A sent ten
// commands at a time with a C client and gained 10 %, and asks whether it "calls it wrongly".
//
//   batch_client SOCKET WAY BATCH THREADS SECONDS      prints the SETs per second
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct way {
	const char *name;
	bool reads;  // the replies
	bool each;   // flushes (and reads) after each command, although it counts to BATCH
	bool shared; // all threads use one connection, under a lock
};

static const struct way ways[] = {
    {"never-reads", false, false, false},
    {"never-reads-flush-each", false, true, false},
    {"reads", true, false, false},
    {"reads-each", true, true, false},
    {"shared-never-reads", false, false, true},
    {"shared-reads", true, false, true},
};

static const struct way *way;
static const char *path;
static int batch;
static double seconds;
static redisContext *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static redisContext *connected(void)
{
	redisContext *c = redisConnectUnix(path);
	if (!c || c->err) {
		fprintf(stderr, "cannot connect to %s: %s\n", path, c ? c->errstr : "no memory");
		exit(1);
	}
	return c;
}

static void flush_and_read(redisContext *c, int commands)
{
	int done = 0;
	bool failed = false;
	while (!done && !failed)
		failed = redisBufferWrite(c, &done) != REDIS_OK;
	for (int i = 0; i < commands && way->reads && !failed; i++) {
		void *reply = NULL;
		failed = redisGetReply(c, &reply) != REDIS_OK;
		freeReplyObject(reply);
	}
	if (failed) {
		fprintf(stderr, "the connection failed: %s\n", c->errstr);
		exit(1);
	}
}

static void send_batch(redisContext *c, long first)
{
	for (int i = 0; i < batch; i++) {
		redisAppendCommand(c, "SET key:%012ld %s", (first + i) % 100000, "abcdefghijklmnopqrst");
		if (way->each)
			flush_and_read(c, 1);
	}
	if (!way->each)
		flush_and_read(c, batch);
}

static void *send_all(void *count)
{
	redisContext *c = way->shared ? shared : connected();
	const double end = now_s() + seconds;
	long sent = 0;
	for (; now_s() < end; sent += batch) {
		if (way->shared)
			pthread_mutex_lock(&lock);
		send_batch(c, sent);
		if (way->shared)
			pthread_mutex_unlock(&lock);
	}
	*(long *)count = sent;
	return NULL;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways && argc == 6; i++)
		if (!strcmp(argv[2], ways[i].name))
			way = &ways[i];
	const int threads = way ? atoi(argv[4]) : 0;
	if (threads < 1 || threads > 1000) {
		fprintf(stderr, "usage: batch_client SOCKET WAY BATCH THREADS SECONDS\n");
		return 2;
	}
	path = argv[1];
	batch = atoi(argv[3]);
	seconds = atof(argv[5]);
	if (way->shared)
		shared = connected();
	pthread_t thread[1000];
	long count[1000] = {0}, all = 0;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, send_all, &count[i]) != 0)
			return 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		all += count[i];
	}
	printf("%.0f\n", all / seconds);
	return 0;
}

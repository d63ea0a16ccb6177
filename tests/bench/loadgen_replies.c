/* SPDX-License-Identifier: MIT */
/* What finding a reply's end costs: our scanner against hiredis' reader, with and without its objects, on a
 * read buffer of 16 replies as a pipelined connection gets them. Prints ns per reply.
 *
 *   build/bin/bench_loadgen_replies [million replies]
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loadgen/resp.h"

enum { BATCH = 16 };

/* CPU time: the machine may have other things to do. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double ns_each(uint64_t start_ns, long rounds)
{
	return (double)(cpu_ns() - start_ns) / (double)rounds / BATCH;
}

static double ours(const char *buffer, size_t length, long rounds)
{
	struct resp_scanner s = {0};
	uint64_t start = cpu_ns();
	long found = 0;

	for (long i = 0; i < rounds; i++) {
		const char *at = buffer;
		while (at < buffer + length)
			found += resp_scan(&s, &at, buffer + length);
	}
	return found == rounds * BATCH ? ns_each(start, rounds) : -1;
}

static double hiredis(const char *buffer, size_t length, long rounds, int objects)
{
	redisReader *reader = redisReaderCreate();
	uint64_t start = cpu_ns();
	long found = 0;

	if (!objects)
		reader->fn = NULL;
	for (long i = 0; i < rounds; i++) {
		void *reply = NULL;
		redisReaderFeed(reader, buffer, length);
		while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
			found++;
			if (objects)
				freeReplyObject(reply);
			reply = NULL;
		}
	}
	redisReaderFree(reader);
	return found == rounds * BATCH ? ns_each(start, rounds) : -1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *reply;
	} kinds[] = {
	    {"+OK", "+OK\r\n"},
	    {"16-byte value", "$16\r\nabcdefghijklmnop\r\n"},
	    {"nil", "$-1\r\n"},
	    {"integer", ":1234567\r\n"},
	    {"error", "-ERR unknown command\r\n"},
	    {"10 elements", "*10\r\n$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n"
			    "$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n"},
	};
	long rounds = (argc > 1 ? atol(argv[1]) : 4) * 1000000 / BATCH;
	char buffer[BATCH * 256];

	printf("%-16s%12s%20s%20s   (ns per reply)\n", "reply", "scanner", "hiredis, no object",
	       "hiredis, objects");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t length = 0;
		for (int k = 0; k < BATCH; k++)
			length +=
			    (size_t)snprintf(buffer + length, sizeof(buffer) - length, "%s", kinds[i].reply);
		printf("%-16s%12.1f", kinds[i].name, ours(buffer, length, rounds));
		printf("%20.1f", hiredis(buffer, length, rounds, 0));
		printf("%20.1f\n", hiredis(buffer, length, rounds, 1));
	}
	return 0;
}

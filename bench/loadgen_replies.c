/* SPDX-License-Identifier: MIT */
/* What it costs to find a reply's end: our scanner against hiredis' reader, with and without its objects, and
 * our scanners of memcached's replies. The read buffer holds 16 replies, as on a pipelined connection. Prints
 * ns per reply.
 *
 *   build/bin/bench_loadgen_replies [million replies]
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loadgen/protocol.h"

enum { BATCH = 16 };

/* CPU time, because the machine may be busy with other work. */
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

/* A scanner's loop over the buffer, as connections have it. A macro, so that no scanner is called by a
 * pointer. */
#define BENCH(name, scanner, scan)                                                                           \
	static double name(const char *buffer, size_t length, long rounds)                                   \
	{                                                                                                    \
		struct scanner s = {0};                                                                      \
		uint64_t start = cpu_ns();                                                                   \
		long found = 0;                                                                              \
		for (long i = 0; i < rounds; i++) {                                                          \
			const char *at = buffer;                                                             \
			while (at < buffer + length) {                                                       \
				int result = scan(&s, &at, buffer + length);                                 \
				if (result < 0)                                                              \
					return -1;                                                           \
				found += result;                                                             \
			}                                                                                    \
		}                                                                                            \
		return found == rounds * BATCH ? ns_each(start, rounds) : -1;                                \
	}

BENCH(redis, resp_scanner, resp_scan)
BENCH(memcached_text, memcached_text_scanner, memcached_text_scan)
BENCH(memcached_binary, memcached_binary_scanner, memcached_binary_scan)

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

/* Fills the buffer with one batch of the reply. Returns their length. */
static size_t fill(char *buffer, const char *reply, size_t length)
{
	for (int i = 0; i < BATCH; i++)
		memcpy(buffer + (size_t)i * length, reply, length);
	return BATCH * length;
}

/* A binary reply with an empty key. If it has a value, 4 bytes of flags come before it. */
static size_t binary_reply(char *reply, uint8_t status, const char *value)
{
	size_t body = strlen(value) + (*value && !status ? 4 : 0);

	memset(reply, 0, MEMCACHED_BINARY_HEADER + 4);
	reply[0] = (char)0x81;
	reply[4] = *value && !status ? 4 : 0;
	reply[7] = (char)status;
	reply[11] = (char)body;
	memcpy(reply + MEMCACHED_BINARY_HEADER + body - strlen(value), value, strlen(value));
	return MEMCACHED_BINARY_HEADER + body;
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
	static const struct {
		const char *name, *reply;
	} texts[] = {
	    {"STORED", "STORED\r\n"},
	    {"16-byte hit", "VALUE key:000000000001 0 16\r\nabcdefghijklmnop\r\nEND\r\n"},
	    {"with unique", "VALUE key:000000000001 0 16 1234567\r\nabcdefghijklmnop\r\nEND\r\n"},
	    {"miss", "END\r\n"},
	    {"number", "1234567\r\n"},
	    {"error", "SERVER_ERROR out of memory storing object\r\n"},
	    {"3 values", "VALUE key:000000000001 0 3\r\nabc\r\nVALUE key:000000000002 0 3\r\nabc\r\n"
			 "VALUE key:000000000003 0 3\r\nabc\r\nEND\r\n"},
	};
	static const struct {
		const char *name, *value;
		uint8_t status;
	} binaries[] = {{"stored", "", 0}, {"16-byte hit", "abcdefghijklmnop", 0}, {"miss", "Not found", 1}};
	long rounds = (argc > 1 ? atol(argv[1]) : 4) * 1000000 / BATCH;
	char buffer[BATCH * 256];

	printf("%-16s%12s%20s%20s   (ns per reply)\n", "reply", "scanner", "hiredis, no object",
	       "hiredis, objects");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t length = fill(buffer, kinds[i].reply, strlen(kinds[i].reply));

		printf("%-16s%12.1f", kinds[i].name, redis(buffer, length, rounds));
		printf("%20.1f", hiredis(buffer, length, rounds, 0));
		printf("%20.1f\n", hiredis(buffer, length, rounds, 1));
	}
	printf("\nmemcached, text\n");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		printf("%-16s%12.1f\n", texts[i].name,
		       memcached_text(buffer, fill(buffer, texts[i].reply, strlen(texts[i].reply)), rounds));
	printf("\nmemcached, binary\n");
	for (size_t i = 0; i < sizeof(binaries) / sizeof(*binaries); i++) {
		char reply[256];
		size_t length = binary_reply(reply, binaries[i].status, binaries[i].value);

		printf("%-16s%12.1f\n", binaries[i].name,
		       memcached_binary(buffer, fill(buffer, reply, length), rounds));
	}
	return 0;
}

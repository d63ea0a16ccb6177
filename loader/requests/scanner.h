/* SPDX-License-Identifier: MIT */
/* A scanner of requests as they arrive at a server: finds where each one ends, its command, and what the
 * command means for its reply. Bytes come from the kernel in pieces of any length, and the middle of large
 * values may be missing. The scanner allocates nothing and stores no keys or values: it keeps a few bytes of
 * state per connection. It accepts any input, and refuses what the server would refuse.
 *
 *	protocol	requests
 *	Redis		arrays of strings (RESP2 and RESP3); inline commands
 *	memcached	text and meta commands; binary requests
 *
 * In three points it is stricter than the servers, so that a lost position is noticed soon. Numbers and
 *values end with CRLF. A line of memcached has no CR except before its LF. The first word of a line is
 *printable and begins with a letter. Clients do not violate this. */
#ifndef FORKTAIL_LOADER_SCANNER_H
#define FORKTAIL_LOADER_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SCAN_EITHER is for proxies: each request's first bytes decide. A line that begins with one of memcached's
 * commands in lower case is memcached's, other lines are inline commands of Redis. */
enum scan_protocol { SCAN_REDIS, SCAN_MEMCACHED, SCAN_EITHER };

enum {
	SCAN_ARGUMENTS = 2147483647, /* maximum of one request, as in Redis 7 */
	SCAN_VALUE = 512 << 20,	     /* maximum of a Redis argument: the default of proto-max-bulk-len */
	SCAN_LINE = 64 << 10,	     /* maximum of a line, except memcached's lines of many keys */
	SCAN_DATA = 2147483645,	     /* maximum of memcached's data block */
	SCAN_BODY = (1 << 30) + (128 << 10), /* maximum of a binary request's body */
	SCAN_KEY = 64,			     /* hashed bytes of a key */
	SCAN_WORD = 24,			     /* kept bytes of a command, an option or a binary header */
};

/* A scanner at the beginning of a stream is all zeros but the protocol. */
struct scanner {
	/* For the whole connection. */
	uint8_t protocol; /* enum scan_protocol */
	uint8_t replies;  /* as CLIENT REPLY has set them */
	bool lost;	  /* the position in the stream is unknown */
	/* For one request: all zeros at its beginning. */
	uint8_t state;
	uint8_t command;
	uint8_t flags;	     /* enum scanned_flags */
	uint8_t option;	     /* what the arguments so far mean */
	uint8_t word_state;  /* of a line: inside a word, inside quotes */
	uint8_t digits;	     /* of a number */
	uint8_t chunk_bytes; /* in `chunk` */
	uint8_t key_left;    /* bytes of this argument still to hash */
	bool negative;	     /* the number is */
	bool gathers;	     /* this argument's first bytes go into `word` */
	bool memcached;	     /* the line is one of memcached */
	bool undecided;	     /* its first word decides that */
	bool capital;	     /* its first word has capital letters */
	bool unhashed;	     /* bytes of the key were not captured */
	uint16_t properties; /* enum command_flags of this protocol */
	uint32_t extras;     /* bytes of a binary request before its key */
	uint32_t count;	     /* of arguments, or bytes of a line */
	uint64_t left;	     /* the number being read; then bytes of the value that follow */
	uint64_t length;     /* of the argument so far */
	uint64_t arguments;  /* complete ones, with the command */
	uint64_t bytes;	     /* of the request in earlier pieces */
	uint64_t hash;
	uint64_t chunk; /* bytes of the key that do not fill it */
	uint8_t word[SCAN_WORD];
};

enum scanned_flags {
	SCANNED_BLOCKING = 1,  /* may wait for data or replicas, as BLPOP and WAIT do */
	SCANNED_PUSHES = 2,    /* begins writes without requests: subscriptions, MONITOR, a replica's link */
	SCANNED_NO_REPLY = 4,  /* no reply follows, or only for some results (memcached's quiet commands) */
	SCANNED_REPLY_OFF = 8, /* CLIENT REPLY OFF */
	SCANNED_MULTI = 16,    /* MULTI */
	SCANNED_EXEC = 32,     /* EXEC, DISCARD, RESET */
	SCANNED_TRACKING = 64, /* CLIENT TRACKING ON: the server may push invalidations */
};

/* A request. The scanner remembers CLIENT REPLY OFF and SKIP of a connection: SCANNED_NO_REPLY includes the
 * requests they concern. */
struct scanned {
	uint64_t bytes; /* empty lines and arrays before it are not included */
	/* Identifies the request at a proxy and at the server behind it, if forwarded unchanged: the command,
	 * the number of arguments, their lengths, and the key's first SCAN_KEY bytes. 0: bytes of the key
	 * were not captured. */
	uint64_t hash;
	uint8_t command; /* index of commands.h */
	uint8_t flags;	 /* enum scanned_flags */
};

/* Sets the seed of all hashes. Call it once, before the first scan. */
void scanner_seed(uint64_t seed);

/* Continues scanning from *at. 1: a request is complete, *at is after it, and *out has it. 0: no more bytes
 * (*at == end). -1: not a request; *at is at the offending byte, and the scanner is lost (scanner_lose). */
int scanner_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end, struct scanned *out);

/* Skips bytes of the stream that were not captured. 1: they end where a request ends, and *out has it. 0:
 * they are within a value or end with it. -1: they include other bytes, so that the scanner is lost. */
int scanner_gap(struct scanner *s, uint64_t bytes, struct scanned *out);

/* How many bytes the request still has, if the value at the position is its last part. 0: unknown. */
uint64_t scanner_left(const struct scanner *s);

/* The position in the stream is unknown, for example because the connection is older than the recording.
 * The next byte begins a request or is refused: offer bytes for which scanner_may_begin is true. */
void scanner_lose(struct scanner *s);

/* Whether a lost scanner may resume at this byte. Inline commands of Redis can begin with any letter, so
 * they are not found again: in the middle of a value any text would be one. */
bool scanner_may_begin(enum scan_protocol protocol, uint8_t byte);

#ifdef __cplusplus
}
#endif
#endif

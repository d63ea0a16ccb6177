/* SPDX-License-Identifier: MIT */
/* The state of a request scanner and what it finds: for its callers, and for the files that scan one form of
 * requests each. */
#ifndef FORKTAIL_LOADER_SCAN_TYPES_H
#define FORKTAIL_LOADER_SCAN_TYPES_H

#include <stdbool.h>
#include <stdint.h>

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
	bool lost;	  /* the next request has to begin like one that is common */
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

#endif

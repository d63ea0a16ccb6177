/* SPDX-License-Identifier: MIT */
/* Requests of clients as the kernel sees them: the programs, and the process that finds requests in what
 * was read and written. */
#ifndef FORKTAIL_LOADER_REQUESTS_H
#define FORKTAIL_LOADER_REQUESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/request_events.h"
#include "common/commands.h"
#include "common/text.h"
#include "loader/system.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A scanner of requests as they arrive at a server: finds where each one ends, its command, and what the
 * command means for its reply. Bytes come from the kernel in pieces of any length, and the middle of large
 * values may be missing. The scanner allocates nothing and stores no values, and of keys only what
 * scanner_keep_keys says: it keeps a few bytes of state per connection. It accepts any input, and refuses
 * what the server would refuse.
 *
 * 	protocol	requests
 * 	Redis		arrays of strings (RESP2 and RESP3); inline commands
 * 	memcached	text and meta commands; binary requests
 *
 * In three points it is stricter than the servers, so that a lost position is noticed soon. Numbers and
 * values end with CRLF. A line of memcached has no CR except before its LF. The first word of a line is
 * printable and begins with a letter. Clients do not violate this. */

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
	SCAN_TEXT = KEY_BYTES_MOST,	     /* kept bytes of a name or a key */
};

/* What a request's text is, if it has one. */
enum scan_text {
	TEXT_NONE,
	TEXT_KEY,     /* the first bytes of its first key: scanner_keep_keys */
	TEXT_NAME,    /* the connection's name: CLIENT SETNAME, HELLO SETNAME */
	TEXT_LIBRARY, /* CLIENT SETINFO LIB-NAME */
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
	uint8_t key_word;   /* which argument is the first key; 0: none */
	uint8_t text_as;    /* enum scan_text */
	uint8_t text_most;  /* bytes of this argument that belong to the text */
	uint8_t text_bytes; /* so far */
	uint8_t text[SCAN_TEXT];
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
	uint64_t arguments; /* without the command; 0 for a binary one */
	uint8_t command;    /* index of commands.h */
	uint8_t flags;	    /* enum scanned_flags */
	uint8_t text_as;    /* enum scan_text */
	uint8_t text_bytes;
	uint8_t text[SCAN_TEXT]; /* as the client sent it; not set for TEXT_NONE */
};

/* How many bytes of each request's first key are kept, at most SCAN_TEXT; 0, the default: none. Call it once,
 * before the first scan. Keys behind options, as EVAL has them, are not found. */
void scanner_keep_keys(size_t bytes);

/* Sets the seed of all hashes. Call it once, before the first scan. */
void scanner_seed(uint64_t seed);

/* Continues scanning from *at. 1: a request is complete, *at is after it, and *out has it. 0: no more bytes
 * (*at == end). -1: not a request; *at is at the offending byte, and the scanner is lost (scanner_lose). */
int scanner_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end, struct scanned *out);

/* Skips bytes of the stream that were not captured. 1: they end where a request ends, and *out has it. 0:
 * they are within a value or end with it. -1: they include other bytes, so that the scanner is lost. */
int scanner_gap(struct scanner *s, uint64_t bytes, struct scanned *out);

/* How many arguments the request at the position has without its command, if they are known before its end:
 * of an array, or those so far of a memcached line of many keys. 0: it is neither, or its command is not
 * known yet. *line_bytes: of that line so far; 0: an array. */
uint64_t scanner_arguments(const struct scanner *s, uint64_t *line_bytes);

/* How many bytes the request still has, if the value at the position is its last part. 0: unknown. */
uint64_t scanner_left(const struct scanner *s);

/* The position in the stream is unknown, for example because the connection is older than the recording.
 * The next byte begins a request or is refused: offer bytes for which scanner_may_begin is true. */
void scanner_lose(struct scanner *s);

/* Whether a lost scanner may resume at this byte. Inline commands of Redis can begin with any letter, so
 * they are not found again: in the middle of a value any text would be one. */
bool scanner_may_begin(enum scan_protocol protocol, uint8_t byte);

/* What the helper that finds requests and the recorder send each other, in packets of whole structs. */

enum {
	REQUEST_PACKET = 512, /* structs in a packet, at most */
};

enum request_message_kind {
	MESSAGE_CONNECTION = 1, /* precedes its requests */
	MESSAGE_REQUEST = 2,
	MESSAGE_CLOSED = 3,
	MESSAGE_COUNTS = 4,
	MESSAGE_TRANSACTION = 5,
	MESSAGE_ARGUMENTS = 6,
	MESSAGE_NAME = 7,
	MESSAGE_KEY = 8, /* of a request that was answered a millisecond after it was read, or later */
};

enum {
	TRANSACTION_LARGE = 1000, /* queued commands, from which on a transaction is reported */
	ARGUMENTS_MANY = 1000,	  /* likewise, of a request */
};

/* What the helper saw and did not make a request of. */
enum request_count {
	COUNT_LOST,	     /* requests of a connection after a gap, or begun before it was followed */
	COUNT_BLOCKING,	     /* BLPOP and other commands that may wait for data */
	COUNT_PUSHES,	     /* requests on connections of subscribers, replicas and MONITOR */
	COUNT_NO_REPLY,	     /* the client wanted no answer */
	COUNT_EXCHANGES,     /* logged with an estimated end: which write answered which is unknown */
	COUNT_UNKNOWN,	     /* logged without a command: TLS, or the bytes could not be copied */
	COUNT_UNARRIVED,     /* logged with the read's time: the arrival was not seen */
	COUNT_NO_OUTCOME,    /* logged as answered: the begin of their answer is not known */
	COUNT_CONNECTIONS,   /* followed */
	COUNT_KEYS_LEFT_OUT, /* too many in a second */
	REQUEST_COUNTS,
};

/* Helper to recorder. */
struct request_message {
	uint32_t kind;
	uint32_t connection;
	union {
		struct {
			uint64_t arrival_ns, end_ns, read_ns, written_ns;
			uint32_t request_bytes, answer_bytes;
			uint32_t tid;	 /* the reader */
			uint32_t behind; /* at a proxy: the connection on which the server behind it had it;
					    0: unknown */
			uint8_t command;
			uint8_t status; /* enum ft_status */
		} request;
		struct {
			uint64_t opened_ns;
			uint64_t peer_inode;
			uint32_t tgid, peer_pid;
			uint32_t hash; /* as in struct ft_request_connection */
			uint16_t local_port, peer_port;
			uint8_t peer_address[16];
			char peer_comm[16];
		} opened;
		struct {
			uint8_t as; /* TEXT_NAME or TEXT_LIBRARY */
			char text[SCAN_TEXT];
		} name;
		struct {
			uint64_t read_ns; /* as of the request */
			uint32_t tid;
			uint8_t bytes;
			uint8_t text[SCAN_TEXT];
		} key;
		struct {
			uint64_t read_ns; /* when EXEC was read */
			uint64_t commands;
			uint32_t tid;
		} transaction;
		struct {
			uint64_t read_ns; /* as of the request */
			uint64_t count;	  /* without the command */
			uint32_t tid;
			uint8_t command;
			bool estimated; /* by the line's length: not all of its bytes were captured */
		} arguments;
		uint64_t closed_ns;
		uint64_t counts[REQUEST_COUNTS];
	};
};

/* Receives what was found. */
typedef void (*request_handler)(void *context, const struct request_message *message);

/* Recorder to helper: what a target speaks. */
struct request_target {
	uint32_t tgid;
	uint8_t protocol;     /* enum scan_protocol */
	uint8_t asynchronous; /* it may read requests before it has answered earlier ones of the connection */
	uint8_t proxy;	      /* it passes requests on to other servers */
};

/* Requests that a proxy passes on are seen twice: at the proxy and at the server behind it. This joins them:
 * the proxy's request gets the server that answered it, and the server's request, a part of it, is left out.
 *
 * A proxy passes a request on unchanged, so both have the same hash, and the server's ends
 * between the proxy's read and its answer. Of several the oldest is taken. */

struct proxied;

/* What was found is passed on to the handler, a second later at most. NULL: no memory. */
struct proxied *proxied_open(request_handler handler, void *context);
void proxied_close(struct proxied *p);
/* A request at a proxy, or at another server. A message without a hash is passed on after what came before
 * it. */
void proxied_add(struct proxied *p, const struct request_message *m, uint64_t hash, bool at_proxy,
		 uint64_t now_ns);
/* Passes on what has waited long enough. */
void proxied_tick(struct proxied *p, uint64_t now_ns);

/* Finds requests in the reads and writes of connections. A request begins and ends where the scanner says; it
 * arrived when its first byte did, was read with its last byte, and was answered by a write.
 *
 * Which write answers it follows from how servers work: one that is synchronous (Redis, memcached) answers
 * all that it has read from a connection before it reads more from it, unless the client reads too slowly:
 * then the socket's buffer is full, or a large write was cut. So the requests between two reads share the
 * writes between them. One write answers all of them; as many writes as requests answer one each; otherwise
 * their bytes are divided evenly, and the requests are counted as an exchange. An asynchronous one (a proxy)
 * may read more before it answers; its requests are grouped until the connection is idle.
 *
 * After a gap, or where bytes were not captured, a connection's requests are left out and counted until a
 * read that follows a write begins like a request. */

struct matcher;

/* NULL: no memory. */
struct matcher *matcher_open(request_handler handler, void *context);
void matcher_close(struct matcher *m);
/* The target's protocol, from now on. Of others it is guessed from their first bytes. */
void matcher_target(struct matcher *m, const struct request_target *target);
/* One event of bpf/request_events.h. Events of a connection come in order. */
void matcher_event(struct matcher *m, const void *event, size_t bytes);
/* Call it often: answers that ended a while ago are complete. */
void matcher_tick(struct matcher *m, uint64_t now_ns);
/* All answers are complete; the counts follow. */
void matcher_finish(struct matcher *m);

/* Which thread of a server with several serves which connection: the one that reads it, seen by a program
 * (bpf/readers.bpf.c). It costs every read of a socket on the host half a microsecond, so it is attached only
 * while it takes less than a thousandth of a CPU, and for short times while more is read. Another program
 * sees which thread closes a TCP connection. It is attached as long as a target has several threads that
 * serve: it costs little compared with opening and closing a connection. */

struct readers;

/* Loads the program, which shares the map of targets, and starts the process that attaches it. NULL: see
 * errno. */
struct readers *readers_open(int targets_map, uint32_t pid_namespace);
/* Writes what was seen, and attaches or detaches. `wanted`: a target has several threads that serve. Call it
 * often. */
void readers_tick(struct readers *r, struct ft_writer *w, bool wanted, uint64_t now_ns);
/* A new file begins: all are written again. */
void readers_begin_segment(struct readers *r);
struct counted_programs;
/* The programs, for their cost. */
struct counted_programs readers_programs(const struct readers *r);
void readers_close(struct readers *r);

/* The process that reads what clients sent. Bytes of strangers are scanned in a process without rights; the
 * recorder gets times, sizes and numbers of commands only. */

extern const struct helper_setup requests_helper;
/* Starts it. Returns 0 or a negative errno. */
int request_helper_start(struct helper_process *h);
/* Passes it the map of events, from which it reads from now on, and how many bytes of keys it keeps. */
int request_helper_map(const struct helper_process *h, int map, uint32_t key_bytes);
/* What a target speaks. */
void request_helper_target(const struct helper_process *h, const struct request_target *target);
/* It sends what it has and exits: the socket is then at its end. */
void request_helper_finish(const struct helper_process *h);

/* Requests of the targets' clients, seen at the server's sockets (bpf/requests.bpf.c), as a request log in
 * the recording. docs/how-it-works/requests.md says what is exact and what is left out. */

struct requests;

struct requests_wanted {
	bool wanted;
	bool keep; /* for a flight recorder */
	/* One in this many connections, a power of two, all of the time. 0: automatic: all of them, and one
	 * in 16 from 10,000 requests per second on; for a flight recorder all, for a part of the time, in
	 * which the programs take 1 % of a CPU. */
	uint32_t sample;
	bool hash_clients; /* store random bytes in place of a client's address, the same in this recording */
	uint32_t key_bytes; /* store so many of the first bytes of slow requests' keys, at most SCAN_TEXT */
	bool hash_keys;	    /* random bytes in place of these, the same ones in this recording */
};

/* Starts the helper. Call it before anything is open that the helper should not have. NULL: see errno. */
struct requests *requests_start(const struct requests_wanted *wanted);
/* Loads the programs, which share the map of targets. Negative errno: programs_log() says why. */
int requests_load(struct requests *r, int targets_map, uint32_t pid_namespace);
/* A process is a target from now on, or may listen elsewhere now: its description (loader/targets), or NULL.
 * New servers are noted in `w`. NULL: no file is open yet, and its manifest will have them. */
void requests_target(struct requests *r, struct ft_writer *w, const json_t *described);
/* Adds the members of the manifest that describe the log: what was asked for, servers and operations. */
void requests_manifest(const struct requests *r, json_t *manifest);
int requests_attach(struct requests *r);
enum { REQUESTS_PERIOD_MS = 20000 };
/* With an automatic sample: attaches or detaches, or reduces the sample. Call it often, with the time in the
 * current period. */
void requests_tick(struct requests *r, struct ft_writer *w, uint32_t in_period_ms);
/* A window of the kernel's run-time statistics, which was that long, has ended. */
void requests_measured(struct requests *r, uint64_t measured_ns);
/* A descriptor that is readable when requests_take has something to do; -1: none. */
int requests_fd(const struct requests *r);
/* Appends what the helper found to the log. */
void requests_take(struct requests *r, struct ft_writer *w);
/* Hands the open block to the writer. */
void requests_flush(struct requests *r, struct ft_writer *w);
/* A new file begins: connections are written again, with their first request in it. */
void requests_begin_segment(struct requests *r);
/* Detaches, and writes what is left and a note of what was left out. */
void requests_stop(struct requests *r, struct ft_writer *w);
void requests_close(struct requests *r);

struct requests_figures {
	uint64_t requests, dropped_events;
	pid_t helper;
	uint64_t helper_cpu_ns;
};
struct requests_figures requests_so_far(const struct requests *r);
/* The programs, for their cost. */
struct counted_programs requests_programs(const struct requests *r);

#ifdef __cplusplus
}
#endif
#endif

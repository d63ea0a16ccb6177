/* SPDX-License-Identifier: MIT */
/* What the helper that finds requests and the recorder send each other, in packets of whole structs. */
#ifndef FORKTAIL_LOADER_REQUEST_MESSAGES_H
#define FORKTAIL_LOADER_REQUEST_MESSAGES_H

#include <stdint.h>

enum {
	REQUEST_PACKET = 512, /* structs in a packet, at most */
};

enum request_message_kind {
	MESSAGE_CONNECTION = 1, /* precedes its requests */
	MESSAGE_REQUEST = 2,
	MESSAGE_CLOSED = 3,
	MESSAGE_COUNTS = 4,
	MESSAGE_TRANSACTION = 5,
};

enum {
	TRANSACTION_LARGE = 1000, /* queued commands, from which on a transaction is reported */
};

/* What the helper saw and did not make a request of. */
enum request_count {
	COUNT_LOST,	   /* requests of a connection after a gap, or begun before it was followed */
	COUNT_BLOCKING,	   /* BLPOP and other commands that may wait for data */
	COUNT_PUSHES,	   /* requests on connections of subscribers, replicas and MONITOR */
	COUNT_NO_REPLY,	   /* the client wanted no answer */
	COUNT_EXCHANGES,   /* logged with an estimated end: which write answered which is unknown */
	COUNT_UNKNOWN,	   /* logged without a command: TLS, or the bytes could not be copied */
	COUNT_UNARRIVED,   /* logged with the read's time: the arrival was not seen */
	COUNT_NO_OUTCOME,  /* logged as answered: the begin of their answer is not known */
	COUNT_CONNECTIONS, /* followed */
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
		} opened;
		struct {
			uint64_t read_ns; /* when EXEC was read */
			uint64_t commands;
			uint32_t tid;
		} transaction;
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

#endif

/* SPDX-License-Identifier: MIT */
/* Reaching the server: connects, checks that it uses the expected protocol, logs in, selects the database.
 * All of it happens before the load begins, with time-outs, and fails with one sentence for the user. */
#ifndef FORKTAIL_LOADGEN_SERVER_H
#define FORKTAIL_LOADGEN_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/net.h"
#include "loadgen/options.h"
#include "loadgen/protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From INFO of the server; "" if missing. */
struct server_facts {
	char version[32], mode[16], os[96], run_id[48], role[16], process_id[16];
};

struct conversation;

struct server {
	const struct options *options;
	const struct conversation *conversation; /* its protocol */
	struct server_address address;
	struct server_facts facts;
	struct server_socket socket; /* once found */
	bool found;
	struct bytes greeting; /* set-up commands of a reconnected connection: AUTH, SELECT */
	uint8_t greetings;     /* their number */
	bool nameless;	       /* it did not answer CLIENT SETNAME, as a proxy does */
	bool readonly;	       /* a cluster's replicas are asked, too: READONLY */
	bool accepts_loading;  /* it is entered even while it answers -LOADING or similar errors */
	uint64_t patience_ns;  /* of its links, for connecting and for an answer; 0: 5 s */
	int stop_fd;	       /* of its links; -1: nothing ends their waits */
	uint32_t opened;       /* connections of the load to it so far */
	const char *refused;   /* the command that it refused when it was last entered; NULL: none */
	char why[480];	       /* why it could not be entered, without address and advice */
};

/* Fills *s without contacting the server. The address's strings must outlive it. Release it with
 * server_free. */
void server_init(struct server *s, const struct options *o, const struct server_address *address,
		 bool readonly);
/* Resolves the address of its host without connecting: the first address of the name. Returns 0, or -1 and a
 * sentence. */
int server_find(struct server *s, char *error, size_t size);
/* A copy of the server for another thread: what does not change after it was found, and nothing that entering
 * it writes. Needs no freeing. */
struct server server_twin(const struct server *s);
/* Where its connections go and what reconnected ones send; valid as long as the server. */
struct endpoint server_endpoint(const struct server *s);

/* Checks that the server is ready and accepts us. Waits while it loads its data, with a message on stderr.
 * Fills *s; the address's strings must outlive it. Returns 0, or -1 and a sentence in `error`. Call
 * server_free in both cases. */
int server_probe(struct server *s, const struct options *o, const struct server_address *address, char *error,
		 size_t size);
void server_free(struct server *s);

/* A link for the generator's own commands, logged in, with the right database; for link_free. NULL, and a
 * sentence. */
struct link *server_enter(struct server *s, uint32_t number, char *error, size_t size);

/* Connection `number`, logged in, with the right database, non-blocking. Returns the descriptor, or -1 and a
 * sentence. */
int server_connect(struct server *s, uint32_t number, char *error, size_t size);
/* The same for `count` connections, from number `first` on. Returns their descriptors, for free(). NULL, and
 * a sentence: none is open. */
int *server_connect_all(struct server *s, uint32_t first, uint32_t count, char *error, size_t size);

/* As tls_session_new's host; NULL: no TLS. */
const char *server_tls_name(const struct server *s);

/* Raises the limit to `count` descriptors. Returns 0, or -1 and a sentence. */
int descriptors_reserve(unsigned count, char *error, size_t size);

/* What precedes the first bytes to a server of any kind: a connection, TLS if wanted, and messages that begin
 * with the address. */

/* For connecting, and for a memcached's answer. */
enum { REACH_TIMEOUT_S = 5 };

/* A sentence about the server, beginning with its address. */
__attribute__((format(printf, 4, 5))) void server_say(const struct server *s, char *error, size_t size,
						      const char *format, ...);
/* A link on which nothing was sent yet. NULL, and a sentence. */
struct link *server_reach(struct server *s, uint32_t number, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif

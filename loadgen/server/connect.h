/* SPDX-License-Identifier: MIT */
/* Reaching the server: connect, prove that it speaks what it is said to speak, log in, choose the database.
 * All of it happens before the load begins, with time-outs, and fails with one sentence for the user. */
#ifndef FORKTAIL_LOADGEN_CONNECT_H
#define FORKTAIL_LOADGEN_CONNECT_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/command/bytes.h"
#include "loadgen/net/link.h"
#include "loadgen/net/socket.h"
#include "loadgen/options/address.h"
#include "loadgen/options/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What INFO says of the server; "" where it doesn't. */
struct server_facts {
	char version[32], mode[16], os[96], run_id[48], role[16], process_id[16];
};

struct conversation;

struct server {
	const struct options *options;
	const struct conversation *conversation; /* how it is spoken to */
	struct server_address address;
	struct server_facts facts;
	struct server_socket socket; /* once found */
	bool found;
	struct bytes greeting; /* set-up commands of a connection that is opened again: AUTH, SELECT */
	uint8_t greetings;     /* their number */
	bool nameless;	       /* it gave no answer to CLIENT SETNAME, as a proxy does */
	bool readonly;	       /* a cluster's replicas are asked, too: READONLY */
	bool unready;	       /* it is entered even while it answers -LOADING and the like */
	uint64_t patience_ns;  /* of its links, for connecting and for an answer; 0: 5 s */
	int stop_fd;	       /* of its links; -1: nobody ends their waits */
	const char
	    *refused;  /* the command with which it turned us away when it was entered last; NULL: none */
	char why[480]; /* why it could not be entered, without address and advice */
};

/* Fills *s without a word to the server; the address's strings must outlive it. For server_free. */
void server_init(struct server *s, const struct options *o, const struct server_address *address,
		 bool readonly);
/* Finds the address of its host without connecting: the first that the name has. 0, or -1 and a sentence. */
int server_find(struct server *s, char *error, size_t size);
/* The same server for another thread to enter: what does not change once it was found, and nothing that
 * entering it writes. Nothing to be freed. */
struct server server_twin(const struct server *s);
/* Where its connections go and what those say that are opened again; valid as long as the server. */
struct endpoint server_endpoint(const struct server *s);

/* Is a ready server there that lets us in? Waits while it loads its data set, saying so on stderr. Fills *s;
 * the address's strings must outlive it. 0, or -1 and a sentence in `error`; server_free in both cases. */
int server_probe(struct server *s, const struct options *o, const struct server_address *address, char *error,
		 size_t size);
void server_free(struct server *s);

/* A link for questions of our own, logged in, in the right database; for link_free. NULL, and a sentence. */
struct link *server_enter(struct server *s, uint32_t number, char *error, size_t size);

/* Connection `number`, logged in, in the right database, non-blocking. The descriptor, or -1 and a sentence.
 */
int server_connect(struct server *s, uint32_t number, char *error, size_t size);
/* The same of `count` of them, from number `first` on. Their descriptors, for free; NULL, and a sentence:
 * there is not one. */
int *server_connect_all(struct server *s, uint32_t first, uint32_t count, char *error, size_t size);

/* As tls_session_new's host; NULL: no TLS there. */
const char *server_tls_name(const struct server *s);

/* Makes room for `count` descriptors. 0, or -1 and a sentence. */
int descriptors_reserve(unsigned count, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Sockets to the server: TCP over IPv4 and IPv6, and Unix. */
#ifndef FORKTAIL_LOADGEN_SOCKET_H
#define FORKTAIL_LOADGEN_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct server_socket {
	struct sockaddr_storage address;
	socklen_t length;
};

/* Where connections go, and what each says first. */
struct endpoint {
	struct server_socket socket;
	const char *tls_name; /* as tls_session_new's host (tls.h); NULL: no TLS */
	const char *greeting; /* set-up commands of a connection that is opened again */
	size_t greeting_bytes;
	uint8_t greetings; /* their number */
	bool named;	   /* the last of them is CLIENT SETNAME, whose refusal does no harm */
};

/* Finds the address of a host (or the Unix socket `path`, when not NULL) that accepts a connection; waits
 * timeout_s for each that a name has. 0, or -1 and what went wrong, without the address, in `why`. */
int socket_find(const char *host, uint32_t port, const char *path, unsigned timeout_s,
		struct server_socket *s, char *why, size_t size);

/* The addresses that a host's name has, without connecting: how many of `limit` were filled, 1 at least; or
 * -EHOSTUNREACH, -ENAMETOOLONG and what went wrong. */
int socket_resolve(const char *host, uint32_t port, const char *path, struct server_socket *out, int limit,
		   char *why, size_t size);

/* Begins connecting connection `number`; the descriptor (non-blocking, close-on-exec), or a negative errno.
 * *pending: not there yet, it will be writable when it is. A server on the loopback network is reached from
 * another source address every 20,000 connections, since one has 28,232 ports by default. */
int socket_begin(const struct server_socket *s, uint32_t number, bool *pending);
/* What became of it: 0 or a negative errno. */
int socket_result(int fd);
/* Both, with at most timeout_s of waiting. The descriptor, or a negative errno. */
int socket_open(const struct server_socket *s, uint32_t number, unsigned timeout_s);
/* Of a TCP connection, else 0: the server's host knows it by this. */
uint16_t socket_local_port(int fd);
/* 0: not known. With a Unix socket the server's host knows it by this. */
uint64_t socket_inode(int fd);

#ifdef __cplusplus
}
#endif
#endif

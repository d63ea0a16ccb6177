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

/* Where connections go, and what each sends first. */
struct endpoint {
	struct server_socket socket;
	const char *tls_name; /* as tls_session_new's host (tls.h); NULL: no TLS */
	const char *greeting; /* set-up commands of a reconnected connection */
	size_t greeting_bytes;
	uint8_t greetings; /* their number */
	bool named;	   /* the last one is CLIENT SETNAME, whose refusal is harmless */
};

/* Finds the address of a host (or the Unix socket `path`, if not NULL) that accepts a connection. Waits
 * timeout_s for each address of a name. Returns 0, or -1 and the reason, without the address, in `why`. */
int socket_find(const char *host, uint32_t port, const char *path, unsigned timeout_s,
		struct server_socket *s, char *why, size_t size);

/* The addresses of a host's name, without connecting. Returns how many of `limit` were filled, at least 1; or
 * -EHOSTUNREACH, -ENAMETOOLONG and the reason. */
int socket_resolve(const char *host, uint32_t port, const char *path, struct server_socket *out, int limit,
		   char *why, size_t size);

/* Starts connecting connection `number`. Returns the descriptor (non-blocking, close-on-exec) or a negative
 * errno. *pending: not complete yet; it becomes writable when it is. On the loopback network every 20,000
 * connections use another source address, because one has 28,232 ports by default. */
int socket_begin(const struct server_socket *s, uint32_t number, bool *pending);
/* Its result: 0 or a negative errno. */
int socket_result(int fd);
/* Both, waiting at most timeout_s. Returns the descriptor or a negative errno. */
int socket_open(const struct server_socket *s, uint32_t number, unsigned timeout_s);
/* Of a TCP connection, else 0: identifies the connection on the server's host. */
uint16_t socket_local_port(int fd);
/* 0: unknown. For a Unix socket, identifies the connection on the server's host. */
uint64_t socket_inode(int fd);

#ifdef __cplusplus
}
#endif
#endif

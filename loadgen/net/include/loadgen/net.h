/* SPDX-License-Identifier: MIT */
/* Connections: sockets, TLS, and when the kernel received an answer. */
#ifndef FORKTAIL_LOADGEN_NET_H
#define FORKTAIL_LOADGEN_NET_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When answers arrived: the kernel timestamps each segment of a TCP connection on arrival (SO_TIMESTAMPING,
 * software timestamp) and reports with each read the timestamp of the last segment read. The time between
 * that and the read is socket-buffer wait, which this program causes. A Unix socket has no timestamps, and
 * TLS hides which bytes were in which segment. */

/* Timestamps use CLOCK_REALTIME. Its difference to CLOCK_MONOTONIC is constant until the clock is set,
 * because both are slewed alike. So the difference is measured repeatedly. Zero-initialized. */
struct arrival_clock {
	uint64_t ahead_ns;  /* of CLOCK_MONOTONIC */
	uint64_t looked_ns; /* when it was last measured */
};

/* Makes the kernel timestamp what the socket receives. False: not supported for such a socket. */
bool arrival_ask(int fd);
/* Like read(), with the timestamp in *stamp_ns; 0: none. */
ssize_t arrival_read(int fd, void *to, size_t size, uint64_t *stamp_ns);
/* Converts the timestamp to CLOCK_MONOTONIC, whose current value is now_ns. The result is never later than
 * that. 0: the clock was set. */
uint64_t arrival_monotonic(struct arrival_clock *clock, uint64_t stamp_ns, uint64_t now_ns);

/* A socket's counts at the last look at them. Set looked_ns when it opens, and to zeros the rest. */
struct tcp_counts {
	uint64_t looked_ns, receiver_limited_us, sender_limited_us;
	uint64_t retransmitted;
};
struct ft_load_tcp;
/* What TCP did since then, without t_ns and the connection's number. False: not a TCP socket. */
bool tcp_look(int fd, struct tcp_counts *counts, struct ft_load_tcp *found);

/* TLS over a socket, with OpenSSL: sessions read and write like read(2) and write(2), so that callers use the
 * same code for plain connections. The server's certificate is verified, chain and name, unless --insecure is
 * given. A process has one set of TLS options, so the context is global. Sessions are not resumed: every
 * handshake is complete, like a client's first one. */

struct tls_options {
	bool on, insecure;
	const char *cacert, *cacertdir; /* NULL: the system's CAs */
	const char *cert, *key;		/* client certificate; NULL: none */
	const char *sni;		/* the name to request and verify; NULL: the host's */
};

struct tls_session;

/* Reads keys and certificates on the first call. Returns 0, or -1 and a sentence. */
int tls_begin(const struct tls_options *o, char *error, size_t size);
/* On a connected descriptor, which the caller still owns. `host`: the server's name or address, "" for a Unix
 * socket. NULL: out of memory. */
struct tls_session *tls_session_new(const char *host, int fd);
/* Sends a close notification if the descriptor accepts it at once. Call it before closing the descriptor.
 * Accepts NULL. */
void tls_session_free(struct tls_session *s);

/* 0: done. -EAGAIN: call again when the descriptor is readable, or writable if tls_wants_write.
 * -EPROTO, -ECONNRESET: failed, tls_why says why. */
int tls_handshake(struct tls_session *s);
bool tls_wants_write(const struct tls_session *s);
/* "has a certificate that expired on Jan 1 2026", for a handshake, read or write that failed. */
const char *tls_why(const struct tls_session *s);

/* Like read(2): 0 at the end of stream, -1 and errno; EPROTO: tls_why says why. A read of a non-blocking
 * descriptor that returns less than requested has emptied it, unless tls_has_unread. In blocking mode it
 * returns what one read of the descriptor brought. */
ssize_t tls_read(struct tls_session *s, void *to, size_t size);
/* Like write(2). Bytes that it did not accept must be passed again unchanged. */
ssize_t tls_write(struct tls_session *s, const void *from, size_t size);
/* The descriptor has new data; `closed`: and an end of stream, so it must be read up to that. */
void tls_wake(struct tls_session *s, bool closed);
/* From now to the next tls_wake, reads return only data already read from the descriptor. */
void tls_hold(struct tls_session *s);
/* The next read returns data or an error without reading the descriptor. */
bool tls_has_unread(const struct tls_session *s);
/* Each tls_read reads the descriptor once, and blocks if the descriptor does. */
void tls_set_blocking(struct tls_session *s, bool blocking);

/* Sessions passed from set-up to a load thread, by descriptor. tls_claim: NULL without one. */
int tls_hand_over(int fd, struct tls_session *s);
struct tls_session *tls_claim(int fd);
/* Closes a descriptor that was not taken over, with its session if there is one. */
void tls_close(int fd);

/* Sockets to the server: TCP over IPv4 and IPv6, and Unix. */

struct server_socket {
	struct sockaddr_storage address;
	socklen_t length;
};

/* Where connections go, and what each sends first. */
struct endpoint {
	struct server_socket socket;
	const char *tls_name; /* as tls_session_new's host; NULL: no TLS */
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

/* A connection off the hot path, for the generator's own commands: the set-up before a load, a cluster's
 * topology, the observer. It uses a non-blocking socket and poll(), so that every wait ends at its deadline
 * or when it is stopped. hiredis parses answers and formats commands but does not get the socket: its own
 * calls can't be interrupted, time each read() separately, so that a server that sends single bytes blocks
 * them without limit, and store replies of any length. */

/* How long to wait for an answer to a set-up command, and its maximum size. INFO has some 10 KB. */
#define LINK_ANSWER_NS 5000000000u
enum { LINK_ANSWER_BYTES = 1 << 20 };

struct link {
	int fd;			 /* -1: closed */
	int stop_fd;		 /* readable: end every wait. -1: none */
	struct tls_session *tls; /* NULL: no TLS */
	uint64_t patience_ns;	 /* for an answer; 0: LINK_ANSWER_NS */
	size_t answer_bytes;	 /* maximum size of an answer; 0: LINK_ANSWER_BYTES */
	redisReader *reader;	 /* for link_ask; created when first needed */
	int failed;		 /* why link_ask had no answer: a negative errno */
	uint32_t others; /* connections of the load to this server that were opened before, for link_error */
	char where[160]; /* the start of sentences about it */
	char error[480];
};

/* A link that is closed. */
#define LINK_CLOSED ((struct link){.fd = -1, .stop_fd = -1})

/* All of these return 0 (link_receive: bytes) or a negative errno: -ECANCELED for the stop, -ETIMEDOUT for
 * the deadline (CLOCK_MONOTONIC), -ECONNRESET if the peer closed the connection, -EPROTO if TLS failed. */
int link_open(struct link *l, const struct server_socket *to, uint32_t number, uint64_t deadline_ns);
/* Performs the TLS handshake; call tls_begin before. `name` as tls_session_new's host. After -EPROTO or
 * -ETIMEDOUT the reason is in l->error, without `where`. */
int link_secure(struct link *l, const char *name, uint64_t deadline_ns);
int link_send(struct link *l, const char *bytes, size_t size, uint64_t deadline_ns);
ssize_t link_receive(struct link *l, char *bytes, size_t size, uint64_t deadline_ns);
/* Sleeps until the deadline. Returns 0 or -ECANCELED. */
int link_pause(struct link *l, uint64_t deadline_ns);
void link_close(struct link *l);

/* Sends a command of `count` words and returns its answer (which may be an error reply), to be freed with
 * freeReplyObject. NULL: no answer, link_error says why, and the link can't be used any more. */
redisReply *link_ask(struct link *l, int count, const char *const *words);
/* The next answer to commands sent by link_send. `name` describes them in a sentence. */
redisReply *link_answer(struct link *l, const char *name);
/* Whether more bytes arrived than expected. */
bool link_has_more(const struct link *l);
/* "127.0.0.1:6379 did not answer PING within 5 s. ..." */
const char *link_error(const struct link *l);

/* For a link from server_enter (server.h): closes and frees it. Accepts NULL. */
void link_free(struct link *l);
/* The same, but leaves the connection open and returns its descriptor, non-blocking. tls_claim returns its
 * TLS session. Negative errno. */
int link_release(struct link *l);

#ifdef __cplusplus
}
#endif
#endif

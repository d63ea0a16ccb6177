/* SPDX-License-Identifier: MIT */
/* Sessions. OpenSSL gets the descriptor through a custom BIO: it reads 16 KB at a time, knows without another
 * system call that a short read has emptied the socket (as the plain hot path does), and raises no SIGPIPE.
 * The context and the explanations of failures are in tls_context.c. */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tls_parts.h"

/* ---- the socket under OpenSSL ---- */

static int socket_read(BIO *b, char *to, int size)
{
	struct tls_session *s = BIO_get_data(b);
	ssize_t n = -1;

	BIO_clear_retry_flags(b);
	errno = EAGAIN;
	if (!s->drained)
		do {
			n = read(s->fd, to, (size_t)size);
		} while (n < 0 && errno == EINTR && !s->blocking);
	if (n < 0) {
		s->error = errno;
		if (errno == EAGAIN || errno == EINTR)
			BIO_set_retry_read(b);
	}
	s->ended |= n == 0;
	/* If an end of stream follows, a short read does not mean that there is nothing more. */
	if (n < size && n != 0 && !s->closed && !s->blocking)
		s->drained = true;
	return (int)n;
}

static int socket_write(BIO *b, const char *from, int size)
{
	struct tls_session *s = BIO_get_data(b);
	ssize_t n;

	BIO_clear_retry_flags(b);
	do {
		n = write(s->fd, from, (size_t)size);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		s->error = errno;
		if (errno == EAGAIN)
			BIO_set_retry_write(b);
	}
	return (int)n;
}

static long socket_control(BIO *b, int command, long number, void *pointer)
{
	struct tls_session *s = BIO_get_data(b);

	(void)number;
	(void)pointer;
	if (command == BIO_CTRL_FLUSH)
		return 1;
	return command == BIO_CTRL_EOF ? s->ended : 0;
}

static BIO_METHOD *method;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_method(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
	if (!method)
		return;
	BIO_meth_set_read(method, socket_read);
	BIO_meth_set_write(method, socket_write);
	BIO_meth_set_ctrl(method, socket_control);
}

/* ---- sessions ---- */

struct tls_session *tls_session_new(const char *host, int fd)
{
	struct tls_session *s = calloc(1, sizeof(*s));
	BIO *b;

	pthread_once(&once, make_method);
	if (!s)
		return NULL;
	s->fd = fd;
	s->ssl = tls_context_session(host, s->name, sizeof(s->name));
	b = s->ssl && method ? BIO_new(method) : NULL;
	if (!b) {
		SSL_free(s->ssl);
		free(s);
		return NULL;
	}
	BIO_set_data(b, s);
	BIO_set_init(b, 1);
	SSL_set_bio(s->ssl, b, b);
	SSL_set_app_data(s->ssl, s);
	SSL_set_connect_state(s->ssl);
	return s;
}

void tls_session_free(struct tls_session *s)
{
	if (!s)
		return;
	if (SSL_is_init_finished(s->ssl) && !s->failed && !s->blocking)
		SSL_shutdown(s->ssl);
	ERR_clear_error();
	SSL_free(s->ssl);
	free(s);
}

/* A call without data: 0 for the end of stream, else -1 and errno as for a socket. */
static int no_luck(struct tls_session *s, int rc)
{
	int kind = SSL_get_error(s->ssl, rc);

	s->wants_write = kind == SSL_ERROR_WANT_WRITE;
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
		errno = EAGAIN;
		return -1;
	}
	if (kind == SSL_ERROR_ZERO_RETURN && SSL_is_init_finished(s->ssl))
		return 0;
	/* A write to a closed socket explains less than what the server sent before it closed. */
	if (!s->failed || ERR_peek_error())
		tls_explain(s, kind);
	s->failed = true;
	ERR_clear_error();
	errno = kind == SSL_ERROR_SYSCALL && s->error && !s->ended ? s->error : EPROTO;
	return -1;
}

int tls_handshake(struct tls_session *s)
{
	int rc;

	ERR_clear_error();
	s->drained = false;
	s->error = 0;
	rc = SSL_do_handshake(s->ssl);
	if (rc == 1) {
		s->drained = s->wants_write = false;
		return 0;
	}
	no_luck(s, rc);
	return errno == EAGAIN ? -EAGAIN : errno == ECONNRESET ? -ECONNRESET : -EPROTO;
}

bool tls_wants_write(const struct tls_session *s)
{
	return s->wants_write;
}

const char *tls_why(const struct tls_session *s)
{
	return s->why[0] ? s->why : "aborted the TLS session";
}

ssize_t tls_read(struct tls_session *s, void *to, size_t size)
{
	size_t have = 0, n;

	ERR_clear_error();
	s->error = 0;
	if (s->blocking)
		s->drained = false;
	while (have < size) {
		int rc = SSL_read_ex(s->ssl, (char *)to + have, size - have, &n);

		if (rc != 1) {
			rc = no_luck(s, rc);
			/* Data before an end is returned first; the end is found again. */
			s->unread = have > 0 && (rc == 0 || errno != EAGAIN);
			return have > 0 ? (ssize_t)have : rc;
		}
		have += n;
		if (s->blocking)
			s->drained = true; /* the next one would block */
	}
	s->unread = SSL_has_pending(s->ssl);
	return (ssize_t)have;
}

ssize_t tls_write(struct tls_session *s, const void *from, size_t size)
{
	size_t done = 0, n;

	ERR_clear_error();
	s->error = 0;
	while (done < size) {
		int rc = SSL_write_ex(s->ssl, (const char *)from + done, size - done, &n);

		if (rc != 1) {
			rc = no_luck(s, rc);
			if (rc == 0) {
				errno = EPIPE;
				rc = -1;
			}
			return done > 0 ? (ssize_t)done : rc;
		}
		done += n;
	}
	return (ssize_t)done;
}

void tls_wake(struct tls_session *s, bool closed)
{
	s->drained = false;
	s->closed = closed;
}

void tls_hold(struct tls_session *s)
{
	s->drained = true;
}

bool tls_has_unread(const struct tls_session *s)
{
	return s->unread;
}

void tls_set_blocking(struct tls_session *s, bool blocking)
{
	s->blocking = blocking;
	s->drained = false;
}

/* ---- passing sessions to a load thread ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tls_session **by_fd;
static int by_fd_room;

int tls_hand_over(int fd, struct tls_session *s)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (fd >= by_fd_room) {
		int room = fd * 2 + 64;
		struct tls_session **grown = realloc(by_fd, sizeof(*grown) * (size_t)room);

		if (grown) {
			memset(grown + by_fd_room, 0, sizeof(*grown) * (size_t)(room - by_fd_room));
			by_fd = grown;
			by_fd_room = room;
		} else {
			rc = -ENOMEM;
		}
	}
	if (rc == 0) {
		/* The descriptor was closed without claiming its session. */
		if (by_fd[fd]) {
			by_fd[fd]->failed = true;
			tls_session_free(by_fd[fd]);
		}
		by_fd[fd] = s;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

struct tls_session *tls_claim(int fd)
{
	struct tls_session *s = NULL;

	pthread_mutex_lock(&lock);
	if (fd >= 0 && fd < by_fd_room) {
		s = by_fd[fd];
		by_fd[fd] = NULL;
	}
	pthread_mutex_unlock(&lock);
	return s;
}

void tls_close(int fd)
{
	tls_session_free(tls_claim(fd));
	close(fd);
}

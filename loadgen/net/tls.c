/* SPDX-License-Identifier: MIT */
/* TLS.
 *
 * Keys, certificates and trusted CAs from the options; and explanations of failed sessions, one sentence each
 * for common problems, because OpenSSL's messages are hard to understand. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/grow.h"
#include "loadgen/net.h"

/* A session: first its creation for a host and the explanation of failures, then reading and writing. Opaque
 * to all other code. */

struct tls_session {
	SSL *ssl;
	int fd;
	int error;	  /* errno of the last failed call on the socket */
	bool drained;	  /* the socket was emptied; not read again until tls_wake */
	bool closed;	  /* an end of stream is known: it is read up to there */
	bool blocking;	  /* one read may block */
	bool ended;	  /* it was read up to the end */
	bool failed;	  /* send no close notification */
	bool wants_write; /* the call that made no progress waits for writing */
	bool unread;
	char name[256]; /* the name that the certificate must have */
	char why[400];
};

/* A session of the context for this host. `name` will be verified; "" with --insecure. */
SSL *tls_context_session(const char *host, char *name, size_t size);
/* Writes the explanation of OpenSSL's failure `kind` to s->why. */
static void tls_explain(struct tls_session *s, int kind);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static SSL_CTX *context;
static struct tls_options options;

/* ---- explaining failures: certificates ---- */

/* "DNS:redis.example, IP Address:10.0.0.1", truncated if there is no more space. */
static void names_of(X509 *certificate, char *out, size_t size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	size_t at = 0;

	*out = 0;
	for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
		const ASN1_STRING *text = n->type == GEN_DNS ? n->d.dNSName : n->d.iPAddress;
		char one[128] = "";

		if (n->type == GEN_DNS)
			snprintf(one, sizeof(one), "%.*s", ASN1_STRING_length(text),
				 (const char *)ASN1_STRING_get0_data(text));
		else if (n->type == GEN_IPADD && ASN1_STRING_length(text) == 4)
			inet_ntop(AF_INET, ASN1_STRING_get0_data(text), one, sizeof(one));
		else if (n->type == GEN_IPADD && ASN1_STRING_length(text) == 16)
			inet_ntop(AF_INET6, ASN1_STRING_get0_data(text), one, sizeof(one));
		if (*one && at + strlen(one) + 3 < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", one);
	}
	GENERAL_NAMES_free(names);
	if (!at)
		snprintf(out, size, "no name");
}

static void date_of(const ASN1_TIME *when, char *out, size_t size)
{
	struct tm t;

	if (!when || ASN1_TIME_to_tm(when, &t) != 1 || strftime(out, size, "%Y-%m-%d %H:%M UTC", &t) == 0)
		snprintf(out, size, "?");
}

static void explain_certificate(struct tls_session *s, X509 *certificate, int verdict)
{
	char text[160] = "?";

	switch (verdict) {
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		if (certificate)
			names_of(certificate, text, sizeof(text));
		snprintf(s->why, sizeof(s->why),
			 "has a certificate for %s, not for %.100s. Set the expected name with --sni", text,
			 s->name);
		return;
	case X509_V_ERR_CERT_HAS_EXPIRED:
		if (certificate)
			date_of(X509_get0_notAfter(certificate), text, sizeof(text));
		snprintf(s->why, sizeof(s->why), "has a certificate that expired on %s", text);
		return;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		if (certificate)
			date_of(X509_get0_notBefore(certificate), text, sizeof(text));
		snprintf(s->why, sizeof(s->why), "has a certificate that is not valid before %s", text);
		return;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		snprintf(s->why, sizeof(s->why),
			 "has a self-signed certificate. To trust it, name it with --cacert");
		return;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		snprintf(s->why, sizeof(s->why),
			 "has a certificate from a CA that is not among %s%s. Name its CA with --cacert",
			 options.cacert || options.cacertdir ? "the CAs in "
							     : "the CAs that this host trusts",
			 options.cacert	     ? options.cacert
			 : options.cacertdir ? options.cacertdir
					     : "");
		return;
	default:
		snprintf(s->why, sizeof(s->why), "has an untrusted certificate: %s",
			 X509_verify_cert_error_string(verdict));
	}
}

/* Called for every certificate of the chain. The first invalid one determines the reason: later it is not
 * known which one it was. */
static int on_verdict(int good, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

	if (!good)
		explain_certificate(SSL_get_app_data(ssl), X509_STORE_CTX_get_current_cert(store),
				    X509_STORE_CTX_get_error(store));
	return good;
}

/* ---- the context ---- */

static const char *last_reason(void)
{
	unsigned long first = ERR_peek_error();
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	if (ERR_SYSTEM_ERROR(first))
		return strerror(ERR_GET_REASON(first));
	return reason ? reason : "unknown error";
}

static int refuse(SSL_CTX *c, char *error, size_t size, const char *what, const char *file)
{
	snprintf(error, size, "cannot use %s %s: %s", what, file, last_reason());
	ERR_clear_error();
	SSL_CTX_free(c);
	return -1;
}

static int make_context(const struct tls_options *o, char *error, size_t size)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());

	if (!c) {
		snprintf(error, size, "cannot set up TLS: %s", last_reason());
		return -1;
	}
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* Replies contain their lengths, so a truncated stream is detected without TLS. */
	SSL_CTX_set_options(c,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_read_ahead(c, 1);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	if (!o->insecure) {
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER, on_verdict);
		if (o->cacert && SSL_CTX_load_verify_file(c, o->cacert) != 1)
			return refuse(c, error, size, "the CA certificates of --cacert", o->cacert);
		if (o->cacertdir && SSL_CTX_load_verify_dir(c, o->cacertdir) != 1)
			return refuse(c, error, size, "the CA certificates of --cacertdir", o->cacertdir);
		if (!o->cacert && !o->cacertdir)
			SSL_CTX_set_default_verify_paths(c);
	}
	if (o->cert && SSL_CTX_use_certificate_chain_file(c, o->cert) != 1)
		return refuse(c, error, size, "the certificate of --cert", o->cert);
	if (o->key && SSL_CTX_use_PrivateKey_file(c, o->key, SSL_FILETYPE_PEM) != 1)
		return refuse(c, error, size, "the private key of --key", o->key);
	context = c;
	options = *o;
	return 0;
}

int tls_begin(const struct tls_options *o, char *error, size_t size)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!context)
		rc = make_context(o, error, size);
	pthread_mutex_unlock(&lock);
	return rc;
}

SSL *tls_context_session(const char *host, char *name, size_t size)
{
	const char *wanted = options.sni ? options.sni : host;
	unsigned char bytes[16];
	bool number = inet_pton(AF_INET, wanted, bytes) == 1 || inet_pton(AF_INET6, wanted, bytes) == 1;
	SSL *ssl = context ? SSL_new(context) : NULL;
	bool good = ssl != NULL;

	if (good && *wanted && !number)
		good = SSL_set_tlsext_host_name(ssl, wanted) == 1;
	if (good && !options.insecure) {
		snprintf(name, size, "%s", wanted);
		good = number ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), wanted) == 1
			      : SSL_set1_host(ssl, wanted) == 1;
	}
	if (good)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

/* ---- explaining failures: the session ---- */

static void explain_reason(struct tls_session *s, int reason)
{
	const char *ours = options.cert ? options.cert : "--cert";

	switch (reason) {
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
		snprintf(s->why, sizeof(s->why), "%s",
			 options.cert ? "ended the TLS handshake: no common version and cipher"
				      : "requires a client certificate or shares no cipher with this client. "
					"Use --cert and --key");
		if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
			snprintf(s->why, sizeof(s->why),
				 "requires a client certificate. Use --cert and --key");
		return;
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
		snprintf(s->why, sizeof(s->why), "rejected the client certificate (%.200s): %s", ours,
			 reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA ? "the server does not trust its CA"
			 : reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED ? "it has expired"
			 : reason == SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED
			     ? "it was revoked"
			     : "the server gave no other reason");
		return;
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
	case SSL_R_UNSUPPORTED_PROTOCOL:
		snprintf(s->why, sizeof(s->why), "does not support TLS 1.2 or later");
		return;
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		snprintf(s->why, sizeof(s->why),
			 "does not use TLS on this port: its first bytes are not a TLS handshake");
		return;
	default:
		snprintf(s->why, sizeof(s->why), "broke the TLS session: %s", last_reason());
	}
}

static void tls_explain(struct tls_session *s, int kind)
{
	bool during = !SSL_is_init_finished(s->ssl);
	unsigned long last = ERR_peek_last_error();

	if (ERR_GET_REASON(last) == SSL_R_CERTIFICATE_VERIFY_FAILED && *s->why)
		return; /* on_verdict has explained it */
	if (during && (s->ended || kind == SSL_ERROR_ZERO_RETURN))
		snprintf(s->why, sizeof(s->why),
			 "closed the connection during the TLS handshake. Does it accept TLS on this port?");
	else if (kind == SSL_ERROR_SYSCALL && during)
		snprintf(s->why, sizeof(s->why),
			 "aborted the TLS handshake: %s. Does it accept TLS on this port?",
			 strerror(s->error));
	else if (kind == SSL_ERROR_SYSCALL)
		snprintf(s->why, sizeof(s->why), "broke the connection: %s", strerror(s->error));
	else
		explain_reason(s, ERR_GET_REASON(last));
}

/* Sessions. OpenSSL gets the descriptor through a custom BIO: it reads 16 KB at a time, knows without another
 * system call that a short read has emptied the socket (as the plain hot path does), and raises no SIGPIPE.
 */

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

static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tls_session **by_fd;
static size_t by_fd_room;

int tls_hand_over(int fd, struct tls_session *s)
{
	size_t before;
	int rc = 0;

	pthread_mutex_lock(&sessions_lock);
	before = by_fd_room;
	if (!grow(&by_fd, &by_fd_room, (size_t)fd, sizeof(*by_fd))) {
		rc = -ENOMEM;
	} else {
		memset(by_fd + before, 0, (by_fd_room - before) * sizeof(*by_fd));
		/* The descriptor was closed without claiming its session. */
		if (by_fd[fd]) {
			by_fd[fd]->failed = true;
			tls_session_free(by_fd[fd]);
		}
		by_fd[fd] = s;
	}
	pthread_mutex_unlock(&sessions_lock);
	return rc;
}

struct tls_session *tls_claim(int fd)
{
	struct tls_session *s = NULL;

	pthread_mutex_lock(&sessions_lock);
	if (fd >= 0 && (size_t)fd < by_fd_room) {
		s = by_fd[fd];
		by_fd[fd] = NULL;
	}
	pthread_mutex_unlock(&sessions_lock);
	return s;
}

void tls_close(int fd)
{
	tls_session_free(tls_claim(fd));
	close(fd);
}

/* SPDX-License-Identifier: MIT */
/* Keys, certificates and trusted CAs from the options; and explanations of failed sessions, one sentence each
 * for common problems, because OpenSSL's messages are hard to understand. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tls_parts.h"

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

void tls_explain(struct tls_session *s, int kind)
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

/* SPDX-License-Identifier: MIT */
/* TLS may be enabled for all servers (--tls) or by the address of one, so related options are checked when
 * all addresses are known. */
#include <stdio.h>

#include "options_check.h"

bool options_tls(const struct options *o)
{
	for (uint32_t i = 0; i < o->server_count; i++)
		if (o->servers[i].tls)
			return true;
	return o->tls.on;
}

const char *options_tls_word(const struct options *o)
{
	return !options_tls(o) || o->mode == MODE_INTRINSIC ? "none"
	       : o->tls.insecure			    ? "not verified"
							    : "verified";
}

void options_check_tls(struct options *o, char *error, size_t size)
{
	struct tls_options *t = &o->tls;
	bool any;

	for (uint32_t i = 0; i < o->server_count; i++)
		o->servers[i].tls |= t->on;
	any = options_tls(o);
	/* Servers that a server names use the same TLS setting. */
	if (any && o->server_count == 1)
		t->on = true;
	if (!any && (t->cacert || t->cacertdir || t->cert || t->key || t->sni || t->insecure))
		snprintf(error, size,
			 "--cacert, --cacertdir, --cert, --key, --sni and --insecure need --tls");
	else if (any && o->delivery != DELIVERY_NONE)
		snprintf(error, size, "--pubsub and --handoff do not support TLS. Remove --tls");
	else if (!t->cert != !t->key)
		snprintf(error, size, "--cert and --key need each other: a certificate and its private key");
	else if (t->insecure && (t->cacert || t->cacertdir))
		snprintf(error, size,
			 "--insecure and --cacert are mutually exclusive: --insecure verifies nothing");
	for (uint32_t i = 0; any && i < o->server_count && !*error; i++)
		if (o->servers[i].socket && o->servers[i].tls && !t->sni && !t->insecure)
			snprintf(error, size,
				 "a Unix socket has no host name to verify. Name the one in the certificate "
				 "with --sni");
}

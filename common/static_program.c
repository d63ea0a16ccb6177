// SPDX-License-Identifier: MIT
/* Part of statically linked programs only (FORKTAIL_STATIC): what they must not, or cannot, take from the
 * host.
 *
 * Names: the host's nsswitch.conf may name modules (systemd, sss, resolve). The C library would load them
 * into this program although they belong to the host's own C library, which crashes. "files" and "dns" are
 * part of the program.
 *
 * Certificates: OpenSSL looks where Debian has them. Other distributions have one file elsewhere. */
#include <nss.h>
#include <stdlib.h>
#include <unistd.h>

static void use_ca_certificates(void)
{
	static const char *const bundles[] = {
	    "/etc/pki/tls/certs/ca-bundle.crt",			 /* Red Hat, Fedora, Amazon Linux */
	    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the same, since Fedora 43 */
	    "/etc/ssl/ca-bundle.pem",				 /* SUSE */
	    "/etc/ssl/certs/ca-certificates.crt",		 /* Alpine, Arch */
	};

	if (access("/usr/lib/ssl/certs", R_OK) == 0)
		return;
	for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++)
		if (access(bundles[i], R_OK) == 0) {
			setenv("SSL_CERT_FILE", bundles[i], 0);
			return;
		}
}

static void __attribute__((constructor)) begin(void)
{
	static const char *const databases[] = {"group", "networks", "passwd", "protocols", "services"};

	for (size_t i = 0; i < sizeof databases / sizeof *databases; i++)
		__nss_configure_lookup(databases[i], "files");
	__nss_configure_lookup("hosts", "files dns");
	use_ca_certificates();
}

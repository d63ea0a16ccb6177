/* SPDX-License-Identifier: MIT */
/* The parser of addresses under libFuzzer: every text gives an address or a sentence, and every address is
 * the same when printed and parsed again. */
#include <stdlib.h>
#include <string.h>

#include "loadgen/options.h"
#include "tests/fuzz/check.h"

static void demand(int good)
{
	if (!good)
		abort();
}

/* A host and its port are the same when printed and parsed again. */
static void read_back(const struct server_address *a)
{
	char text[4096], error[512];
	struct address again;

	if (!a->host || !a->port || strlen(a->host) > sizeof(text) / 2 || strstr(a->host, "://") ||
	    strpbrk(a->host, "/[]"))
		return; /* a decoded host may have characters that no address has */
	address_text(a, text, sizeof(text));
	demand(address_parse(&again, text, error, sizeof(error)));
	demand(strcmp(again.server.host, a->host) == 0 && again.server.port == a->port);
	address_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), error[512] = "";
	struct address a;
	bool good;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	good = address_parse(&a, text, error, sizeof(error));
	if (good) {
		demand(!a.server.host != !a.server.socket);
		demand(a.server.host ? *a.server.host != 0 : *a.server.socket != 0);
		demand(a.server.port <= 65535 && (!a.user || *a.user) && (!a.password || *a.password));
		read_back(&a.server);
	} else {
		demand(*error != 0);
	}
	address_free(&a);
	free(text);
	return 0;
}

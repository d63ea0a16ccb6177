/* SPDX-License-Identifier: MIT */
/* The position of keys is fixed here, because a proxy has no COMMAND. All commands that twemproxy forwards
 * have the key in the second word, except scripts. A command with several keys may go to several servers. */
#include "proxy_ring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "route.h"

void proxy_ring_name(const struct options *o, uint32_t i, char *out, size_t size)
{
	if (o->behind_names[i])
		snprintf(out, size, "%s", o->behind_names[i]);
	else
		ketama_name(&o->behind[i], out, size);
}

int proxy_ring_prepare(struct ketama *ring, const struct options *o, struct workload *w, char *error,
		       size_t size)
{
	char names[BEHIND_MAX][300];
	const char *list[BEHIND_MAX];
	const struct product *product = protocol_of(w->protocol)->product;
	int rc;

	for (uint32_t i = 0; i < w->operation_count; i++) {
		struct step *s = &w->operations[i].steps[0];

		s->route = (struct route){.kind = ROUTE_ANY};
		if (w->operations[i].step_count == 1 && product_one_key(product, &s->command) &&
		    route_settle_word(&s->command, 1))
			s->route = (struct route){.kind = ROUTE_KEY, .word = 1};
	}
	for (uint32_t i = 0; i < o->behind_count; i++) {
		proxy_ring_name(o, i, names[i], sizeof(names[i]));
		list[i] = names[i];
	}
	rc = ketama_init(ring, list, o->behind_count);
	if (rc)
		snprintf(error, size, "cannot hash keys for the servers of --behind: %s",
			 rc == -ENOMEM ? "not enough memory" : "this host's OpenSSL offers no MD5");
	return rc;
}

uint8_t proxy_ring_server(const struct ketama *ring, const struct workload *w, unsigned operation,
			  uint64_t key, struct bytes *scratch)
{
	const struct step *s = &w->operations[operation].steps[0];

	if (s->route.kind != ROUTE_KEY || !route_name(w, s, key, scratch))
		return 0;
	return (uint8_t)(ketama_server(ring, scratch->at, scratch->length) + 1);
}

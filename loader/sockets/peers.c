/* SPDX-License-Identifier: MIT */
/* From the same tables as listening sockets, which do not say who opened a connection: first the ports that are
 * listened on, then the connections at other ports, then those that the process holds. */
#include "loader/sockets/peers.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/sockets/proc_sockets.h"
#include "recording/json/json_block.h"

enum { ESTABLISHED = 1, LISTEN = 0x0a, ADDRESS_BYTES = INET6_ADDRSTRLEN + 8 };

struct outgoing {
	bool listened[UINT16_MAX + 1];
	json_t *by_inode; /* {"12345": "10.0.0.7:6379"} */
	json_t *peers;
};

/* An address as in /proc/net/tcp: 32-bit words in hexadecimal, each in the host's byte order. */
static bool address_text(const char *hex, unsigned port, char *to)
{
	uint32_t words[4];
	size_t n = 0;
	char word[9] = "", text[INET6_ADDRSTRLEN];
	for (; n < 4 && strlen(hex) >= 8; n++, hex += 8) {
		memcpy(word, hex, 8);
		words[n] = (uint32_t)strtoul(word, NULL, 16);
	}
	const bool v6 = n == 4, mapped = v6 && !words[0] && !words[1] && words[2] == htonl(0xffff);
	if ((n != 1 && !v6) ||
	    !inet_ntop(v6 && !mapped ? AF_INET6 : AF_INET, mapped ? words + 3 : words, text, sizeof text))
		return false;
	snprintf(to, ADDRESS_BYTES, v6 && !mapped ? "[%s]:%u" : "%s:%u", text, port);
	return true;
}

static void note_listener(void *context, const struct tcp_socket *s)
{
	struct outgoing *o = context;
	if (s->state == LISTEN)
		o->listened[s->local_port & UINT16_MAX] = true;
}

static void note_connection(void *context, const struct tcp_socket *s)
{
	struct outgoing *o = context;
	char key[32], address[ADDRESS_BYTES];
	if (s->state != ESTABLISHED || o->listened[s->local_port & UINT16_MAX] ||
	    !address_text(s->peer_address, s->peer_port, address))
		return;
	snprintf(key, sizeof key, "%lu", s->inode);
	json_put_text(o->by_inode, key, address);
}

static bool note_peer(void *context, const char *link)
{
	struct outgoing *o = context;
	char key[32] = "";
	size_t i;
	json_t *address, *known;
	if (sscanf(link, "socket:[%31[0-9]]", key) != 1 || !(address = json_object_get(o->by_inode, key)))
		return false;
	json_array_foreach(o->peers, i, known) if (json_equal(known, address)) return false;
	json_array_append(o->peers, address);
	return json_array_size(o->peers) == PEERS_MAX;
}

json_t *peer_addresses(pid_t pid)
{
	struct outgoing *o = calloc(1, sizeof *o);
	json_t *peers = json_array();
	if (!o)
		return peers;
	char text[16];
	static const char *const tables[] = {"tcp", "tcp6"};
	snprintf(text, sizeof text, "%d", pid);
	o->by_inode = json_object();
	o->peers = peers;
	for (size_t i = 0; i < 2; i++)
		each_tcp_socket(text, tables[i], note_listener, o);
	for (size_t i = 0; i < 2; i++)
		each_tcp_socket(text, tables[i], note_connection, o);
	if (json_object_size(o->by_inode))
		any_link(pid, note_peer, o);
	json_decref(o->by_inode);
	free(o);
	return peers;
}

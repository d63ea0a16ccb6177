/* SPDX-License-Identifier: MIT */
/* Tables of sockets do not say who opened a connection: one that comes from a port with a listening socket
 * was accepted. The process' sockets are found first, so that each table is read once and few addresses are
 * kept. */
#include "loader/sockets/peers.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/sockets/proc_sockets.h"
#include "loader/system/grow.h"
#include "recording/json/json_block.h"

enum { ESTABLISHED = 1, LISTEN = 0x0a, ADDRESS_BYTES = INET6_ADDRSTRLEN + 8 };

struct connection {
	unsigned local_port, peer_port;
	char local_address[33], peer_address[33];
};

struct outgoing {
	bool listened[UINT16_MAX + 1];
	json_t *inodes; /* of the process' sockets */
	struct connection *all;
	size_t count, room;
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
	const bool mapped = n == 4 && !words[0] && !words[1] && words[2] == htonl(0xffff),
		   v6 = n == 4 && !mapped;
	if ((n != 1 && n != 4) ||
	    !inet_ntop(v6 ? AF_INET6 : AF_INET, mapped ? words + 3 : words, text, sizeof text))
		return false;
	snprintf(to, ADDRESS_BYTES, v6 ? "[%s]:%u" : "%s:%u", text, port);
	return true;
}

static void note_socket(void *context, const struct tcp_socket *s)
{
	struct outgoing *o = context;
	if (s->state == LISTEN)
		o->listened[s->local_port & UINT16_MAX] = true;
	if (s->state != ESTABLISHED || !has_inode(o->inodes, s->inode) ||
	    !grow(&o->all, &o->room, o->count, sizeof *o->all))
		return;
	struct connection *c = &o->all[o->count++];
	c->local_port = s->local_port;
	c->peer_port = s->peer_port;
	memcpy(c->local_address, s->local_address, sizeof c->local_address);
	memcpy(c->peer_address, s->peer_address, sizeof c->peer_address);
}

static bool has_text(const json_t *texts, const char *text)
{
	size_t i;
	json_t *known;
	json_array_foreach(texts, i, known)
	{
		if (strcmp(json_string_value(known), text) == 0)
			return true;
	}
	return false;
}

static void put_connection(const struct connection *c, json_t *peers, json_t *local_ends)
{
	char address[ADDRESS_BYTES];
	if (json_array_size(peers) < PEERS_MAX && address_text(c->peer_address, c->peer_port, address) &&
	    !has_text(peers, address))
		json_put_text(peers, NULL, address);
	if (json_array_size(local_ends) < LOCAL_ENDS_MAX &&
	    address_text(c->local_address, c->local_port, address))
		json_put_text(local_ends, NULL, address);
}

void peers_put(json_t *object, pid_t pid)
{
	struct outgoing *o = calloc(1, sizeof *o);
	json_t *peers = json_put_array(object, "peers"), *local_ends = json_put_array(object, "local_ends");
	if (!o)
		return;
	char text[16];
	snprintf(text, sizeof text, "%d", pid);
	o->inodes = socket_inodes(pid);
	if (json_object_size(o->inodes)) {
		each_tcp_socket(text, "tcp", note_socket, o);
		each_tcp_socket(text, "tcp6", note_socket, o);
	}
	for (size_t i = 0; i < o->count; i++)
		if (!o->listened[o->all[i].local_port & UINT16_MAX])
			put_connection(&o->all[i], peers, local_ends);
	json_decref(o->inodes);
	free(o->all);
	free(o);
}

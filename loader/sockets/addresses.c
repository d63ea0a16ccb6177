/* SPDX-License-Identifier: MIT */
/* Reads text from /proc, because netlink would only show the recorder's own network namespace. /proc has no
 * list of a namespace's IPv4 addresses, but the routing table shows them: a local address is a leaf "|--
 * 10.0.0.1" with a line "/32 host LOCAL" below it. */
#include "loader/sockets/addresses.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "recording/json/json_block.h"

enum { ADDRESSES_MAX = 256 }; /* of a machine with thousands of addresses, the first ones must suffice */

static void add(json_t *all, int family, const void *address)
{
	char text[INET6_ADDRSTRLEN];
	size_t i;
	json_t *one;

	if (!inet_ntop(family, address, text, sizeof text) || json_array_size(all) >= ADDRESSES_MAX)
		return;
	json_array_foreach(all, i, one) if (!strcmp(json_string_value(one), text)) return;
	json_put_text(all, NULL, text);
}

static void add_ipv4(json_t *all, const char *path)
{
	char line[256], text[INET_ADDRSTRLEN] = "";
	struct in_addr address;
	FILE *in = fopen(path, "re");

	while (in && fgets(line, sizeof line, in)) {
		if (sscanf(line, " |-- %15[0-9.]", text) == 1 || !strstr(line, "/32 host LOCAL"))
			continue;
		if (inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 != IN_LOOPBACKNET)
			add(all, AF_INET, &address);
	}
	if (in)
		fclose(in);
}

static void add_ipv6(json_t *all, const char *path)
{
	char line[256];
	FILE *in = fopen(path, "re");

	while (in && fgets(line, sizeof line, in)) {
		struct in6_addr address;
		bool whole = strlen(line) >= 32;

		for (int i = 0; i < 16 && whole; i++) {
			unsigned int byte;

			whole = sscanf(line + 2 * i, "%2x", &byte) == 1;
			address.s6_addr[i] = (uint8_t)byte;
		}
		if (whole && !IN6_IS_ADDR_LOOPBACK(&address))
			add(all, AF_INET6, &address);
	}
	if (in)
		fclose(in);
}

json_t *addresses_read(const char *fib_trie, const char *if_inet6)
{
	json_t *all = json_array();

	add_ipv4(all, fib_trie);
	add_ipv6(all, if_inet6);
	return all;
}

json_t *addresses_of(pid_t pid)
{
	char fib_trie[64], if_inet6[64];

	snprintf(fib_trie, sizeof fib_trie, "/proc/%d/net/fib_trie", (int)pid);
	snprintf(if_inet6, sizeof if_inet6, "/proc/%d/net/if_inet6", (int)pid);
	return addresses_read(fib_trie, if_inet6);
}

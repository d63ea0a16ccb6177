/* SPDX-License-Identifier: MIT */
/* Reading addresses. A bare IPv6 address has colons of its own, so a port behind one needs the brackets that
 * URIs have: "::1" is a host, "[::1]:6379" a host and its port. */
#include "address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "parse.h"

void address_text(const struct server_address *a, char *out, size_t size)
{
	if (a->socket)
		snprintf(out, size, "unix:%s", a->socket);
	else
		snprintf(out, size, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
}

static bool read_port(struct address *a, const char *port, const char *text, char *error, size_t size)
{
	uint64_t number = 0;

	if (!parse_count(port, 1, 65535, &number)) {
		snprintf(error, size, "the port in \"%.200s\" is a number from 1 to 65535", text);
		return false;
	}
	a->server.port = (uint32_t)number;
	return true;
}

/* "host", "host:port", "[address]" or "[address]:port"; cut up where it lies. */
static bool read_place(struct address *a, char *place, const char *text, char *error, size_t size)
{
	char *end = NULL, *port = NULL;

	if (*place == '[') {
		end = strchr(place, ']');
		if (!end || (end[1] && end[1] != ':')) {
			snprintf(error, size,
				 "\"%.200s\" has a [ and no ] behind the address, or more than a port there",
				 text);
			return false;
		}
		if (end[1])
			port = end + 2;
		*end = 0;
		place++;
	} else if ((end = strchr(place, ':')) && !strchr(end + 1, ':')) {
		*end = 0;
		port = end + 1;
	}
	if (!*place) {
		snprintf(error, size, "\"%.200s\" names no host", text);
		return false;
	}
	a->server.host = place;
	return !port || read_port(a, port, text, error, size);
}

bool address_parse(struct address *a, const char *text, char *error, size_t size)
{
	*a = (struct address){.memory = strdup(text)};
	if (!a->memory) {
		snprintf(error, size, "not enough memory for an address");
		return false;
	}
	a->memory_bytes = strlen(text) + 1;
	if (*text != '/')
		return read_place(a, a->memory, text, error, size);
	if (strlen(text) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(error, size, "\"%.200s\" is longer than a Unix socket's path may be (%zu bytes)",
			 text, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return false;
	}
	a->server.socket = a->memory;
	return true;
}

void address_free(struct address *a)
{
	free(a->memory);
	*a = (struct address){0};
}

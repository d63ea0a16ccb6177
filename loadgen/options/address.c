/* SPDX-License-Identifier: MIT */
/* Parses addresses. A bare IPv6 address contains colons, so a port after it needs brackets as in URIs: "::1"
 * is a host, "[::1]:6379" a host and its port. A URI is split first and its parts are decoded then, so that
 * %40 in a password does not end it. Unsupported parts of a URI are refused instead of ignored: a user who
 * writes ?timeout=5s relies on it. */
#include "loadgen/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "common/text.h"

enum { DATABASE_MAX = 1000000 };

static const struct {
	const char *name;
	enum address_scheme scheme;
	bool tls, path; /* path: of a Unix socket, instead of host and port */
} schemes[] = {
    {"redis", ADDRESS_REDIS, false, false},	    {"rediss", ADDRESS_REDIS, true, false},
    {"unix", ADDRESS_PLAIN, false, true},	    {"redis+unix", ADDRESS_REDIS, false, true},
    {"memcached", ADDRESS_MEMCACHED, false, false},
};
enum { SCHEMES = sizeof(schemes) / sizeof(*schemes) };

void address_text(const struct server_address *a, char *out, size_t size)
{
	if (a->socket)
		snprintf(out, size, "unix:%s", a->socket);
	else
		snprintf(out, size, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
}

/* A sentence about the text, without a possible password. */
static bool refuse(const char *text, const char *what, char *error, size_t size)
{
	const char *rest = strstr(text, "://"), *at = rest ? strrchr(rest, '@') : NULL;

	if (at)
		snprintf(error, size, "\"%.*s...%.200s\" %s", (int)(rest + 3 - text), text, at, what);
	else
		snprintf(error, size, "\"%.200s\" %s", text, what);
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX in place. False: invalid, or a NUL byte. */
static bool decode(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (*text == '%') {
			int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);

			if (low < 0 || high * 16 + low == 0)
				return false;
			*out++ = (char)(high * 16 + low);
			text += 2;
		} else {
			*out++ = *text;
		}
	}
	*out = 0;
	return true;
}

static bool read_port(struct address *a, const char *port, const char *text, char *error, size_t size)
{
	uint64_t number = 0;

	if (!parse_count(port, 1, 65535, &number))
		return refuse(text, "has a port that is not a number from 1 to 65535", error, size);
	a->server.port = (uint32_t)number;
	return true;
}

/* "host", "host:port", "[address]" or "[address]:port"; split in place. */
static bool read_place(struct address *a, char *place, const char *text, char *error, size_t size)
{
	char *end = NULL, *port = NULL;

	if (*place == '[') {
		end = strchr(place, ']');
		if (!end || (end[1] && end[1] != ':'))
			return refuse(text, "has a [ without ], or something other than a port after it",
				      error, size);
		if (end[1])
			port = end + 2;
		*end = 0;
		place++;
	} else if ((end = strchr(place, ':')) && !strchr(end + 1, ':')) {
		*end = 0;
		port = end + 1;
	}
	if (!*place)
		return refuse(text, "has no host", error, size);
	a->server.host = place;
	return !port || read_port(a, port, text, error, size);
}

static bool read_socket(struct address *a, const char *path, const char *text, char *error, size_t size)
{
	if (!*path)
		return refuse(text, "has no socket path", error, size);
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return refuse(text, "has a Unix socket path longer than 107 bytes", error, size);
	a->server.socket = path;
	return true;
}

static bool read_database(struct address *a, const char *database, const char *text, char *error, size_t size)
{
	uint64_t number = 0;

	if (!parse_count(database, 0, DATABASE_MAX, &number))
		return refuse(text, "has a database that is not a number", error, size);
	a->database = (uint32_t)number;
	a->has_database = true;
	return true;
}

/* "user", "user:password" or ":password", before the @. */
static bool read_login(struct address *a, char *login, const char *text, char *error, size_t size)
{
	char *colon = strchr(login, ':');

	if (colon)
		*colon++ = 0;
	if (!decode(login) || (colon && !decode(colon)))
		return refuse(text, "has a % without two hexadecimal digits (not 00) after it", error, size);
	a->user = *login ? login : NULL;
	a->password = colon && *colon ? colon : NULL;
	return true;
}

/* "?db=1" and nothing else; removed from `rest`. */
static bool read_query(struct address *a, char *rest, const char *text, char *error, size_t size)
{
	char *query = strchr(rest, '?');

	if (strchr(rest, '#'))
		return refuse(text, "has a # part, which is not supported", error, size);
	if (!query)
		return true;
	*query++ = 0;
	if (strncmp(query, "db=", 3) != 0)
		return refuse(text, "has a query other than ?db=NUMBER", error, size);
	return read_database(a, query + 3, text, error, size);
}

/* The part after the scheme. */
static bool read_uri(struct address *a, char *rest, bool is_path, const char *text, char *error, size_t size)
{
	char *slash, *at;

	if (!read_query(a, rest, text, error, size))
		return false;
	slash = strchr(rest, '/');
	if (slash && !is_path)
		*slash++ = 0;
	/* A socket's path may contain an @. */
	at = is_path ? memchr(rest, '@', slash ? (size_t)(slash - rest) : strlen(rest)) : strrchr(rest, '@');
	if (at) {
		*at = 0;
		if (!read_login(a, rest, text, error, size))
			return false;
		rest = at + 1;
	}
	if (!is_path && slash && *slash && !read_database(a, slash, text, error, size))
		return false;
	if (!is_path && !read_place(a, rest, text, error, size))
		return false;
	if (!decode(is_path ? rest : (char *)a->server.host))
		return refuse(text, "has a % without two hexadecimal digits (not 00) after it", error, size);
	if (is_path && !read_socket(a, rest, text, error, size))
		return false;
	if (a->scheme == ADDRESS_MEMCACHED && a->has_database)
		return refuse(text, "has a database, but memcached has none", error, size);
	return true;
}

bool address_parse(struct address *a, const char *text, char *error, size_t size)
{
	const char *rest = strstr(text, "://");

	*a = (struct address){.memory = strdup(text), .memory_bytes = strlen(text)};
	if (!a->memory) {
		snprintf(error, size, "not enough memory for an address");
		return false;
	}
	if (*text == '/')
		return read_socket(a, a->memory, text, error, size);
	if (!rest)
		return read_place(a, a->memory, text, error, size);
	for (size_t i = 0; i < SCHEMES; i++) {
		size_t length = strlen(schemes[i].name);

		if (length != (size_t)(rest - text) || strncasecmp(text, schemes[i].name, length) != 0)
			continue;
		a->scheme = schemes[i].scheme;
		a->server.tls = schemes[i].tls;
		return read_uri(a, a->memory + length + 3, schemes[i].path, text, error, size);
	}
	return refuse(text, "does not begin with redis://, rediss://, unix:// or memcached://", error, size);
}

void address_free(struct address *a)
{
	if (a->memory)
		explicit_bzero(a->memory, a->memory_bytes);
	free(a->memory);
	*a = (struct address){0};
}

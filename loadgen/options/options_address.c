/* SPDX-License-Identifier: MIT */
/* Options with addresses: -h, --server, -u and --sentinel accept the same forms, and a URI contains more than
 * an address. A password in a URI is refused on the command line, where every user of the host can read it.
 * $FORKTAIL_URI may contain one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options_check.h"

/* Two addresses, or an address and an option, that contradict each other. */
static error_t take_login(const struct address *a, const char *what, struct options *o)
{
	if (a->user && o->user && strcmp(a->user, o->user) != 0)
		return options_refuse("%s names user %s and another option names %s. A run has one user",
				      what, a->user, o->user);
	if (a->has_database && o->database && a->database != o->database)
		return options_refuse(
		    "%s names database %u and another option names %u. A run has one database", what,
		    a->database, o->database);
	if (a->user)
		o->user = a->user;
	if (a->has_database)
		o->database = a->database;
	return 0;
}

/* Parses `text` and applies its parts besides the address. *a: the caller keeps it when 0 is returned. */
static error_t take(const char *text, const char *what, struct options *o, struct given *g, bool secret,
		    struct address *a)
{
	char error[512];
	error_t result = 0;

	if (!address_parse(a, text, error, sizeof(error)))
		result = options_refuse("%s: %s", what, error);
	else if (a->password && !secret)
		result = options_refuse(
		    "every user of this host can read a password on the command line. Remove it from the URI "
		    "and set FORKTAIL_PASSWORD, put the whole URI into FORKTAIL_URI, or use --password-file");
	else if (a->password && !(o->password = strdup(a->password)))
		result = options_refuse("not enough memory for a password");
	else
		result = take_login(a, what, o);
	if (result) {
		address_free(a);
		return result;
	}
	if (a->password)
		explicit_bzero((char *)a->password, strlen(a->password));
	g->says_redis |= a->scheme == ADDRESS_REDIS;
	g->says_memcached |= a->scheme == ADDRESS_MEMCACHED;
	return 0;
}

static error_t read_server(const char *text, const char *what, struct options *o, struct given *g,
			   bool secret)
{
	struct address a;
	error_t result;

	if (o->server_count == SERVERS_MAX)
		return options_refuse("more than %d --server", SERVERS_MAX);
	result = take(text, what, o, g, secret, &a);
	if (result)
		return result;
	o->server_memory[o->server_count] = a.memory;
	o->servers[o->server_count++] = a.server;
	return 0;
}

error_t options_read_server(const char *text, const char *what, struct options *o, struct given *g)
{
	return read_server(text, what, o, g, false);
}

error_t options_read_host(const char *text, struct options *o, struct given *g)
{
	if (strstr(text, "://"))
		return read_server(text, "-h", o, g, false);
	g->host = text;
	return 0;
}

error_t options_read_sentinel(const char *text, struct options *o, struct given *g)
{
	struct address a;
	error_t result;

	if (o->sentinel_count == SENTINELS_MAX)
		return options_refuse("more than %d --sentinel", SENTINELS_MAX);
	result = take(text, "--sentinel", o, g, false, &a);
	if (result)
		return result;
	if (!a.server.port)
		a.server.port = SENTINEL_PORT;
	if (a.server.tls)
		o->tls.on = true; /* the same for all servers of a deployment */
	o->sentinel_memory[o->sentinel_count] = a.memory;
	o->sentinels[o->sentinel_count++] = a.server;
	return 0;
}

/* An entry of --behind: "server0=127.0.0.1:6380", or without the name. */
static error_t read_one_behind(char *text, struct options *o)
{
	size_t name = strcspn(text, "=/:[");
	struct address a;
	char error[512];

	if (o->behind_count == BEHIND_MAX)
		return options_refuse("--behind: more than %d servers", BEHIND_MAX);
	name = text[name] == '=' ? name + 1 : 0;
	if (name == 1)
		return options_refuse("--behind: \"%s\" has no name before its =", text);
	if (!address_parse(&a, text + name, error, sizeof(error))) {
		address_free(&a);
		return options_refuse("--behind: %s", error);
	}
	if (strstr(text + name, "://")) {
		address_free(&a);
		return options_refuse(
		    "--behind: expected HOST:PORT or /PATH as in the proxy's list of servers, got a URI");
	}
	o->behind_names[o->behind_count] = name ? strndup(text, name - 1) : NULL;
	o->behind_memory[o->behind_count] = a.memory;
	o->behind[o->behind_count++] = a.server;
	return 0;
}

error_t options_read_behind(const char *text, struct options *o)
{
	char *list = strdup(text), *rest = list, *one;
	error_t result = list ? 0 : options_refuse("not enough memory for --behind");

	while (!result && (one = strsep(&rest, ",")))
		result = read_one_behind(one, o);
	free(list);
	return result;
}

error_t options_read_environment(struct options *o, struct given *g)
{
	const char *uri = getenv("FORKTAIL_URI");

	if (!uri || !*uri || o->server_count || o->sentinel_count || g->host || g->socket || g->port)
		return 0;
	return read_server(uri, "FORKTAIL_URI", o, g, true);
}

void options_check_schemes(struct options *o, const struct given *g, char *error, size_t size)
{
	const struct product *product = protocol_of(o->protocol)->product;

	if (g->says_redis && (g->says_memcached || product != &redis_product))
		snprintf(error, size, "memcached does not use a redis:// address. Choose one");
	else if (g->says_memcached && product != &memcached_product)
		o->protocol = product_protocol(&memcached_product);
}

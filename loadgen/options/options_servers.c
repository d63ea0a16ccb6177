/* SPDX-License-Identifier: MIT */
/* The servers of the load: addresses, kind of deployment, and options that can't be combined with several
 * servers. */
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "options_check.h"

/* The addresses of --server, or the one of -h, -p and -s. */
static void settle_servers(struct options *o, const struct given *g, char *error, size_t size)
{
	uint32_t port = g->port ? g->port : protocol_of(o->protocol)->product->port;

	if (g->socket && strlen(g->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(error, size, "-s: longer than the path of a Unix socket can be (%zu bytes)",
			 sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return;
	}
	if (o->server_count && (g->host || g->socket)) {
		snprintf(error, size, "-h and -s are mutually exclusive with --server");
		return;
	}
	if (o->sentinel_count && (o->server_count || g->host || g->socket || g->port)) {
		snprintf(error, size, "--sentinel finds the server. Remove --server, -h, -p and -s");
		return;
	}
	if (!o->server_count)
		o->servers[o->server_count++] =
		    (struct server_address){.host = g->host ? g->host : "127.0.0.1", .socket = g->socket};
	for (uint32_t i = 0; i < o->server_count; i++)
		if (!o->servers[i].port)
			o->servers[i].port = port;
}

static void settle_deployment(struct options *o, const struct given *g, char *error, size_t size)
{
	const struct product *product = protocol_of(o->protocol)->product;

	o->deployment = g->cluster		       ? DEPLOYMENT_CLUSTER
			: o->sentinel_count	       ? DEPLOYMENT_PRIMARY
			: o->server_count > 1	       ? DEPLOYMENT_RING
			: o->read_from != READ_PRIMARY ? DEPLOYMENT_PRIMARY
						       : DEPLOYMENT_SINGLE;
	if (!product->replicas &&
	    (g->cluster || o->sentinel_count || o->read_from != READ_PRIMARY || o->wait_replicas))
		snprintf(error, size,
			 "--cluster, --sentinel, --read-from and --wait need Redis; %s has no replicas",
			 product->name);
	else if (g->cluster && o->sentinel_count)
		snprintf(
		    error, size,
		    "--cluster and --sentinel are mutually exclusive: a cluster fails over without Sentinel");
	else if (g->master && !o->sentinel_count)
		snprintf(error, size, "--master needs --sentinel");
	else if (o->deployment == DEPLOYMENT_RING && o->read_from != READ_PRIMARY)
		snprintf(error, size,
			 "--read-from needs --cluster, --sentinel or one --server: several --server are not "
			 "replicas of each other");
	else if (g->cluster && o->database)
		snprintf(error, size, "a cluster has database 0 only. Remove --dbnum");
}

/* Options that concern one connection or one server. */
static void check_several(const struct options *o, const struct given *g, char *error, size_t size)
{
	const struct {
		bool given;
		const char *name;
	} all[] = {
	    {o->blocking, o->no_wait ? "--no-wait" : "--blocking"},
	    {o->think_ns > 0, "--think"},
	    {o->reconnect_after > 0, "--reconnect and -k 0"},
	    {o->split, "--key-split"},
	    {o->has_connections_profile, "a profile of connections"},
	    {g->batch, "--batch"},
	    {o->idle > 0, "--idle"},
	    {o->ycsb == 'E', "--ycsb E, whose scans read keys of all servers,"},
	    {o->mode == MODE_INTRINSIC, "--intrinsic"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !*error; i++)
		if (all[i].given)
			snprintf(error, size, "%s does not work with several servers yet", all[i].name);
}

static void check_behind(struct options *o, char *error, size_t size)
{
	char text[300], other[300];

	for (uint32_t i = 0; i < o->behind_count; i++) {
		if (!o->behind[i].port)
			o->behind[i].port = protocol_of(o->protocol)->product->port;
		address_text(&o->behind[i], text, sizeof(text));
		for (uint32_t k = 0; k < i && !*error; k++) {
			address_text(&o->behind[k], other, sizeof(other));
			if (strcmp(text, other) == 0)
				snprintf(error, size, "--behind names %.200s twice", text);
		}
	}
	if (*error || !o->behind_count)
		return;
	if ((o->deployment != DEPLOYMENT_SINGLE && o->deployment != DEPLOYMENT_RING) || o->wait_replicas)
		snprintf(error, size,
			 "--behind lists the servers of a proxy. Remove --cluster, --sentinel, --read-from "
			 "and --wait");
	else if (o->replay_path || o->delivery != DELIVERY_NONE || o->mode != MODE_LOAD)
		snprintf(error, size,
			 "--behind needs a workload whose keys it knows. Remove --replay, --pubsub, "
			 "--handoff and probes");
	else if (!o->log_path)
		snprintf(error, size, "--behind is written to the log. Name the log with -o");
}

void options_check_servers(struct options *o, const struct given *g, char *error, size_t size)
{
	settle_servers(o, g, error, size);
	if (!*error)
		settle_deployment(o, g, error, size);
	if (!*error)
		check_behind(o, error, size);
	if (!*error && o->wait_replicas && o->ycsb)
		snprintf(error, size, "--wait does not work with --ycsb. Remove one");
	if (o->deployment == DEPLOYMENT_SINGLE || *error)
		return;
	check_several(o, g, error, size);
	/* Connections are reopened to a node that returns, or to its successor. */
	if (!g->on_error)
		o->on_error = ON_ERROR_RECONNECT;
}

/* SPDX-License-Identifier: MIT */
/* Kinds of deployments, and which servers may answer. */
#ifndef FORKTAIL_LOADGEN_DEPLOYMENT_H
#define FORKTAIL_LOADGEN_DEPLOYMENT_H

enum deployment {
	DEPLOYMENT_SINGLE,  /* one server, or one proxy */
	DEPLOYMENT_CLUSTER, /* a Redis Cluster: keys by slot */
	DEPLOYMENT_PRIMARY, /* a primary with replicas, found by Sentinel or by its ROLE */
	DEPLOYMENT_RING,    /* independent servers: keys by ketama */
};

/* Which servers may answer read-only commands. */
enum read_from { READ_PRIMARY, READ_REPLICA, READ_ANY, READ_NEAREST };

#endif

/* SPDX-License-Identifier: MIT */
/* What kind of servers the load goes to, and which of them may answer. */
#ifndef FORKTAIL_LOADGEN_DEPLOYMENT_H
#define FORKTAIL_LOADGEN_DEPLOYMENT_H

enum deployment {
	DEPLOYMENT_SINGLE,  /* one server, or one proxy */
	DEPLOYMENT_CLUSTER, /* a Redis Cluster: keys by slot */
	DEPLOYMENT_PRIMARY, /* a primary with replicas, by Sentinel or by its own word */
	DEPLOYMENT_RING,    /* servers that know nothing of each other: keys by ketama */
};

/* Who may answer what only reads. */
enum read_from { READ_PRIMARY, READ_REPLICA, READ_ANY, READ_NEAREST };

#endif

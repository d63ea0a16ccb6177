/* SPDX-License-Identifier: MIT */
/* How messages get from senders to consumers. */
#ifndef FORKTAIL_LOADGEN_DELIVERY_KIND_H
#define FORKTAIL_LOADGEN_DELIVERY_KIND_H

enum delivery_kind {
	DELIVERY_NONE,
	DELIVERY_PUBSUB, /* PUBLISH to channels; every subscriber receives all of them */
	DELIVERY_LIST,	 /* RPUSH and BLPOP: one consumer gets each element */
	DELIVERY_STREAM, /* XADD and XREAD BLOCK: every consumer of a stream gets each entry */
	DELIVERY_GROUP,	 /* XADD and XREADGROUP BLOCK: one consumer of the group gets each entry */
};

#endif

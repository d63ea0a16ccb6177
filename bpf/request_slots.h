/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs of requests.bpf.c remember of a connection. */
#ifndef FORKTAIL_BPF_REQUEST_SLOTS_H
#define FORKTAIL_BPF_REQUEST_SLOTS_H

#include "bpf/request_events.h"
#include "types.h"

struct arrivals_queue {
	/* written by the deliverer */
	u32 head;
	u32 arrived; /* offset after the last byte that arrived */
	struct ft_request_arrival queue[FT_ARRIVALS];
};

struct slot {
	struct arrivals_queue arrivals;
	/* written by the server */
	u64 tail;
	u64 left_ns;  /* of the write call under way; 0: nothing left yet */
	u64 write_ns; /* the last write event */
	u32 connection;
	u32 read; /* offset after the last byte that was read */
	u32 writes, unsent;
	u32 full;     /* the last write found no space */
	u32 captured; /* bytes since the last write */
	u32 ready;
	u32 known;    /* its target's process is known */
	u32 sequence; /* of the next event */
	u32 epoch;    /* in which the other members were set */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct slot);
} slots SEC(".maps");

#endif

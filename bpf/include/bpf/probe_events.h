/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Data that probes.bpf.c passes to the recorder. */
#ifndef FORKTAIL_BPF_PROBE_EVENTS_H
#define FORKTAIL_BPF_PROBE_EVENTS_H

#include <linux/types.h>

enum {
	FT_PROBES_MAX = 16,
	FT_PROBE_RING = 1 << 16, /* bytes */
	FT_PROBE_WINDOW_EVENTS =
	    2, /* of a probe in a window of the kernel's clock; others are only counted */
};
#define FT_PROBE_WINDOW_NS 100000000ull

/* A place in a program was reached. */
struct ft_probe_hit {
	__u64 t_ns;
	__u64 duration_ns; /* from the function's entry to its return; 0: a place without a return */
	__u32 probe;	   /* its number */
	__u32 tid, tgid;   /* in the recorder's pid namespace */
	__u32 pad;
};

#endif

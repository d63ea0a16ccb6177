/* SPDX-License-Identifier: GPL-2.0-only */
/* The files with programs that must not be preempted, as one: bpftool cannot link objects that call the same
 * kernel function (bpftool 7.1: "failed to resolve size of underlying type"). */
#include "accounts.bpf.c"
#include "blockio.bpf.c"
#include "faults.bpf.c"
#include "functions.bpf.c"
#include "memory.bpf.c"
#include "writes.bpf.c"

/* SPDX-License-Identifier: MIT */
/* Which thread of a server with several serves which connection: the one that reads it, seen by a program
 * (bpf/readers.bpf.c). It costs every read of a socket on the host half a microsecond, so it is
 * attached only while it takes less than a thousandth of a CPU, and for short times while more is read.
 * Another program sees which thread closes a TCP connection. It is attached as long as a target has several
 * threads that serve: it costs little compared with opening and closing a connection. */
#ifndef FORKTAIL_LOADER_READERS_H
#define FORKTAIL_LOADER_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct readers;

/* Loads the program, which shares the map of targets, and starts the process that attaches it. NULL: see
 * errno. */
struct readers *readers_open(int targets_map, uint32_t pid_namespace);
/* Writes what was seen, and attaches or detaches. `wanted`: a target has several threads that serve. Call it
 * often. */
void readers_tick(struct readers *r, struct ft_writer *w, bool wanted, uint64_t now_ns);
/* A new file begins: all are written again. */
void readers_begin_segment(struct readers *r);
struct bpf_object;
/* The program, for its cost. NULL: none. */
struct bpf_object *readers_programs(const struct readers *r);
void readers_close(struct readers *r);

#ifdef __cplusplus
}
#endif

#endif

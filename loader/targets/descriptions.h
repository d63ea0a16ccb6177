/* SPDX-License-Identifier: MIT */
/* What manifests say of each target: its names, where it listens, the servers that it is a client of, its
 * cgroup. */
#ifndef FORKTAIL_LOADER_DESCRIPTIONS_H
#define FORKTAIL_LOADER_DESCRIPTIONS_H

#include <jansson.h>
#include <stdint.h>

#include "loader/targets/targets.h"

#ifdef __cplusplus
extern "C" {
#endif

struct descriptions;

enum { DESCRIPTION_CMDLINE_BYTES = 1024 };

/* NULL: no memory, which all others accept: then nothing is known of any target. */
struct descriptions *descriptions_open(void);

/* Looks the process up, but for its command line: reading that may take long, so the caller knows it. The
 * result is valid until its next look or descriptions_forget(): {"pid", "comm", "cmdline", "listens",
 * "io_uring", "addresses", "peers", "local_ends", and, if it is in a cgroup, "cgroup" and "cgroup_of"}. */
json_t *descriptions_add(struct descriptions *d, pid_t pid, const char *cmdline, uint64_t now_ns);
void descriptions_forget(struct descriptions *d, pid_t pid);

/* Those of all added processes: a new array. */
json_t *descriptions_all(const struct descriptions *d);

/* Call it at every tick. Looks up one process again, if it is time for one: after a minute, and after some
 * seconds in its first 15 seconds, in which a server begins to listen. Less often where this would take
 * more than one part in 500 of a CPU's time. Returns its description, or NULL: none was looked up. */
json_t *descriptions_tick(struct descriptions *d, uint64_t now_ns);

void descriptions_close(struct descriptions *d);

#ifdef __cplusplus
}
#endif

#endif
